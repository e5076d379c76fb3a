// TOML to a checked core::Model. Every error names file:line:column, what is wrong, what is allowed
// and what to do. Must not act on anything, nor ask the machine: HZ is an argument.
#pragma once

#include <string>
#include <string_view>

#include "userspace/core/error_type.h"
#include "userspace/core/model.h"

namespace edgeshed::config {

/// HZ to check bursts against when the host's is not known: the largest that Linux has, so what
/// passes here passes everywhere.
inline constexpr uint32_t kHzStrictest = 1000;

/// Reads a file. Throws edgeshed::Error (kExitUsage).
core::Model load(const std::string& path, uint32_t hz = kHzStrictest);

/// The same from text; `path` stands in the errors.
core::Model parse(std::string_view text, const std::string& path, uint32_t hz = kHzStrictest);

}  // namespace edgeshed::config
