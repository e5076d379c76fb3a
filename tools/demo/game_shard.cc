#include "game_shard.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <stdexcept>

#include "game_common.h"

namespace edgeshed::demo {

void add_shard_options(CLI::App& app, ShardOptions& options) {
  app.add_option("--shard", options.shard, "name of the [[shard]] to open; none: no session");
  app.add_option("--session-socket", options.socket, "socket of edgeshedd's sessions");
  app.add_option("--rooms", options.rooms, "rooms room-1 to room-N of the configuration")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--players-max", options.players_max, "players that the rooms are opened for")
      ->check(CLI::Range(1, 4000))
      ->capture_default_str();
}

GameShard::GameShard(const ShardOptions& options) : options_(options) {
  if (options_.shard.empty()) return;
  edgeshed_options wanted{};
  wanted.shard = options_.shard.c_str();
  wanted.socket = options_.socket.c_str();
  wanted.server = "edgeshed demo";
  wanted.peers_max = options_.players_max;
  session_.reset(edgeshed_open(&wanted));
  if (!session_ || edgeshed_connected(session_.get()) == 0) {
    throw std::runtime_error(
        fmt::format("no session with edgeshedd: {}",
                    session_ ? edgeshed_problem(session_.get()) : "no memory"));
  }
  for (unsigned number = 1; number <= options_.rooms; ++number) {
    const std::string name = fmt::format("room-{}", number);
    const std::uint32_t players = (options_.players_max + options_.rooms - 1) / options_.rooms;
    rooms_.push_back(edgeshed_room_open(session_.get(), name.c_str(), players));
    poll();
    if (rooms_.back() < 0) {
      throw std::runtime_error(fmt::format("{} was refused: {}", name, refusal_));
    }
  }
}

int GameShard::join(std::size_t player, const ENetAddress& address) {
  if (!session_) return -1;
  sockaddr_in remote{};
  remote.sin_family = AF_INET;
  remote.sin_addr.s_addr = address.host;  // libenet keeps it in network order, the port not
  remote.sin_port = htons(address.port);
  edgeshed_peer peer{};
  peer.room = rooms_[player % rooms_.size()];
  peer.addr = reinterpret_cast<const sockaddr*>(&remote);
  peer.contract_class = options_.contract_class.c_str();
  peer.player = player;
  return edgeshed_connect(session_.get(), &peer);
}

void GameShard::leave(int peer) {
  if (session_ && peer >= 0) edgeshed_disconnect(session_.get(), peer);
}

void GameShard::tick_begin() {
  if (session_) edgeshed_tick_begin(session_.get());
}

void GameShard::tick_end() {
  if (!session_) return;
  edgeshed_tick_end(session_.get());
  poll();
}

bool GameShard::may_send_snapshot(int peer) {
  return !session_ || edgeshed_may_send(session_.get(), peer, EDGESHED_LANE_SNAPSHOT) != 0;
}

void GameShard::poll() {
  edgeshed_event event;
  while (edgeshed_poll(session_.get(), &event) != 0) {
    if (event.kind == EDGESHED_EVENT_RUNG) {
      rung_ = event.value;
      rung_changes_ += fmt::format("{}[{},{}]", rung_changes_.empty() ? "" : ",", now_ns(), rung_);
    } else if (event.kind == EDGESHED_EVENT_REFUSED) {
      ++refused_;
      refusal_ = fmt::format("{}: {}", event.code, event.text);
      fmt::print(stderr, "game server: refused, {}\n", refusal_);
    }
  }
}

std::string GameShard::events_json() const {
  return fmt::format(R"({{"rung_changes":[{}],"refused":{}}})", rung_changes_, refused_);
}

}  // namespace edgeshed::demo
