/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Hard limits of the shared layout, each with the arithmetic behind it. Capacities (how many
 * endpoints, rooms, connections a host really has) are chosen at load time below these limits:
 * `edgeshed check` prints the memory that a choice takes.
 */
#ifndef EDGESHED_MAPS_LIMITS_H
#define EDGESHED_MAPS_LIMITS_H

/* Any change of layout or meaning in maps/ raises this; a daemon refuses pins of another schema. */
#define ES_SCHEMA_VERSION 5u

/* An endpoint number is one byte in the port table (64 KiB, one cache line per 64 ports).
 * Number 0 is the host itself: packets that belong to no endpoint are counted in its row. */
#define ES_ENDPOINTS_MAX 256u
#define ES_PORTS 65536u
/* Endpoints that share a port on different local addresses: the chain the packet path walks. */
#define ES_SAME_PORT_MAX 4u

/* 16 bits of the policy word. */
#define ES_ROOMS_MAX 65536u
/* 8 bits of the policy word. */
#define ES_CLASSES_MAX 256u

/* A slot is a u32: 20 bits of record number and 12 bits of extended tag. 2^20 records of 32 B
 * plus 64 B of state for each direction are 160 MiB; 2^20 / 6 / 0.90 buckets of 32 B are 5.9 MiB.
 */
#define ES_RECORD_BITS 20u
#define ES_CONNECTIONS_MAX (1u << ES_RECORD_BITS)
#define ES_BUCKET_SLOTS 6u
/* Buckets are filled to at most 90 %: two choices plus cuckoo moves reach that with a stash of one
 * bucket (tests/bpf/slot_table_test fills to it with 100 seeds). */
#define ES_BUCKET_FILL_PERCENT 90u

/* A player's state streams: 8 slots of 24 B and 64 B of aggregate are one 256 B block. */
#define ES_STREAM_SLOTS 8u
#define ES_STREAM_IDLE_SECONDS 2u
/* A stream that has been refused in each second of this many is closed, where its room closes
 * streams: as long as anything that its author notices must stand. */
#define ES_STREAM_CLOSE_SECONDS 3u
/* A closed stream that was silent for so long is open again, as if it were another one. */
#define ES_STREAM_REOPEN_SECONDS 30u

/* Fragments in flight: 4096 of 8 B. At 2 s of lifetime and one fragmented datagram per slot that
 * is 2,000 fragmented datagrams/s before two of them meet in a slot; a loser passes, counted. */
#define ES_FRAGMENT_SLOTS 4096u
#define ES_FRAGMENT_SECONDS 2u

/* Prefixes (/24, /48) that rejects are counted against: 4096 of 8 B. A collision shares a cap. */
#define ES_REJECT_PREFIX_SLOTS 4096u
#define ES_REJECTS_PER_PREFIX_PER_SECOND 64u
/* One connection gets at most one reject in this many milliseconds. */
#define ES_REJECT_INTERVAL_MS 100u
/* A game server hears of refusals of one connection no more often than this. */
#define ES_TELL_INTERVAL_MS 1000u

/* Walks of the packet path. Deeper input passes and is counted (too_deep). */
#define ES_VLAN_DEPTH_MAX 2u
#define ES_EXT_HEADERS_MAX 8u
#define ES_ENET_COMMANDS_MAX 32u
#define ES_MATCH_RULES 8u
#define ES_ENET_CHANNELS 64u

/* One in this many class-decided packets still does the table look-up, so that a room's demand
 * stays visible. A power of two. With a million connections a look-up is 600 ns of cache misses:
 * one in 64 costs every packet 9 ns, one in 256 a quarter of that, and a CPU that sheds a million
 * packets a second still takes 4,000 samples. */
#define ES_SAMPLE_EVERY 256u

/* Contract debts are times in 2^-16 jiffy held in 32 bits; half of that range is 2^15 jiffies
 * (32 s at HZ 1000). A connection idle for longer than this many jiffies starts afresh, so a
 * wrapped debt is never compared. */
#define ES_DEBT_TICK_BITS 16u
#define ES_IDLE_RESET_JIFFIES 16384u
/* Largest burst of a contract, in jiffies: below ES_IDLE_RESET_JIFFIES by a factor of two. */
#define ES_BURST_JIFFIES_MAX 8192u

/* Event ring: 256 KiB hold 4,096 events of 64 B. */
#define ES_EVENT_RING_BYTES (256u * 1024u)

/* After valid_until_jiffies tier shedding opens linearly over this many seconds. */
#define ES_DEAD_MAN_OPEN_SECONDS 1u

#endif
