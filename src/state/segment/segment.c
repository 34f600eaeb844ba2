#include "segment.h"

#include "base/extremes.h"
#include "base/futex.h"
#include "base/proc.h"
#include "base/shared_file.h"
#include "layout.h"
#include "state/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct segment segment_closed = {.memory = NULL, .file = -1, .group = {.file = -1}};

struct segment segment_in(struct segment_memory *memory)
{
	return (struct segment){
		.memory = memory,
		.file = -1,
		.number = &memory->number,
		.group_number = group_number(&group_closed),
		.slots = memory->slots,
		.group = group_closed,
	};
}

bool segment_may_write(const struct segment *segment)
{
	return shared_file_may_write(segment->file);
}

struct segment segment_map(int file)
{
	struct segment_memory *memory = shared_file_map(file, 0, sizeof *memory, shared_file_may_write(file));
	struct segment segment;
	struct stat status;

	if (!memory || fstat(file, &status) < 0) {
		close(file);
		return segment_closed;
	}
	segment = segment_in(memory);
	segment.file = file;
	segment.inode = status.st_ino;
	return segment;
}

void segment_close(struct segment *segment)
{
	group_close(&segment->group);
	if (segment->memory)
		munmap(segment->memory, sizeof *segment->memory);
	if (handle_leads_to(segment->file, segment->inode, sizeof *segment->memory))
		close(segment->file); /* unless the program has done so, and reused the number */
	*segment = segment_closed;
}

struct ledger *segment_ledger(const struct segment *segment)
{
	return &segment->memory->ledger;
}

struct identity segment_owner(const struct segment *segment)
{
	return segment->memory->owner;
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

struct segment_header segment_read_header(int file)
{
	struct segment_header header = {.magic = 0};
	struct stat status;

	if (!shared_file_is_sealed(file) || fstat(file, &status) < 0 ||
	    pread(file, &header, sizeof header, 0) != sizeof header || status.st_size != (off_t)header.size)
		header.magic = 0;
	return header;
}

enum segment_kind segment_kind_for(const struct segment_header *header, struct identity who)
{
	bool is_own = identity_matches(header->owner, who);
	enum segment_kind kind = KIND_NOT_READY;

	if (header->magic == SEGMENT_MAGIC)
		kind = is_own ? KIND_OWN : KIND_INHERITED;
	else if (header->magic == SEGMENT_MOVED)
		kind = is_own ? KIND_NOBODYS : KIND_LEFT;
	return kind;
}

enum segment_state segment_map_found(struct segment *segment, int file, struct error *error)
{
	enum segment_state state = SEGMENT_NOT_READY;
	struct segment_header header = segment_read_header(file);

	if (header.magic != SEGMENT_MAGIC && header.magic != SEGMENT_MOVED) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "its segment is not one that this version knows");
		close(file);
	} else if (header.version != SEGMENT_VERSION || header.size != sizeof *segment->memory) {
		state = SEGMENT_OTHER_VERSION;
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, SEGMENT_ANOTHERS);
		close(file);
	} else {
		*segment = segment_map(file);
		state = SEGMENT_FOUND;
	}
	if (state == SEGMENT_FOUND && !segment->memory) {
		error_set_errno(error, "its segment cannot be mapped");
		state = SEGMENT_FAILED;
	}
	return state;
}

/* --- the group ---------------------------------------------------------------------------------------------------- */

void segment_use_group(struct segment *segment, const struct group *group)
{
	segment->group = *group;
	segment->group_number = group_number(group);
}

int segment_group_descriptor(const struct segment *segment)
{
	return segment->memory->group.inode != 0 ? (int)atomic_load(&segment->memory->group_descriptor) : -1;
}

int segment_open_group(struct segment *segment, pid_t pid, enum group_use use)
{
	struct group_lead lead = {
		.pid = pid, .number = segment_group_descriptor(segment), .identity = segment->memory->group};
	struct group group;
	struct stat status;

	if (lead.identity.inode == 0 || fstat(segment->file, &status) < 0)
		return 0;
	lead.user = status.st_uid;
	errno = 0;
	bool is_found = group_open_of(&group, &lead, use);
	bool is_limit = !is_found && (proc_is_limit(errno) || !group_has_room_for_search());

	is_found = is_found || (!is_limit &&
	                        group_open_anywhere(&group, lead.identity, lead.user, use, segment->purse));
	if (is_found)
		segment_use_group(segment, &group);
	return is_limit ? -1 : 0;
}

