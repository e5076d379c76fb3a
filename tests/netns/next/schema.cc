// The next schema's number, linked before the library's own: programs of a build that knows other
// maps. For upgrade_test.py.
#include "userspace/kernel/schema.h"

#include "maps/limits.h"

namespace edgeshed::kernel {

std::uint32_t schema_version() { return ES_SCHEMA_VERSION + 1; }

}  // namespace edgeshed::kernel
