/*
 * The shared-memory segment: the partition of one process, and its counters.
 *
 * The process owns it (the shim makes it); an editor, the command or another program, finds it through
 * /proc and changes it while the process runs. The kernel's own rules say who may: the process's user,
 * and root. It is a memfd, sealed against changes of its size: nothing is left behind when the process
 * ends, and nobody can make the other side fault by truncating it.
 *
 * The partition is one revision: the sets of all GPUs. Revisions stand in a ring; one atomic number says
 * which is in force. An editor fills the next place of the ring and then raises the number, so
 *   - a reader that copies the revision in force and finds the number less than a ring further
 *     afterwards has a whole one;
 *   - an editor that dies anywhere before the raise leaves the old revision in force.
 * Editors exclude each other by a lock on the file, which the kernel drops with its holder.
 *
 * Neither side believes the other: a reader checks what it copied, an editor checks seals, size, magic
 * and version before it maps anything.
 */
#ifndef NVTASKSET_SEGMENT_H
#define NVTASKSET_SEGMENT_H

#include "error.h"
#include "topology/topology.h"
#include "tpcset.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SEGMENT_GPUS TOPOLOGY_GPUS_MAX

/* Why a launch was not simply run inside the partition. X(identifier, text for users). */
#define SEGMENT_REASONS(X)                                                          \
	X(NO_TOPOLOGY, "the GPU's topology is unknown")                             \
	X(UNKNOWN_QMD, "the launch descriptor has an unknown version")              \
	X(NO_SUCH_TPC, "the partition has no TPC that this GPU has")                \
	X(DAMAGED, "the partition in shared memory is damaged")                     \
	X(WIDENED, "its blocks must run at once and the partition cannot hold them: it was widened") \
	X(STALE_GRAPH, "a node of a CUDA graph keeps the partition that it was uploaded with")     \
	X(GREEN_CONTEXT, "a green context lies outside the partition, which won")  \
	X(REFUSED, "its blocks must run at once and the partition cannot hold them: the launch was refused") \
	X(LAUNCHED_BY_KERNELS, "kernels of a module can launch kernels, which are not restricted") \
	X(OWN_MASK, "a mask of the program's own lies outside the partition, which won")

enum segment_reason {
#define SEGMENT_REASON_ENUM(identifier, text) SEGMENT_##identifier,
	SEGMENT_REASONS(SEGMENT_REASON_ENUM)
#undef SEGMENT_REASON_ENUM
	SEGMENT_REASON_COUNT
};

const char *segment_reason_text(enum segment_reason reason);

/* The partition of a process on one GPU. */
struct segment_partition {
	struct pci_address pci;
	struct tpcset set; /* logical TPCs that it may use */
};

/* A whole partition: at most one entry for a GPU. A GPU without an entry is not restricted. */
struct segment_revision {
	uint32_t count; /* 0 … SEGMENT_GPUS */
	struct segment_partition partitions[SEGMENT_GPUS];
};

/* Where a thread counts its launches. */
struct segment_place {
	_Alignas(64) _Atomic uint64_t launches[2]; /* unrestricted, restricted */
};

struct segment_memory; /* what is mapped; its layout is segment.c's, and documented there */

/* One side's hold on a segment. */
struct segment {
	struct segment_memory *memory; /* NULL where there is none */
	int file;                      /* -1 likewise */
	/* Into the memory, for what every launch does. */
	_Atomic uint64_t *number;      /* of the revision in force */
	struct segment_place *places;  /* the first is for all threads that have no own one */
};

struct segment_counters {
	uint64_t restricted;   /* kernels whose descriptor we narrowed */
	uint64_t unrestricted; /* kernels that ran with the descriptor as it came */
	uint64_t refreshed;    /* nodes of CUDA graphs that were uploaded again after a change */
	uint64_t reasons[SEGMENT_REASON_COUNT];
};

/* --- the owner's side, in other people's processes: what launches use allocates nothing ------------------------ */

/* Makes a segment for this process, with `revision` in force: revision number 1. The descriptor is
 * close-on-exec, and none that a program may expect to be free. -1 with the reason where the kernel
 * refuses. */
int segment_create(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Opens the segment that this process has already: a second copy of the owner, in a namespace of the dynamic linker's,
 * shares it. Not without /proc. */
bool segment_find_own(struct segment *segment);

/* Sees to it that editors find the segment: a program may have closed descriptors that it did not open. Its content then
 * moves to a new file, mapped in place of the old one, while others go on launching: a few launches of just then are not
 * counted, and who had the old file open is told at the next edit. -1 with the reason where the kernel refuses: the segment
 * goes on as it was. One call at a time. */
int segment_keep_findable(struct segment *segment, struct error *error);

/* The number of the revision in force: raised by every edit, never 0. */
static inline uint64_t segment_revision_number(const struct segment *segment)
{
	return atomic_load_explicit(segment->number, memory_order_acquire);
}

/* Copies the revision in force and says its number. Bounded work. False where editors overtook the copy
 * again and again, or where what stands there is not a revision: `revision` is then undefined. */
bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number);

