// Bytes as a life of one shard: a configuration, and what a tick samples, again and again.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace edgeshed::test {

/// Feeds `bytes` to ShardLaw::step and fill_plan_rows, with every number within what the daemon
/// lets through. "" if the invariants of law_invariants.h held after each step; otherwise the step
/// and what did not.
std::string run_law(std::span<const uint8_t> bytes);

}  // namespace edgeshed::test
