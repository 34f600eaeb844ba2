/*
 * The shared-memory segment, which a process shares with those who change its partition.
 *
 * The process owns it. An editor (the command or another program) finds it through /proc and changes it while the
 * process runs. The kernel's rules decide who may: the process's user, and root. It is a memfd, sealed against
 * changes of its size: it vanishes with the process, and nobody can make the other side fault by truncating it.
 *
 * It exists before the program: the command makes it and then executes COMMAND. It survives each exec, as CPU
 * affinity does, through a descriptor that names it (state/handle.h). A child shares its parent's segment until our
 * library is loaded there, or forked; then the library makes one for the child, with the parent's current revision.
 *
 * It holds nothing that hardware writes. If the program closes its file, the owner moves it to a new one.
 *
 * A revision is a whole partition: the sets of all GPUs. Revisions stand in a ring, and one atomic number says which
 * is in force. An editor fills the next place of the ring and then raises the number, so
 *   - a reader copies the revision in force, and has a whole one if the number has then risen by less than a ring;
 *   - an editor that dies before it raises the number leaves the old revision in force.
 * Editors exclude each other by a lock on the file, which the kernel drops when its holder ends.
 *
 * A process can be in a group (state/group/group.h), which it shares with others. The segment names it. What is in
 * force is then decided by both: functions that read a partition here read what is in force.
 *
 * Neither side trusts the other: a reader checks what it copied; an editor checks seals, size, magic and version
 * before it uses a segment.
 */
#ifndef NVTASKSET_STATE_SEGMENT_SEGMENT_H
#define NVTASKSET_STATE_SEGMENT_SEGMENT_H

#include "base/error.h"
#include "base/identity.h"
#include "state/group/group.h"
#include "state/revisions.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* So many lenders are told apart. */
#define SEGMENT_LOANS 8

/* So many areas of each kind a segment names: of counts (state/kernels/counts.h), and of times
 * (state/kernels/timestamps.h). */
#define SEGMENT_AREAS 8

/* Why a launch did not simply run inside the partition, or could not borrow. X(identifier, text for users). */
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
	X(OWN_MASK, "a mask of the program's own lies outside the partition, which won")      \
	X(NARROW_QMD, "the launch descriptor has no bit for some TPCs of this GPU") \
	X(QUEUE_UNANNOUNCED, "launches that wait are left alone: this driver does not announce what it submits") \
	X(QUEUE_NO_SEQUENCES, "launches that wait are left alone: there are no restartable sequences here") \
	X(QUEUE_LAYOUT, "a launch that waited was left alone: the driver lays out its commands in another way") \
	X(QUEUE_EARLY, "a launch that waited was left alone: it may begin before the one ahead has ended") \
	X(QUEUE_SLOT, "a launch that waited was left alone: a profiler has the place for the time of its end")

enum segment_reason {
#define SEGMENT_REASON_ENUM(identifier, text) SEGMENT_##identifier,
	SEGMENT_REASONS(SEGMENT_REASON_ENUM)
#undef SEGMENT_REASON_ENUM
	SEGMENT_REASON_COUNT
};

const char *segment_reason_text(enum segment_reason reason);

/* Whether the launch ran outside the partition, in whole or in part. */
bool segment_reason_is_outside(enum segment_reason reason);

