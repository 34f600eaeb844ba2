#include "state/segment/find.h"
#include "state/segment/owner.h"
#include "tasks.h"

#include "base/shared_file.h"
#include "state/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* --- preparing ---------------------------------------------------------------------------------------------------- */

int attach_segment_prepare(struct segment_gift *gift, pid_t pid, struct error *error)
{
	struct segment shared;
	struct segment_revision revision;
	uint64_t number;
	bool found = segment_open_inherited(&shared, pid, &gift->inherited, GROUP_TO_OBEY, NULL) &&
	             segment_read(&shared, &revision, &number);
	struct group_identity group = shared.group.identity;
	int descriptor = found ? segment_group_descriptor(&shared) : -1;

	segment_close(&shared);
	if (!found)
		return error_set(error, "pid %d: no longer shares another process's partition", (int)pid);
	if (gift->inherited <= HANDLE_MIN)
		return error_set(error, "pid %d: its limit for descriptors (ulimit -n) leaves no room for a partition",
		                 (int)pid);
	memset(&gift->room, 0, sizeof gift->room);
	strcpy(gift->room.name, SEGMENT_NAME);
	/* It stays in the group. */
	gift->room.content.group = group;
	gift->room.content.group_descriptor = (uint64_t)descriptor;
	segment_prepare(&gift->room.content, identity_of(pid), &revision);
	return target_check_file_limit(pid, "a partition", sizeof(struct segment_memory), error);
}

/* --- in the process ----------------------------------------------------------------------------------------------- */

/* The call's result; -1 with the reason. */
static int64_t call(struct borrowed_thread *borrowed, long number, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t arguments[6] = {a, b, c};
	int64_t result = -1;

	if (borrowed_call(borrowed, number, arguments, &result) < 0)
		return -1;
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return error_set_errno(borrowed->error, "pid %d: it cannot be given a partition",
		                       (int)borrowed->target->pid);
	}
	return result;
}

static int64_t make_file(struct borrowed_thread *borrowed)
{
	int64_t file = call(borrowed, SYS_memfd_create, borrowed->room, SHARED_FILE_FLAGS | MFD_NOEXEC_SEAL, 0);

	return file < 0 && errno == EINVAL ? call(borrowed, SYS_memfd_create, borrowed->room, SHARED_FILE_FLAGS, 0)
	                                   : file;
}

static int fill(const struct segment_gift *gift, struct borrowed_thread *borrowed, uint64_t file)
{
	const uint64_t content =
		borrowed->room + offsetof(struct segment_gift, room.content) - offsetof(struct segment_gift, room);
	const uint64_t size = sizeof gift->room.content;

	return call(borrowed, SYS_write, file, content, size) == (int64_t)size &&
	                       call(borrowed, SYS_fchmod, file, SHARED_FILE_MODE, 0) >= 0 &&
	                       call(borrowed, SYS_fcntl, file, F_ADD_SEALS, SHARED_FILE_SEALS) >= 0
	               ? 0
	               : -1;
}

/* Makes a handle (state/handle.h), with a number below the inherited one's. */
static int make_handle(const struct segment_gift *gift, struct borrowed_thread *borrowed, uint64_t file)
{
	const size_t at = offsetof(struct segment_gift, room.path) - offsetof(struct segment_gift, room);
	char path[sizeof gift->room.path];

	snprintf(path, sizeof path, "/proc/self/fd/%d", (int)file);
	int64_t name = borrowed_write(borrowed, at, path, sizeof path) < 0
	                       ? -1
	                       : call(borrowed, SYS_openat, (uint64_t)AT_FDCWD, borrowed->room + at,
	                              O_PATH | O_CLOEXEC);

	if (name < 0)
		return -1;
	int64_t number = call(borrowed, SYS_fcntl, (uint64_t)name, F_DUPFD, HANDLE_MIN);

	if (number >= gift->inherited) {
		call(borrowed, SYS_close, (uint64_t)number, 0, 0);
		number = error_set(borrowed->error, "pid %d: has no descriptor free from %d to %d",
		                   (int)borrowed->target->pid, HANDLE_MIN, gift->inherited);
	}
	call(borrowed, SYS_close, (uint64_t)name, 0, 0);
	return number < 0 ? -1 : 0;
}

int attach_segment_give(const struct segment_gift *gift, struct borrowed_thread *borrowed)
{
	int result = -1;

	if (borrowed_write(borrowed, 0, &gift->room, sizeof gift->room) < 0)
		return -1;
	int64_t file = make_file(borrowed);

	if (file >= 0) {
		result = fill(gift, borrowed, (uint64_t)file);
		if (result == 0)
			result = make_handle(gift, borrowed, (uint64_t)file);
		call(borrowed, SYS_close, (uint64_t)file, 0, 0);
	}
	return result;
}
