// The demo's game server: one ENetHost, a 30 Hz loop, a snapshot per peer and tick, a numbered
// reliable event every tenth tick. It counts what it sends and receives, prints a JSON line every
// 200 ms and writes the per-peer figures at the end. An ordinary libenet server: it knows nothing
// of EdgeShed.
#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <exception>
#include <stdexcept>

#include "game_common.h"

namespace edgeshed::demo {
namespace {

struct ServerOptions : CommonOptions {
  std::size_t peers_max = 64;
  double tick_hz = 30;               // a common rate of authoritative game servers
  unsigned ticks_per_event = 10;     // three events a second
  std::size_t snapshot_bytes = 200;  // a small delta snapshot
  std::size_t event_bytes = 40;
};

// What one peer did. Kept after it left: the ledger needs everyone.
struct PeerRecord {
  std::string address;
  SeriesIn reliable_in;
  SeriesIn unreliable_in;
  ReliableOut reliable_out;
  std::uint32_t snapshots_sent = 0;
  unsigned disconnects = 0;  // without a bye before: a time-out, a reset
  bool said_bye = false;
  bool left_in_order = false;
  ENetPeer* peer = nullptr;  // null when gone

  bool playing() const { return peer != nullptr && !said_bye; }
};

class GameServer {
 public:
  explicit GameServer(const ServerOptions& options);
  void run();
  std::string final_json() const;

 private:
  void service_until(TimePoint until);
  void handle(ENetEvent& event);
  void handle_message(PeerRecord& record, const ENetPacket& packet);
  void run_tick();
  void release_leavers();
  void leave_in_order();
  void print_status() const;
  bool anyone_connected() const;

  const ServerOptions options_;
  // A deque: its elements never move, and libenet holds pointers into them (so host_ goes first).
  std::deque<PeerRecord> records_;
  HostPtr host_;
  TimePoint started_at_ = Clock::now();
  std::uint64_t ticks_ = 0;
  std::uint64_t ticks_late_ = 0;  // begun more than one tick after their time
  bool closing_ = false;
};

GameServer::GameServer(const ServerOptions& options) : options_(options) {
  const ENetAddress address = resolve(options_.server_host, options_.server_port);
  host_.reset(enet_host_create(&address, options_.peers_max, kChannelCount, 0, 0));
  if (!host_) {
    throw std::runtime_error(
        fmt::format("cannot listen on {}: address not on this host or port "
                    "in use; choose with --host and --port",
                    address_text(address)));
  }
}

void GameServer::run() {
  using Seconds = std::chrono::duration<double>;
  const auto tick = std::chrono::duration_cast<Clock::duration>(Seconds(1.0 / options_.tick_hz));
  const auto end_at =
      started_at_ + std::chrono::duration_cast<Clock::duration>(Seconds(options_.seconds));
  TimePoint next_tick_at = started_at_;
  TimePoint next_status_at = started_at_;
  while (!stop_requested() && Clock::now() < end_at) {
    service_until(next_tick_at);
    if (Clock::now() > next_tick_at + tick) ++ticks_late_;
    next_tick_at += tick;
    run_tick();
    if (Clock::now() >= next_status_at) {
      print_status();
      next_status_at += std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double, std::milli>(options_.status_ms));
    }
  }
  leave_in_order();
  print_status();
}

void GameServer::service_until(TimePoint until) {
  ENetEvent event;
  do {
    const double wait_ms = std::ceil(milliseconds_between(Clock::now(), until));
    const auto timeout_ms = static_cast<enet_uint32>(wait_ms > 0 ? wait_ms : 0);
    while (enet_host_service(host_.get(), &event, timeout_ms) > 0) {
      handle(event);
      if (Clock::now() >= until) break;
    }
    release_leavers();
  } while (Clock::now() < until && !stop_requested());
  // Drain: after this no acknowledgement waits that a snapshot could carry along.
  while (enet_host_service(host_.get(), &event, 0) > 0) handle(event);
}

void GameServer::handle(ENetEvent& event) {
  switch (event.type) {
    case ENET_EVENT_TYPE_CONNECT: {
      PeerRecord& record = records_.emplace_back();
      record.address = address_text(event.peer->address);
      record.peer = event.peer;
      event.peer->data = &record;
      disable_own_throttle(event.peer);
      break;
    }
    case ENET_EVENT_TYPE_RECEIVE:
      if (event.peer->data != nullptr) {
        handle_message(*static_cast<PeerRecord*>(event.peer->data), *event.packet);
      }
      enet_packet_destroy(event.packet);
      break;
    case ENET_EVENT_TYPE_DISCONNECT:
      if (auto* record = static_cast<PeerRecord*>(event.peer->data)) {
        record->left_in_order = record->said_bye || closing_;
        if (!record->left_in_order) ++record->disconnects;
        record->peer = nullptr;
        event.peer->data = nullptr;
      }
      break;
    case ENET_EVENT_TYPE_NONE:
      break;
  }
}

void GameServer::handle_message(PeerRecord& record, const ENetPacket& packet) {
  MessageHeader header;
  if (!read_header(packet, header)) return;
  const bool reliable = header.kind == MessageKind::kEvent || header.kind == MessageKind::kBye;
  (reliable ? record.reliable_in : record.unreliable_in).note(header.number, Clock::now());
  if (header.kind == MessageKind::kBye) record.said_bye = true;
}

void GameServer::run_tick() {
  ++ticks_;
  const bool event_due = ticks_ % options_.ticks_per_event == 0;
  for (PeerRecord& record : records_) {
    if (!record.playing()) continue;
    if (event_due) {
      send_reliable(record.peer, record.reliable_out, MessageKind::kEvent, options_.event_bytes);
    }
    send_unreliable(record.peer, MessageKind::kSnapshot, ++record.snapshots_sent,
                    options_.snapshot_bytes);
  }
}

// Whoever said bye is disconnected once it has acknowledged everything. The server closes, not
// the client: so both directions are known to be complete.
void GameServer::release_leavers() {
  for (PeerRecord& record : records_) {
    if (record.peer != nullptr && record.said_bye && record.reliable_out.all_acked() &&
        record.peer->state == ENET_PEER_STATE_CONNECTED) {
      enet_host_flush(host_.get());  // a disconnect throws unsent acknowledgements away
      enet_peer_disconnect(record.peer, 0);
    }
  }
}

// At the end nobody plays any more; who is still here is given the settle time to acknowledge.
void GameServer::leave_in_order() {
  closing_ = true;
  for (PeerRecord& record : records_) record.said_bye = record.said_bye || record.peer != nullptr;
  const auto give_up_at =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(options_.settle_seconds));
  ENetEvent event;
  while (anyone_connected() && Clock::now() < give_up_at) {
    release_leavers();
    if (enet_host_service(host_.get(), &event, 5) > 0) handle(event);
  }
  // Datagrams still in the socket's queue belong into the ledger.
  while (enet_host_service(host_.get(), &event, 50) > 0) handle(event);
}

