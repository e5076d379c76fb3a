// Durations as people write them.
#ifndef EDGESHED_TOOLS_CLI_DURATION_H_
#define EDGESHED_TOOLS_CLI_DURATION_H_

#include <string_view>

namespace edgeshed::cli {

/// Seconds of "90", "90s", "15m", "1h" or "7d". Throws Error (kExitUsage), which names `option`.
double parse_duration_s(std::string_view text, std::string_view option);

}  // namespace edgeshed::cli

#endif
