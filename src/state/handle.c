#include "handle.h"

#include "base/identity.h"
#include "base/memfd_find.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The distance from the end of a small table: no program gets our number as the lowest free descriptor. */
#define BELOW_LIMIT 8

/* The end of the search without /proc. */
#define LOOK_END 1024

/* --- the number --------------------------------------------------------------------------------------------------- */

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}

static int choose_number(void)
{
	uint64_t table = has_threads() ? proc_status(0, "FDSize:", 0) : 0;

	/* A privileged process keeps the inherited handle for executed programs. The process's own handle gets a lower
	 * number, and is found first. */
	return identity_is_privileged() ? HANDLE_MIN : handle_lowest_descriptor(table, HANDLE_USUAL);
}

int handle_lowest_of(pid_t pid)
{
	struct rlimit limit;

	return prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur > HANDLE_USUAL ? HANDLE_MIN : 0;
}

/* Some programs count on low numbers being free, or close low numbers: 0 to 2 may be closed. */
static int move_up(int file, int flags, int above)
{
	struct rlimit limit = {.rlim_cur = 0};
	int moved = fcntl(file, flags, choose_number() + above);

	if (moved < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * BELOW_LIMIT)
		moved = fcntl(file, flags, (int)limit.rlim_cur - BELOW_LIMIT + above);
	return moved < 0 ? fcntl(file, flags, 3) : moved;
}

/* --- finding handles ---------------------------------------------------------------------------------------------- */

/* Uses statx without synchronization: a file system of the program cannot make us wait (memfd_find.c). Uses fstat only
 * if statx is missing or not permitted. */
static bool read_status(int number, size_t size, struct statx *status)
{
	struct stat known;
	bool found = statx(number, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, status) == 0;

	if (!found && (errno == ENOSYS || errno == EPERM) && fstat(number, &known) == 0) {
		*status = (struct statx){.stx_mode = (uint16_t)known.st_mode, .stx_ino = known.st_ino,
		                         .stx_size = (uint64_t)known.st_size};
		found = true;
	}
	return found && S_ISREG(status->stx_mode) && status->stx_size == size;
}

bool handle_leads_to(int number, ino_t inode, size_t size)
{
	struct statx status;

	return read_status(number, size, &status) && status.stx_ino == inode;
}

static int next_by_name(int first, const char *link, bool *is_known)
{
	int directory = open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* -1: no /proc */
	int number = -1;

	*is_known = directory >= 0;
	if (directory >= 0) {
		number = memfd_next(directory, first, link, NULL);
		close(directory);
	}
	return number;
}

/* Without /proc, checks each descriptor. */
static int next_by_look(int first, size_t size)
{
	struct statx status;
	int number = first;

	while (number < LOOK_END && !(memfd_is_one(number) && read_status(number, size, &status)))
		number++;
	return number < LOOK_END ? number : -1;
}

int handle_next(int first, const char *link, size_t size)
{
	bool is_known;
	int number = next_by_name(first, link, &is_known);

	return is_known ? number : next_by_look(first, size);
}

int handle_open(int number)
{
	int file = memfd_reopen(number, true);

	/* Without /proc, the handle is the open file itself. */
	return file < 0 && (fcntl(number, F_GETFL) & O_PATH) == 0 ? fcntl(number, F_DUPFD_CLOEXEC, 3) : file;
}

bool handle_is_passed_on(int number)
{
	return (fcntl(number, F_GETFD) & FD_CLOEXEC) == 0;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* The program may have lowered the limit, and the number of the handle to replace is then above the limit. */
static int put(int file, int in_place_of, int above, bool is_passed_on)
{
	int number = in_place_of >= 0 ? dup3(file, in_place_of, is_passed_on ? 0 : O_CLOEXEC) : -1;
	bool is_above_limit = in_place_of >= 0 && number < 0 && errno == EBADF;

	if (in_place_of < 0 || is_above_limit)
		number = move_up(file, is_passed_on ? F_DUPFD : F_DUPFD_CLOEXEC, above);
	if (is_above_limit && number >= 0)
		close(in_place_of);
	return number;
}

static int open_name(int file)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file);
	return open(path, O_PATH | O_CLOEXEC);
}

int handle_move_up(int file)
{
	int moved = move_up(file, F_DUPFD_CLOEXEC, 0);

	if (moved >= 0)
		close(file);
	return moved >= 0 ? moved : file;
}

int handle_make(int file, int in_place_of, int above)
{
	int name = open_name(file), number = -1;

	if (name >= 0)
		number = put(name, in_place_of, above, !identity_is_privileged());
	else if (errno == ENOENT) /* no /proc */
		number = put(file, in_place_of, above, false);
	int saved = errno;

	close(file);
	if (name >= 0)
		close(name);
	errno = saved;
	return number;
}

int handle_lowest_descriptor(uint64_t table, int usual)
{
	return table >= DESCRIPTOR_TABLE_MIN && table <= (uint64_t)usual ? (int)table - DESCRIPTOR_TABLE_END : usual;
}
