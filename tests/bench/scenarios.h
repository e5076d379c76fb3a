// The packets that are measured, and the plans that they meet. Must not measure.
#pragma once

#include "maps/lanes.h"
#include "tests/bench/world.h"
#include "tests/support/bytes.h"

namespace edgeshed::bench {

/// An IPv4 UDP frame to the benchmark's endpoint, 60 to 130 bytes, by what it carries.
test::Bytes plain_frame();
test::Bytes lane_header_frame();
test::Bytes enet_frame(unsigned commands);

/// Endpoint 1 on any address, every packet of plain_frame() and lane_header_frame() on the snapshot
/// lane (best-effort), ENet's unreliable channel 0 too; nothing is limited.
Scenario open_plan(es_protocol protocol);

/// The lane is paused at the endpoint, or passes without a look-up.
Scenario class_drop(es_protocol protocol);
Scenario class_pass(es_protocol protocol);
/// The priority quartile in the slot decides.
Scenario slot_drop(es_protocol protocol);
/// The connection's record and its room's threshold decide.
Scenario table_drop(es_protocol protocol);
/// A contract and a level are charged, by one CAS each, and hold.
Scenario table_pass_charged(es_protocol protocol);

}  // namespace edgeshed::bench
