// The kinds of edgeshed dump. Each prints JSON or a table, from the pinned maps alone where it can.
#ifndef EDGESHED_TOOLS_CLI_DUMP_H_
#define EDGESHED_TOOLS_CLI_DUMP_H_

#include <cstdint>
#include <set>

#include "tools/cli/host_view.h"

namespace edgeshed::cli {

void dump_endpoints(const HostView& view, bool as_json);
void dump_rooms(const HostView& view, bool as_json);
void dump_connections(const HostView& view, bool as_json);
void dump_streams(const HostView& view, bool as_json);
void dump_plan(const HostView& view, bool as_json);
void dump_counters(const HostView& view, bool as_json);
/// Live records, from the buckets: a key that is being moved stands in two of them.
std::set<std::uint32_t> live_records(const kernel::MapSet& maps);
/// From the daemon if it runs, since the ring has one reader; otherwise takes them out of the ring.
int dump_events(const HostView& view, bool as_json, const Globals& globals);

}  // namespace edgeshed::cli

#endif
