// Step four of the packet path (bpf/decide.h), built natively: the reference that the BPF program
// is run beside. Reads and writes the memory that `es_native` names, which is a copy of the maps.
// Must not parse or classify: the caller fills in those groups of the packet.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "bpf/packet.h"
#include "bpf/tables.h"

/// Defined in native_decide.c; the caller points it at its memory before the first packet.
extern struct es_native_tables es_native;

/// Decides a packet as bpf/edgeshed.bpf.c does between classify and act: judge under the plan that
/// the control page names, once more when it was torn, then settle. `sample`: see judge().
void es_native_decide(struct es_packet* packet, int sample);

/// The ledger of a decided packet, spelled out anew: what bpf/count.h does to the counters of its
/// endpoint and room, and to the scratch. Sends no event and no reject.
void es_native_count(const struct es_packet* packet);

#ifdef __cplusplus
}
#endif
