/*
 * The segment: shared memory of a process and the editors of the process's partition.
 *
 * The process owns the segment. An editor (the command or another program) finds the segment through /proc, and changes
 * the segment while the process runs. The kernel decides who may edit: the process's user, and root. A segment is a
 * memfd with seals against changes of the size: the memfd ends with the process, and no side can make another side
 * fault by truncation.
 *
 * The segment exists before the program: the command makes the segment and then executes COMMAND. The segment survives
 * each exec, as CPU affinity does, through a descriptor (state/handle.h). A child shares the parent's segment until the
 * child loads our library, or inherits our library by a fork. Then the library makes a segment with the parent's
 * current revision.
 *
 * Hardware writes nothing here. If the program closes the file, the owner moves the segment to a new file.
 *
 * A revision is a whole partition: the sets of all GPUs, and the settings of time and memory. Revisions stand in a
 * ring, and an atomic number says which revision is in force. An editor takes a lock on the file, which the kernel
 * drops when the editor ends, fills the next place of the ring and then raises the number:
 *   - a reader copies the revision in force, and has a whole revision if the number has risen by less than a ring;
 *   - an editor that dies before raising the number leaves the old revision in force.
 *
 * A process can be in a group, shared with other processes (state/group/group.h). The segment names the group. Segment
 * and group together decide which partition is in force: functions here read the partition in force.
 *
 * Neither side trusts the other: a reader checks all copies; an editor first checks seals, size, magic and version.
 */
#pragma once

#include "base/error.h"
#include "base/identity.h"
#include "state/group/group.h"
#include "state/revisions.h"

#include <stdatomic.h>
#include <sys/types.h>

/* The number of lenders that are told apart. */
#define SEGMENT_LOANS 8

/* The number of areas in a segment of each kind: counts (state/kernels/counts.h), and times
 * (state/kernels/timestamps.h). */
#define SEGMENT_AREAS 8

/* The number of events that a segment remembers (events.h). */
#define SEGMENT_EVENTS 512

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

/* The state of a quota, a priority, a weight and lending. X(identifier, text for users). */
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
	X(WEAK, "the quota is weak: kernels that may wait for others, such as NCCL's, were in flight when it was used up") \
	X(HOST_BOUND, "nothing is borrowed: its host is slower than its part of the GPU, and would gain nothing")

enum segment_time_state {
#define SEGMENT_TIME_ENUM(identifier, text) SEGMENT_TIME_##identifier,
	SEGMENT_TIME_STATES(SEGMENT_TIME_ENUM)
#undef SEGMENT_TIME_ENUM
	SEGMENT_TIME_STATE_COUNT
};

const char *segment_time_text(enum segment_time_state state);

/* Whether the process obeys by holding back launches, with or without a remark. */
static inline bool segment_time_holds_launches(enum segment_time_state state)
{
	return state == SEGMENT_TIME_HELD || state == SEGMENT_TIME_TOO_LONG || state == SEGMENT_TIME_HOST_BOUND ||
	       state == SEGMENT_TIME_WEAK;
}

/* Whether the process obeys: by suspension, or by holding back launches. */
static inline bool segment_time_is_in_force(enum segment_time_state state)
{
	return state == SEGMENT_TIME_IN_FORCE || segment_time_holds_launches(state);
}

/* The owner's report on its time. "or" separates the meaning with suspension from the meaning with held launches. */
struct segment_time {
	enum segment_time_state state;
	uint64_t number;     /* of the reported revision */
	uint64_t present_us; /* wanted to run, and was not suspended; or an estimate of the kernels' time on the GPUs */
	uint64_t aside_us;   /* wanted to run, and was suspended; or launches were held, in all */
	/* How often resumed early, because own work was in flight on another GPU; or how often a bound ended a hold. */
	uint64_t bounded;
	uint64_t held;       /* 0; or the number of held launches */
};

/* A thread counts launches in a slot of its own. All threads without a slot share slot 0. */
#define COUNTER_SLOTS 64
struct counter_slot {
	_Alignas(64) _Atomic uint64_t launches[2]; /* unrestricted, restricted */
};

struct ledger;
struct segment_memory; /* the mapped memory: layout.h */

/* A mapped segment, of the owner or an editor. */
struct segment {
	struct segment_memory *memory; /* NULL if there is none */
	int file;                      /* an editor's file, or the owner's handle; -1 if there is none to find */
	ino_t inode;                   /* of the file: equal inode numbers are the same segment */
	_Atomic uint64_t *number;      /* in the memory, for the launch path, as the next two; of the own revision */
	const _Atomic uint64_t *group_number;
	struct counter_slot *slots;
	struct group group;            /* the group of the process; none if there is none, or out of reach */
	struct purse *purse;           /* pays for looks at the process, and for waits for its lock; or NULL */
};

/* The result of looking for the segment of a process. */
enum segment_state {
	SEGMENT_FOUND,
	SEGMENT_NO_PROCESS,    /* no such process */
	SEGMENT_NOT_PERMITTED, /* belongs to another user */
	SEGMENT_NO_CUDA,       /* has not loaded a CUDA driver library */
	SEGMENT_NOT_OURS,      /* uses CUDA, but was started without nvtaskset */
	SEGMENT_NOT_IN_FORCE,  /* started by nvtaskset, and uses CUDA, but our library is not (yet) at work there */
	SEGMENT_CLOSED,        /* the program has closed the file, and has made no context since */
	SEGMENT_SHARED,        /* shares an ancestor's segment until the process loads CUDA */
	SEGMENT_NOT_READY,     /* damaged, or not ready yet: try again */
	SEGMENT_OTHER_VERSION, /* of another version */
	SEGMENT_FAILED         /* anything else */
};

