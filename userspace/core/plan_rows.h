// From decisions to rows: what one tick publishes, in the layout of maps/plan.h. Pure arithmetic in
// preallocated vectors; writing the rows into the maps is userspace/kernel's.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "maps/control.h"
#include "maps/plan.h"
#include "userspace/core/model.h"
#include "userspace/core/retry_after.h"
#include "userspace/core/room_override.h"
#include "userspace/core/shard_controller.h"

namespace edgeshed::core {

/// Default cost of a packet in tokens x 256: one token. Bytes cost nothing by default.
inline constexpr uint16_t kPacketCost = 256;
/// Sustained rate of a contract, as a factor: beyond 4x a connection is always out of contract,
/// from rung 1 on beyond 2x, and while others in contract are shed beyond 1x. Critical beyond 1x is
/// demoted, at every rung.
inline constexpr double kContractFactorCalm = 4;
inline constexpr double kContractFactorShedding = 2;
inline constexpr double kContractFactorScarce = 1;
/// Packets that a packet burst holds at least: whoever sends one a second, as it may, has jitter,
/// and sends some again. With one packet 14 to 20 % of the simulator's critical messages were
/// demoted, at a contract of 1.1 times their rate.
inline constexpr uint32_t kBurstPackets = 4;
/// Packet that a byte burst must hold at least, in bytes: a full Ethernet frame's IP packet.
inline constexpr uint32_t kBurstPacketBytes = 1500;

/// All rows of a plan, one slot per row of the maps. `generation` is 1 in a row that exists and 0
/// in one that does not; the writer replaces the 1 by the generation it publishes.
struct PlanRows {
  PlanRows(uint32_t endpoint_rows, uint32_t room_rows, uint32_t class_rows)
      : endpoints(endpoint_rows), rooms(room_rows), classes(class_rows) {}
  explicit PlanRows(const struct es_geometry& geometry)
      : PlanRows(geometry.endpoints, geometry.rooms, geometry.classes) {}

  std::vector<struct es_plan_endpoint> endpoints;  ///< index endpoint number; 0 is unused
  std::vector<struct es_plan_room> rooms;
  std::vector<struct es_plan_class> classes;  ///< index 0: no contract
};

/// When, and over how many CPUs, the plan is used.
struct PlanTiming {
  uint32_t hz = 250;         ///< jiffies per second
  uint64_t now_jiffies = 0;  ///< the packet path's clock
  uint32_t tick_hz = 60;     ///< generations per second
  uint64_t tick = 0;         ///< counts generations: spreads the fractions of allowances
  uint32_t cpus = 1;         ///< CPUs that receive packets; possible CPUs never exceeds a cap
};

/// Tokens per second and weight, index tier - 1; 0: no level.
using TierLevels = std::array<double, kSheddableTiers>;

/// What a tick knows beside the model, the shards and the clock. Empty spans: nothing.
struct PlanExtras {
  /// What endpoints do whose configuration says nothing; unset: Host::mode.
  Mode host_mode = Mode::unset;
  /// By endpoint, index number - 1: connections that are exempt by `edgeshed allow`. While there
  /// are any, nothing of the endpoint is shed before the look-up.
  std::span<const uint32_t> exempt;
  /// By endpoint, the same index: connections that are throttled as slow consumers. While there are
  /// any, best-effort on its way out is looked up.
  std::span<const uint32_t> throttled;
  /// By room: 1 if its server asks before it sends, and so thins its egress itself.
  std::span<const uint8_t> server_thins;
  /// By shard: when a client asks again whose standard message was refused.
  std::span<const RetryAfter> retries;
  /// By shard: tokens per second that a connection of weight 1 gets on its way in, index tier - 1;
  /// 0: no level. A level of the room's own that is stricter stands.
  std::span<const TierLevels> levels;
  /// By room: a rung by hand. While it holds, the ladder table's rung stands in the place of what
  /// the shard sheds, levels included and without a ramp; levels of the room's own stay.
  std::span<const RoomOverride> overrides;
};

/// What a room is at: its shard's rung, or the one that an operator holds it at.
struct RoomInForce {
  uint8_t rung = 0;
  const LadderEffects& effects;
};

/// `room` is an index into Model::rooms, `shards` has one state per Model::shards; rooms beyond
/// `overrides` have none. The answer refers to the arguments.
RoomInForce room_in_force(const Model& model, std::span<const ShardState> shards,
                          std::span<const RoomOverride> overrides, size_t room);

/// Fills every row. `shards` has one state per Model::shards. `previous` are the room rows as
/// published last (rows.rooms itself is fine), so that level clocks run on; empty at the start.
/// Rows beyond the model, and of its holes, are cleared. Allocates nothing.
/// The model must fit into the rows, and every index in it must be valid: config::load sees to it.
void fill_plan_rows(const Model& model, std::span<const ShardState> shards,
                    const PlanTiming& timing, std::span<const struct es_plan_room> previous,
                    PlanRows& rows, const PlanExtras& extras = {});

/// The port table of a model: number of the first endpoint of each port.
void fill_ports_page(const Model& model, struct es_ports_page& page);

// The formulas, each on its own so that tests and the simulator can ask them.

/// Milliseconds to jiffies, rounded up; at least 1 for a positive time; at most 65535.
uint16_t jiffies_from_ms(double ms, uint32_t hz);

/// A limit as time (formulas in maps/plan.h) for `factor` times the rate.
struct es_limit contract_limit(const ContractRate& rate, double factor, uint32_t hz);

/// V(now) of a level: v0 + (now - t0_jiffies) * rate_q16 >> 16. A clock that went back counts as no
/// time. Saturates instead of wrapping.
uint64_t level_now(const struct es_level& level, uint64_t now_jiffies);

/// The level with a new rate and burst, its clock carried: v0 = V(now) under the old rate. With
/// nothing changed it is returned as it was (but for begun, which is 0), so that rounding is not
/// paid once per tick.
struct es_level carry_level(const struct es_level& previous, uint64_t rate_q16, uint32_t burst,
                            uint64_t now_jiffies);

/// rate_q16 and burst of a level rate: tokens x 256 per jiffy in Q16; burst at least 2 jiffies of
/// the rate plus one packet. All zero: off.
struct es_level level_of(const LevelRate& rate, uint32_t hz);

/// Share of an allowance of `per_s` that one CPU may use in generation `tick`. The fractions are
/// spread over generations: over any second the CPUs together get `per_s`, to within one each.
uint64_t allowance(uint64_t per_s, const PlanTiming& timing);

}  // namespace edgeshed::core
