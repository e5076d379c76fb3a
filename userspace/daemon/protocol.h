// The control socket's messages: one JSON object per seqpacket packet, one answer for each.
//
//   {"command":"report","shard":"arena","tick_p99_ms":14.2,"ring":0.1,"rooms":3}
//   {"command":"connect","remote":"203.0.113.7:40000","endpoint":"game","priority":200}
//   {"command":"disconnect","remote":"203.0.113.7:40000","endpoint":"game"}
//   {"command":"set","kind":"shard","name":"arena","rung":2,"for_s":30}
//   {"command":"set","kind":"room","name":"lobby"}   {"command":"drain","shard":"arena","on":true}
//   {"command":"bypass","on":true}
//   {"command":"allow","address":"203.0.113.7","for_s":3600}   {"command":"reload"}
//   {"command":"status","first":0}   {"command":"events"}   {"command":"rooms","first":0}
//   {"command":"place","room":"match-7","players":16}
//   {"command":"names","kind":"room","first":0}
//   -> {"ok":true,...} or {"ok":false,"error":"one line"}
//
// Only text to checked values and back; acts on nothing, so that it can be fuzzed.
#ifndef EDGESHED_USERSPACE_DAEMON_PROTOCOL_H_
#define EDGESHED_USERSPACE_DAEMON_PROTOCOL_H_

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace edgeshed::daemon {

/// Longest message and longest answer, bytes.
inline constexpr std::size_t kMessageBytesMax = 65'536;

/// What a game server measured of one shard.
struct ReportRequest {
  std::string shard;
  double tick_p99_ms = 0;              // 0 to kTickMsMax
  double running_tick_age_ms = 0;      // 0 to kTickMsMax
  double ring = 0;                     // occupancy of its outbound ring, 0 to 1
  std::optional<std::uint32_t> rooms;  // absent: as many as before
};

/// A remote that belongs to a room. An empty room means the endpoint's only one, an empty class no
/// contract.
struct ConnectRequest {
  std::string remote;  // "address:port"
  std::string endpoint;
  std::string room;
  std::string contract_class;
  std::optional<std::uint32_t> priority;  // 0 to 255
  std::optional<double> weight;           // kWeightMin to kWeightMax
};

struct DisconnectRequest {
  std::string remote;
  std::string endpoint;
};

/// A rung by hand. It wins over the ladder and expires.
struct SetRequest {
  std::string kind;  // "shard" or "room"
  std::string name;
  std::optional<std::uint32_t> rung;  // 0 to 5; absent: the ladder decides again
  double for_s = 0;                   // with a rung: kSetSecondsMin to kSetSecondsMax
};

/// A shard takes no new rooms, or takes them again.
struct DrainRequest {
  std::string shard;
  bool on = true;
};

/// What `edgeshed bypass` has done to the control page already; for the audit log only.
struct BypassRequest {
  bool on = true;
};

/// An address that is never shed, for a while. for_s 0: ends it.
struct AllowRequest {
  std::string address;
  double for_s = 0;  // 0 to kAllowSecondsMax
};

/// Reads the configuration's file anew and applies it as one plan, or not at all.
struct ReloadRequest {};

/// Shards with their sessions, and endpoints: kShardsPerAnswer of each, from number `first` on.
struct StatusRequest {
  std::uint32_t first = 0;
};
// Of at most 2.8 KB with signals, session and endpoint.
inline constexpr std::size_t kShardsPerAnswer = 16;

/// The sampled sheds that the daemon keeps.
struct EventsRequest {};

/// Names of the configuration, kNamesPerAnswer from number `first` on: the maps hold numbers only.
struct NamesRequest {
  std::string kind;  // "endpoint", "room" or "class"
  std::uint32_t first = 0;
};
inline constexpr std::size_t kNamesPerAnswer = 512;  // of at most 63 B: half of an answer

/// Rooms with their state, kRoomsPerAnswer from number `first` on.
struct RoomsRequest {
  std::uint32_t first = 0;
};
inline constexpr std::size_t kRoomsPerAnswer = 90;  // of at most 650 B: within an answer

/// Whether a room could be placed now. Changes nothing.
struct PlaceRequest {
  std::string room;
  std::uint32_t players = 0;
};

using Request =
    std::variant<ReportRequest, ConnectRequest, DisconnectRequest, SetRequest, DrainRequest,
                 BypassRequest, AllowRequest, ReloadRequest, StatusRequest, EventsRequest,
                 NamesRequest, RoomsRequest, PlaceRequest>;

inline constexpr double kTickMsMax = 600'000;  // ten minutes: longer is a broken clock
inline constexpr double kWeightMin = 0.004;    // 256 / weight fits 16 bits
inline constexpr double kWeightMax = 256;
inline constexpr double kSetSecondsMin = 0.001;
inline constexpr double kSetSecondsMax = 86'400;
inline constexpr double kAllowSecondsMax = 30 * 86'400;

/// A message that was refused. `malformed`: the sender does not speak this protocol, and its
/// connection ends; otherwise a value is impossible, and the connection goes on.
struct Refusal {
  bool malformed = false;
  std::string error;  // one line
};

/// Reads one message. Never throws; takes any bytes.
[[nodiscard]] std::variant<Request, Refusal> parse_request(std::string_view message);

/// The message's members, "command" first.
[[nodiscard]] boost::json::object to_object(const Request& request);

/// The message that parse_request reads back as `request`.
[[nodiscard]] std::string to_message(const Request& request);

/// {"ok":true} and the members of `more`.
[[nodiscard]] std::string ok_answer(boost::json::object more = {});

/// {"ok":false,"error":...}; line breaks in `error` become spaces.
[[nodiscard]] std::string error_answer(std::string_view error);

}  // namespace edgeshed::daemon

#endif
