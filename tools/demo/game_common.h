// What the demo's game server and game clients share: the payload of a message, its phases and
// tiers, the counts that both sides keep, sending and receiving in libenet, and the JSON that the
// orchestrator reads. It must not know anything about shedding: this is an ordinary game.
#ifndef EDGESHED_TOOLS_DEMO_GAME_COMMON_H_
#define EDGESHED_TOOLS_DEMO_GAME_COMMON_H_

#include <enet/enet.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace edgeshed::demo {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// One channel per kind of message, so that libenet's order of one never waits for another. The
// numbers are those of the configuration in rig/edgeshed_cli.py.
inline constexpr enet_uint8 kReliableChannel = 0;
inline constexpr enet_uint8 kStateChannel = 1;
inline constexpr enet_uint8 kCommandChannel = 2;
inline constexpr std::size_t kChannelCount = 3;

enum class MessageKind : std::uint8_t {
  kEvent = 1,     // reliable, numbered: critical
  kBye = 2,       // the last of the reliable series
  kCommand = 3,   // unreliable: standard
  kState = 4,     // unreliable: best-effort
  kSnapshot = 5,  // server to client, unreliable: best-effort
};

// What a message is worth. Joins, acknowledgements and pings are libenet's own, and not counted.
enum Tier : std::size_t { kCritical, kStandard, kBestEffort, kTiers };
Tier tier_of(MessageKind kind);

// The phases of a run. A message carries the phase it was sent in, so that sender and receiver
// count it under the same one. The first second of flood and step is a phase of its own: what is
// claimed of them holds from 1 s on.
enum Phase : std::size_t { kCalm, kFloodBegins, kFlood, kStepBegins, kStep, kBack, kEnd, kPhases };
const char* phase_name(std::size_t phase);

struct MessageHeader {
  MessageKind kind;
  std::uint8_t phase;
  std::uint16_t zero;
  std::uint32_t number;   // in its series, from 1, without holes
  std::uint64_t sent_ns;  // CLOCK_MONOTONIC: both sides run on one machine
};
static_assert(sizeof(MessageHeader) == 16);

using TierCounts = std::array<std::uint64_t, kTiers>;
using PhaseCounts = std::array<TierCounts, kPhases>;

// Durations by the phase of the message, for percentiles at the end.
struct Delays {
  std::array<std::vector<float>, kPhases> ms;

  void note(std::size_t phase, double delay_ms);
  // {"calm":{"count":..,"p50":..,"p99":..,"max":..,"late":..},..}; late: over `late_ms`.
  std::string json(double late_ms) const;
};

// A reliable series as its sender sees it. Not movable: libenet holds a pointer to it until the
// packet is acknowledged.
struct ReliableOut {
  ReliableOut() = default;
  ReliableOut(const ReliableOut&) = delete;
  ReliableOut& operator=(const ReliableOut&) = delete;

  std::uint32_t sent = 0;
  std::uint32_t acked = 0;
  Delays* round_trips = nullptr;  // where acknowledgements are noted; may be null

  bool all_acked() const { return acked == sent; }
};

struct HostDestroyer {
  void operator()(ENetHost* host) const { enet_host_destroy(host); }
};
using HostPtr = std::unique_ptr<ENetHost, HostDestroyer>;

// A critical message that takes longer than this is lost to the game, whatever libenet still does.
inline constexpr double kCriticalLateMs = 1000;

// The options that both programs have, with the reason for each default.
struct CommonOptions {
  std::string server_host = "127.0.0.1";
  std::uint16_t server_port = 7777;
  double seconds = 120;       // a bound: the orchestrator ends the game by SIGTERM
  double settle_seconds = 4;  // bound of the wait for acknowledgements: 4 s is 3 retransmissions
  double status_ms = 100;     // ten live lines a second feed a display of two
  std::string log_file;       // final JSON; empty: none
};

// Registers the common options; the caller adds its own and parses.
void add_common_options(CLI::App& app, CommonOptions& options);

// Sets what every program of the rig needs: libenet, SIGINT and SIGTERM as "end in order". Throws
// std::runtime_error with a full sentence.
void start_program();

// True once SIGINT or SIGTERM arrived.
bool stop_requested();

// Throws std::runtime_error that names the host when it is no IPv4 address or name.
ENetAddress resolve(const std::string& host, std::uint16_t port);

// libenet sheds unreliable packets by itself when round trips grow (its packet throttle). In this
// demo only EdgeShed may shed, so the throttle is made unable to fall. Sends one control command.
void disable_own_throttle(ENetPeer* peer);

// Queues the next message of a reliable series. The caller flushes.
void queue_reliable(ENetPeer* peer, ReliableOut& series, MessageKind kind, std::size_t phase,
                    std::size_t size_bytes);

// Queues one unreliable message. The caller flushes.
void queue_unreliable(ENetPeer* peer, MessageKind kind, std::uint32_t number, std::size_t phase,
                      std::size_t size_bytes);

// False when the packet is too short to be a message of this game.
bool read_header(const ENetPacket& packet, MessageHeader& header);

std::string address_text(const ENetAddress& address);  // "10.91.0.2:40000"

// Datagrams and bytes of one ENetHost, as a JSON object without its braces.
std::string host_totals_json(const ENetHost& host);

std::string counts_json(const TierCounts& counts);   // [critical,standard,best_effort]
std::string counts_json(const PhaseCounts& counts);  // {"calm":[..],..}

std::uint64_t now_ns();
double milliseconds_between(TimePoint from, TimePoint to);
Clock::duration seconds_duration(double seconds);

// One line for the orchestrator, flushed at once.
void print_line(const std::string& line);

// Writes `text` to `path` by a rename, so that a reader never sees half a file. Throws
// std::runtime_error that names the path.
void write_file(const std::string& path, const std::string& text);

}  // namespace edgeshed::demo

#endif  // EDGESHED_TOOLS_DEMO_GAME_COMMON_H_
