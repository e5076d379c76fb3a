// What must hold of a shard's law after any step, and of the rows made from it, whatever was
// sampled. Says what does not hold, in one line; "" when all does.
#pragma once

#include <span>
#include <string>

#include "userspace/core/plan_rows.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::test {

/// After ShardLaw::step(memory, sample):
/// - every number is finite and within its range;
/// - the degree is at or below its target, and the order of its target is never inverted: while
///   less than all of standard would be kept, best-effort gets its guaranteed gaps and no more;
/// - thinning is between the rung's table and all, and what is paused is the rung's;
/// - no operator's rung has a level beside it, and best-effort has none while costs are not known.
std::string law_fault(const core::ShardLaw& law, const core::ShardMemory& memory,
                      const core::ShardSample& sample);

/// Rows of a plan: nothing in them drops a critical lane; masks do not contradict each other; what
/// is not paused keeps something; a level that is on can be charged.
std::string rows_fault(const core::Model& model, const core::PlanRows& rows);

}  // namespace edgeshed::test
