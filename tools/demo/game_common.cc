#include "game_common.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace edgeshed::demo {
namespace {

volatile std::sig_atomic_t stop_flag = 0;

void request_stop(int) { stop_flag = 1; }

// libenet calls this when it lets a packet go. The SENT flag tells an acknowledged packet from one
// that was thrown away with its peer.
void ENET_CALLBACK count_acknowledged(ENetPacket* packet) {
  if ((packet->flags & ENET_PACKET_FLAG_SENT) != 0) {
    ++static_cast<ReliableOut*>(packet->userData)->acked;
  }
}

ENetPacket* make_packet(MessageKind kind, std::uint32_t number, std::size_t size_bytes,
                        enet_uint32 flags) {
  std::vector<unsigned char> payload(std::max(size_bytes, sizeof(MessageHeader)), 0x5a);
  const MessageHeader header{kind, number};
  std::memcpy(payload.data(), &header, sizeof header);
  ENetPacket* packet = enet_packet_create(payload.data(), payload.size(), flags);
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

void SeriesIn::note(std::uint32_t number, TimePoint now) {
  if (received > 0) {
    const double gap_ms = milliseconds_between(last_at, now);
    gap_ms_max = std::max(gap_ms_max, gap_ms);
    gap_ms_sum += gap_ms;
  }
  last_at = now;
  ++received;
  if (number <= highest) {
    ++out_of_order;
    return;
  }
  missing += number - highest - 1;
  highest = number;
}

double SeriesIn::gap_ms_mean() const {
  return received > 1 ? gap_ms_sum / static_cast<double>(received - 1) : 0;
}

std::string SeriesIn::json() const {
  return fmt::format(R"({{"received":{},"highest":{},"missing":{},"out_of_order":{},)"
                     R"("gap_ms_max":{:.1f},"gap_ms_mean":{:.1f}}})",
                     received, highest, missing, out_of_order, gap_ms_max, gap_ms_mean());
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

void send_reliable(ENetPeer* peer, ReliableOut& series, MessageKind kind, std::size_t size_bytes) {
  ENetPacket* packet = make_packet(kind, series.sent + 1, size_bytes, ENET_PACKET_FLAG_RELIABLE);
  packet->userData = &series;
  packet->freeCallback = count_acknowledged;
  enet_host_flush(peer->host);  // what waits (acknowledgements) goes in a datagram of its own
  if (send_or_destroy(peer, kReliableChannel, packet)) ++series.sent;
  enet_host_flush(peer->host);
}

void send_unreliable(ENetPeer* peer, MessageKind kind, std::uint32_t number,
                     std::size_t size_bytes) {
  enet_host_flush(peer->host);
  send_or_destroy(peer, kUnreliableChannel, make_packet(kind, number, size_bytes, 0));
  enet_host_flush(peer->host);
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
