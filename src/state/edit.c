/* The editor's side: changing a segment. */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

/* How long an editor waits for another's lock. An edit takes microseconds: an editor that holds the lock for longer is
 * stopped. */
#define LOCK_WAIT_MS 2000

bool segment_has_moved(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->magic, memory_order_relaxed) != SEGMENT_MAGIC;
}

/* Editors take a write lock, which needs a file that is open for writing. A process that inherited the segment and may
 * only read it could keep editors out by a read lock: so read locks do not count. */
static int try_lock(int file)
{
	struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, held = wanted;
	int locked = fcntl(file, F_OFD_SETLK, &wanted);

	if (locked < 0 && errno == EAGAIN && fcntl(file, F_OFD_GETLK, &held) == 0) {
		locked = held.l_type == F_RDLCK ? 0 : -1;
		errno = EAGAIN;
	}
	return locked;
}

static void unlock(int file)
{
	fcntl(file, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET});
}

int segment_lock(const struct segment *segment, struct error *error)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};
	int locked = try_lock(segment->file);

	for (int waited = 0; locked < 0 && errno == EAGAIN && waited < LOCK_WAIT_MS; waited++) {
		nanosleep(&millisecond, NULL);
		locked = try_lock(segment->file);
	}
	if (locked < 0 && errno == EAGAIN)
		return error_set_code(error, NVTASKSET_ERROR_BUSY,
		                      "the partition is being changed by another process, which is stopped");
	if (locked < 0)
		return error_set_errno(error, "the partition cannot be locked");
	return 0;
}

int segment_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error)
{
	uint32_t place = 0;

	while (place < revision->count && !pci_address_equal(revision->partitions[place].pci, partition->pci))
		place++;
	if (place == SEGMENT_GPUS)
		return error_set_code(error, NVTASKSET_ERROR_NO_ROOM, "the partition already names %u GPUs, and no more fit",
		                      SEGMENT_GPUS);
	revision->partitions[place] = *partition;
	if (place == revision->count)
		revision->count++;
	return 0;
}

/* Puts the next revision in force. -1 with the reason if the owner has moved meanwhile. */
static int publish(struct segment *segment, uint64_t number, const struct segment_revision *revision, struct error *error)
{
	segment_store(segment->memory, number, revision);
	atomic_store_explicit(&segment->memory->number, number, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return segment_has_moved(segment)
	               ? error_set_code(error, NVTASKSET_ERROR_BUSY, "the partition has moved to a new file just now: try again")
	               : 0;
}

static int edit_locked(struct segment *segment, const struct segment_partition *partitions, uint32_t count,
                       struct segment_undo *undo, struct error *error)
{
	struct segment_revision revision;
	uint64_t number;
	int result = 0;

	if (!segment_read(segment, &revision, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	if (undo)
		*undo = (struct segment_undo){.number = number + 1, .before = revision};
	for (uint32_t i = 0; result == 0 && i < count; i++)
		result = segment_put(&revision, &partitions[i], error);
	return result == 0 ? publish(segment, number + 1, &revision, error) : -1;
}

int segment_edit(struct segment *segment, const struct segment_partition *partitions, uint32_t count,
                 struct segment_undo *undo, struct error *error)
{
	int result = segment_lock(segment, error);

	if (result == 0) {
		result = edit_locked(segment, partitions, count, undo, error);
		unlock(segment->file);
	}
	return result;
}

int segment_take_back(struct segment *segment, const struct segment_undo *undo, struct error *error)
{
	int result = segment_lock(segment, error);

	if (result == 0) {
		if (segment_revision_number(segment) == undo->number)
			result = publish(segment, undo->number + 1, &undo->before, error);
		unlock(segment->file);
	}
	return result;
}
