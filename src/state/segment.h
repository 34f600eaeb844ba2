/*
 * The shared-memory segment, in which a process and those who say where it may run tell each other all there is to tell.
 *
 * The process owns it; an editor, the command or another program, finds it through /proc and changes it while the process
 * runs. The kernel's own rules say who may: the process's user, and root. It is a memfd, sealed against changes of its
 * size: nothing is left behind when the process ends, and nobody can make the other side fault by truncating it.
 *
 * It is there before the program is: the command makes it and executes COMMAND, which has it from its first moment on. It
 * comes through each exec, as CPU affinity does, by a descriptor that names it (handle.h). Children come with their
 * parent's and share its segment until our library is loaded there, or forked, and makes one of their own, which starts with
 * what the parent's says then.
 *
 * It holds nothing that hardware writes: an owner whose file was closed moves it to a new one.
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

#include "base/error.h"
#include "base/identity.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

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

/* Where a thread counts its launches. The first is for all threads that have no own one. */
#define SEGMENT_PLACES 64
struct segment_place {
	_Alignas(64) _Atomic uint64_t launches[2]; /* unrestricted, restricted */
};

struct segment_memory; /* what is mapped: layout.h */

/* One side's hold on a segment. */
struct segment {
	struct segment_memory *memory; /* NULL where there is none */
	int file;                      /* an editor's, the owner's handle; -1 likewise, and where nobody can find it */
	ino_t inode;                   /* the file's number: whoever has the same one shares it */
	/* Into the memory, for what every launch does. */
	_Atomic uint64_t *number;      /* of the revision in force */
	struct segment_place *places;
};

struct segment_counters {
	uint64_t restricted;   /* kernels whose descriptor we narrowed */
	uint64_t unrestricted; /* kernels that ran with the descriptor as it came */
	uint64_t refreshed;    /* nodes of CUDA graphs that were uploaded again after a change */
	uint64_t reasons[SEGMENT_REASON_COUNT];
};

/* --- the owner's side, in other people's processes: what launches use allocates nothing ------------------------ */

/* Makes a segment for this process, with `revision` in force: revision number 1. Its descriptor is a handle
 * (handle.h), in place of the one given, or of none (-1): at one stroke, so that those whom it starts meanwhile find
 * one or the other. -1 with the reason where the kernel refuses, or a limit of the process would. */
int segment_create(struct segment *segment, const struct segment_revision *revision, int in_place_of, struct error *error);

/* The same where segment_create fails, in memory of this process alone: obeyed, and nobody can change it. */
int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* What a new segment of this process has in it; for memory that is not shared yet. */
void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision);

/* Makes one in place of what this process has: its own from before, whose editors are told that it has moved, or an
 * ancestor's. */
int segment_replace(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Finds the segment that this process has already: from before its exec, or made by another copy of the library, in a
 * namespace of the dynamic linker's, which shares it. Not without /proc. */
bool segment_find_own(struct segment *segment);

/* What a process has among its descriptors, in the order in which it counts. */
enum segment_source {
	SEGMENT_OWN,
	SEGMENT_INHERITED, /* from an ancestor, who may have ended, or from itself when it was another user's */
	SEGMENT_LEFT,      /* likewise, and its owner has gone on with a new one */
	SEGMENT_WITHHELD,  /* one that cannot be opened: there is no /proc */
	SEGMENT_NONE
};

/* Opens that of this process, unless it is withheld; the caller closes it. `handle` is its handle's number, or -1. */
enum segment_source segment_open_source(struct segment *segment, int *handle);

/* Says that the library is at work in this execution of the process. */
void segment_set_at_work(const struct segment *segment);

/* Whether it obeys; a new segment says that it does. */
void segment_set_in_force(const struct segment *segment, bool in_force);

/* Whether its handle is still there: a program may close descriptors that it did not open, or have its own file there. */
bool segment_is_findable(const struct segment *segment);

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

/* A place for the calling thread alone, until it gives it back; NULL where there are no more. */
struct segment_place *segment_take_place(const struct segment *segment);
void segment_give_place(const struct segment *segment, const struct segment_place *place);

/* No thread has one any more, after a fork; and: another copy of the library has them all. */
void segment_free_places(void);
void segment_keep_places(void);

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

/* --- the editor's side -------------------------------------------------------------------------- */

enum segment_state {
	SEGMENT_FOUND,
	SEGMENT_NO_PROCESS,    /* no such process */
	SEGMENT_NOT_PERMITTED, /* another user's */
	SEGMENT_NO_CUDA,       /* has not loaded a CUDA driver library */
	SEGMENT_NOT_OURS,      /* uses CUDA, but was started without nvtaskset */
	SEGMENT_NOT_IN_FORCE,  /* was started by nvtaskset and uses CUDA, but our library is not at work there, or not yet */
	SEGMENT_CLOSED,        /* the program has closed the file, and made no context since */
	SEGMENT_SHARED,        /* has its parent's, and none of its own until it loads CUDA */
	SEGMENT_NOT_READY,     /* has one that is not a segment, or not yet: worth another try */
	SEGMENT_FAILED         /* anything else */
};

/* Opens the segment of process `pid`, not one of another's that it has open, and maps it. SEGMENT_FOUND, and the caller
 * closes it; otherwise the state, and the reason: all of it behind "nvtaskset: ". Without `error` it is not found out why
 * there is none, which takes long: SEGMENT_NOT_OURS then, for whatever has none; and a process that could open HANDLE_USUAL
 * files at most when it made its segment, and now may open more, counts as one that has none. */
enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error);

