// Which layout of the maps this program knows.
#pragma once

#include <cstdint>

namespace edgeshed::kernel {

/// ES_SCHEMA_VERSION. A function in a file of its own: tests/netns links a second build with
/// another number.
std::uint32_t schema_version();

}  // namespace edgeshed::kernel
