#include "tools/cli/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "userspace/core/error_type.h"

namespace edgeshed::cli {

double parse_duration_s(std::string_view text, std::string_view option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double seconds = -1;
  if (unit.empty() || unit == "s") seconds = value;
  if (unit == "m") seconds = value * 60;
  if (unit == "h") seconds = value * 3600;
  if (unit == "d") seconds = value * 86400;
  if (error == std::errc() && std::isfinite(value) && value >= 0 && seconds >= 0) return seconds;
  throw Error(fmt::format("{}: \"{}\" is no duration; allowed: 90s, 15m, 1h or 7d", option, text),
              kExitUsage);
}

}  // namespace edgeshed::cli
