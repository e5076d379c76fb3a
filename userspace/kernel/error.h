// The one place where errno becomes an edgeshed::Error. Nothing else in the project may print or
// interpret errno: a caller says what it did and where, this file says what to do about it.
#pragma once

#include <string>
#include <string_view>

#include "userspace/core/error_type.h"

namespace edgeshed::kernel {

/// The hint that belongs to an errno when the caller has no better one; empty if there is none.
/// EPERM: the capabilities; EBUSY, ENOENT, ENOMEM and others: what is usually behind them.
std::string_view errno_hint(int err);

/// "cannot <what> <where>: <text of errno>; <hint>", without the parts that are empty.
/// `err` may be negative, as libbpf returns it. An empty `hint` means errno_hint(err).
std::string errno_line(int err, std::string_view what, std::string_view where,
                       std::string_view hint = {});

/// Throws Error(errno_line(...)): kExitEnvironment for a missing privilege or kernel feature, else
/// kExitFailure.
[[noreturn]] void fail_errno(int err, std::string_view what, std::string_view where,
                             std::string_view hint = {});

}  // namespace edgeshed::kernel
