// Reading of reports: see report_reader.h.
#include "userspace/session/report_reader.h"

#include <atomic>
#include <cmath>

namespace edgeshed::session {
namespace {

/// Clocks of two processes on one host differ by nothing, but a report may be written while we
/// hold a time that we read before.
constexpr std::uint64_t kFutureSlackNs = 50'000'000;

template <typename Word>
Word load_once(const Word& word) {
  Word copy;
  __atomic_load(&word, &copy, __ATOMIC_RELAXED);
  return copy;
}

/// One try of the seqlock. False: it was being written.
bool copy_report(const es_board_report& from, ServerReport& to) {
  const std::uint32_t before = __atomic_load_n(&from.seq, __ATOMIC_ACQUIRE);
  if ((before & 1) != 0) return false;
  to.number = load_once(from.number);
  to.reported_ns = load_once(from.reported_ns);
  to.tick_p99_ms = load_once(from.tick_p99_ms);
  to.ring_occupancy = load_once(from.ring_occupancy);
  to.rooms = load_once(from.rooms);
  to.ticks = load_once(from.ticks);
  to.busy_ns = load_once(from.busy_ns);
  std::atomic_thread_fence(std::memory_order_acquire);
  return load_once(from.seq) == before;
}

}  // namespace

std::optional<core::Code> judge_report(const ServerReport& report, const ServerReport& last,
                                       std::uint64_t now_ns, std::uint32_t rooms_max) {
  using core::Code;
  if (!std::isfinite(report.tick_p99_ms) || !std::isfinite(report.ring_occupancy) ||
      report.tick_p99_ms > kTickMsMax) {
    return Code::report_not_a_number;
  }
  // A counter with its top bit set is a negative number of somebody's.
  if (report.tick_p99_ms < 0 || report.ring_occupancy < 0 || report.ticks >> 63 != 0 ||
      report.busy_ns >> 63 != 0) {
    return Code::report_negative;
  }
  if (report.ring_occupancy > 1) return Code::report_ring_out_of_range;
  if (report.reported_ns > now_ns + kFutureSlackNs) return Code::report_time_in_future;
  if (report.number < last.number || report.reported_ns < last.reported_ns ||
      report.ticks < last.ticks || report.busy_ns < last.busy_ns) {
    return Code::report_sequence_back;
  }
  if (report.rooms != ES_SESSION_NONE && report.rooms > rooms_max) {
    return Code::report_room_in_no_shard;
  }
  return std::nullopt;
}

bool ReportReader::read(const es_report_board& board, std::uint64_t now_ns,
                        std::uint32_t rooms_max) {
  ServerReport report;
  bool whole = false;
  for (int i = 0; i < kReadTries && !whole; ++i) whole = copy_report(board.report, report);
  if (!whole || report.number == last_.number) return false;
  if (const auto fault = judge_report(report, last_, now_ns, rooms_max)) {
    // Counted once each, however often it is looked at.
    if (refused_ == 0 || report.number != refused_number_) ++refused_;
    refused_number_ = report.number;
    refusal_ = *fault;
    return false;
  }
  last_ = report;
  ++accepted_;
  return true;
}

double ReportReader::running_tick_age_ms(const es_report_board& board, std::uint64_t now_ns) {
  const std::uint64_t started_ns = load_once(board.tick_started_ns);
  if (started_ns == 0 || started_ns > now_ns) return 0;
  const double age_ms = static_cast<double>(now_ns - started_ns) / 1e6;
  return age_ms > kTickMsMax ? 0 : age_ms;
}

}  // namespace edgeshed::session
