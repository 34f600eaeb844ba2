/* The editor's side: changing a segment. */
#include "base/shared_file.h"
#include "layout.h"

#include <string.h>

bool segment_has_moved(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->magic, memory_order_relaxed) != SEGMENT_MAGIC;
}

int segment_lock(const struct segment *segment, struct error *error)
{
	return lock_take(segment->file, error);
}

uint64_t segment_raised(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->raised, memory_order_acquire);
}

/* Puts the next revision in force. -1 with the reason if the owner has moved meanwhile. */
static int publish(struct segment *segment, uint64_t number, const struct segment_revision *revision, struct error *error)
{
	revisions_store(segment->memory->ring, number, revision);
	atomic_store_explicit(&segment->memory->number, number, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return segment_has_moved(segment)
	               ? error_set_code(error, NVTASKSET_ERROR_BUSY, "the partition has moved to a new file just now: try again")
	               : 0;
}

/* The process's own revision, whatever its group says. */
static bool read_own(const struct segment *segment, struct segment_revision *own, uint64_t *number)
{
	return revisions_load(segment->memory->ring, &segment->memory->number, own, number);
}

/* Says which state of the group the revision was made after. */
static uint32_t group_seen(const struct segment *segment, const struct segment_revision *in_force)
{
	bool is_lost = segment->memory->group.inode != 0 && !segment->group.memory;

	return is_lost ? GROUP_LEFT : in_force->group;
}

static int edit_locked(struct segment *segment, const struct segment_revision *wanted, struct segment_undo *undo,
                       struct error *error)
{
	struct segment_revision revision, own;
	uint64_t number, unused;
	int result = 0;

	if (!read_own(segment, &own, &number) || !segment_read(segment, &revision, &unused))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	if (group_check_within(&segment->group, wanted->partitions, wanted->count, error) < 0)
		return -1;
	revision.group = group_seen(segment, &revision);
	if (undo)
		*undo = (struct segment_undo){.edit = number + 1 - segment_raised(segment), .before = own};
	for (uint32_t i = 0; result == 0 && i < wanted->count; i++)
		result = segment_put(&revision, &wanted->partitions[i], error);
	segment_put_time(&revision, wanted);
	return result == 0 ? publish(segment, number + 1, &revision, error) : -1;
}

int segment_change(struct segment *segment, const struct segment_revision *wanted, struct segment_undo *undo,
                   struct error *error)
{
	int result = segment_lock(segment, error);

	if (result == 0) {
		result = edit_locked(segment, wanted, undo, error);
		lock_give_back(segment->file);
	}
	return result;
}

int segment_edit(struct segment *segment, const struct segment_partition *partitions, uint32_t count,
                 struct segment_undo *undo, struct error *error)
{
	struct segment_revision wanted = {.count = count};

	if (count > SEGMENT_GPUS)
		return error_set_code(error, NVTASKSET_ERROR_NO_ROOM, "no more than %u GPUs fit", SEGMENT_GPUS);
	memcpy(wanted.partitions, partitions, count * sizeof *partitions);
	return segment_change(segment, &wanted, undo, error);
}

/* An editor that dies between the two has made an edit that changes nothing. */
static int raise_locked(struct segment *segment, struct error *error)
{
	struct segment_revision own;
	uint64_t number;

	if (!read_own(segment, &own, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	int result = publish(segment, number + 1, &own, error);

	if (result == 0)
		atomic_fetch_add_explicit(&segment->memory->raised, 1, memory_order_release);
	return result;
}

int segment_raise(struct segment *segment, struct error *error)
{
	int result = segment_lock(segment, error);

	if (result == 0) {
		result = raise_locked(segment, error);
		lock_give_back(segment->file);
	}
	return result;
}

int segment_take_back(struct segment *segment, const struct segment_undo *undo, struct error *error)
{
	int result = segment_lock(segment, error);

	if (result == 0) {
		uint64_t number = atomic_load(&segment->memory->number);

		if (number - segment_raised(segment) == undo->edit)
			result = publish(segment, number + 1, &undo->before, error);
		lock_give_back(segment->file);
	}
	return result;
}
