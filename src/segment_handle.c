#include "segment_handle.h"

#include "memfd_find.h"
#include "proc_status.h"
#include "segment_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* So far below the end of a small table, so that nobody's lowest free descriptor is there. */
#define BELOW_LIMIT 8

/* Of a table of descriptors, where the kernel does not say it. */
#define TABLE_UNKNOWN 1024

/* --- its number ------------------------------------------------------------------------------------------------- */

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}

/* A program with more privileges than its user. It passes nothing on, and has what it inherited for those whom it executes:
 * its own number is lower, so that it is found first. */
static bool is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* Far up, where nobody looks for one. But to make the table of descriptors larger, the kernel makes a process with threads
 * wait for all processors, 5 to 30 ms (Linux 6.18, expand_fdtable in fs/file.c): there, the end of the table will do. */
static int choose_number(void)
{
	uint64_t table = has_threads() ? proc_status("self", "FDSize:", 0) : 0;
	int number = HANDLE_USUAL;

	if (is_privileged())
		number = HANDLE_MIN;
	else if (table >= HANDLE_TABLE_MIN && table <= HANDLE_USUAL)
		number = (int)table - HANDLE_TABLE_END;
	return number;
}

/* Out of the way of programs that count on the low numbers being free (or closed: 0 to 2 may be). */
static int move_up(int file, int flags)
{
	struct rlimit limit = {.rlim_cur = 0};
	int moved = fcntl(file, flags, choose_number());

	if (moved < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * BELOW_LIMIT)
		moved = fcntl(file, flags, (int)limit.rlim_cur - BELOW_LIMIT);
	return moved < 0 ? fcntl(file, flags, 3) : moved;
}

/* --- those that there are ------------------------------------------------------------------------------------------- */

/* As far as that can be told without opening it. */
static bool is_of_a_segment(int number)
{
	struct stat status;

	return memfd_is_one(number) && fstat(number, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_size == (off_t)sizeof(struct segment_memory);
}

int handle_next(int first)
{
	int end = (int)proc_status("self", "FDSize:", TABLE_UNKNOWN), number = first;

	while (number < end && !is_of_a_segment(number))
		number++;
	return number < end ? number : -1;
}

bool handle_leads_to(int number, ino_t inode)
{
	struct stat status;

	return memfd_is_one(number) && fstat(number, &status) == 0 && status.st_ino == inode;
}

static int reopen(int number, int flags)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", number);
	return open(path, flags | O_CLOEXEC);
}

int handle_open(int number)
{
	int file = reopen(number, O_RDWR | O_NONBLOCK | O_NOCTTY);

	/* One that is open itself: this process may have no /proc. */
	return file < 0 && (fcntl(number, F_GETFL) & O_PATH) == 0 ? fcntl(number, F_DUPFD_CLOEXEC, 3) : file;
}

bool handle_is_passed_on(int number)
{
	return (fcntl(number, F_GETFD) & FD_CLOEXEC) == 0;
}

/* --- making it ---------------------------------------------------------------------------------------------------- */

/* May take over nothing that is not a handle: the program may have closed it, and have a file of its own there. */
static int put(int file, int in_place_of, bool is_passed_on)
{
	return in_place_of >= 0 && is_of_a_segment(in_place_of)
	               ? dup3(file, in_place_of, is_passed_on ? 0 : O_CLOEXEC)
	               : move_up(file, is_passed_on ? F_DUPFD : F_DUPFD_CLOEXEC);
}

int handle_make(int file, int in_place_of)
{
	int name = reopen(file, O_PATH);
	int number = put(name >= 0 ? name : file, in_place_of, name >= 0 && !is_privileged());
	int saved = errno;

	close(file);
	if (name >= 0)
		close(name);
	errno = saved;
	return number;
}
