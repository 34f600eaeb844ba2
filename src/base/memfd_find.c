#include "memfd_find.h"

#include "pids.h"
#include "proc.h"
#include "purse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_MAX_LENGTH 64

/* Looks paid for a file and for a process. */
#define LOOKS_OF_FILE 16
#define LOOKS_OF_PROCESS 8 /* listing the open files costs as much */

/* The device of a file, as far as the kernel knows without asking the file system; 0 while unknown. */
static uint64_t device_of(int file)
{
	struct statx status;
	bool known = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) == 0;

	return known ? (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor : 0;
}

static uint64_t memory_device(void)
{
	static _Atomic uint64_t device;
	int file = atomic_load(&device) == 0 ? memfd_create("nvtaskset-where", MFD_CLOEXEC) : -1;

	if (file >= 0) {
		atomic_store(&device, device_of(file));
		close(file);
	}
	return atomic_load(&device);
}

/* On other file systems, as FUSE, opening a file or reading the attributes can wait for ever for a hostile process. */
bool memfd_is_one(int file)
{
	uint64_t device = device_of(file);

	return device != 0 && device == memory_device();
}

bool memfd_are_known(void)
{
	return memory_device() != 0;
}

int memfd_reopen(int number, bool to_write)
{
	const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char link[32];
	int file = -1;

	snprintf(link, sizeof link, "/proc/thread-self/fd/%d", number); /* the first thread may have ended */
	if (to_write)
		file = open(link, O_RDWR | flags);
	return !to_write || (file < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
	               ? open(link, O_RDONLY | flags)
	               : file;
}

int memfd_open(int directory, int number)
{
	char name[16];

	snprintf(name, sizeof name, "%d", number);
	int path = openat(directory, name, O_PATH | O_CLOEXEC), file = -1;

	if (path >= 0 && memfd_is_one(path))
		file = memfd_reopen(path, true);
	if (path >= 0) {
		int saved = errno; /* why the file could not be opened */

		close(path);
		errno = saved;
	}
	return file;
}

static bool has_link(int directory, const char *name, const char *expected)
{
	char link[LINK_MAX_LENGTH];
	ssize_t length = readlinkat(directory, name, link, sizeof link);

	return length == (ssize_t)strlen(expected) && memcmp(link, expected, (size_t)length) == 0;
}

/* opendir would take as long as all the rest. */
int memfd_next(int directory, int first, const char *link, struct purse *purse)
{
	_Alignas(struct dirent64) char entries[4096];
	int number = -1;
	ssize_t length;

	/* Positions 0 and 1 are "." and "..", and descriptor n is at n + 2 (the kernel's fs/proc/fd.c). */
	lseek(directory, first + 2, SEEK_SET);
	while (number < 0 && purse_pay(purse, 1) && (length = getdents64(directory, entries, sizeof entries)) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; number < 0 && at < length && purse_pay(purse, 1); at += entry->d_reclen) {
			entry = (const struct dirent64 *)(entries + at);
			number = has_link(directory, entry->d_name, link) ? atoi(entry->d_name) : -1;
		}
	}
	return number;
}

int memfd_find_in(int directory, int first, const struct memfd_search *search, struct purse *purse)
{
	unsigned int most = search->files > 0 ? search->files : MEMFD_FILES;
	int file = -1, failure = 0, number = memfd_next(directory, first, search->link, purse);

	for (; number >= 0 && file < 0 && most > 0 && purse_pay(purse, LOOKS_OF_FILE); most--) {
		errno = 0;
		file = memfd_open(directory, number);
		failure = errno != 0 ? errno : failure;
		if (file >= 0 && !search->is_sought(file, number, search->context)) {
			close(file);
			file = -1;
		}
		if (file < 0)
			number = memfd_next(directory, number + 1, search->link, purse);
	}
	errno = failure;
	return file;
}

int memfd_find_of(pid_t pid, const struct memfd_search *search, struct purse *purse)
{
	int directory = proc_open(pid, "fd", O_RDONLY | O_DIRECTORY), file = -1;

	if (directory >= 0) {
		file = memfd_find_in(directory, search->lowest_of ? search->lowest_of(pid) : 0, search, purse);
		close(directory);
	}
	return file;
}

int memfd_find_among(const struct pids *pids, const struct memfd_search *search, struct purse *purse)
{
	struct purse own = {.wait_ms = 0}, *payer = purse ? purse : &own;
	int file = -1;

	for (size_t i = 0; i < pids->count && file < 0; i++) {
		pid_t pid = pids->list[i];
		bool is_meant = !search->is_meant || search->is_meant(pid);

		if (is_meant && (purse || purse_begin(&own, pid)) && purse_pay(payer, LOOKS_OF_PROCESS))
			file = memfd_find_of(pid, search, payer);
	}
	return file;
}

int memfd_find_anywhere(const struct memfd_search *search, struct purse *purse)
{
	struct pids all;
	int file = -1;

	if (pids_all(&all, NULL) == 0) {
		file = memfd_find_among(&all, search, purse);
		free(all.list);
	}
	return file;
}
