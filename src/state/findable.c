/* The owner's side: keeping a segment findable. */
#include "handle.h"
#include "layout.h"

#include <sys/mman.h>

/* Editors who have the old file open are told; but not those of a parent whose segment this process shares. Either the
 * content that is copied from now on has an edit, or its editor sees the mark: see segment_edit. */
static void mark_moved(struct segment_memory *memory, bool moved)
{
	if (identity_matches(memory->owner, identity_own()))
		atomic_store_explicit(&memory->magic, moved ? SEGMENT_MOVED : SEGMENT_MAGIC, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* The whole content, as it was at some moment of the copying; but not the magic, without which it is no segment yet. */
static void copy_content(struct segment_memory *to, const struct segment_memory *from)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)to;
	const _Atomic uint64_t *source = (const _Atomic uint64_t *)from;

	for (size_t word = 1; word < sizeof *to / sizeof *target; word++)
		atomic_store_explicit(&target[word], atomic_load_explicit(&source[word], memory_order_acquire),
		                      memory_order_relaxed);
}

bool segment_is_findable(const struct segment *segment)
{
	return handle_leads_to(segment->file, segment->inode);
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
	/* At one stroke for the other threads. */
	if (mremap(moved.memory, sizeof *moved.memory, sizeof *moved.memory, MREMAP_MAYMOVE | MREMAP_FIXED,
	           segment->memory) == MAP_FAILED) {
		error_set_errno(error, "shared memory cannot be moved");
		mark_moved(segment->memory, false);
		segment_close(&moved);
		return -1;
	}
	segment->file = moved.file;
	segment->inode = moved.inode;
	return 0;
}