struct segment_counters {
	uint64_t restricted;   /* kernels with our mask in the descriptor */
	uint64_t unrestricted; /* kernels with an unchanged mask */
	uint64_t refreshed;    /* nodes of CUDA graphs, uploaded again after a change */
	uint64_t reasons[SEGMENT_REASON_COUNT];
};

/* --- what is in force ----------------------------------------------------------------------------- */

/* The number of the owner's descriptor of the group; -1 without a group. */
int segment_group_descriptor(const struct segment *segment);

/* The number of the partition in force: raised by each edit of the segment and of the group; never 0. Both numbers only
 * rise: an equal sum means that both are equal. */
static inline uint64_t segment_revision_number(const struct segment *segment)
{
	return atomic_load_explicit(segment->number, memory_order_acquire) +
	       atomic_load_explicit(segment->group_number, memory_order_acquire);
}

/* How often the number was raised without an edit (segment_raise in edit.h). */
uint64_t segment_raised(const struct segment *segment);

/* segment_rings: the word on which the owner's thread (time/thread.h) sleeps. segment_ring, for writers: raises the
 * word, and wakes the thread: an idle process follows an edit of the segment or the group. */
_Atomic uint32_t *segment_rings(const struct segment *segment);
void segment_ring(const struct segment *segment);

/* A mark of other processes on a neighbour without a priority or a weight (time/demand/company.h). For writers. */
bool segment_has_company(const struct segment *segment);
void segment_set_company(const struct segment *segment, bool has_company);

/* The ledger of GPU memory (state/ledger.h), for a process without a group's ledger. */
struct ledger *segment_ledger(const struct segment *segment);

/* Copies the revision in force, and the number. Bounded work. False, with `revision` undefined, if editors overtook
 * each attempt to copy, or the copy is not a revision. */
bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number);

/* --- the owner counts launches ------------------------------------------------------------------------------------ */

/* Counts a launch in the shared slot, from any thread. */
static inline void segment_count_launch(const struct segment *segment, bool restricted)
{
	atomic_fetch_add_explicit(&segment->slots[0].launches[restricted], 1, memory_order_relaxed);
}

/* A slot for the calling thread alone, until given back; NULL if all slots are taken. */
struct counter_slot *segment_slot_take(const struct segment *segment);
void segment_slot_give_back(const struct segment *segment, const struct counter_slot *slot);

/* After a fork, no thread has a slot. */
void segment_slots_forget(void);

/* For a second copy of the library, which gets no slots: the first copy has all slots. */
void segment_slots_forbid(void);

/* Counts a launch in the thread's own slot. No atomic addition, which would wait for all earlier memory accesses of the
 * thread, and take as long as the rest of the callback (docs/evaluation/accounting.md). */
static inline void segment_slot_count_launch(struct counter_slot *slot, bool restricted)
{
	_Atomic uint64_t *launches = &slot->launches[restricted];

	atomic_store_explicit(launches, atomic_load_explicit(launches, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Reports the state of the revision's settings of time, and the used time; from one thread at a time. */
void segment_set_time_state(const struct segment *segment, enum segment_time_state state, uint64_t number);
void segment_set_time_used(const struct segment *segment, uint64_t present_us, uint64_t aside_us, uint64_t bounded);
void segment_set_time_held(const struct segment *segment, uint64_t launches);

#define SEGMENT_LENDER_GROUP (UINT64_C(1) << 63)

/* The borrowed TPCs. */
struct segment_borrowed {
	struct tpcset tpcs; /* now, of all GPUs */
	uint64_t tpc_us;    /* the borrowed time in all, times TPCs */
	uint64_t overruns;  /* launches there longer than permitted */
	struct segment_loan {
		uint64_t lender; /* a process, or SEGMENT_LENDER_GROUP with the inode of a group's file; 0: none */
		uint64_t tpc_us;
	} loans[SEGMENT_LOANS];
};
void segment_set_borrowed(const struct segment *segment, const struct segment_borrowed *borrowed);

/* Launches of the owner begin to use TPCs of other processes: raises a number. Launches of the lenders read the number
 * (launch/space/bells.h). */
void segment_count_opening(const struct segment *segment);

void segment_set_streams(const struct segment *segment, uint32_t streams);
uint32_t segment_streams(const struct segment *segment); /* launch/account/streams_made.h */

/* From any thread. */
void segment_count_reason(const struct segment *segment, enum segment_reason reason);
void segment_count_refresh(const struct segment *segment);

/* --- all users of a mapping --------------------------------------------------------------------------------------- */

/* Unmaps and closes; may be repeated. An owner may close a segment only before ever obeying the segment. */
void segment_close(struct segment *segment);

/* The owner according to the segment. */
struct identity segment_owner(const struct segment *segment);

void segment_read_counters(const struct segment *segment, struct segment_counters *counters);

void segment_read_time(const struct segment *segment, struct segment_time *time);

struct segment_borrowed segment_read_borrowed(const struct segment *segment);