/* What became of a quota, a priority, a weight and a policy. X(identifier, text for users). */
#define SEGMENT_TIME_STATES(X)                                                                            \
	X(NONE, "it was not looked at yet")                                                               \
	X(UNLIMITED, "there is no limit")                                                                 \
	X(PENDING, "it holds from the program's next call on")                                           \
	X(IN_FORCE, "it is in force")                                                                     \
	X(HELD, "it is in force: launches are held back, since the program is a client of MPS")           \
	X(MANAGED, "the program uses managed memory, whose page faults must not wait: it is not suspended") \
	X(SHARED, "the program shares GPU memory with others by CUDA IPC: it is not suspended")            \
	X(OLDER, "the program was running already, and what it did before cannot be known: it is not suspended") \
	X(UNREACHABLE, "the driver's way to the kernel driver cannot be found: it is not suspended")       \
	X(NO_EFFECT, "suspending the program does not stop it here: it is not tried again")             \
	X(UNCOUNTED, "its kernels are not counted, so nobody would see whether it stops: it is not suspended") \
	X(NO_THREAD, "no thread could be made in the program: it is not suspended")                       \
	X(NO_CHANNELS, "the kernel driver does not suspend the program: it is not tried again")          \
	X(MPS_CLIENT, "the program is a client of MPS: it is not suspended")                               \
	X(PAGEABLE, "kernels may use any memory of the program here, and its page faults must not wait: it is not suspended") \
	X(MPS_GONE, "MPS's daemon is not there: launches are not held back until it is")                   \
	X(UNSEEN, "launches are held back, but some end unseen, such as graphs with conditional nodes: these are not charged") \
	X(LENDS_NOTHING, "it lends nothing: some of its kernels end unseen, so nobody knows when it is idle")  \
	X(TOO_LONG, "nothing is borrowed: its kernels take longer than the lenders' LIMIT")                  \
	X(CHANGING, "the program makes and destroys contexts time and again: it is not suspended meanwhile")  \
	X(NO_PLACE, "others do not see its priority, weight and lending: too many programs have a place already, until one ends") \
	X(WEAK, "the quota is weak: kernels that may wait for others, such as NCCL's, were in flight when it was used up")

enum segment_time_state {
#define SEGMENT_TIME_ENUM(identifier, text) SEGMENT_TIME_##identifier,
	SEGMENT_TIME_STATES(SEGMENT_TIME_ENUM)
#undef SEGMENT_TIME_ENUM
	SEGMENT_TIME_STATE_COUNT
};

const char *segment_time_text(enum segment_time_state state);

/* Whether the process obeys, in either way: it is suspended, or its launches are held back. */
static inline bool segment_time_is_in_force(enum segment_time_state state)
{
	return state == SEGMENT_TIME_IN_FORCE || state == SEGMENT_TIME_HELD || state == SEGMENT_TIME_WEAK;
}

/* What the owner says of its time: of a program that is suspended; or of one whose launches are held back, behind "or". */
struct segment_time {
	enum segment_time_state state;
	uint64_t number;     /* of the revision that it is about */
	uint64_t present_us; /* it wanted to run, and was not suspended; or its kernels were on the GPUs, by an estimate */
	uint64_t aside_us;   /* it wanted to run, and was suspended; or its launches were held, in all */
	uint64_t bounded;    /* so often it was resumed early: work of its own was in flight on another GPU; or a bound
	                      * ended a hold */
	uint64_t held;       /* 0; or so many launches were held */
};

/* A slot in which one thread counts its launches. Slot 0 is shared by all threads that have none of their own. */
#define COUNTER_SLOTS 64
struct counter_slot {
	_Alignas(64) _Atomic uint64_t launches[2]; /* unrestricted, restricted */
};

struct ledger;
struct segment_memory; /* the mapped memory: layout.h */

/* A mapped segment, of the owner or an editor. */
struct segment {
	struct segment_memory *memory; /* NULL if there is none */
	int file;                      /* an editor's file, or the owner's handle; -1 if none, or nobody can find it */
	ino_t inode;                   /* the file's inode number: whoever has the same one shares the segment */
	/* Pointers into the memory, for the launch path. */
	_Atomic uint64_t *number;      /* of the own revision */
	const _Atomic uint64_t *group_number;
	struct counter_slot *slots;
	struct group group;            /* that the process is in; none if there is none, or it cannot be reached */
};

/* What can be found of a process. */
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
	SEGMENT_OTHER_VERSION, /* its segment is another version's */
	SEGMENT_FAILED         /* anything else */
};

