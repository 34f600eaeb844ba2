#include "owner.h"

#include "base/proc.h"
#include "base/shared_file.h"
#include "layout.h"
#include "state/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- making ------------------------------------------------------------------------------------------------------- */

/* `in_place_of`: the handle to replace; -1: none. -1 with the reason. */
static int make_segment(struct segment *segment, int in_place_of, struct error *error)
{
	int file = shared_file_make(SEGMENT_NAME, sizeof(struct segment_memory), error);

	*segment = segment_closed;
	if (file < 0)
		return -1;
	*segment = segment_map(file);
	if (!segment->memory)
		return error_set_errno(error, "shared memory cannot be mapped");
	segment->file = handle_make(file, in_place_of, 0);
	if (segment->file < 0) {
		error_set_errno(error, "no shared memory");
		segment_close(segment);
		return -1;
	}
	return 0;
}

void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision)
{
	memory->version = SEGMENT_VERSION;
	memory->size = sizeof *memory;
	memory->owner = owner;
	revisions_store(memory->ring, 1, revision);
	atomic_store_explicit(&memory->number, 1, memory_order_release);
	atomic_store_explicit(&memory->magic, SEGMENT_MAGIC, memory_order_release);
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

/* --- finding the process's own segment ---------------------------------------------------------------------------- */

/* `file` is the handle's opened file; -1 if the handle cannot be opened. A descriptor that exec closes is an editor's,
 * of a foreign segment. */
static enum segment_source source_of(int file, int handle)
{
	struct stat status;
	struct segment_header header = {.magic = 0};
	enum segment_source source = SEGMENT_NONE;

	if (file >= 0 && fstat(file, &status) == 0)
		header = segment_read_header(file);
	enum segment_kind kind = segment_kind_for(&header, identity_own());

	if (file < 0)
		source = SEGMENT_WITHHELD;
	else if (kind == KIND_OWN && status.st_uid == geteuid())
		source = SEGMENT_OWN;
	else if (kind == KIND_OWN || kind == KIND_INHERITED)
		source = SEGMENT_INHERITED;
	else if (kind == KIND_LEFT)
		source = SEGMENT_LEFT;
	return source == SEGMENT_OWN || handle_is_passed_on(handle) ? source : SEGMENT_NONE;
}

static int next_handle(int first)
{
	return handle_next(first, SEGMENT_LINK, sizeof(struct segment_memory));
}

enum segment_source segment_open_source(struct segment *segment, int *handle)
{
	enum segment_source best = SEGMENT_NONE;

	*segment = segment_closed;
	*handle = -1;
	for (int next = next_handle(0); next >= 0 && best != SEGMENT_OWN; next = next_handle(next + 1)) {
		struct segment found = segment_closed;
		int file = handle_open(next);
		enum segment_source source = source_of(file, next);

		if (source >= best && file >= 0)
			close(file);
		if (source < best && (file < 0 || segment_map_found(&found, file, NULL) == SEGMENT_FOUND)) {
			segment_close(segment);
			if (found.memory)
				segment_open_group(&found, getpid(), GROUP_TO_OBEY);
			*segment = found;
			*handle = next;
			best = source;
		}
	}
	return best;
}

/* --- making a segment in place of the last ------------------------------------------------------------------------ */

static int create(struct segment *segment, const struct segment_revision *revision, struct group *group, int descriptor,
                  int in_place_of, struct error *error)
{
	int result = make_segment(segment, in_place_of, error);

	if (result == 0 && group && group->memory && descriptor >= 0) {
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

int segment_create(struct segment *segment, const struct segment_revision *revision, struct group *group,
                   int descriptor, int in_place_of, struct error *error)
{
	struct segment before = segment_closed;
	int handle = in_place_of;

	if (in_place_of == SEGMENT_OF_BEFORE)
		segment_open_source(&before, &handle);
	bool is_left =
		before.memory && identity_matches(before.memory->owner, identity_own()) && segment_may_write(&before);
	int result = create(segment, revision, group, descriptor, handle, error);

	if (result == 0 && is_left)
		atomic_store(&before.memory->magic, SEGMENT_MOVED);
	segment_close(&before);
	return result;
}

/* --- a segment from before an exec -------------------------------------------------------------------------------- */

/* Whether this process has a second mapping of the segment: an exec removes all mappings, but the number of the
 * execution can be equal after an exec (base/identity.h). */
static bool is_mapped(const struct segment *segment)
{
	char *line = NULL;
	size_t size = 0;
	unsigned int mappings = 0;
	FILE *maps = proc_stream(0, "maps");

	while (maps && getline(&line, &size, maps) > 0) {
		struct mapping mapping;

		mappings += proc_mapping_parse(&mapping, line) && mapping.inode == segment->inode &&
		            strstr(mapping.path, SEGMENT_LINK);
	}
	free(line);
	if (maps)
		fclose(maps);
	return mappings > 1; /* `segment` is a mapping */
}

/* Forgets the areas (state/kernels/counts.h, state/kernels/timestamps.h), gone with the execution that made the areas
 * and named the functions. */
static void forget_execution(struct segment_memory *memory)
{
	for (int i = 0; i < SEGMENT_AREAS; i++) {
		atomic_store(&memory->areas[i].inode, 0);
		atomic_store(&memory->timestamps[i].inode, 0);
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
	if (atomic_load(&segment->memory->execution) == identity_own_execution() && is_mapped(segment)) {
		segment_slots_forbid();
	} else {
		segment_set_in_force(segment, true);
		forget_execution(segment->memory);
	}
	return true;
}

void segment_set_at_work(const struct segment *segment)
{
	atomic_store(&segment->memory->execution, identity_own_execution());
}

void segment_set_in_force(const struct segment *segment, bool in_force)
{
	atomic_store_explicit(&segment->memory->out_of_force, !in_force, memory_order_relaxed);
}

/* --- keeping the segment findable --------------------------------------------------------------------------------- */

/* Marks the old file as moved for editors, except a file shared with a parent. Each edit is either in the content
 * copied from now on, or the editor sees the mark afterwards (segment_change; tests/litmus/moved.litmus). */
static void mark_moved(struct segment_memory *memory, bool moved)
{
	if (identity_matches(memory->owner, identity_own()))
		atomic_store_explicit(&memory->magic, moved ? SEGMENT_MOVED : SEGMENT_MAGIC, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static void copy_content(struct segment_memory *to, const struct segment_memory *from)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)to;
	const _Atomic uint64_t *source = (const _Atomic uint64_t *)from;

	for (size_t word = 1; word < sizeof *to / sizeof *target; word++) /* no magic: the copy is no segment yet */
		atomic_store_explicit(&target[word], atomic_load_explicit(&source[word], memory_order_acquire),
		                      memory_order_relaxed);
}

/* If the program has closed the group's descriptor too, the process gets a new descriptor from another member. */
static void keep_group_findable(struct segment *segment)
{
	struct group group = group_closed;
	int descriptor = segment_group_descriptor(segment);

	if (!segment->group.memory || group_is_same(group_identity_of(descriptor), segment->group.identity))
		return;
	if (group_open_anywhere(&group, segment->group.identity, geteuid(), GROUP_TO_CHANGE, NULL))
		descriptor = group_keep(&group, group.identity, -1);
	if (group.memory && descriptor >= 0)
		atomic_store(&segment->memory->group_descriptor, (uint64_t)descriptor);
	group_close(&group);
}

bool segment_is_findable(const struct segment *segment)
{
	return handle_leads_to(segment->file, segment->inode, sizeof *segment->memory);
}

int segment_keep_findable(struct segment *segment, struct error *error)
{
	struct segment moved;

	if (segment_is_findable(segment))
		return 0;
	if (make_segment(&moved, -1, error) < 0)
		return -1;
	mark_moved(segment->memory, true);
	copy_content(moved.memory, segment->memory);
	moved.memory->owner = identity_own();
	atomic_store_explicit(&moved.memory->magic, SEGMENT_MAGIC, memory_order_release);
	/* For the other threads, mremap replaces the mapping in one step. */
	if (mremap(moved.memory, sizeof *moved.memory, sizeof *moved.memory, MREMAP_MAYMOVE | MREMAP_FIXED,
	           segment->memory) == MAP_FAILED) {
		error_set_errno(error, "shared memory cannot be moved");
		mark_moved(segment->memory, false);
		segment_close(&moved);
		return -1;
	}
	segment->file = moved.file;
	segment->inode = moved.inode;
	keep_group_findable(segment);
	return 0;
}
