#include "borrowed_thread.h"

#include "attach/threads.h"
#include "attach/tracee.h"

#include <errno.h>
#include <string.h>

static bool is_zero(const struct machine_way *way)
{
	static const struct machine_way zero;

	return memcmp(way, &zero, sizeof zero) == 0;
}

/* While a thread works for an attacher, the memory starts with the code (machine.h), which names the way back. */
static bool has_memory(const struct target *target, uint64_t at, uint64_t memory)
{
	struct machine_code_head head;

	return memory != 0 && memory_read(&target->memory, memory, &head, sizeof head) &&
	       head.mark == MACHINE_CODE_MARK && head.way == at;
}

/* Whether an attacher left the way back behind, and the thread has ended or is elsewhere: the way is not needed. */
static bool is_left(const struct target *target, uint64_t at, const struct machine_way *way, uint64_t thread)
{
	const struct range range = {at, at + sizeof *way};

	return way->mark == MACHINE_WAY_MARK && !has_memory(target, at, way->memory) &&
	       (way->owner == thread || threads_is_outside(target, way->owner, &range));
}

/* The address of free room in the gap; 0: no room. */
static uint64_t find_place(const struct target *target, const struct range *gap, uint64_t thread)
{
	uint64_t at = (gap->start + MACHINE_WAY_ALIGNMENT - 1) & ~(uint64_t)(MACHINE_WAY_ALIGNMENT - 1), found = 0;
	struct machine_way there;

	while (!found && at + sizeof there <= gap->end && memory_read(&target->memory, at, &there, sizeof there)) {
		if (is_zero(&there) || is_left(target, at, &there, thread))
			found = at;
		at += there.mark == MACHINE_WAY_MARK ? sizeof there : MACHINE_WAY_ALIGNMENT;
	}
	return found;
}

/* The mark is written first, and cleared last (gap_clear): a way back in part is recognized as left behind. */
uint64_t gap_lay(const struct target *target, pid_t thread, const struct machine_way *way)
{
	uint64_t at = 0;

	for (size_t i = target->gap_count; i > 0 && !at; i--)
		at = find_place(target, &target->gaps[i - 1], way->owner);
	if (!at)
		errno = ENOSPC;
	return at && tracee_write(thread, at, way, sizeof *way) == 0 ? at : 0;
}

int gap_note_memory(pid_t thread, uint64_t way, uint64_t memory)
{
	return tracee_write(thread, way + offsetof(struct machine_way, memory), &memory, sizeof memory);
}

/* From the end: the mark is cleared last. */
void gap_clear(pid_t thread, uint64_t way)
{
	const uint64_t zero = 0;

	for (uint64_t at = sizeof(struct machine_way); at > 0; at -= sizeof zero)
		tracee_write(thread, way + at - sizeof zero, &zero, sizeof zero);
}
