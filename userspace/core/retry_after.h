// When a client whose standard message was refused should ask again (control law B4): not before
// the ramp can begin, and spread over as long as the ramp needs for those who wait. Pure.
#pragma once

#include <algorithm>

namespace edgeshed::core {

/// The shortest is longer than a hold, so that nobody comes back into the cut that refused it; the
/// longest is what a player waits for.
inline constexpr double kRetryLeastS = 1;
inline constexpr double kRetryMostS = 30;

/// A client is told least_s + U(0, spread_s), drawn for each by whoever tells it.
struct RetryAfter {
  double least_s = kRetryLeastS;
  double spread_s = 0;
};

/// hold + U(0, refused / readmitted), within 1 to 30 s. `hold_s`: until the ramp may begin;
/// `refused`: messages that wait to be sent again; `readmitted_per_s`: how many of them a second of
/// the ramp lets in.
inline RetryAfter retry_after(double hold_s, double refused, double readmitted_per_s) {
  RetryAfter retry;
  retry.least_s = std::clamp(hold_s, kRetryLeastS, kRetryMostS);
  const double spread_s = readmitted_per_s > 0 ? refused / readmitted_per_s : 0;
  retry.spread_s = std::clamp(spread_s, 0.0, kRetryMostS - retry.least_s);
  return retry;
}

}  // namespace edgeshed::core
