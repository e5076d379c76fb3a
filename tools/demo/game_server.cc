#include "game_server.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

namespace edgeshed::demo {
namespace {

// A tick reads what waits in the socket when it begins, and no more than two passes of libenet of
// 256 datagrams each: real servers bound their input stage, or a flood would stop the game for
// good. 512 messages of 230 us are 118 ms, almost four budgets.
constexpr enet_uint32 kPassesMax = 2;
constexpr enet_uint32 kDatagramsPerPass = 256;
// Who sends nothing answers pings; seldom ones, so that they are no load.
constexpr enet_uint32 kPingIntervalMs = 3000;
constexpr double kInTimeBudgets = 2;

double cpu_now_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace

GameServer::GameServer(const ServerOptions& options) : options_(options), shard_(options.shard) {
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
  const auto budget = seconds_duration(1 / options_.tick_hz);
  const TimePoint end_at = Clock::now() + seconds_duration(options_.seconds);
  TimePoint next_tick_at = Clock::now();
  TimePoint next_status_at = next_tick_at;
  while (!stop_requested() && next_tick_at < end_at) {
    std::this_thread::sleep_until(next_tick_at);
    tick();
    release_leavers();
    // A tick that was longer than its budget starts the next one late; nothing is caught up.
    next_tick_at = std::max(next_tick_at + budget, Clock::now());
    if (Clock::now() < next_status_at) continue;
    print_status();
    next_status_at = Clock::now() + seconds_duration(options_.status_ms / 1000);
  }
  leave_in_order();
  print_status();
}

void GameServer::tick() {
  const TimePoint began = Clock::now();
  const double cpu_began_ms = cpu_now_ms();
  row_ = TickRow{};
  row_.began_ns = now_ns();
  shard_.tick_begin();
  read_input();
  send_updates();
  shard_.tick_end();
  ++ticks_;
  row_.ms = milliseconds_between(began, Clock::now());
  row_.cpu_ms = cpu_now_ms() - cpu_began_ms;
  tick_ms_max_ = std::max(tick_ms_max_, row_.ms);
  for (std::size_t tier = 0; tier < kTiers; ++tier) handled_[tier] += row_.handled[tier];
  rows_.push_back(row_);
}

// First all datagrams that wait (libenet acknowledges them at once), then the work on them.
void GameServer::read_input() {
  for (enet_uint32 pass = 0; pass < kPassesMax; ++pass) {
    const enet_uint32 before = host_->totalReceivedPackets;
    enet_host_service(host_.get(), nullptr, 0);
    if (host_->totalReceivedPackets - before < kDatagramsPerPass) break;
  }
  ENetEvent event;
  while (enet_host_check_events(host_.get(), &event) > 0) handle(event);
}

void GameServer::handle(ENetEvent& event) {
  switch (event.type) {
    case ENET_EVENT_TYPE_CONNECT:
      join(event.peer);
      break;
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
        shard_.leave(record->shard_peer);
      }
      break;
    case ENET_EVENT_TYPE_NONE:
      break;
  }
}

void GameServer::join(ENetPeer* peer) {
  PeerRecord& record = records_.emplace_back();
  record.number = records_.size() - 1;
  record.address = address_text(peer->address);
  record.peer = peer;
  record.shard_peer = shard_.join(record.number, peer->address);
  peer->data = &record;
  disable_own_throttle(peer);
  enet_peer_ping_interval(peer, kPingIntervalMs);
}

void GameServer::handle_message(PeerRecord& record, const ENetPacket& packet) {
  MessageHeader header;
  if (!read_header(packet, header) || header.phase >= kPhases) return;
  work_.run(header.sent_ns);
  const double age_ms = static_cast<double>(now_ns() - header.sent_ns) / 1e6;
  const Tier tier = tier_of(header.kind);
  ++record.handled[header.phase][tier];
  ++row_.handled[tier];
  if (age_ms <= kInTimeBudgets * options_.budget_ms()) ++row_.in_time;
  if (tier != kCritical) return;
  ++record.reliable_received;
  if (age_ms > kCriticalLateMs) ++record.reliable_late;
  if (header.kind == MessageKind::kBye) record.said_bye = true;
}

// Lanes apart: whatever libenet has to acknowledge leaves first, then the snapshots, then the
// events, so that no datagram has two kinds.
void GameServer::send_updates() {
  enet_host_flush(host_.get());
  for (PeerRecord& record : records_) {
    if (!record.playing() || (ticks_ + record.number) % options_.ticks_per_snapshot != 0) continue;
    if (!shard_.may_send_snapshot(record.shard_peer)) {
      ++row_.snapshots_skipped;
      continue;
    }
    ++row_.snapshots;
    queue_unreliable(record.peer, MessageKind::kSnapshot, ++record.snapshots_sent, kCalm,
                     options_.snapshot_bytes);
  }
  enet_host_flush(host_.get());
  for (PeerRecord& record : records_) {
    if (!record.playing() || (ticks_ + record.number) % options_.ticks_per_event != 0) continue;
    queue_reliable(record.peer, record.reliable_out, MessageKind::kEvent, kCalm,
                   options_.event_bytes);
  }
  enet_host_flush(host_.get());
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
  const TimePoint give_up_at = Clock::now() + seconds_duration(options_.settle_seconds);
  ENetEvent event;
  while (anyone_connected() && Clock::now() < give_up_at) {
    release_leavers();
    if (enet_host_service(host_.get(), &event, 5) > 0) handle(event);
  }
  // Datagrams still in the socket's queue belong into the ledger.
  while (enet_host_service(host_.get(), &event, 50) > 0) handle(event);
}

bool GameServer::anyone_connected() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const PeerRecord& record) { return record.peer != nullptr; });
}