/* --- what is in force --------------------------------------------------------------------------------------------- */

uint64_t segment_raised(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->raised, memory_order_acquire);
}

_Atomic uint32_t *segment_rings(const struct segment *segment)
{
	return &segment->memory->rings;
}

bool segment_has_company(const struct segment *segment)
{
	return atomic_load(&segment->memory->company) != 0;
}

void segment_set_company(const struct segment *segment, bool has_company)
{
	atomic_store(&segment->memory->company, has_company);
}

void segment_set_streams(const struct segment *segment, uint32_t streams)
{
	atomic_store_explicit(&segment->memory->streams, streams, memory_order_relaxed);
}

uint32_t segment_streams(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->streams, memory_order_relaxed);
}

void segment_ring(const struct segment *segment)
{
	atomic_fetch_add(segment_rings(segment), 1);
	futex_wake(segment_rings(segment), 1);
}

bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number)
{
	uint64_t seen = atomic_load_explicit(segment->group_number, memory_order_acquire);
	bool whole = revisions_load(segment->memory->ring, &segment->memory->number, revision, number);

	whole = whole && group_resolve(&segment->group, revision);
	/* If the group changes meanwhile, the number is older than the revision, and the next look reads both anew. */
	*number += seen;
	return whole;
}

/* --- counting launches -------------------------------------------------------------------------------------------- */

/* The counter slots of the threads of this process: a bit for each slot. Slot 0 is shared, and never taken. Not in the
 * shared memory: no writer there can give two threads the same slot. */
#define SHARED_SLOT UINT64_C(1)

static _Atomic uint64_t slots_taken = SHARED_SLOT;

_Static_assert(COUNTER_SLOTS == 64, "a bit for each");

struct counter_slot *segment_slot_take(const struct segment *segment)
{
	uint64_t taken = atomic_load_explicit(&slots_taken, memory_order_relaxed), free = ~taken;

	/* Bounded: if other threads take or give back all the time, the thread counts in the shared slot. */
	for (int attempt = 0; attempt < COUNTER_SLOTS && free != 0; attempt++) {
		int slot = __builtin_ctzll(free);

		if (atomic_compare_exchange_strong_explicit(&slots_taken, &taken, taken | UINT64_C(1) << slot,
		                                            memory_order_acquire, memory_order_relaxed))
			return &segment->slots[slot];
		free = ~taken;
	}
	return NULL;
}

void segment_slot_give_back(const struct segment *segment, const struct counter_slot *slot)
{
	atomic_fetch_and_explicit(&slots_taken, ~(UINT64_C(1) << (slot - segment->slots)), memory_order_release);
}

void segment_slots_forget(void)
{
	atomic_store(&slots_taken, SHARED_SLOT);
}

void segment_slots_forbid(void)
{
	atomic_store(&slots_taken, UINT64_MAX);
}

/* --- reasons --------------------------------------------------------------------------------------------------- */

const char *segment_reason_text(enum segment_reason reason)
{
	static const char *const texts[] = {
#define REASON_TEXT(identifier, text) text,
		SEGMENT_REASONS(REASON_TEXT)
#undef REASON_TEXT
	};

	return texts[reason];
}

bool segment_reason_is_outside(enum segment_reason reason)
{
	return reason < SEGMENT_QUEUE_UNANNOUNCED && reason != SEGMENT_GREEN_CONTEXT && reason != SEGMENT_OWN_MASK &&
	       reason != SEGMENT_REFUSED;
}

void segment_count_reason(const struct segment *segment, enum segment_reason reason)
{
	atomic_fetch_add_explicit(&segment->memory->reasons[reason], 1, memory_order_relaxed);
}

void segment_count_refresh(const struct segment *segment)
{
	atomic_fetch_add_explicit(&segment->memory->refreshed, 1, memory_order_relaxed);
}

/* --- time -------------------------------------------------------------------------------------------------------- */

const char *segment_time_text(enum segment_time_state state)
{
	static const char *const texts[] = {
#define TIME_TEXT(identifier, text) text,
		SEGMENT_TIME_STATES(TIME_TEXT)
#undef TIME_TEXT
	};

	return texts[state];
}

