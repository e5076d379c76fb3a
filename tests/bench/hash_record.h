/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the kernel HASH of the peer holds for a connection: shared by its program and its filler.
 */
#ifndef EDGESHED_TESTS_BENCH_HASH_RECORD_H
#define EDGESHED_TESTS_BENCH_HASH_RECORD_H

#include "maps/connection.h"

struct bench_hash_record {
  struct es_connection connection;
  __u32 record; /* its states are where the product has them */
  __u32 reserved;
};
ES_ASSERT_SIZE(struct bench_hash_record, 40);

#endif
