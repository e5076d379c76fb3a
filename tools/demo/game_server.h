// The demo's game server: one tick loop, four rooms, one socket. An ordinary libenet server that
// uses the client library of EdgeShed as any game server would; without a session it is the same
// server.
#ifndef EDGESHED_TOOLS_DEMO_GAME_SERVER_H_
#define EDGESHED_TOOLS_DEMO_GAME_SERVER_H_

#include <deque>
#include <string>
#include <vector>

#include "game_common.h"
#include "game_shard.h"
#include "game_work.h"

namespace edgeshed::demo {

struct ServerOptions : CommonOptions {
  std::size_t peers_max = 1024;
  double tick_hz = 30;               // a common rate of authoritative game servers
  unsigned ticks_per_snapshot = 3;   // 10 snapshots a second and player
  unsigned ticks_per_event = 60;     // a reliable event every 2 s
  std::size_t snapshot_bytes = 200;  // a small delta snapshot
  std::size_t event_bytes = 40;
  ShardOptions shard;

  double budget_ms() const { return 1000 / tick_hz; }
};

// What one peer did. Kept after it left: the ledger needs everyone.
struct PeerRecord {
  std::string address;
  std::size_t number = 0;
  PhaseCounts handled{};
  std::uint64_t reliable_received = 0;
  std::uint64_t reliable_late = 0;
  ReliableOut reliable_out;
  std::uint32_t snapshots_sent = 0;
  unsigned disconnects = 0;  // without a bye before: a time-out, a reset
  bool said_bye = false;
  bool left_in_order = false;
  int shard_peer = -1;       // number in the session
  ENetPeer* peer = nullptr;  // null when gone

  bool playing() const { return peer != nullptr && !said_bye; }
};

// One tick, for the log.
struct TickRow {
  std::uint64_t began_ns = 0;
  double ms = 0;
  double cpu_ms = 0;  // of it on a CPU: the rest the machine took
  TierCounts handled{};
  std::uint32_t in_time = 0;  // of the handled, those that were sent at most two budgets before
  std::uint32_t snapshots = 0;
  std::uint32_t snapshots_skipped = 0;  // by edgeshed_may_send
};

class GameServer {
 public:
  explicit GameServer(const ServerOptions& options);
  void run();
  std::string final_json() const;

 private:
  void tick();
  void read_input();
  void send_updates();
  void handle(ENetEvent& event);
  void handle_message(PeerRecord& record, const ENetPacket& packet);
  void join(ENetPeer* peer);
  void release_leavers();
  void leave_in_order();
  void print_status();
  bool anyone_connected() const;

  const ServerOptions options_;
  Work work_;
  GameShard shard_;
  // A deque: its elements never move, and libenet holds pointers into them (so host_ goes first).
  std::deque<PeerRecord> records_;
  HostPtr host_;
  std::uint64_t ticks_ = 0;
  TickRow row_;
  std::vector<TickRow> rows_;
  TierCounts handled_{};
  double tick_ms_max_ = 0;  // since the last status line
  bool closing_ = false;
};

}  // namespace edgeshed::demo

#endif  // EDGESHED_TOOLS_DEMO_GAME_SERVER_H_