/* Opens the segment that a process shares with an ancestor, who may have ended, and says which of its descriptors that is. */
bool segment_open_inherited(struct segment *segment, pid_t pid, int *number);

/* Whether a process was started by nvtaskset, or by what that started: it has a segment as soon as it uses CUDA. */
bool segment_is_expected(pid_t pid);

/* Why a process that can be looked at has no segment: SEGMENT_NO_CUDA, _NOT_OURS, _NOT_IN_FORCE or _CLOSED; and that in
 * words. */
enum segment_state segment_absence(pid_t pid);
const char *segment_absence_text(enum segment_state state);

/* Reads the revision in force out of the memory of a process that has closed the file. SEGMENT_FOUND; _NOT_OURS where it
 * has none; _NOT_PERMITTED where the kernel does not let this process look. */
enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision);

/* Unmaps and closes; a closed one may be closed again. An owner does so only where it never obeyed. */
void segment_close(struct segment *segment);

/* Puts partitions in place of what the revision has on the same GPUs; the others stay. -1 with the reason where there is no
 * place for one more GPU. */
int segment_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error);

/* What an edit needs to be taken back. */
struct segment_undo {
	uint64_t number;
	struct segment_revision before;
};

/* Replaces the partitions of these GPUs by one new revision, and leaves the others: the next launch obeys. Waits a bounded
 * time while another editor writes. -1 with the reason where there is no place for one more GPU, where the lock is not to
 * be had, or where what stands in the segment is damaged; nothing has changed then. -1 too where the segment has moved:
 * whether the edit counts is open, and to be made again in the new file. Editors exclude each other by file: two threads,
 * or a process and its fork, that share a hold on a segment do not. `undo` may be NULL. Editors use editor.h, which does
 * what is to be done then. */
int segment_edit(struct segment *segment, const struct segment_partition *partitions, uint32_t count,
                 struct segment_undo *undo, struct error *error);

/* Puts back what was there before an edit, unless another one has come after it. */
int segment_take_back(struct segment *segment, const struct segment_undo *undo, struct error *error);

/* Whether the owner has moved to a new file (segment_keep_findable), and who wants to edit must open it anew. */
bool segment_has_moved(const struct segment *segment);

/* Whether our library is at work in what process `pid`, the owner, executes now. */
bool segment_is_at_work(const struct segment *segment, pid_t pid);

/* Why the process, which uses CUDA, does not obey, in words; NULL where it does, or does not use CUDA yet. */
const char *segment_obstacle(const struct segment *segment, pid_t pid);

/* Whose it is, by what it says of itself. */
struct identity segment_owner(const struct segment *segment);

void segment_read_counters(const struct segment *segment, struct segment_counters *counters);

/* A process can write what it likes into its own counters: no sum of them wraps around. */
static inline uint64_t segment_sum(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

/* The partition on one GPU, or NULL where the revision does not restrict it. */
const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci);

/* --- the environment ------------------------------------------------------------------------------
 * NVTASKSET_PARTITION carries a revision from the command to the shim: "0000:3b:00.0=0-7,9;…".
 */
#define SEGMENT_ENVIRONMENT "NVTASKSET_PARTITION"
#define SEGMENT_ROOT_ENVIRONMENT "NVTASKSET_PID" /* the process that it was given to */
#define SEGMENT_ENVIRONMENT_MAX (SEGMENT_GPUS * (PCI_ADDRESS_TEXT + TPCSET_TEXT))

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error);
const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX]);

#endif
