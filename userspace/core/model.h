// The compiled model: what a configuration means, with names resolved to numbers. Pure data, and
// the few lookups on it. Made by userspace/config, read by plan_rows.h and the daemon. Must not
// know files or TOML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "maps/connection.h"
#include "maps/control.h"
#include "maps/plan.h"
#include "userspace/core/address.h"
#include "userspace/core/law_config.h"
#include "userspace/core/placement.h"
#include "userspace/core/room_state.h"
#include "userspace/core/slow_consumer.h"

namespace edgeshed::core {

/// Rooms that a model may have: one less than the number space, whose last number means "not known"
/// in events.
inline constexpr uint32_t kRoomsMax = ES_ROOMS_MAX - 1;

enum class Mode : uint8_t {
  unset,    ///< follows the next wider setting: endpoint -> host -> attach -> shadow
  shadow,   ///< decides and counts, sheds nothing
  enforce,  ///< sheds
};

/// Capacities count what a user names: row 0 of endpoints (the host) and of classes (no contract)
/// come on top.
struct Host {
  uint32_t connections_max = 4096;
  uint32_t endpoints_max = 32;
  uint32_t rooms_max = 256;
  uint32_t classes_max = 32;
  uint32_t streams_max = 256;  ///< connections that may have stream slots
  uint32_t tick_hz = 60;       ///< 10 to 250
  /// Share of a limit from which a stream's author is told to send less; 0: never. Provisional.
  double stream_hint_ratio = 0.8;
  Mode mode = Mode::unset;
  std::string audit_log;  ///< absolute path of the daemon's audit log; empty: its normal log
};

struct Shard {
  std::string name;
  double frame_budget_ms = 33.3;
  uint32_t room_capacity = 64;
};

/// A fair-share level of one tier: what a connection of weight 1 gets while it is on.
struct LevelRate {
  double tokens_per_s = 0;  ///< 0: no level. A token is a packet, unless costs say otherwise
  double burst_s = 0.25;
};

struct Room {
  std::string name;
  uint32_t shard = 0;                 ///< index into Model::shards
  uint8_t stream_cap = 0;             ///< 0: no cap
  bool closes_streams = false;        ///< streams that are refused for long
  uint32_t stream_samples_per_s = 0;  ///< this and below, 0: no limit
  uint32_t stream_bytes_per_s = 0;
  uint32_t player_bytes_per_s = 0;
  uint64_t room_bytes_per_s = 0;
  LevelRate level[ES_DIRECTIONS][kSheddableTiers];
};

/// What a class may send (in) or be sent (out) in one tier. 0: no limit.
struct ContractRate {
  double packets_per_s = 0;
  double bytes_per_s = 0;
  double burst_s = 0.25;
};

/// Class 0 is "no contract": tier cap critical, no limit. Named classes begin at 1.
struct ContractClass {
  std::string name;
  uint8_t tier_cap = ES_TIER_critical;  ///< enum es_tier
  ContractRate rate[ES_DIRECTIONS][ES_TIERS];
};

struct Endpoint {
  uint8_t number = 0;  ///< 1 and up; the index into Model::endpoints is number - 1
  std::string name;
  Address address;  ///< all zero with any_address
  bool any_address = false;
  uint16_t port = 0;           ///< host order
  uint8_t next_same_port = 0;  ///< next endpoint to try for this port; 0: none. `any` stands last
  uint8_t protocol = ES_PROTOCOL_opaque;
  uint8_t default_lane = ES_LANE_command;
  uint16_t lane_tiers = 0;  ///< see es_lane_tier()
  union es_classifier classifier = {};
  std::vector<uint16_t> rooms;  ///< at least one; indexes into Model::rooms
  bool crc = false;             ///< ENet with CRC32
  bool rejects = false;
  Mode mode = Mode::unset;
  uint16_t stranger_room = 0;  ///< one of `rooms`
  uint8_t stranger_tier_cap = ES_TIER_standard;
  uint8_t stranger_priority = 0;
  uint32_t handshakes_per_s = 100;  ///< of strangers, over all CPUs
  /// Connections of the configuration with ES_CONN_EXEMPT, see also PlanExtras.
  uint32_t exempt_connections = 0;
};

struct Connection {
  struct es_key key = {};
  struct es_policy policy = {};
};

/// An interface to attach to, for `edgeshed attach` without --dev, and for the daemon, which puts
/// the programs back on one that was gone.
struct Interface {
  std::string dev;
  bool faces_servers = false;  ///< game servers are at its other end
  bool generic = false;        ///< XDP in generic mode, asked for
};

/// Who may open sessions (session/wire.h), besides root and the daemon's own user.
struct SessionRules {
  std::vector<std::string> users;  ///< names or numbers
};

struct Model {
  Host host;
  SessionRules session;
  std::vector<Interface> interfaces;
  LawConfig law;
  SlowConsumerConfig slow_consumer;
  RoomStateConfig room_state;
  PlacementConfig placement;
  std::vector<Shard> shards;
  std::vector<Room> rooms;
  std::vector<ContractClass> classes = std::vector<ContractClass>(1);
  std::vector<Endpoint> endpoints;
  std::vector<Connection> connections;
};

/// lane_tiers with the default tier of every lane (maps/lanes.h).
uint16_t default_lane_tiers();

/// `lane_tiers` with one lane set.
uint16_t with_lane_tier(uint16_t lane_tiers, uint8_t lane, uint8_t tier);

const char* lane_name(uint8_t lane);          ///< "snapshot"; "?" out of range
const char* tier_name(uint8_t tier);          ///< "best_effort"
const char* protocol_name(uint8_t protocol);  ///< "enet"

/// False for a number that nobody has: keep_numbers() (numbering.h) leaves holes. Named items
/// always exist, and so does class 0.
inline bool exists(const Shard& shard) { return !shard.name.empty(); }
inline bool exists(const Room& room) { return !room.name.empty(); }
inline bool exists(const Endpoint& endpoint) { return !endpoint.name.empty(); }
bool class_exists(const Model& model, uint32_t number);
/// Packets/s that one connection of any named class may send at most; 0: there is no class, or one
/// has no limit on them.
double largest_contract(const Model& model, int direction, int tier);

/// An endpoint's setting wins over the host's; both unset is shadow.
bool is_shadow(Mode host, const Endpoint& endpoint);

/// Index of a name, or -1; "" finds nothing.
int find_shard(const Model& model, std::string_view name);
int find_room(const Model& model, std::string_view name);
int find_class(const Model& model, std::string_view name);
/// Endpoint number (1 and up), or 0.
uint8_t find_endpoint(const Model& model, std::string_view name);

/// First endpoint of a port (host order), where the packet path begins its chain; 0: none.
uint8_t first_endpoint_of_port(const Model& model, uint16_t port);

/// 256 / weight as the policy word holds it; weight 1/255 to 256.
uint16_t weight_inverse_q8(double weight);

}  // namespace edgeshed::core
