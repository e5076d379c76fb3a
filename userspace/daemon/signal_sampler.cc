#include "userspace/daemon/signal_sampler.h"

#include <algorithm>
#include <set>
#include <utility>

#include "userspace/core/plan_rows.h"

namespace edgeshed::daemon {
namespace {

using core::PressureSignal;
using core::signal_bit;

/// Whether a socket that is bound to `local` takes what is sent to `endpoint`, whose port it has.
bool takes(const core::Address& local, const core::Endpoint& endpoint) {
  return endpoint.any_address || local == core::Address{} || local == endpoint.address;
}

}  // namespace

SignalSampler::SignalSampler(const core::Model& model, const SessionDesk& sessions, SignalBox& box,
                             const SignalPaths& paths)
    : model_(&model),
      sessions_(sessions),
      box_(box),
      softnet_(paths.softnet),
      pressure_(paths.cpu_pressure),
      ports_(std::make_unique<es_ports_page>()) {
  use(model);
}

void SignalSampler::use(const core::Model& next) {
  const core::Model& former = *model_;
  const auto before = std::move(endpoints_);
  model_ = &next;
  next_ = {};
  next_.shards.resize(next.shards.size());
  shards_ = std::vector<Shard>(next.shards.size());
  endpoints_.assign(next.endpoints.size(), {});
  // What stands in a socket goes on standing: equal numbers with equal names are the same endpoint.
  for (std::size_t i = 0; i < std::min(before.size(), endpoints_.size()); ++i) {
    if (former.endpoints[i].name == next.endpoints[i].name) endpoints_[i] = before[i];
  }
  shares_ = endpoint_shares(next);
  core::fill_ports_page(next, *ports_);
  std::set<std::uint16_t> used;
  for (const core::Endpoint& one : next.endpoints) {
    if (core::exists(one)) used.insert(one.port);
  }
  only_port_ = used.size() == 1 ? *used.begin() : 0;
}

void SignalSampler::sample(std::uint64_t now_ns) {
  for (ShardOutside& shard : next_.shards) shard = {};
  sample_softnet(now_ns);
  sample_queues();
  find_servers();
  sample_stalls(now_ns);
  sample_rooms();
  flag_lost();
  next_.model = model_;
  next_.at_ns = now_ns;
  box_.spare() = next_;
  box_.publish();
}

void SignalSampler::found(std::size_t shard, std::uint16_t signals) {
  next_.shards[shard].missing &= static_cast<std::uint16_t>(~signals);
}

void SignalSampler::sample_softnet(std::uint64_t now_ns) {
  const auto before = std::exchange(softnet_before_, softnet_.read());
  if (!before || !softnet_before_ || next_.at_ns == 0 || now_ns <= next_.at_ns) return;
  const double seconds = static_cast<double>(now_ns - next_.at_ns) / 1e9;
  const auto per_tick = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(host::growth_of(from, to)) / (seconds * model_->host.tick_hz);
  };
  next_.softnet_drops = per_tick(before->dropped, softnet_before_->dropped);
  next_.time_squeezes = per_tick(before->time_squeezes, softnet_before_->time_squeezes);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    found(i, signal_bit(PressureSignal::softnet_drops) | signal_bit(PressureSignal::time_squeeze));
  }
}

void SignalSampler::add_queue(const host::SocketQueue& queue) {
  for (std::uint8_t number = ports_->endpoint[queue.port]; number != 0;) {
    const core::Endpoint& endpoint = model_->endpoints[number - 1];
    number = endpoint.next_same_port;
    if (!takes(queue.local, endpoint)) continue;
    Endpoint& mine = endpoints_[endpoint.number - 1];
    mine.bytes += queue.bytes;
    ++mine.sockets;
  }
}

void SignalSampler::sample_queues() {
  for (Endpoint& one : endpoints_) one.bytes = one.sockets = 0;
  if (!sockets_.read(only_port_, [this](const host::SocketQueue& one) { add_queue(one); })) return;
  for (Endpoint& one : endpoints_) one.bytes = one.standing.step(one.bytes);
  for (const EndpointShare& share : shares_) {
    const Endpoint& one = endpoints_[share.endpoint - 1];
    if (one.sockets == 0) continue;
    next_.shards[share.shard].queued_bytes += one.bytes * share.share;
    found(share.shard, signal_bit(PressureSignal::receive_queue));
  }
}

void SignalSampler::find_servers() {
  std::vector<session::SessionId> now(shards_.size(), 0);
  sessions_.each_server([&](session::SessionId id, std::uint32_t shard, std::uint32_t pid) {
    now[shard] = id;
    if (shards_[shard].session == id) return;
    shards_[shard].session = id;
    const std::string folder = host::cgroup_folder(pid);
    shards_[shard].cgroup.reset();
    if (!folder.empty()) shards_[shard].cgroup.emplace(folder);
  });
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (now[i] == 0) shards_[i] = {0, std::nullopt, shards_[i].seen};
  }
}

void SignalSampler::sample_stalls(std::uint64_t now_ns) {
  const auto of_host = pressure_.sample(now_ns);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    auto share = of_host;
    if (shards_[i].cgroup) {
      if (const auto own = shards_[i].cgroup->sample(now_ns)) share = own;
    }
    if (!share) continue;
    next_.shards[i].psi_cpu_some = *share;
    found(i, signal_bit(PressureSignal::psi_cpu));
  }
}

void SignalSampler::sample_rooms() {
  struct Sum {
    std::uint32_t connections = 0;
    std::uint32_t rejected = 0;
  };
  std::vector<Sum> sums(shards_.size());
  for (std::size_t room = 0; room < model_->rooms.size(); ++room) {
    if (!core::exists(model_->rooms[room])) continue;
    const core::RoomState& state = sessions_.rooms().state(static_cast<std::uint16_t>(room));
    const std::size_t shard = model_->rooms[room].shard;
    std::uint32_t& worst = next_.shards[shard].ack_lag_p95;
    worst = std::max(worst, state.ack_lag_p95);
    if (sessions_.acks().measures(static_cast<std::uint16_t>(room))) {
      found(shard, signal_bit(PressureSignal::ack_lag));
    }
    sums[shard].connections += state.connections;
    sums[shard].rejected += state.rejected;
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].session == 0) continue;
    found(i, kRoomSignals);
    // One is an abuser, who must not speak for the shard.
    if (sums[i].rejected < 2) continue;
    next_.shards[i].rejected_share =
        static_cast<double>(sums[i].rejected) / static_cast<double>(sums[i].connections);
  }
}

void SignalSampler::flag_lost() {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    ShardOutside& shard = next_.shards[i];
    shard.lost = kHostSignals & shard.missing & shards_[i].seen;
    shards_[i].seen |= kHostSignals & static_cast<std::uint16_t>(~shard.missing);
  }
}

}  // namespace edgeshed::daemon
