// A world to run packets in: one loaded object, a plan, connections, a clock that the test moves,
// and verdicts read back from what the programs counted. Must not decide anything itself.
//
//   World w;
//   w.endpoint({.protocol = ES_PROTOCOL_lane}).connect("10.0.0.2", 4000, {.room = 3});
//   w.rules(3, ES_IN).drop_mask = 1 << ES_LANE_voice;
//   w.publish();
//   EXPECT_EQ(w.xdp(from_remote({}, lane_payload({.lane = ES_LANE_voice}))).reason,
//             ES_REASON_room_paused);
//
// Nothing sheds unless a test says so. The destructor checks the ledger.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "maps/connection.h"
#include "maps/control.h"
#include "maps/counters.h"
#include "maps/events.h"
#include "maps/lane_header.h"
#include "maps/lanes.h"
#include "maps/plan.h"
#include "maps/reasons.h"
#include "tests/support/bytes.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::test {

// Return values of the programs, so that tests need no kernel header.
inline constexpr int kXdpDrop = 1;
inline constexpr int kXdpPass = 2;
inline constexpr int kXdpTx = 3;
inline constexpr int kTcPass = -1;  // TC_ACT_UNSPEC: the next filter decides
inline constexpr int kTcDrop = 2;

inline constexpr std::uint8_t kNoReason = 0xff;

/// The four programs of the object, by name.
enum class Program { kXdp, kTc, kXdpServers, kTcServers };

/// Sizes of the maps and the kernel's HZ as the program sees it. Worlds of equal sizes share one
/// loaded object.
struct WorldSizes {
  std::uint32_t hz = 250;
  std::uint32_t endpoints = 8;
  std::uint32_t rooms = 16;
  std::uint32_t classes = 8;
  std::uint32_t connections = 1024;
  std::uint32_t stream_blocks = 64;
  std::uint32_t buckets = 200;
  bool operator==(const WorldSizes&) const = default;
};

/// What an endpoint starts with; everything else by World::endpoint_row().
struct EndpointSpec {
  std::uint8_t number = 1;
  std::uint16_t port = 7777;
  es_protocol protocol = ES_PROTOCOL_lane;
  std::string address = "10.0.0.1";  ///< empty: any
  std::uint8_t flags = 0;            ///< ES_EP_*
  std::uint8_t default_lane = ES_LANE_command;
};

struct ConnectionSpec {
  std::uint8_t endpoint = 1;
  std::uint16_t room = 0;
  std::uint8_t contract_class = 0;
  std::uint8_t priority = 128;
  std::uint16_t flags = 0;  ///< ES_CONN_*
  std::uint16_t weight_inverse_q8 = 256;
  std::uint32_t stream_block = 0;  ///< 0: none
};

/// What the kernel is told about a packet at TC. 0: as the frame is.
struct TcContext {
  std::uint32_t gso_segs = 0;
  std::uint32_t wire_len = 0;
};

/// What became of one packet. All but `action` and `frame` is read from the counters.
struct Verdict {
  int action = -1;  ///< XDP_* or TC_ACT_*
  bool at_tc = false;
  Bytes frame;  ///< as the program left it
  std::uint8_t endpoint = 0;
  std::uint8_t direction = 0;
  std::uint8_t row = 0;
  std::uint8_t reason = kNoReason;    ///< kNoReason: counted nowhere
  std::uint8_t shadowed = kNoReason;  ///< what shadow mode would have done
  std::uint64_t bytes = 0;            ///< charged
  std::uint64_t bytes_shed = 0;
  bool rejected = false;
  unsigned rejects_withheld = 0;
  bool walk_error = false;

  bool dropped() const { return action == (at_tc ? kTcDrop : kXdpDrop); }
};

/// gtest prints a verdict by names.
void PrintTo(const Verdict& verdict, std::ostream* out);

std::string_view reason_name(std::uint8_t reason);
std::string_view row_name(std::uint8_t row);

/// Reasons that any World of this process has seen in a Verdict.
const std::bitset<ES_REASONS>& reasons_seen();

