// The list of codes as a page for people. Must not be used by a tick: it allocates.
#pragma once

#include <string>

#include "userspace/core/codes.h"

namespace edgeshed::core {

/// docs/codes.md, whole: what `edgeshed codes --markdown` prints.
std::string codes_markdown();

/// What the sender of a rejected sample should do; empty for none.
const char* hint_text(CodeHint hint);

}  // namespace edgeshed::core
