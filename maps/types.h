/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What every shared header needs: fixed-width types and the size assert.
 * Compiles as C11 (clang -target bpf) and as C++20 (g++). Holds no structure of its own.
 */
#ifndef EDGESHED_MAPS_TYPES_H
#define EDGESHED_MAPS_TYPES_H

#include <linux/types.h>

#ifdef __cplusplus
#define ES_STATIC_ASSERT static_assert
#else
#define ES_STATIC_ASSERT _Static_assert
#endif

/* A shared structure states its size where it is defined: a field that moves breaks the build. */
#define ES_ASSERT_SIZE(type, bytes) \
  ES_STATIC_ASSERT(sizeof(type) == (bytes), #type " is not " #bytes " bytes")

#define ES_CACHE_LINE 64

/* Functions of shared headers: a call on the packet path costs more than their bodies. */
#define ES_SHARED_INLINE static inline __attribute__((always_inline))

/* The two ways a packet can go, seen from the game server, whatever face the interface has. */
enum es_direction {
  ES_IN = 0,  /* remote -> game server */
  ES_OUT = 1, /* game server -> remote */
  ES_DIRECTIONS = 2,
};

#endif