struct segment_counters {
	uint64_t restricted;   /* kernels whose descriptor we restricted */
	uint64_t unrestricted; /* kernels whose descriptor we left unchanged */
	uint64_t refreshed;    /* nodes of CUDA graphs that were uploaded again after a change */
	uint64_t reasons[SEGMENT_REASON_COUNT];
};

/* --- what is in force ----------------------------------------------------------------------------- */

/* The number of the owner's descriptor that names its group; -1 if it is in none. */
int segment_group_descriptor(const struct segment *segment);

/* The number of what is in force: raised by every edit, of the segment and of its group; never 0. Both numbers only
 * rise, so their sum is the same only while both are. */
static inline uint64_t segment_revision_number(const struct segment *segment)
{
	return atomic_load_explicit(segment->number, memory_order_acquire) +
	       atomic_load_explicit(segment->group_number, memory_order_acquire);
}

/* How often it was raised without an edit (segment_raise in edit.h). */
uint64_t segment_raised(const struct segment *segment);

/* Raises the word on which the owner's thread sleeps (time/thread.h), and wakes the thread: an edit of the segment or of the
 * group holds for an idle process as well. For programs that may write. */
_Atomic uint32_t *segment_rings(const struct segment *segment);
void segment_ring(const struct segment *segment);

/* A mark of other processes on a neighbour without a priority or a weight (time/demand/company.h). For those that may write. */
bool segment_has_company(const struct segment *segment);
void segment_set_company(const struct segment *segment, bool has_company);

/* The process's own ledger of GPU memory (state/ledger.h), for a process without a group's ledger. */
struct ledger *segment_ledger(const struct segment *segment);

/* Copies what is in force, and its number. Bounded work. False if editors overtook the copy again and again, or if the copy
 * is not a revision; `revision` is then undefined. */
bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number);

/* --- the owner counts, in launches ---------------------------------------------------------------- */

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
 * the thread, and take as long as the rest of the callback (docs/evaluation/accounting.md). */
static inline void counter_slot_count_launch(struct counter_slot *slot, bool restricted)
{
	_Atomic uint64_t *launches = &slot->launches[restricted];

	atomic_store_explicit(launches, atomic_load_explicit(launches, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Says what became of what this revision gives of the time; and what was used of it, from one thread at a time. */
void segment_set_time_state(const struct segment *segment, enum segment_time_state state, uint64_t number);
void segment_set_time_used(const struct segment *segment, uint64_t present_us, uint64_t aside_us, uint64_t bounded);
void segment_set_time_held(const struct segment *segment, uint64_t launches);

/* What it has borrowed. */
struct segment_borrowed {
	struct tpcset tpcs; /* now, of all GPUs */
	uint64_t tpc_us;    /* for how long in all, times TPCs */
	uint64_t overruns;  /* so many launches took longer there than they may */
	struct segment_loan {
		uint64_t lender; /* the first ones of these processes; 0: none */
		uint64_t tpc_us;
	} loans[SEGMENT_LOANS];
};
/* The number of streams (launch/account/streams_made.h). */
void segment_set_streams(const struct segment *segment, uint32_t streams);
uint32_t segment_streams(const struct segment *segment);

void segment_set_borrowed(const struct segment *segment, const struct segment_borrowed *borrowed);

/* From any thread. */
void segment_count_reason(const struct segment *segment, enum segment_reason reason);
void segment_count_refresh(const struct segment *segment);

/* --- whoever has mapped it ------------------------------------------------------------------------ */

/* Unmaps and closes; may be repeated. An owner may close only a segment that it never obeyed. */
void segment_close(struct segment *segment);

/* The owner, as the segment itself says. */
struct identity segment_owner(const struct segment *segment);

void segment_read_counters(const struct segment *segment, struct segment_counters *counters);

void segment_read_time(const struct segment *segment, struct segment_time *time);

struct segment_borrowed segment_read_borrowed(const struct segment *segment);

/* Adds without wrapping around: a process can write anything into its own counters. */
static inline uint64_t segment_sum(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

#endif