void segment_set_time_state(const struct segment *segment, enum segment_time_state state, uint64_t number)
{
	atomic_store_explicit(&segment->memory->time_state, state, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->time_number, number, memory_order_release);
}

void segment_set_time_used(const struct segment *segment, uint64_t present_us, uint64_t aside_us, uint64_t bounded)
{
	atomic_store_explicit(&segment->memory->present_us, present_us, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->aside_us, aside_us, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->bounded, bounded, memory_order_relaxed);
}

void segment_set_time_held(const struct segment *segment, uint64_t launches)
{
	atomic_store_explicit(&segment->memory->held, launches, memory_order_relaxed);
}

void segment_set_borrowed(const struct segment *segment, const struct segment_borrowed *borrowed)
{
	struct segment_memory *memory = segment->memory;

	for (int word = 0; word < TPCSET_WORDS; word++)
		atomic_store_explicit(&memory->borrowed[word], borrowed->tpcs.words[word], memory_order_relaxed);
	atomic_store_explicit(&memory->borrowed_tpc_us, borrowed->tpc_us, memory_order_relaxed);
	atomic_store_explicit(&memory->overruns, borrowed->overruns, memory_order_relaxed);
	for (int i = 0; i < SEGMENT_LOANS; i++) {
		atomic_store_explicit(&memory->loans[i].tpc_us, borrowed->loans[i].tpc_us, memory_order_relaxed);
		atomic_store_explicit(&memory->loans[i].lender, borrowed->loans[i].lender, memory_order_relaxed);
	}
}

void segment_count_opening(const struct segment *segment)
{
	atomic_fetch_add(&segment->memory->openings, 1);
}

struct segment_borrowed segment_read_borrowed(const struct segment *segment)
{
	const struct segment_memory *memory = segment->memory;
	struct segment_borrowed borrowed = {
		.tpc_us = atomic_load_explicit(&memory->borrowed_tpc_us, memory_order_relaxed),
		.overruns = atomic_load_explicit(&memory->overruns, memory_order_relaxed),
		.loans = {{.lender = 0}}, /* or gcc 11 warns */
	};

	for (int word = 0; word < TPCSET_WORDS; word++)
		borrowed.tpcs.words[word] = atomic_load_explicit(&memory->borrowed[word], memory_order_relaxed);
	for (int i = 0; i < SEGMENT_LOANS; i++) {
		borrowed.loans[i].lender = atomic_load_explicit(&memory->loans[i].lender, memory_order_relaxed);
		borrowed.loans[i].tpc_us = atomic_load_explicit(&memory->loans[i].tpc_us, memory_order_relaxed);
	}
	return borrowed;
}

void segment_read_time(const struct segment *segment, struct segment_time *time)
{
	const struct segment_memory *memory = segment->memory;

	time->number = atomic_load_explicit(&memory->time_number, memory_order_acquire);
	uint64_t state = atomic_load_explicit(&memory->time_state, memory_order_relaxed);

	time->state = state < SEGMENT_TIME_STATE_COUNT ? (enum segment_time_state)state : SEGMENT_TIME_NONE;
	/* The revision before had no limit. */
	if (time->state == SEGMENT_TIME_UNLIMITED && time->number != segment_revision_number(segment))
		time->state = SEGMENT_TIME_PENDING;
	time->present_us = atomic_load_explicit(&memory->present_us, memory_order_relaxed);
	time->aside_us = atomic_load_explicit(&memory->aside_us, memory_order_relaxed);
	time->bounded = atomic_load_explicit(&memory->bounded, memory_order_relaxed);
	time->held = atomic_load_explicit(&memory->held, memory_order_relaxed);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static uint64_t sum_launches(const struct segment_memory *memory, bool restricted)
{
	uint64_t sum = 0;

	for (int slot = 0; slot < COUNTER_SLOTS; slot++)
		sum = sum_u64(sum, atomic_load_explicit(&memory->slots[slot].launches[restricted],
		                                            memory_order_relaxed));
	return sum;
}

void segment_read_counters(const struct segment *segment, struct segment_counters *counters)
{
	const struct segment_memory *memory = segment->memory;

	counters->restricted = sum_launches(memory, true);
	counters->unrestricted = sum_launches(memory, false);
	counters->refreshed = atomic_load_explicit(&memory->refreshed, memory_order_relaxed);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		counters->reasons[reason] =
			atomic_load_explicit(&memory->reasons[reason], memory_order_relaxed);
}
