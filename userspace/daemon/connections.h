// The connections that the daemon was told of: names to numbers, policies, stream blocks, and the
// slot table's upkeep. Service thread only: it waits for grace periods.
//
// The single writer of the slot table. Of the control page it writes one word, `stash_used`, by way
// of the SlotTable; every other word of it is the tick thread's or the CLI's.
#ifndef EDGESHED_USERSPACE_DAEMON_CONNECTIONS_H_
#define EDGESHED_USERSPACE_DAEMON_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "maps/connection.h"
#include "userspace/core/codes.h"
#include "userspace/core/model.h"
#include "userspace/core/numbering.h"
#include "userspace/daemon/allow_list.h"
#include "userspace/daemon/protocol.h"
#include "userspace/kernel/slot_table.h"
#include "userspace/kernel/stream_block.h"

namespace edgeshed::daemon {

/// Priority of a connection that nobody gave one: the middle.
inline constexpr std::uint32_t kDefaultPriority = 128;

class Connections {
 public:
  /// What a former daemon left.
  struct Adopted {
    std::size_t kept = 0;
    std::size_t repaired = 0;  // slots that contradicted their record
    std::size_t dropped = 0;   // of an endpoint, room or class that the configuration lacks
    std::size_t awaited = 0;   // of those kept: a session's, to be registered again or removed
  };

  /// Hears how many connections of an endpoint (number) are of some kind now.
  using EndpointCount = std::function<void(std::uint8_t endpoint, std::uint32_t connections)>;

  /// `streams`: blocks 0 to geometry.stream_blocks; 0 is nobody's. Everything outlives it.
  Connections(const core::Model& model, const kernel::SlotTableMemory& memory,
              std::span<es_stream_block> streams, kernel::Grace grace);

  /// Takes over the table as it is, then adds the configuration's own connections. Call it first.
  /// `live`: what the numbers in the records meant when they were written.
  /// What sessions of the former daemon owned is kFormerSession's from here on.
  Adopted adopt(const core::Numbering& live = {});

  /// A reload, before the next plan: removes what `next` has no place for, and what stood in the
  /// former configuration only. Returns the number removed.
  std::size_t make_room_for(const core::Model& next, const core::Numbering& live);
  /// A reload, after the next plan: from here on `next` is the model; its connections are added.
  void use(const core::Model& next);

  /// Adds or changes one. Empty, or one line: what is wrong and what is allowed.
  [[nodiscard]] std::string connect(const ConnectRequest& request);

  /// Removes one. Empty, or one line.
  [[nodiscard]] std::string disconnect(const DisconnectRequest& request);

  static constexpr std::uint32_t kNoSession = 0;
  static constexpr std::uint32_t kFormerSession = 1;  // of a former daemon; sessions begin at 2
  /// A session's connection: adds or changes one, and makes it that session's. Empty, or why not.
  /// `row`: the session's name for it; the last row that names a connection has it.
  [[nodiscard]] std::optional<core::Code> register_for(std::uint32_t session, std::uint32_t row,
                                                       const es_key& key, es_policy policy);
  /// Lets go of a connection if it is that session's and row's. False: it is not. One that the
  /// configuration holds stays, as the configuration says.
  bool unregister(std::uint32_t session, std::uint32_t row, const es_key& key);
  /// The same for all that these sessions still have. Returns how many.
  std::size_t remove_sessions(std::span<const std::uint32_t> sessions);
  /// Whose a connection is; kNoSession: nobody's, or not there.
  struct Owner {
    std::uint32_t session = kNoSession;
    std::uint32_t row = 0;
  };
  [[nodiscard]] Owner owner_of(const es_key& key) const;
  /// Every connection of which the packet path has seen an acknowledgement.
  void each_acked(const std::function<void(const Owner& owner, const es_connection& record,
                                           es_ack_watch& acks)>& each) const;
  /// Rooms in which a session has connections.
  [[nodiscard]] std::vector<std::uint16_t> rooms_of(std::uint32_t session) const;
  /// Called with the session of a live record that somebody else asks for: true if it is alive.
  std::function<bool(std::uint32_t session)> session_lives;

  /// Exempts exactly those connections that `allowed` names, now and whenever one is added.
  void allow(const AllowList& allowed);
  EndpointCount exempt_changed;

  /// A session's connection reads too slowly: from now on best-effort to it is dropped, until it is
  /// removed. Nothing if it is not that session's and row's.
  void throttle(std::uint32_t session, std::uint32_t row, const es_key& key);
  /// Closes or opens a stream of that connection. Empty: done; else why not, one line.
  [[nodiscard]] std::string set_stream(std::uint32_t session, std::uint32_t row, const es_key& key,
                                       const kernel::StreamOrder& order);
  /// Hears the number of throttled connections of each endpoint in which it has changed since the
  /// last call.
  void take_throttled_changes(const EndpointCount& take);

  /// Hears the sum of weights of each room in which it has changed since the last call.
  void take_weight_changes(const std::function<void(std::uint16_t room, double weight)>& take);

  /// Frees what was removed, after one grace period. Call it now and then.
  void upkeep();

  [[nodiscard]] std::size_t size() const { return table_.size(); }
  [[nodiscard]] std::size_t capacity() const { return table_.capacity(); }

 private:
  [[nodiscard]] std::string insert(const es_key& key, const es_policy& policy);
  void insert_configured();
  void remove_record(std::uint32_t record);
  void count_exempt();
  /// Counts records per endpoint and tells what differs from `told`, by endpoint number.
  void tell_counts(const std::function<bool(const es_connection&)>& counts_in,
                   std::vector<std::uint32_t>& told, const EndpointCount& tell) const;
  void weigh(const es_policy& policy, double sign);
  [[nodiscard]] std::string read_key(const std::string& remote, const std::string& endpoint,
                                     es_key& key) const;
  [[nodiscard]] std::string read_policy(const ConnectRequest& request,
                                        const core::Endpoint& endpoint, es_policy& policy) const;
  [[nodiscard]] static bool is_of_model(const core::Model& model, const core::Numbering& live,
                                        const es_connection& record);
  void let_go(std::uint32_t record);
  [[nodiscard]] const core::Connection* configured(const es_key& key) const;
  [[nodiscard]] bool wants_streams(std::uint16_t room) const;
  [[nodiscard]] std::uint32_t take_stream_block(std::uint16_t room);
  void adopt_stream_block(std::uint32_t record, std::vector<bool>& used);

  const core::Model* model_;
  const AllowList* allowed_ = nullptr;
  std::span<es_flow_state> states_out_;          // by record
  std::vector<Owner> owner_;                     // the same
  std::vector<std::uint32_t> exempt_counts_;     // by endpoint number, as told last
  std::vector<std::uint32_t> throttled_counts_;  // the same
  bool throttled_changed_ = false;
  std::vector<double> weights_;       // by room
  std::vector<bool> weight_changed_;  // by room
  std::span<es_connection> records_;
  std::span<es_stream_block> streams_;
  kernel::SlotTable table_;
  std::vector<std::uint32_t> free_blocks_;
  std::vector<std::uint32_t> pending_blocks_;  // of removed connections, grace outstanding
};

}  // namespace edgeshed::daemon

#endif
