// The formulas behind the rows, each a pure function: times, limits, level clocks, allowances.
#include <algorithm>
#include <cmath>
#include <limits>

#include "userspace/core/plan_rows.h"

namespace edgeshed::core {
namespace {

constexpr double kDebtTick = 1u << ES_DEBT_TICK_BITS;
constexpr double kCostMax = std::numeric_limits<__u32>::max();
constexpr double kBurstMax = kDebtTick * ES_BURST_JIFFIES_MAX;
/// Q16 and tokens x 256.
constexpr double kLevelUnit = 65536.0 * 256.0;
/// A level is re-anchored, changed or not, once this much has run since its anchor: the product
/// (now - t0) * rate then keeps 15 bits of room, and rounding costs under 2^-32 of it.
constexpr uint64_t kReanchor = uint64_t{1} << 48;

__u32 cost_of(double cost) {
  return static_cast<__u32>(std::clamp(std::round(cost), 1.0, kCostMax));
}

/// `least_cost`: what the burst must hold besides two jiffies.
__u32 burst_of(double burst_s, double least_cost, uint32_t hz) {
  const double asked = kDebtTick * burst_s * hz;
  const double least = 2 * kDebtTick + least_cost;
  return static_cast<__u32>(std::min(std::ceil(std::max(asked, least)), kBurstMax));
}

/// elapsed * rate_q16, saturated.
uint64_t run_q16(const struct es_level& level, uint64_t now_jiffies) {
  if (now_jiffies <= level.t0_jiffies) return 0;
  uint64_t product = 0;
  const uint64_t elapsed = now_jiffies - level.t0_jiffies;
  if (__builtin_mul_overflow(elapsed, uint64_t{level.rate_q16}, &product)) {
    return std::numeric_limits<uint64_t>::max();
  }
  return product;
}

}  // namespace

uint16_t jiffies_from_ms(double ms, uint32_t hz) {
  if (!(ms > 0)) return 0;
  const double jiffies = std::ceil(ms * hz / 1000);
  return static_cast<uint16_t>(std::clamp(jiffies, 1.0, 65535.0));
}

struct es_limit contract_limit(const ContractRate& rate, double factor, uint32_t hz) {
  struct es_limit limit = {};
  if (rate.packets_per_s > 0) {
    limit.packet_cost = cost_of(kDebtTick * hz / (rate.packets_per_s * factor));
    const double least_cost = double{kBurstPackets} * limit.packet_cost;
    limit.packet_burst = burst_of(rate.burst_s, least_cost, hz);
  }
  if (rate.bytes_per_s > 0) {
    limit.byte_cost_q12 = cost_of(4096 * kDebtTick * hz / (rate.bytes_per_s * factor));
    const double packet_cost = std::ceil(limit.byte_cost_q12 * double{kBurstPacketBytes} / 4096);
    limit.byte_burst = burst_of(rate.burst_s, packet_cost, hz);
  }
  return limit;
}

uint64_t level_now(const struct es_level& level, uint64_t now_jiffies) {
  uint64_t value = 0;
  const uint64_t run = run_q16(level, now_jiffies) >> 16;
  if (__builtin_add_overflow(uint64_t{level.v0}, run, &value)) {
    return std::numeric_limits<uint64_t>::max();
  }
  return value;
}

struct es_level carry_level(const struct es_level& previous, uint64_t rate_q16, uint32_t burst,
                            uint64_t now_jiffies) {
  const bool same_rate = previous.rate_q16 == rate_q16 && now_jiffies >= previous.t0_jiffies;
  if (same_rate && run_q16(previous, now_jiffies) < kReanchor) {
    struct es_level level = previous;
    level.burst = burst;
    level.begun = 0;
    return level;
  }
  return {level_now(previous, now_jiffies), now_jiffies, rate_q16, burst, 0};
}

struct es_level level_of(const LevelRate& rate, uint32_t hz) {
  if (!(rate.tokens_per_s > 0)) return {};
  struct es_level level = {};
  level.rate_q16 =
      static_cast<__u64>(std::max(1.0, std::round(rate.tokens_per_s * kLevelUnit / hz)));
  const double least = 2 * 256 * rate.tokens_per_s / hz + kPacketCost;
  const double burst = std::ceil(std::max(256 * rate.tokens_per_s * rate.burst_s, least));
  level.burst = static_cast<__u32>(std::min(burst, kCostMax));
  return level;
}

uint64_t allowance(uint64_t per_s, const PlanTiming& timing) {
  // Generations that one CPU needs for one second's allowance of all of them.
  const uint64_t period = uint64_t{timing.tick_hz} * timing.cpus;
  const uint64_t place = timing.tick % period;
  return per_s * (place + 1) / period - per_s * place / period;
}

}  // namespace edgeshed::core
