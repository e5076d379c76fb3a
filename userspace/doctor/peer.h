// The other end of a veth pair, which is mostly in a namespace of its own.
#pragma once

#include "userspace/doctor/links.h"

namespace edgeshed::doctor {

/// Looks for the namespace among those that have a name and those of processes, and into it by a
/// thread of its own. Needs CAP_SYS_ADMIN for another namespace; without: not found.
PeerFacts look_at_peer(Netlink& route, const Link& veth);

}  // namespace edgeshed::doctor