bool GameServer::anyone_connected() const {
  for (const PeerRecord& record : records_) {
    if (record.peer != nullptr) return true;
  }
  return false;
}

void GameServer::print_status() const {
  std::uint64_t connected = 0, reliable_received = 0, unreliable_received = 0, sent = 0, acked = 0;
  std::uint64_t snapshots = 0, disconnects = 0;
  for (const PeerRecord& record : records_) {
    connected += record.peer != nullptr;
    reliable_received += record.reliable_in.received;
    unreliable_received += record.unreliable_in.received;
    sent += record.reliable_out.sent;
    acked += record.reliable_out.acked;
    snapshots += record.snapshots_sent;
    disconnects += record.disconnects;
  }
  print_line(fmt::format(
      R"({{"side":"server","t_ms":{:.0f},"connected":{},"reliable_sent":{},"reliable_acked":{},)"
      R"("reliable_received":{},"unreliable_sent":{},"unreliable_received":{},"disconnects":{},)"
      R"("ticks":{},"ticks_late":{},{}}})",
      milliseconds_between(started_at_, Clock::now()), connected, sent, acked, reliable_received,
      snapshots, unreliable_received, disconnects, ticks_, ticks_late_, host_totals_json(*host_)));
}

std::string GameServer::final_json() const {
  std::string peers;
  for (const PeerRecord& record : records_) {
    peers += fmt::format(
        R"({}{{"address":"{}","reliable_in":{},"unreliable_in":{},"reliable_sent":{},)"
        R"("reliable_acked":{},"unreliable_sent":{},"disconnects":{},"left_in_order":{}}})",
        peers.empty() ? "" : ",\n", record.address, record.reliable_in.json(),
        record.unreliable_in.json(), record.reliable_out.sent, record.reliable_out.acked,
        record.snapshots_sent, record.disconnects, record.left_in_order);
  }
  return fmt::format(
      "{{\"side\":\"server\",\"ticks\":{},\"ticks_late\":{},\"host\":{{{}}},\n\"peers\":[{}]}}\n",
      ticks_, ticks_late_, host_totals_json(*host_), peers);
}

int run_server(int argc, char** argv) {
  ServerOptions options;
  CLI::App app{"EdgeShed demo: a libenet game server"};
  add_common_options(app, options);
  app.add_option("--peers-max", options.peers_max, "peers at a time")
      ->check(CLI::Range(1, 4095))
      ->capture_default_str();
  app.add_option("--tick-hz", options.tick_hz, "ticks and snapshots per second")
      ->check(CLI::Range(1.0, 240.0))
      ->capture_default_str();
  app.add_option("--ticks-per-event", options.ticks_per_event, "ticks from event to event")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  start_program();
  GameServer server(options);
  server.run();
  if (!options.log_file.empty()) write_file(options.log_file, server.final_json());
  return 0;
}

}  // namespace
}  // namespace edgeshed::demo

int main(int argc, char** argv) {
  try {
    return edgeshed::demo::run_server(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "edgeshed_demo_server: {}\n", error.what());
    return 1;
  }
}
