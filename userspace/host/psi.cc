#include "userspace/host/psi.h"

#include <algorithm>

#include "userspace/host/text.h"

namespace edgeshed::host {

std::optional<std::uint64_t> parse_psi_some_us(std::string_view text) {
  constexpr std::string_view kTotal = "total=";
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') != "some") continue;
    while (!line.empty()) {
      const std::string_view word = take_until(line, ' ');
      if (word.starts_with(kTotal)) return number_of(word.substr(kTotal.size()));
    }
  }
  return std::nullopt;
}

std::optional<double> ShareOfTime::step(std::optional<std::uint64_t> total_us,
                                        std::uint64_t now_ns) {
  std::optional<double> share;
  if (total_us && total_us_ && *total_us >= *total_us_ && now_ns > at_ns_) {
    const double stalled_ns = static_cast<double>(*total_us - *total_us_) * 1000;
    share = std::min(1.0, stalled_ns / static_cast<double>(now_ns - at_ns_));
  }
  total_us_ = total_us;
  at_ns_ = now_ns;
  return share;
}

}  // namespace edgeshed::host
