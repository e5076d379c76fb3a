// What the demo's game server and game clients share: the payload of a message, the counts that
// both sides keep about it, sending and receiving in libenet, and the JSON that the orchestrator
// reads. It must not know anything about shedding: this is an ordinary game.
#ifndef EDGESHED_TOOLS_DEMO_GAME_COMMON_H_
#define EDGESHED_TOOLS_DEMO_GAME_COMMON_H_

#include <enet/enet.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace edgeshed::demo {

inline constexpr enet_uint8 kReliableChannel = 0;
inline constexpr enet_uint8 kUnreliableChannel = 1;
inline constexpr std::size_t kChannelCount = 2;

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// Every message starts with its kind and its number in its series (from 1, without holes), so
// that the receiver can tell what is missing without asking the sender.
enum class MessageKind : std::uint32_t { kEvent = 1, kBye = 2, kInput = 3, kSnapshot = 4 };

struct MessageHeader {
  MessageKind kind;
  std::uint32_t number;
};
static_assert(sizeof(MessageHeader) == 8);

// A reliable series as its sender sees it. Not movable: libenet holds a pointer to `acked` until
// the packet is acknowledged.
struct ReliableOut {
  ReliableOut() = default;
  ReliableOut(const ReliableOut&) = delete;
  ReliableOut& operator=(const ReliableOut&) = delete;

  std::uint32_t sent = 0;
  std::uint32_t acked = 0;

  bool all_acked() const { return acked == sent; }
};

// A series as its receiver sees it.
struct SeriesIn {
  std::uint64_t received = 0;
  std::uint32_t highest = 0;
  std::uint64_t missing = 0;       // numbers skipped when a later one arrived
  std::uint64_t out_of_order = 0;  // numbers at or below the highest: never on a sequenced channel
  double gap_ms_max = 0;           // longest time between two arrivals
  double gap_ms_sum = 0;
  TimePoint last_at{};

  void note(std::uint32_t number, TimePoint now);
  double gap_ms_mean() const;
  std::string json() const;
};

struct HostDestroyer {
  void operator()(ENetHost* host) const { enet_host_destroy(host); }
};
using HostPtr = std::unique_ptr<ENetHost, HostDestroyer>;

// The options that both programs have, with the reason for each default.
struct CommonOptions {
  std::string server_host = "127.0.0.1";
  std::uint16_t server_port = 7777;
  double seconds = 20;        // a bound: the orchestrator ends the game by SIGTERM
  double settle_seconds = 4;  // bound of the wait for acknowledgements: 4 s is 3 retransmissions
  double status_ms = 200;     // five live lines a second feed a display of two
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

// Queues the next message of a reliable series and flushes it into a datagram of its own.
void send_reliable(ENetPeer* peer, ReliableOut& series, MessageKind kind, std::size_t size_bytes);

// Queues one unreliable message and flushes it into a datagram of its own.
void send_unreliable(ENetPeer* peer, MessageKind kind, std::uint32_t number,
                     std::size_t size_bytes);

// False when the packet is too short to be a message of this game.
bool read_header(const ENetPacket& packet, MessageHeader& header);

std::string address_text(const ENetAddress& address);  // "10.91.0.2:40000"

// Datagrams and bytes of one ENetHost, as a JSON object without its braces.
std::string host_totals_json(const ENetHost& host);

double milliseconds_between(TimePoint from, TimePoint to);

// One line for the orchestrator, flushed at once.
void print_line(const std::string& line);

// Writes `text` to `path` by a rename, so that a reader never sees half a file. Throws
// std::runtime_error that names the path.
void write_file(const std::string& path, const std::string& text);

}  // namespace edgeshed::demo

#endif  // EDGESHED_TOOLS_DEMO_GAME_COMMON_H_
