// The list of codes as a page for people. Must not be used by a tick: it allocates.
#pragma once

#include <string>

namespace edgeshed::core {

/// docs/codes.md, whole: what `edgeshed codes --markdown` prints.
std::string codes_markdown();

}  // namespace edgeshed::core
