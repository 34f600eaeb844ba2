/* The memory of a segment, as mapped by owners and editors. */
#pragma once

#include "base/memfd_find.h"
#include "segment.h"
#include "state/group/find.h"
#include "state/ledger.h"

#include <stddef.h>

#define SEGMENT_NAME "nvtaskset"
#define SEGMENT_LINK MEMFD_LINK(SEGMENT_NAME) /* also the name in /proc/PID/maps */

#define SEGMENT_MAGIC UINT64_C(0x6b73617464766e01) /* not text: no text file is taken for a segment */
#define SEGMENT_MOVED UINT64_C(0x6b73617464766e02) /* replaces the magic once the segment has moved */
#define SEGMENT_VERSION 16
#define SEGMENT_EVENT_WORDS 5 /* struct segment_event */
#define SEGMENT_BEING_WRITTEN UINT64_MAX
#define SEGMENT_ANOTHERS "its partition is another version's: use the nvtaskset that started it"

/*
 * 8-byte words in the machine's byte order:
 *
 *   0    magic, version, size,
 *        owner, 2 words          written once, magic last; SEGMENT_MOVED replaces the magic when the segment moves
 *        execution               number of the execution in which the library is at work (base/identity.h); 0 before
 *        out of force            not 0 while the library does not obey
 *        memory gap              not 0 if some GPU memory of the process is not counted (memory.h)
 *   64   revision in force       the number, raised by editors
 *   128  counters                written by the owner; launches only read the cache lines before
 *   320  counter slots           for the owner's threads to count launches
 *   4416 areas                   counts of kernels (state/kernels/counts.h): gaps of all areas, number of areas, place
 *                                of each area with the inode written last
 *   4608 looking                 the lease (lease.h); how often a lease raised the number; areas of times
 *                                (state/kernels/timestamps.h), as the areas of counts
 *        group                   the file, and the owner's descriptor of the file: written before the magic
 *   4800 time                    state of the quota; the futex of the owner's thread; mark of a neighbour; streams
 *   4864 lending                 borrowed TPCs: now, for how long, and from whom; how often launches became wide
 *   5056 ring of revisions       revision n is at n % REVISIONS_RING
 *        ledger                  of GPU memory (state/ledger.h), for a process without a group's
 *        events                  events.h: event n is at n % SEGMENT_EVENTS
 *
 * Revisions are read while being written (base/ring.h).
 */
struct segment_memory {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t size;
	struct identity owner;
	_Atomic uint64_t execution;
	_Atomic uint64_t out_of_force;
	_Atomic uint64_t memory_gap;
	_Alignas(64) _Atomic uint64_t number;
	_Alignas(64) _Atomic uint64_t refreshed;
	_Atomic uint64_t reasons[23];
	struct counter_slot slots[COUNTER_SLOTS];
	_Alignas(64) _Atomic uint64_t gaps;
	_Atomic uint64_t areas_made;
	struct segment_area {
		_Atomic uint64_t inode; /* 0: none */
		_Atomic uint64_t file;  /* the number of the owner's descriptor */
	} areas[SEGMENT_AREAS];
	_Alignas(64) _Atomic uint64_t lease;
	_Atomic uint64_t raised;
	struct segment_area timestamps[SEGMENT_AREAS];
	struct group_identity group;
	_Atomic uint64_t group_descriptor;
	_Alignas(64) _Atomic uint64_t time_state;
	_Atomic uint64_t time_number;
	_Atomic uint64_t present_us;
	_Atomic uint64_t aside_us;
	_Atomic uint64_t bounded;
	_Atomic uint64_t held;
	_Atomic uint32_t rings; /* the futex of the owner's thread */
	_Atomic uint32_t company; /* a mark of time/demand/company.h */
	_Atomic uint32_t streams; /* launch/account/streams_made.h */
	_Alignas(64) _Atomic uint64_t borrowed[TPCSET_WORDS];
	_Atomic uint64_t borrowed_tpc_us;
	_Atomic uint64_t overruns;
	_Atomic uint64_t contexts; /* raised with each context, and with each gap of all GPUs */
	struct {
		_Atomic uint64_t lender, tpc_us;
	} loans[SEGMENT_LOANS];
	_Atomic uint64_t openings; /* segment_count_opening */
	_Alignas(64) revisions_ring ring;
	_Alignas(64) struct ledger ledger;
	_Alignas(64) struct segment_events {
		_Atomic uint64_t last; /* the last number given */
		struct segment_noted {
			_Atomic uint64_t number; /* SEGMENT_BEING_WRITTEN meanwhile */
			_Atomic uint64_t words[SEGMENT_EVENT_WORDS];
		} ring[SEGMENT_EVENTS];
	} events;
};

_Static_assert(sizeof(struct pci_address) == 8, "shared layout");
_Static_assert(sizeof(struct segment_partition) == 40, "shared layout");
_Static_assert(sizeof(struct segment_revision) == 72 + SEGMENT_GPUS * 40, "shared layout");
_Static_assert(offsetof(struct segment_memory, owner) == 16, "shared layout");
_Static_assert(offsetof(struct segment_memory, number) == 64, "shared layout");
_Static_assert(offsetof(struct segment_memory, refreshed) == 128, "shared layout");
_Static_assert(offsetof(struct segment_memory, slots) == 320, "shared layout");
_Static_assert(offsetof(struct segment_memory, gaps) == 4416, "shared layout");
_Static_assert(offsetof(struct segment_memory, lease) == 4608, "shared layout");
_Static_assert(offsetof(struct segment_memory, time_state) == 4800, "shared layout");
_Static_assert(offsetof(struct segment_memory, ring) == 5056, "shared layout");
_Static_assert(sizeof(struct counter_slot) == 64, "shared layout");
_Static_assert(SEGMENT_REASON_COUNT <= 23, "shared layout");

/* The value of a struct segment without a segment. */
extern const struct segment segment_closed;

/* Maps a segment's file, for writing if the file is open for writing, and takes the file over. `segment_closed` with
 * errno on failure. */
struct segment segment_map(int file);

/* Whether the segment's file is open for writing, and the memory mapped for writing. */
bool segment_may_write(const struct segment *segment);

/* From here on the segment uses the group, and closes the group. */
void segment_use_group(struct segment *segment, const struct group *group);

/* Opens the group of the segment, through the descriptors of process `pid`, or else of any process, if the group is in
 * reach. -1 with errno if a limit of the caller (proc_is_limit) hides the group. */
int segment_open_group(struct segment *segment, pid_t pid, enum group_use use);

/* A struct segment for existing memory, without a file. */
struct segment segment_in(struct segment_memory *memory);

/* --- the kind of a found file, by its untrusted content ----------------------------------------------------------- */

enum segment_kind {
	KIND_OWN,
	KIND_INHERITED, /* an ancestor's, inherited through fork or exec */
	KIND_LEFT,      /* inherited; the owner has gone on with a new segment */
	KIND_NOT_READY, /* the process may be making the segment */
	KIND_NOBODYS
};

/* The same in each version. */
struct segment_header {
	uint64_t magic;
	uint32_t version, size;
	struct identity owner;
};

/* Reads the header, of any version. The magic is 0 if the file is not, or not yet, a segment. */
struct segment_header segment_read_header(int file);

/* The kind of the segment for the process `who`. */
enum segment_kind segment_kind_for(const struct segment_header *header, struct identity who);

/* Maps a segment, also after the owner has left. Takes `file` over: the segment has `file`, or `file` is closed. */
enum segment_state segment_map_found(struct segment *segment, int file, struct error *error);
