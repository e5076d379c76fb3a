// See native_dissect.h. GNU C, as tests/bpf/native_decide.c.
#include "tests/fuzz/native_dissect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Declares the helpers; from here on they are these. */
#include "maps/maps.bpf.h"

/* The frame that is looked at, and what the contexts say of it. */
static const struct native_frame* frame;
static struct xdp_md xdp_context;
static struct __sk_buff tc_context;

static long native_load(__u32 offset, void* to, __u32 length) {
  if (offset > frame->count || length > frame->count - offset) return -1;
  memcpy(to, frame->bytes + offset, length);
  return 0;
}
static long native_pull(__u32 length);

#define bpf_xdp_load_bytes(ctx, offset, to, length) ((void)(ctx), native_load(offset, to, length))
#define bpf_skb_load_bytes(ctx, offset, to, length) ((void)(ctx), native_load(offset, to, length))
#define bpf_skb_pull_data(ctx, length) native_pull(length)
/* A call of the step by its own type. */
#define bpf_loop(times, step, walk, flags)                     \
  do {                                                         \
    for (__u32 native_i = 0; native_i < (times); native_i++) { \
      if (step(native_i, walk)) break;                         \
    }                                                          \
  } while (0)

#include "bpf/classify.h"
#include "bpf/fast.h"
#include "bpf/flow.h"
#include "bpf/parse.h"

#define GENERATION 2u /* of the plan's first copy */
#define PAGE 4096u

struct es_native_tables es_native;
static struct es_plan_endpoint rows[4];
static struct es_ports_page ports;

/** The end of the memory for frames: contexts have pointers of 32 bits, and the page that begins
 * here cannot be read. */
static __u8* frame_end(void) {
  static __u8* end;
  if (end) return end;
  __u8* memory = mmap(0, NATIVE_FRAME_BYTES_MAX + PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (memory == MAP_FAILED) abort();
  if (mprotect(memory + NATIVE_FRAME_BYTES_MAX, PAGE, PROT_NONE)) abort();
  end = memory + NATIVE_FRAME_BYTES_MAX;
  return end;
}

/** Puts the first `linear` bytes where they can be read. */
static void place(__u32 linear) {
  __u8* data = frame_end() - linear;
  memcpy(data, frame->bytes, linear);
  xdp_context.data = tc_context.data = (__u32)(unsigned long)data;
  xdp_context.data_end = tc_context.data_end = (__u32)(unsigned long)frame_end();
}

static long native_pull(__u32 length) {
  if (length > frame->count) return -1;
  if (length > tc_context.data_end - tc_context.data) place(length);
  return 0;
}

static void prepare(const struct native_frame* of, const struct es_plan_endpoint* endpoint) {
  if (of->count > NATIVE_FRAME_BYTES_MAX || of->linear > of->count) abort();
  frame = of;
  memset(ports.endpoint, 1, sizeof(ports.endpoint));
  rows[1] = *endpoint;
  rows[1].generation = GENERATION;
  es_native.geometry.endpoints = 2;
  es_native.plan_ep = rows;
  es_native.ports = &ports;
  tc_context.len = tc_context.wire_len = of->count;
  place(of->linear);
}

ES_INLINE void dissect(void* ctx, const int hook, struct native_dissected* out) {
  struct es_wire wire = {0};
  struct es_bounds bounds = hook_open(ctx, hook);
  struct es_cursor cursor = {.pos = bounds.data, .end = bounds.end};
  memset(out, 0, sizeof(*out));
  out->packet.direction = out->plain.direction = frame->direction;
  out->reason = parse(ctx, hook, &cursor, bounds.data, &wire, &out->packet);
  out->cursor = (__u32)(cursor.pos - bounds.data);
  out->linear = (__u32)(bounds.end - bounds.data);
  out->found = ES_REASON_not_ours;
  if (out->reason == ES_UNDECIDED) {
    hook_charge(ctx, hook, &out->packet);
    if (out->packet.fragment != ES_FRAG_LATER)
      out->found = flow_find(&wire, &out->packet, GENERATION);
  }
  out->located = out->packet;
  if (out->found == ES_UNDECIDED) classify(ctx, hook, &out->packet, &rows[1]);

  struct es_plain plain = plain_find(ctx, hook, frame->direction, GENERATION);
  out->is_plain = plain.endpoint != 0;
  out->plain_lane = ES_FAST_NO;
  if (out->is_plain) {
    plain_describe(&plain, &out->plain);
    out->plain_lane = plain_classify(&plain);
  }
  bounds = hook_bounds(ctx, hook);
  out->changed = memcmp(bounds.data, frame->bytes, bounds.end - bounds.data) != 0;
}

void native_dissect_xdp(const struct native_frame* of, const struct es_plan_endpoint* endpoint,
                        struct native_dissected* out) {
  prepare(of, endpoint);
  dissect(&xdp_context, ES_HOOK_XDP, out);
}

void native_dissect_tc(const struct native_frame* of, const struct es_plan_endpoint* endpoint,
                       struct native_dissected* out) {
  prepare(of, endpoint);
  dissect(&tc_context, ES_HOOK_TC, out);
}

int native_same_packet(const struct es_packet* a, const struct es_packet* b) {
  return memcmp(a, b, sizeof(*a)) == 0;
}
