#include "game_common.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace edgeshed::demo {
namespace {

volatile std::sig_atomic_t stop_flag = 0;

void request_stop(int) { stop_flag = 1; }

// libenet calls this when it lets a packet go. The SENT flag tells an acknowledged packet from one
// that was thrown away with its peer.
void ENET_CALLBACK count_acknowledged(ENetPacket* packet) {
  if ((packet->flags & ENET_PACKET_FLAG_SENT) == 0) return;
  auto& series = *static_cast<ReliableOut*>(packet->userData);
  ++series.acked;
  MessageHeader header;
  if (series.round_trips == nullptr || !read_header(*packet, header)) return;
  series.round_trips->note(header.phase, static_cast<double>(now_ns() - header.sent_ns) / 1e6);
}

ENetPacket* make_packet(MessageKind kind, std::uint32_t number, std::size_t phase,
                        std::size_t size_bytes, enet_uint32 flags) {
  std::array<unsigned char, 512> payload;
  payload.fill(0x5a);
  const MessageHeader header{kind, static_cast<std::uint8_t>(phase), 0, number, now_ns()};
  std::memcpy(payload.data(), &header, sizeof header);
  const std::size_t bytes = std::clamp(size_bytes, sizeof header, payload.size());
  ENetPacket* packet = enet_packet_create(payload.data(), bytes, flags);
  if (packet == nullptr) throw std::runtime_error("enet_packet_create failed: out of memory");
  return packet;
}

// Takes the packet: libenet leaves it to the caller when it refuses it.
bool send_or_destroy(ENetPeer* peer, enet_uint8 channel, ENetPacket* packet) {
  if (enet_peer_send(peer, channel, packet) == 0) return true;
  enet_packet_destroy(packet);
  return false;
}

}  // namespace

Tier tier_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kEvent:
    case MessageKind::kBye:
      return kCritical;
    case MessageKind::kCommand:
      return kStandard;
    default:
      return kBestEffort;
  }
}

const char* phase_name(std::size_t phase) {
  constexpr const char* kNames[kPhases] = {"calm", "flood_begins", "flood", "step_begins",
                                           "step", "back",         "end"};
  return phase < kPhases ? kNames[phase] : "?";
}

void Delays::note(std::size_t phase, double delay_ms) {
  if (phase < kPhases) ms[phase].push_back(static_cast<float>(delay_ms));
}

std::string Delays::json(double late_ms) const {
  std::string text;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    std::vector<float> sorted = ms[phase];
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double share) {
      if (sorted.empty()) return 0.0F;
      const auto rank = std::ceil(share * static_cast<double>(sorted.size()));
      return sorted[std::clamp<std::size_t>(static_cast<std::size_t>(rank), 1, sorted.size()) - 1];
    };
    const auto late = std::count_if(sorted.begin(), sorted.end(),
                                    [&](float delay_ms) { return delay_ms > late_ms; });
    text += fmt::format(R"({}"{}":{{"count":{},"p50":{:.1f},"p99":{:.1f},"max":{:.1f},"late":{}}})",
                        text.empty() ? "" : ",", phase_name(phase), sorted.size(), at(0.5),
                        at(0.99), at(1), late);
  }
  return "{" + text + "}";
}

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option("--host", options.server_host, "address of the game server")
      ->capture_default_str();
  app.add_option("--port", options.server_port, "UDP port of the game server")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "end after this time; SIGTERM ends it earlier")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--settle-seconds", options.settle_seconds,
                 "longest wait for acknowledgements at the end")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  app.add_option("--status-ms", options.status_ms, "time between two status lines")
      ->check(CLI::Range(10.0, 10000.0))
      ->capture_default_str();
  app.add_option("--log", options.log_file, "file for the final JSON");
}

void start_program() {
  if (enet_initialize() != 0) {
    throw std::runtime_error("libenet could not start (enet_initialize failed)");
  }
  struct sigaction action{};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() { return stop_flag != 0; }

ENetAddress resolve(const std::string& host, std::uint16_t port) {
  ENetAddress address{};
  if (enet_address_set_host(&address, host.c_str()) != 0) {
    throw std::runtime_error(
        fmt::format("\"{}\" is no IPv4 address; give one such as 10.91.0.1", host));
  }
  address.port = port;
  return address;
}

void disable_own_throttle(ENetPeer* peer) {
  enet_peer_throttle_configure(peer, ENET_PEER_PACKET_THROTTLE_INTERVAL,
                               ENET_PEER_PACKET_THROTTLE_SCALE, 0);
}

void queue_reliable(ENetPeer* peer, ReliableOut& series, MessageKind kind, std::size_t phase,
                    std::size_t size_bytes) {
  ENetPacket* packet =
      make_packet(kind, series.sent + 1, phase, size_bytes, ENET_PACKET_FLAG_RELIABLE);
  packet->userData = &series;
  packet->freeCallback = count_acknowledged;
  if (send_or_destroy(peer, kReliableChannel, packet)) ++series.sent;
}

void queue_unreliable(ENetPeer* peer, MessageKind kind, std::uint32_t number, std::size_t phase,
                      std::size_t size_bytes) {
  const enet_uint8 channel = kind == MessageKind::kCommand ? kCommandChannel : kStateChannel;
  send_or_destroy(peer, channel, make_packet(kind, number, phase, size_bytes, 0));
}

bool read_header(const ENetPacket& packet, MessageHeader& header) {
  if (packet.dataLength < sizeof header) return false;
  std::memcpy(&header, packet.data, sizeof header);
  return true;
}

std::string address_text(const ENetAddress& address) {
  char text[64] = "?";
  enet_address_get_host_ip(&address, text, sizeof text);
  return fmt::format("{}:{}", text, address.port);
}

std::string host_totals_json(const ENetHost& host) {
  return fmt::format(
      R"("datagrams_sent":{},"datagrams_received":{},"bytes_sent":{},"bytes_received":{})",
      host.totalSentPackets, host.totalReceivedPackets, host.totalSentData, host.totalReceivedData);
}

std::string counts_json(const TierCounts& counts) {
  return fmt::format("[{}]", fmt::join(counts, ","));
}

std::string counts_json(const PhaseCounts& counts) {
  std::string text;
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", phase_name(phase),
                        counts_json(counts[phase]));
  }
  return "{" + text + "}";
}

std::uint64_t now_ns() {
  const auto since_boot = Clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count());
}

Clock::duration seconds_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double milliseconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void write_file(const std::string& path, const std::string& text) {
  const std::string spare = path + ".part";
  std::FILE* file = std::fopen(spare.c_str(), "w");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written || std::rename(spare.c_str(), path.c_str()) != 0) {
    throw std::runtime_error(fmt::format("cannot write {}: {}; choose a writable file with --log",
                                         path, std::strerror(errno)));
  }
}

}  // namespace edgeshed::demo
