/* The owner's side: getting a segment. */
#include "layout.h"

#include "base/identity.h"
#include "base/proc.h"
#include "state/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- making it --------------------------------------------------------------------------------------- */

void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision)
{
	memory->version = SEGMENT_VERSION;
	memory->size = sizeof *memory;
	memory->owner = owner;
	revisions_store(memory->ring, 1, revision);
	atomic_store_explicit(&memory->number, 1, memory_order_release);
	atomic_store_explicit(&memory->magic, SEGMENT_MAGIC, memory_order_release);
}

/* In no group, the revision is in force whatever it says. */
int segment_create_in_group(struct segment *segment, const struct segment_revision *revision, int in_place_of,
                            struct group *group, int descriptor, struct error *error)
{
	int result = segment_make(segment, in_place_of, error);

	if (result == 0 && group->memory && descriptor >= 0) {
		segment->memory->group = group->identity;
		atomic_store(&segment->memory->group_descriptor, (uint64_t)descriptor);
		group_close_file(group);
		segment_use_group(segment, group);
		*group = group_closed;
	}
	if (result == 0)
		segment_prepare(segment->memory, identity_own(), revision);
	return result;
}

int segment_create(struct segment *segment, const struct segment_revision *revision, int in_place_of, struct error *error)
{
	struct group none = group_closed;

	return segment_create_in_group(segment, revision, in_place_of, &none, -1, error);
}

int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	struct segment_memory *memory =
		mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*segment = segment_closed;
	if (memory == MAP_FAILED)
		return error_set_errno(error, "no memory for the partition");
	*segment = segment_in(memory);
	segment_prepare(segment->memory, identity_own(), revision);
	return 0;
}

static bool is_own(const struct segment *segment)
{
	return identity_matches(segment->memory->owner, identity_own());
}

int segment_replace(struct segment *segment, const struct segment_revision *revision, struct group *group, int descriptor,
                    struct error *error)
{
	struct segment before;
	int handle;

	segment_open_source(&before, &handle);
	bool is_left = before.memory && is_own(&before) && segment_may_write(&before);
	int result = segment_create_in_group(segment, revision, handle, group, descriptor, error);

	if (result == 0 && is_left)
		atomic_store(&before.memory->magic, SEGMENT_MOVED);
	segment_close(&before);
	return result;
}

/* --- finding its own ----------------------------------------------------------------------------------- */

/* Whether this process has the segment mapped elsewhere, too. An exec removes all mappings. */
static bool is_mapped(const struct segment *segment)
{
	char *line = NULL;
	size_t size = 0;
	unsigned int mappings = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && getline(&line, &size, maps) > 0) {
		struct mapping mapping;

		mappings += mapping_parse(&mapping, line) && mapping.inode == segment->inode && strstr(mapping.path, SEGMENT_LINK);
	}
	free(line);
	if (maps)
		fclose(maps);
	return mappings > 1; /* one of them is this one */
}

/* The areas (state/kernels/counts.h, state/kernels/stamps.h) have gone with the execution that made them, and so has
 * what it calls functions. */
static void forget_execution(struct segment_memory *memory)
{
	for (int i = 0; i < SEGMENT_AREAS; i++) {
		atomic_store(&memory->areas[i].inode, 0);
		atomic_store(&memory->stamps[i].inode, 0);
	}
	atomic_store(&memory->areas_made, 0);
	atomic_store(&memory->gaps, 0);
}

bool segment_find_own(struct segment *segment)
{
	int handle;
	bool found = segment_open_source(segment, &handle) == SEGMENT_OWN;

	if (!found) {
		segment_close(segment);
		return false;
	}
	close(segment->file);
	segment->file = handle;
	group_close_file(&segment->group);
	/* The number alone can be the same after an exec (base/identity.h). */
	if (atomic_load(&segment->memory->execution) == execution_own() && is_mapped(segment)) {
		counter_slots_keep();
	} else {
		segment_set_in_force(segment, true);
		forget_execution(segment->memory);
	}
	return true;
}

void segment_set_at_work(const struct segment *segment)
{
	atomic_store(&segment->memory->execution, execution_own());
}

void segment_set_in_force(const struct segment *segment, bool in_force)
{
	atomic_store_explicit(&segment->memory->out_of_force, !in_force, memory_order_relaxed);
}
