// The report on a board, read by somebody who does not trust it: bounded retries, copy, then
// validate. Pure memory, no clock, no allocation: a tick may call it.
#pragma once

#include <cstdint>
#include <optional>

#include "userspace/core/codes.h"
#include "userspace/session/wire.h"

namespace edgeshed::session {

/// The last good report of a server. `number` 0: there was none.
struct ServerReport {
  std::uint64_t number = 0;
  std::uint64_t reported_ns = 0;
  double tick_p99_ms = 0;
  double ring_occupancy = 0;
  std::uint32_t rooms = ES_SESSION_NONE;
  std::uint64_t ticks = 0;
  std::uint64_t busy_ns = 0;
};

/// Longest tick that is believed: longer is a broken clock (ten minutes).
inline constexpr double kTickMsMax = 600'000;
/// Tries to copy a report that is being written; then the last good one stands until the next tick.
inline constexpr int kReadTries = 4;

class ReportReader {
 public:
  /// Looks at the board. `rooms_max`: rooms that the maps hold. True: `last()` is new.
  bool read(const es_report_board& board, std::uint64_t now_ns, std::uint32_t rooms_max);

  [[nodiscard]] const ServerReport& last() const { return last_; }
  /// Age of the tick that is running, in ms; 0: none is, or its beginning is impossible.
  [[nodiscard]] static double running_tick_age_ms(const es_report_board& board,
                                                  std::uint64_t now_ns);

  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  /// Why the last refused one was; Code::count: none was.
  [[nodiscard]] core::Code refusal() const { return refusal_; }

 private:
  ServerReport last_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t refused_number_ = 0;
  core::Code refusal_ = core::Code::count;
};

/// What is impossible about a report, given the last good one. Empty: nothing.
std::optional<core::Code> judge_report(const ServerReport& report, const ServerReport& last,
                                       std::uint64_t now_ns, std::uint32_t rooms_max);

}  // namespace edgeshed::session
