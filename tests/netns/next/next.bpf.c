/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The packet path as a later build of the same schema might have it: game servers hear of refusals
 * half as often. For upgrade_test.py.
 */
#include "maps/limits.h"

#undef ES_TELL_INTERVAL_MS
#define ES_TELL_INTERVAL_MS 2000u

#include "bpf/edgeshed.bpf.c"
