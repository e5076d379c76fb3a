// Names of the lists in maps/: reasons, verdicts, outcomes. Those of lanes, tiers and protocols
// are in model.h, which the configuration needs too. "?" out of range.
#pragma once

#include <cstdint>
#include <iterator>

#include "maps/reasons.h"

namespace edgeshed::core {

inline constexpr const char* kReasonNames[] = {
#define X(name, verdict, outcome, text) #name,
    ES_REASON_LIST(X)
#undef X
};
inline constexpr const char* kVerdictNames[] = {
#define X(name) #name,
    ES_VERDICT_LIST(X)
#undef X
};
inline constexpr const char* kOutcomeNames[] = {
#define X(name) #name,
    ES_OUTCOME_LIST(X)
#undef X
};

constexpr const char* reason_name(uint32_t reason) {
  return reason < std::size(kReasonNames) ? kReasonNames[reason] : "?";
}
constexpr const char* verdict_name(uint32_t verdict) {
  return verdict < std::size(kVerdictNames) ? kVerdictNames[verdict] : "?";
}
constexpr const char* outcome_name(uint32_t outcome) {
  return outcome < std::size(kOutcomeNames) ? kOutcomeNames[outcome] : "?";
}

}  // namespace edgeshed::core
