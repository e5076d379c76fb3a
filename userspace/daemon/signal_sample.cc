#include "userspace/daemon/signal_sample.h"

#include "userspace/core/receive_queue.h"
#include "userspace/core/room_state.h"

namespace edgeshed::daemon {

void take(const SignalSample& sample, const core::Model& model, std::size_t shard,
          const core::ShardMemory& law, std::uint64_t now_ns, core::ShardSignals& signals) {
  using core::PressureSignal;
  // Of another configuration: nothing yet.
  const bool ours = sample.model == &model && shard < sample.shards.size();
  const ShardOutside outside = ours ? sample.shards[shard] : ShardOutside{};
  signals.missing = outside.missing;
  signals.lost = outside.lost;
  if (ours && now_ns > sample.at_ns + kSampleAgeMaxNs) {
    signals.lost |= kHostSignals & ~outside.missing;
    signals.missing = kSampledSignals;
  }
  if (!law.cost.known) signals.missing |= core::signal_bit(PressureSignal::receive_queue);

  const auto known = [&signals](PressureSignal signal, double value) {
    return (signals.missing & core::signal_bit(signal)) == 0 ? value : 0;
  };
  const double message_us = core::mean_message_us(law.rates, law.cost, model.law.cost);
  signals.receive_queue_ms =
      known(PressureSignal::receive_queue,
            core::receive_queue_ms(outside.queued_bytes, message_us, signals.frame_budget_ms));
  signals.softnet_drops = known(PressureSignal::softnet_drops, sample.softnet_drops);
  signals.time_squeezes = known(PressureSignal::time_squeeze, sample.time_squeezes);
  signals.psi_cpu_some = known(PressureSignal::psi_cpu, outside.psi_cpu_some);
  signals.ack_lag_p95 =
      known(PressureSignal::ack_lag,
            core::pressing_ack_lag(outside.ack_lag_p95, law.kept_best_effort, model.room_state));
  signals.rejected_share = known(PressureSignal::rejects, outside.rejected_share);
}

}  // namespace edgeshed::daemon
