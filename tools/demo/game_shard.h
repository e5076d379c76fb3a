// The server's side of EdgeShed, as small as it can be: a session for the shard, a room for each
// match, a connection for each player. Without a session every call does nothing and may_send says
// yes.
#ifndef EDGESHED_TOOLS_DEMO_GAME_SHARD_H_
#define EDGESHED_TOOLS_DEMO_GAME_SHARD_H_

#include <enet/enet.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "userspace/client/edgeshed.h"

namespace edgeshed::demo {

struct ShardOptions {
  std::string shard;   // empty: no session
  std::string socket;  // of the daemon's sessions
  std::string contract_class = "player";
  unsigned rooms = 4;
  std::uint32_t players_max = 1024;
};

void add_shard_options(CLI::App& app, ShardOptions& options);

class GameShard {
 public:
  // Throws std::runtime_error when a session is wanted and refused.
  explicit GameShard(const ShardOptions& options);

  int join(std::size_t player, const ENetAddress& address);
  void leave(int peer);
  void tick_begin();
  void tick_end();
  bool may_send_snapshot(int peer);

  std::uint32_t rung() const { return rung_; }
  std::string events_json() const;

 private:
  struct Closer {
    void operator()(edgeshed_session* session) const { edgeshed_close(session); }
  };
  void poll();

  const ShardOptions options_;
  std::unique_ptr<edgeshed_session, Closer> session_;
  std::vector<int> rooms_;
  std::uint32_t rung_ = 0;
  std::string rung_changes_;
  std::uint32_t refused_ = 0;
  std::string refusal_;
};

}  // namespace edgeshed::demo

#endif  // EDGESHED_TOOLS_DEMO_GAME_SHARD_H_
