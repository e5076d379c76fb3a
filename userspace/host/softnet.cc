#include "userspace/host/softnet.h"

#include "userspace/host/text.h"

namespace edgeshed::host {

std::optional<SoftnetCounts> parse_softnet(std::string_view text) {
  if (text.empty()) return std::nullopt;
  SoftnetCounts counts;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const auto processed = number_of(take_until(line, ' '), 16);
    const auto dropped = number_of(take_until(line, ' '), 16);
    const auto squeezes = number_of(take_until(line, ' '), 16);
    if (!processed || !dropped || !squeezes) return std::nullopt;
    counts.dropped += *dropped;
    counts.time_squeezes += *squeezes;
  }
  return counts;
}

}  // namespace edgeshed::host