/* Counts a launch, from any thread. */
static inline void segment_count_launch(const struct segment *segment, bool restricted)
{
	atomic_fetch_add_explicit(&segment->places[0].launches[restricted], 1, memory_order_relaxed);
}

/* A place for the calling thread alone, which lasts as long as the segment; NULL where there are no more. */
struct segment_place *segment_take_place(const struct segment *segment);

/* The same in a thread's own place. Nothing is locked: that would wait for all that the thread did before, and take as long
 * as the rest of the callback (docs/evaluation.md). */
static inline void segment_count_launch_alone(struct segment_place *place, bool restricted)
{
	_Atomic uint64_t *launches = &place->launches[restricted];

	atomic_store_explicit(launches, atomic_load_explicit(launches, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* From any thread. */
void segment_count_reason(const struct segment *segment, enum segment_reason reason);
void segment_count_refresh(const struct segment *segment);

/* Whether the process obeys; a new segment says that it does. */
void segment_set_in_force(const struct segment *segment, bool in_force);

/* --- the editor's side -------------------------------------------------------------------------- */

enum segment_state {
	SEGMENT_FOUND,
	SEGMENT_NO_PROCESS,    /* no such process */
	SEGMENT_NOT_PERMITTED, /* another user's */
	SEGMENT_NO_CUDA,       /* has not loaded a CUDA driver library */
	SEGMENT_NOT_OURS,      /* uses CUDA, but was started without nvtaskset */
	SEGMENT_NOT_IN_FORCE,  /* was started by nvtaskset and uses CUDA, but our library is not at work there, or not yet */
	SEGMENT_CLOSED,        /* the program has closed the file, and made no context since */
	SEGMENT_FAILED         /* anything else */
};

/* Opens the segment of process `pid`, not one of another's that it has open, and maps it. SEGMENT_FOUND, and the caller
 * closes it; otherwise the state, and the reason: all of it behind "nvtaskset: ". Without `error` it is not found out why
 * there is none, which takes long: SEGMENT_NOT_OURS then, for whatever has none; and a process that could open 200 files
 * at most when it made its segment, and now may open more, counts as one that has none. */
enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error);

/* Whether a process was started by nvtaskset, or by what that started: it has a segment as soon as it uses CUDA. */
bool segment_is_expected(pid_t pid);

/* Why a process that can be looked at has no segment: SEGMENT_NO_CUDA, _NOT_OURS, _NOT_IN_FORCE or _CLOSED; and that in
 * words. */
enum segment_state segment_absence(pid_t pid);
const char *segment_absence_text(enum segment_state state);

/* Unmaps and closes; a closed one may be closed again. The owner does so only to let go of a parent's. */
void segment_close(struct segment *segment);

/* Replaces the partition of one GPU, and leaves the others: the next launch obeys. Waits a bounded time
 * while another editor writes. -1 with the reason where there is no place for one more GPU, where the lock
 * is not to be had, or where what stands in the segment is damaged; nothing has changed then. -1 too where the segment
 * has moved: whether the edit counts is open, and to be made again in the new file. Editors exclude each other by file:
 * two threads, or a process and its fork, that share a hold on a segment do not. */
int segment_edit(struct segment *segment, const struct segment_partition *partition, struct error *error);

/* Whether the owner has moved to a new file (segment_keep_findable), and who wants to edit must open it anew. */
bool segment_has_moved(const struct segment *segment);

/* Why the process does not obey, in words; NULL where it does. */
const char *segment_obstacle(const struct segment *segment);

void segment_read_counters(const struct segment *segment, struct segment_counters *counters);

/* The partition on one GPU, or NULL where the revision does not restrict it. */
const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci);

/* --- the environment ------------------------------------------------------------------------------
 * NVTASKSET_PARTITION carries a revision from the command to the shim: "0000:3b:00.0=0-7,9;…".
 */
#define SEGMENT_ENVIRONMENT "NVTASKSET_PARTITION"
#define SEGMENT_ENVIRONMENT_MAX (SEGMENT_GPUS * (PCI_ADDRESS_TEXT + TPCSET_TEXT))

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error);
const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX]);

#endif
