#include "gap.h"

#include "attach/threads.h"
#include "attach/tracee.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool is_zero(const struct machine_way *way)
{
	static const struct machine_way zero;

	return memcmp(way, &zero, sizeof zero) == 0;
}

/* As long as its thread works for somebody, there is the code that does. */
static bool has_memory(const struct target *target, uint64_t at, uint64_t memory)
{
	struct machine_code_head head;

	return memory != 0 && memory_read(&target->memory, memory, &head, sizeof head) &&
	       head.mark == MACHINE_CODE_MARK && head.way == at;
}

/* One that an attacher has left behind, and that its thread does not need any more: it is gone, or elsewhere. */
static bool is_left(const struct target *target, uint64_t at, const struct machine_way *way, uint64_t thread)
{
	const struct range range = {at, at + sizeof *way};

	return way->mark == MACHINE_WAY_MARK && !has_memory(target, at, way->memory) &&
	       (way->owner == thread || threads_is_outside(target, way->owner, &range));
}

/* A place in the gap; 0 if none is free. */
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

/* The first word, which marks it, comes first: half of one is one that was left behind. */
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

/* And goes last. */
void gap_clear(pid_t thread, uint64_t way)
{
	const uint64_t zero = 0;

	for (uint64_t at = sizeof(struct machine_way); at > 0; at -= sizeof zero)
		tracee_write(thread, way + at - sizeof zero, &zero, sizeof zero);
}
