// Every constant of the control law, in one place: each field has its default and the reason for
// it, or the run of the simulator that chose it, where it is defined.
#pragma once

#include "userspace/core/control_config.h"
#include "userspace/core/degree.h"
#include "userspace/core/demand.h"
#include "userspace/core/fair_share.h"
#include "userspace/core/ladder_effects.h"
#include "userspace/core/tick_watch.h"

namespace edgeshed::core {

struct LawConfig {
  ControlConfig control;                        ///< hysteresis, holds and ramps: [control]
  LadderTable ladder = default_ladder_table();  ///< what each rung may shed: [[rung]]
  CostConfig cost;                              ///< what messages cost: [cost]
  DegreeConfig degree;                          ///< how much is kept: [degree]
  TickWatchConfig tick_watch;                   ///< what a long tick says of costs: [cost]
  FairShareConfig fair_share;                   ///< by whom: [fair_share]
};

}  // namespace edgeshed::core
