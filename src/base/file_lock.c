#include "file_lock.h"

#include "purse.h"

#include <errno.h>
#include <fcntl.h>

/* How long an editor waits for another's lock. An edit takes microseconds: an editor that holds the lock for longer is
 * stopped. */
#define LOCK_WAIT_MS 2000

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

void lock_give_back(int file)
{
	fcntl(file, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK, .l_whence = SEEK_SET});
}

int lock_take(int file, struct error *error)
{
	unsigned int patience = LOCK_WAIT_MS;
	int locked = try_lock(file), failure = errno;

	while (locked < 0 && failure == EAGAIN && purse_wait(&patience)) {
		locked = try_lock(file);
		failure = errno;
	}
	errno = failure;
	if (locked < 0 && errno == EAGAIN)
		return error_set_code(error, NVTASKSET_ERROR_BUSY,
		                      "the partition is being changed by another process, which is stopped");
	if (locked < 0)
		return error_set_errno(error, "the partition cannot be locked");
	return 0;
}
