/* The owner's side: keeping a segment findable. */
#include "layout.h"
#include "state/handle.h"

#include <sys/mman.h>
#include <unistd.h>

/* Marks the old file as moved, for editors that have it open; but not a parent's file that this process shares. Every
 * edit is either in the content that is copied from now on, or its editor sees the mark afterwards (segment_edit). */
static void mark_moved(struct segment_memory *memory, bool moved)
{
	if (identity_matches(memory->owner, identity_own()))
		atomic_store_explicit(&memory->magic, moved ? SEGMENT_MOVED : SEGMENT_MAGIC, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Copies the whole content, except the magic: without it the copy is not yet a segment. */
static void copy_content(struct segment_memory *to, const struct segment_memory *from)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)to;
	const _Atomic uint64_t *source = (const _Atomic uint64_t *)from;

	for (size_t word = 1; word < sizeof *to / sizeof *target; word++)
		atomic_store_explicit(&target[word], atomic_load_explicit(&source[word], memory_order_acquire),
		                      memory_order_relaxed);
}

/* If the program has closed the descriptor of its group, too, and another member still has one, it gets it again. */
static void keep_group_findable(struct segment *segment)
{
	struct group group = group_closed;
	int descriptor = segment_group_descriptor(segment);

	if (!segment->group.memory || group_is_same(group_identity_of(descriptor), segment->group.identity))
		return;
	if (group_open_anywhere(&group, segment->group.identity, geteuid(), GROUP_TO_CHANGE))
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
	if (segment_make(&moved, -1, error) < 0)
		return -1;
	mark_moved(segment->memory, true);
	copy_content(moved.memory, segment->memory);
	moved.memory->owner = identity_own();
	atomic_store_explicit(&moved.memory->magic, SEGMENT_MAGIC, memory_order_release);
	/* For the other threads, this replaces the mapping in one step. */
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