void GameServer::print_status() {
  std::uint64_t connected = 0, disconnects = 0;
  for (const PeerRecord& record : records_) {
    connected += record.peer != nullptr;
    disconnects += record.disconnects;
  }
  print_line(
      fmt::format(R"({{"side":"server","t_ns":{},"connected":{},"handled":{},"tick_ms_max":{:.2f},)"
                  R"("rung":{},"ticks":{},"disconnects":{}}})",
                  now_ns(), connected, counts_json(handled_), tick_ms_max_, shard_.rung(), ticks_,
                  disconnects));
  tick_ms_max_ = 0;
}

std::string GameServer::final_json() const {
  std::string peers, ticks;
  for (const PeerRecord& record : records_) {
    peers += fmt::format(
        R"({}{{"address":"{}","handled":{},"reliable_received":{},"reliable_late":{},)"
        R"("reliable_sent":{},"reliable_acked":{},"snapshots_sent":{},"disconnects":{},)"
        R"("left_in_order":{}}})",
        peers.empty() ? "" : ",\n", record.address, counts_json(record.handled),
        record.reliable_received, record.reliable_late, record.reliable_out.sent,
        record.reliable_out.acked, record.snapshots_sent, record.disconnects, record.left_in_order);
  }
  for (const TickRow& row : rows_) {
    ticks += fmt::format("{}[{},{:.3f},{},{},{},{},{},{},{:.3f}]", ticks.empty() ? "" : ",\n",
                         row.began_ns, row.ms, row.handled[kCritical], row.handled[kStandard],
                         row.handled[kBestEffort], row.in_time, row.snapshots,
                         row.snapshots_skipped, row.cpu_ms);
  }
  return fmt::format("{{\"host\":{{{}}},\"session\":{},\n\"ticks\":[{}],\n\"peers\":[{}]}}\n",
                     host_totals_json(*host_), shard_.events_json(), ticks, peers);
}

namespace {

int run_server(int argc, char** argv) {
  ServerOptions options;
  CLI::App app{"EdgeShed demo: a libenet game server"};
  add_common_options(app, options);
  add_shard_options(app, options.shard);
  app.add_option("--tick-hz", options.tick_hz, "ticks per second")
      ->check(CLI::Range(1.0, 240.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.peers_max = options.shard.players_max;
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
