/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What differs between the two builds of the pure headers: the BPF object and the native test
 * build. No decision stands here.
 */
#ifndef EDGESHED_BPF_SIDE_H
#define EDGESHED_BPF_SIDE_H

#include "maps/types.h"

#define ES_INLINE static inline __attribute__((always_inline))
/* A rare or heavy part in a frame of its own: the stack of the common path stays small (512 bytes
 * in all), at about 1 ns a call. */
#define ES_SUBPROGRAM static __attribute__((noinline))
/* The same, and verified once by itself instead of once per path that leads to it: without this
 * the program exceeds the verifier's million instructions. Its pointers are plain memory (no map
 * values inside structures), and every one is compared with NULL first. */
#ifdef __bpf__
#define ES_GLOBAL_SUBPROGRAM __attribute__((noinline))
#else
#define ES_GLOBAL_SUBPROGRAM static __attribute__((noinline))
#endif
#define ES_LIKELY(x) __builtin_expect(!!(x), 1)
#define ES_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* One load or store, neither torn nor repeated by the compiler. */
#define ES_READ(x) (*(const volatile __typeof__(x)*)&(x))
#define ES_WRITE(x, value) (*(volatile __typeof__(x)*)&(x) = (value))
#define ES_CAS(pointer, old_value, new_value) \
  (__sync_val_compare_and_swap(pointer, old_value, new_value) == (old_value))

/* A loop whose body is rarely repeated: unrolled it only fills the instruction cache. */
#define ES_ROLLED _Pragma(ES_ROLLED_PRAGMA)
#ifdef __clang__
#define ES_ROLLED_PRAGMA "clang loop unroll(disable)"
#else
#define ES_ROLLED_PRAGMA "GCC unroll 1"
#endif

/* Hides a value's origin from the compiler, so that the bound check that follows reaches the
 * verifier instead of being optimised away. */
#define ES_OPAQUE(x) __asm__ volatile("" : "+r"(x))

#ifdef __BYTE_ORDER__
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "EdgeShed supports little-endian hosts only"
#endif
#endif
#define ES_NTOHS(x) ((__u16)__builtin_bswap16(x))
#define ES_NTOHL(x) ((__u32)__builtin_bswap32(x))
#define ES_HTONS(x) ES_NTOHS(x)

#endif
