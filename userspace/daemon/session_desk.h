// What game servers' sessions mean here: which shard, which rooms, which connections, and what they
// hear of the shard's rungs. Service thread only; the tick thread gets the boards by command.
//
// A session can only touch its own shard: its rooms, the connections in them, its report. One that
// dies leaves its connections for kOrphanSeconds, in case it comes back and names them again.
#ifndef EDGESHED_USERSPACE_DAEMON_SESSION_DESK_H_
#define EDGESHED_USERSPACE_DAEMON_SESSION_DESK_H_

#include <boost/json/array.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/daemon/ack_watch.h"
#include "userspace/daemon/command_sender.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/room_places.h"
#include "userspace/daemon/room_rungs.h"
#include "userspace/daemon/room_watch.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/session/boards.h"
#include "userspace/session/session.h"

namespace edgeshed::daemon {

inline constexpr std::uint64_t kOrphanSeconds = 10;

struct SessionDeskEdges {
  const core::Model* model = nullptr;
  std::uint32_t room_rows = 0;  // of the maps
  Connections* connections = nullptr;
  CommandSender* commands = nullptr;
  SnapshotBox* snapshots = nullptr;
  RefusalQueue* refusals = nullptr;       // may be null
  std::function<std::uint64_t()> now_ns;  // CLOCK_MONOTONIC
  std::function<std::uint64_t()> jiffies;
  std::uint32_t hz = 1;  // jiffies per second
};

class SessionDesk : public session::SessionHost {
 public:
  explicit SessionDesk(const SessionDeskEdges& edges);
  ~SessionDesk() override;

  // session::SessionHost
  std::variant<session::Grant, session::Refused> open(session::SessionId id,
                                                      const session::ServerIdentity& who,
                                                      const es_session_hello& hello,
                                                      session::SessionOutput& output) override;
  std::variant<std::uint32_t, session::Refused> room_open(session::SessionId id,
                                                          std::string_view room,
                                                          std::uint32_t players) override;
  void welcomed(session::SessionId id) override;
  void room_close(session::SessionId id, std::uint32_t room) override;
  std::optional<session::Refused> connect(session::SessionId id,
                                          const es_session_connect& peer) override;
  void disconnect(session::SessionId id, std::uint32_t row) override;
  void set_stream(session::SessionId id, const es_session_stream& stream) override;
  void ended(session::SessionId id) override;

  /// Whether a session is open now.
  [[nodiscard]] bool lives(session::SessionId id) const { return sessions_.contains(id); }

  /// A daemon that starts: what sessions of the former one owned is awaited from now on.
  void await_former();

  /// A shard is closed for new rooms, or open again: placement and its server are told. False: it
  /// was so already.
  bool drain(std::uint32_t shard, bool on);

  /// A shard, or a room by hand, went to another rung: its server is told.
  void rung_changed(const ShardChange& change);

  /// Rooms went to other rungs of their own ladder: their servers are told, in one event when all
  /// of a server's rooms went alike.
  void room_rungs_changed(const std::vector<RoomRungChange>& changes);

  /// What is due: orphans whose time is up, boards that the tick thread has let go of, reports that
  /// were refused. Call it every 100 ms or so.
  void upkeep();

  /// A reload: `next` runs from now on. Sessions that it changes anything for (their shard, a room
  /// that they have open) end, so that their server registers anew.
  void use(const core::Model& next);

  /// Whether a room could be placed now: empty, or why not. Changes nothing.
  [[nodiscard]] std::optional<session::Refused> judge_placement(std::uint16_t room,
                                                                std::uint32_t players) const;

  /// Sessions of shards `first` to `end` - 1:
  /// [{"shard":...,"server":...,"pid":...,"rooms":2,"connections":31,...}].
  [[nodiscard]] boost::json::array to_json(std::size_t first, std::size_t end) const;
  /// Calls `each` for every open session: its shard, and the process at its other end.
  void each_server(const std::function<void(session::SessionId, std::uint32_t shard,
                                            std::uint32_t pid)>& each) const;
  [[nodiscard]] const RoomPlaces& places() const { return places_; }
  [[nodiscard]] const RoomWatch& rooms() const { return watch_; }
  [[nodiscard]] const AckWatch& acks() const { return acks_; }

 private:
  struct Peer {
    es_key key{};
    std::uint64_t player = 0;
    std::uint16_t room = 0;
    bool used = false;
    WatchedPeer watched;
  };
  struct Open {
    std::uint32_t shard = 0;
    std::string server;
    session::ServerIdentity who;
    bool thins = false;  // asks before it sends
    std::unique_ptr<session::Boards> boards;
    session::SessionOutput* output = nullptr;
    std::vector<Peer> peers;  // by row
    std::uint32_t connections = 0;
    std::uint64_t registrations = 0;    // taken, ever: a server that repeats itself shows here
    std::uint64_t refused = 0;          // registrations
    std::uint64_t reports_refused = 0;  // as told
  };
  struct Orphans {
    session::SessionId session = 0;
    std::uint64_t until_ns = 0;
  };
  struct Retired {
    std::unique_ptr<session::Boards> boards;
    std::uint64_t ticks = 0;  // the tick thread has let go when it has counted to this; 0: not told
  };

  Open* find(session::SessionId id);
  std::optional<session::Refused> check_peer(session::SessionId id, const Open& open,
                                             const es_session_connect& peer, es_key& key,
                                             es_policy& policy) const;
  void tell(Open& open, es_session_event event, core::Code code, std::string text = {});
  void tell_draining(Open& open);
  [[nodiscard]] std::uint8_t rung_of(std::uint32_t shard) const;
  void tell_refused_reports(const Snapshot& snapshot);
  void tell_refused_messages(const Snapshot& snapshot);
  void tell_refused_message(const es_event& event, const Snapshot& snapshot);
  void tell_ticks();
  void room_changed(const Open& open, std::uint16_t room, bool is_open);
  void expire_orphans(std::uint64_t now_ns);
  void watch_peers();
  void watch_peer(session::SessionId id, Open& open, std::uint32_t row, std::uint64_t now_ns);
  void tell_room(std::uint16_t room, const core::RoomState& state);
  [[nodiscard]] bool survives(session::SessionId id, const Open& open,
                              const core::Model& next) const;

  SessionDeskEdges edges_;
  std::map<session::SessionId, Open> sessions_;
  RoomPlaces places_;
  RoomWatch watch_;
  AckWatch acks_;
  std::vector<Orphans> orphans_;
  std::vector<Retired> retired_;
  std::uint64_t ticks_seen_ = 0;
  std::minstd_rand chance_;  // spreads the returns of the refused; nothing depends on it being good
  // What the tick thread is to be told at the next upkeep: a server may change its mind faster.
  std::set<std::uint16_t> rooms_to_tell_;
  std::set<std::uint32_t> shards_to_tell_;
};

}  // namespace edgeshed::daemon

#endif
