/*
 * The shared-memory segment, which a process shares with those who change its partition.
 *
 * The process owns it. An editor (the command or another program) finds it through /proc and changes it while the
 * process runs. The kernel's rules decide who may: the process's user, and root. It is a memfd, sealed against
 * changes of its size: it vanishes with the process, and nobody can make the other side fault by truncating it.
 *
 * It exists before the program: the command makes it and then executes COMMAND. It survives each exec, as CPU
 * affinity does, through a descriptor that names it (handle.h). A child shares its parent's segment until our library
 * is loaded there, or forked; then the library makes one for the child, with the parent's current revision.
 *
 * It holds nothing that hardware writes. If the program closes its file, the owner moves it to a new one.
 *
 * A revision is a whole partition: the sets of all GPUs. Revisions stand in a ring, and one atomic number says which
 * is in force. An editor fills the next place of the ring and then raises the number, so
 *   - a reader copies the revision in force, and has a whole one if the number has then risen by less than a ring;
 *   - an editor that dies before it raises the number leaves the old revision in force.
 * Editors exclude each other by a lock on the file, which the kernel drops when its holder ends.
 *
 * Neither side trusts the other: a reader checks what it copied; an editor checks seals, size, magic and version
 * before it uses a segment.
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

/* Why a launch did not simply run inside the partition. X(identifier, text for users). */
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

/* A slot in which one thread counts its launches. Slot 0 is shared by all threads that have none of their own. */
#define COUNTER_SLOTS 64
struct counter_slot {
	_Alignas(64) _Atomic uint64_t launches[2]; /* unrestricted, restricted */
};

struct segment_memory; /* the mapped memory: layout.h */

/* A mapped segment, of the owner or an editor. */
struct segment {
	struct segment_memory *memory; /* NULL if there is none */
	int file;                      /* an editor's file, or the owner's handle; -1 if none, or nobody can find it */
	ino_t inode;                   /* the file's inode number: whoever has the same one shares the segment */
	/* Pointers into the memory, for the launch path. */
	_Atomic uint64_t *number;      /* of the revision in force */
	struct counter_slot *slots;
};

struct segment_counters {
	uint64_t restricted;   /* kernels whose descriptor we restricted */
	uint64_t unrestricted; /* kernels whose descriptor we left unchanged */
	uint64_t refreshed;    /* nodes of CUDA graphs that were uploaded again after a change */
	uint64_t reasons[SEGMENT_REASON_COUNT];
};

/* --- the owner's side, in other people's processes: nothing is allocated in launches --------------------------- */

/* Makes a segment for this process, with `revision` in force as number 1. Its handle (handle.h) atomically replaces the
 * handle `in_place_of`, unless that is -1. -1 with the reason if the kernel refuses, or a limit of the process is too
 * low. */
int segment_create(struct segment *segment, const struct segment_revision *revision, int in_place_of, struct error *error);

/* Makes a segment in private memory, if segment_create fails: the process obeys it, and nobody can change it. */
int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Fills in a new segment of `owner`, in memory that is not shared yet. */
void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision);

/* Makes a segment that replaces the one that this process has: its own from before, which is then marked as moved for
 * its editors, or an ancestor's. */
int segment_replace(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Finds the segment that this process already has: from before its exec, or made by another copy of the library, in
 * another namespace of the dynamic linker, which shares it. Needs /proc. */
bool segment_find_own(struct segment *segment);

/* The segments that a process may have among its descriptors, the best first. */
enum segment_source {
	SEGMENT_OWN,
	SEGMENT_INHERITED, /* from an ancestor, which may have ended, or from itself when it was another user's */
	SEGMENT_LEFT,      /* inherited, and its owner has gone on with a new one */
	SEGMENT_WITHHELD,  /* it cannot be opened: there is no /proc */
	SEGMENT_NONE
};

/* Opens this process's best segment, unless it is withheld; the caller closes it. `handle` gets its handle's number, or
 * -1. */
enum segment_source segment_open_source(struct segment *segment, int *handle);

/* Notes that the library is at work in this execution of the process. */
void segment_set_at_work(const struct segment *segment);

/* Notes whether the process obeys; a new segment says that it does. */
void segment_set_in_force(const struct segment *segment, bool in_force);

/* Whether its handle is still open: a program may close descriptors that it did not open, or reuse the number. */
bool segment_is_findable(const struct segment *segment);

/* Makes sure that editors find the segment, also after the program has closed its handle. The content then moves to a
 * new file, which is mapped in place of the old one while other threads launch. A few launches at that moment are not
 * counted, and editors that have the old file open learn of it at their next edit. -1 with the reason if the kernel
 * refuses; the segment is then unchanged. One call at a time. */
int segment_keep_findable(struct segment *segment, struct error *error);

/* The number of the revision in force: raised by every edit, never 0. */
static inline uint64_t segment_revision_number(const struct segment *segment)
{
	return atomic_load_explicit(segment->number, memory_order_acquire);
}

/* Copies the revision in force, and its number. Bounded work. False if editors overtook the copy again and again, or if
 * the copy is not a revision; `revision` is then undefined. */
bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number);

/* Counts a launch in the shared slot, from any thread. */
static inline void segment_count_launch(const struct segment *segment, bool restricted)
{
	atomic_fetch_add_explicit(&segment->slots[0].launches[restricted], 1, memory_order_relaxed);
}

/* A slot for the calling thread alone, until it gives it back; NULL if all are taken. */
struct counter_slot *counter_slot_take(const struct segment *segment);
void counter_slot_give_back(const struct segment *segment, const struct counter_slot *slot);

