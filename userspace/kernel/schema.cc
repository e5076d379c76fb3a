#include "userspace/kernel/schema.h"

#include "maps/limits.h"

namespace edgeshed::kernel {

std::uint32_t schema_version() { return ES_SCHEMA_VERSION; }

}  // namespace edgeshed::kernel
