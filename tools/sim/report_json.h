// The JSON of a campaign, for scripts and for what is kept of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tools/sim/campaign.h"
#include "tools/sim/targets.h"

namespace edgeshed::sim {

/// {"seeds", "rows": [{scenario, metric, target, value, pass}], "runs": [{scenario, policy, seed,
/// and each figure}], "passed"}, on one line. Not a number is null, infinity is "never".
std::string report_json(std::uint32_t seeds, std::span<const Verdict> verdicts,
                        std::span<const Result> results);

}  // namespace edgeshed::sim