/* After a fork, no thread has a slot. */
void counter_slots_free(void);

/* Another copy of the library has all slots, so this one takes none. */
void counter_slots_keep(void);

/* Counts a launch in the thread's own slot. Not an atomic addition: it would wait for all earlier memory accesses of
 * the thread, and take as long as the rest of the callback (docs/evaluation.md). */
static inline void counter_slot_count_launch(struct counter_slot *slot, bool restricted)
{
	_Atomic uint64_t *launches = &slot->launches[restricted];

	atomic_store_explicit(launches, atomic_load_explicit(launches, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* From any thread. */
void segment_count_reason(const struct segment *segment, enum segment_reason reason);
void segment_count_refresh(const struct segment *segment);

/* --- the editor's side -------------------------------------------------------------------------- */

enum segment_state {
	SEGMENT_FOUND,
	SEGMENT_NO_PROCESS,    /* no such process */
	SEGMENT_NOT_PERMITTED, /* belongs to another user */
	SEGMENT_NO_CUDA,       /* has not loaded a CUDA driver library */
	SEGMENT_NOT_OURS,      /* uses CUDA, but was started without nvtaskset */
	SEGMENT_NOT_IN_FORCE,  /* was started by nvtaskset and uses CUDA, but our library is not, or not yet, at work there */
	SEGMENT_CLOSED,        /* the program has closed the file, and has made no context since */
	SEGMENT_SHARED,        /* shares an ancestor's, and has none of its own until it loads CUDA */
	SEGMENT_NOT_READY,     /* its segment is damaged or not ready yet: try again */
	SEGMENT_FAILED         /* anything else */
};

/* Opens and maps the segment of process `pid`, and not another's segment that it has open. SEGMENT_FOUND, and the
 * caller closes it; otherwise the state and the reason, which is all that follows "nvtaskset: ". Without `error`, the
 * reason, which takes long to find, is not looked for: the state is SEGMENT_NOT_OURS for any process without a segment.
 * It is also SEGMENT_NOT_OURS for a process that could open at most HANDLE_USUAL files when it made its segment, and
 * may open more now. */
enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error);

/* Opens the segment that a process shares with an ancestor, which may have ended. `number` gets the process's
 * descriptor. */
bool segment_open_inherited(struct segment *segment, pid_t pid, int *number);

/* Whether a process was started by nvtaskset, directly or not: it has a segment as soon as it uses CUDA. */
bool segment_is_expected(pid_t pid);

/* Why a process that may be inspected has no segment: SEGMENT_NO_CUDA, _NOT_OURS, _NOT_IN_FORCE or _CLOSED; and the
 * text for that. */
enum segment_state segment_absence(pid_t pid);
const char *segment_absence_text(enum segment_state state);

/* Reads the revision in force from the memory of a process that has closed the file. SEGMENT_FOUND; _NOT_OURS if it has
 * none; _NOT_PERMITTED if the kernel does not let this process read it. */
enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision);

/* Unmaps and closes; may be repeated. An owner may close only a segment that it never obeyed. */
void segment_close(struct segment *segment);

/* Puts a partition into the revision, in place of the one on the same GPU; the others stay. -1 with the reason if there
 * is no room for one more GPU. */
int segment_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error);

/* What is needed to take an edit back. */
struct segment_undo {
	uint64_t number;
	struct segment_revision before;
};

/* Replaces the partitions of these GPUs by one new revision; other GPUs stay. The next launch obeys. Waits a bounded
 * time while another editor writes. -1 with the reason, and nothing changed, if there is no room for one more GPU, the
 * lock cannot be had, or the segment is damaged. Also -1 if the segment has moved: the edit may or may not count, and
 * must be repeated in the new file. The lock excludes editors by open file: it does not exclude two threads, or a
 * process and its fork, that share one struct segment. `undo` may be NULL. Editors should use editor.h, which repeats
 * the edit if needed. */
int segment_edit(struct segment *segment, const struct segment_partition *partitions, uint32_t count,
                 struct segment_undo *undo, struct error *error);

/* Restores the revision before an edit, unless another edit has followed. */
int segment_take_back(struct segment *segment, const struct segment_undo *undo, struct error *error);

/* Whether the owner has moved to a new file (segment_keep_findable): editors must open the segment again. */
bool segment_has_moved(const struct segment *segment);

/* Whether our library is at work in the current execution of process `pid`, the owner. */
bool segment_is_at_work(const struct segment *segment, pid_t pid);

/* Why the process does not obey although it uses CUDA; NULL if it obeys, or does not use CUDA yet. */
const char *segment_obstacle(const struct segment *segment, pid_t pid);

/* The owner, as the segment itself says. */
struct identity segment_owner(const struct segment *segment);

void segment_read_counters(const struct segment *segment, struct segment_counters *counters);

/* Adds without wrapping around: a process can write anything into its own counters. */
static inline uint64_t segment_sum(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

/* The partition on one GPU; NULL if the revision does not restrict that GPU. */
const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci);

/* --- the environment ------------------------------------------------------------------------------
 * NVTASKSET_PARTITION carries a revision from the command to the shim: "0000:3b:00.0=0-7,9;…".
 */
#define SEGMENT_ENVIRONMENT "NVTASKSET_PARTITION"
#define SEGMENT_ROOT_ENVIRONMENT "NVTASKSET_PID" /* the process that got the partition */
#define SEGMENT_ENVIRONMENT_MAX (SEGMENT_GPUS * (PCI_ADDRESS_TEXT + TPCSET_TEXT))

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error);
const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX]);

#endif