class World {
 public:
  explicit World(const WorldSizes& sizes = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // --- the plan: rows are drafts until publish(). Rooms and classes exist from the start.
  World& endpoint(const EndpointSpec& spec = {});
  es_plan_endpoint& endpoint_row(std::uint8_t number = 1) { return endpoints_.at(number); }
  es_plan_room& room(std::uint32_t number) { return rooms_.at(number); }
  es_room_rules& rules(std::uint32_t room_number, es_direction direction) {
    return room(room_number).rules[direction];
  }
  es_plan_class& contract(std::uint32_t number) { return classes_.at(number); }

  /// Publishes all drafts as the next generation, or as `generation`. 0 is "no plan".
  World& publish(std::optional<std::uint32_t> generation = std::nullopt);
  std::uint32_t generation() const { return control().generation; }
  /// Makes a row of the live copy one of another plan.
  void tear_endpoint(std::uint8_t number);
  void tear_room(std::uint32_t number);
  void tear_class(std::uint32_t number);

  // --- connections; `address` may be IPv6. The record number is that of the slot table.
  World& connect(const std::string& address, std::uint16_t port, const ConnectionSpec& spec = {});
  bool disconnect(const std::string& address, std::uint16_t port, std::uint8_t endpoint = 1);
  std::uint32_t last_record() const { return last_record_; }
  es_connection& connection(std::uint32_t record) const { return maps_.connections()[record]; }
  es_flow_state& flow_state(std::uint32_t record, es_direction direction) const;

  // --- time
  World& at_jiffies(std::uint64_t jiffies);
  World& advance_jiffies(std::uint64_t jiffies) { return at_jiffies(now() + jiffies); }
  World& advance_seconds(std::uint32_t seconds) {
    return advance_jiffies(std::uint64_t{seconds} * hz());
  }
  std::uint64_t now() const { return maps_.control().clock_jiffies; }
  std::uint32_t hz() const { return sizes_.hz; }

  // --- packets
  Verdict run(Program program, const Bytes& frame, const TcContext& context = {});
  Verdict xdp(const Bytes& frame) { return run(Program::kXdp, frame); }
  Verdict tc(const Bytes& frame, const TcContext& context = {}) {
    return run(Program::kTc, frame, context);
  }
  Verdict xdp_servers(const Bytes& frame) { return run(Program::kXdpServers, frame); }
  Verdict tc_servers(const Bytes& frame, const TcContext& context = {}) {
    return run(Program::kTcServers, frame, context);
  }
  /// Only the action: for many packets. Counts no reason as seen.
  int action(Program program, const Bytes& frame, const TcContext& context = {});
  bool passes(const Bytes& frame) { return action(Program::kXdp, frame) != kXdpDrop; }

  // --- what was counted, summed over CPUs
  es_endpoint_counters endpoint_counters(std::uint8_t number = 1) const;
  es_room_counters room_counters(std::uint32_t number) const;
  std::uint64_t cell(es_direction direction, unsigned row, unsigned reason,
                     std::uint8_t endpoint_number = 1) const;
  /// Row of the CPU that this thread is pinned to.
  es_endpoint_counters& cpu_row(std::uint8_t number = 1) const;
  /// Sampled events since the last call.
  std::vector<es_event> events();

  es_control& control() const { return maps_.control(); }
  const kernel::MapSet& maps() const { return maps_; }
  kernel::SlotTable& table() { return *table_; }
  int program_fd(Program program) const;

  /// seen == sum of cells, rejected <= drops, for every endpoint row. EXPECTs.
  void check_ledger() const;

 private:
  struct Machine;
  static Machine& machine_of(const WorldSizes& sizes);
  void reset();
  Bytes execute(Program program, const Bytes& frame, const TcContext& context, int& action);

  WorldSizes sizes_;
  Machine& machine_;
  const kernel::MapSet& maps_;
  std::unique_ptr<kernel::SlotTable> table_;
  std::vector<es_plan_endpoint> endpoints_;
  std::vector<es_plan_room> rooms_;
  std::vector<es_plan_class> classes_;
  std::uint32_t last_record_ = 0;
  unsigned cpu_;
};

// --- keys and frames ---------------------------------------------------------------------------

/// Key of a remote as the packet path builds it. `address` may be IPv6.
es_key key_of(const std::string& address, std::uint16_t port, std::uint8_t endpoint = 1);

/// Both ends of a packet, by role.
struct Flow {
  std::string remote = "10.0.0.2";
  std::uint16_t remote_port = 4000;
  std::string local = "10.0.0.1";
  std::uint16_t local_port = 7777;
  std::uint8_t tos = 0;  ///< DSCP << 2 | ECN
};

/// A whole Ethernet frame, IPv4 or IPv6 by the addresses.
Bytes from_remote(const Flow& flow, const Bytes& payload);
Bytes to_remote(const Flow& flow, const Bytes& payload);

struct LaneFields {
  std::uint8_t lane = ES_LANE_command;
  std::uint8_t claim = ES_TIER_critical;
  std::uint8_t flags = 0;  ///< EDGESHED_LANE_JOIN and so on
  std::uint16_t stream = 0;
  std::uint16_t sequence = 1;
  std::uint16_t ack = 0;
  std::uint8_t magic = EDGESHED_LANE_MAGIC;
  std::uint8_t version = EDGESHED_LANE_VERSION;
};

/// A payload with a lane header and `body_bytes` behind it.
Bytes lane_payload(const LaneFields& fields, std::size_t body_bytes = 20);

/// A contract limit as maps/plan.h defines it. 0: no limit of that kind.
es_limit limit_of(double packets_per_s, double bytes_per_s, double burst_s, std::uint32_t hz);
/// A limit that refuses every packet.
es_limit limit_of_nothing();
/// A level of `tokens_per_s` tokens from now on.
es_level level_of(double tokens_per_s, double burst_tokens, std::uint64_t jiffies,
                  std::uint32_t hz);

/// A packet of a lane: the header and 20 bytes.
Bytes lane_in(std::uint8_t lane, const Flow& flow = {});
Bytes lane_out(std::uint8_t lane, const Flow& flow = {});

}  // namespace edgeshed::test
