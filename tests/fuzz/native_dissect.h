// Steps one to three of the packet path (bpf/parse.h, flow.h, classify.h) and the reading half of
// its short way (bpf/fast.h), built natively, on a frame behind whose last byte memory ends.
// Decides and counts nothing.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "bpf/packet.h"
#include "maps/plan.h"

#define NATIVE_FRAME_BYTES_MAX 16384u

/// One packet as a hook sees it. `linear`: bytes that can be read in place, as in a paged skb or a
/// buffer of several pages; the rest only by copies.
struct native_frame {
  const __u8* bytes;
  __u32 count;  // at most NATIVE_FRAME_BYTES_MAX
  __u32 linear;
  __u8 direction;
};

struct native_dissected {
  __u8 reason;               // of parse: ES_UNDECIDED, or why it goes no further
  __u8 found;                // of flow, if there is no reason: the same
  __u8 changed;              // the frame is not what it was
  __u8 is_plain;             // the short way takes it
  int plain_lane;            // what that says: a lane, or ES_FAST_NO (-1)
  __u32 cursor;              // where parse left it, from the start of the frame
  __u32 linear;              // bytes in place, after the hook has pulled what it wants
  struct es_packet located;  // after parse and flow
  struct es_packet packet;   // after classify
  struct es_packet plain;    // as the short way describes it
};

/// `endpoint` has every port; its generation is set here.
void native_dissect_xdp(const struct native_frame* frame, const struct es_plan_endpoint* endpoint,
                        struct native_dissected* out);
void native_dissect_tc(const struct native_frame* frame, const struct es_plan_endpoint* endpoint,
                       struct native_dissected* out);

/// Every byte of both, padding included: all are set to 0 at first.
int native_same_packet(const struct es_packet* a, const struct es_packet* b);

#ifdef __cplusplus
}
#endif
