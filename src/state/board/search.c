/* Finding boards through the descriptors that processes have. These may be hostile: nothing that they have open
 * makes us wait, and whatever their number, a part of the search is short. */
#include "layout.h"

#include "state/handle.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of one part: so many processes, or until this many descriptors have been looked at. No more of any one process: it
 * is not found if it has as many. */
#define PROCESSES 16
#define DESCRIPTORS 4096

/* A process has one. It may have inherited another from its parent, and it has two while it goes from one to the
 * other. */
#define BOARDS_OF_ONE 4

struct look {
	const struct board_rank *rank;
	unsigned int boards; /* so many more of the process's */
	bool is_found;
};

/* Also ends the look at a process that has too many. */
static bool is_sought(int file, int number, void *context)
{
	struct look *look = context;
	struct board_rank found;

	(void)number;
	look->is_found = board_file_check(file, &found) && (!look->rank || board_rank_is_before(found, *look->rank));
	look->boards--;
	return look->is_found || look->boards == 0;
}

/* The kernel lets us look at processes of our user; root, at all. */
static int look_at_process(pid_t pid, const struct board_rank *rank, unsigned int *looked)
{
	unsigned int most = DESCRIPTORS;
	struct look look = {.rank = rank, .boards = BOARDS_OF_ONE};
	struct memfd_search memfds = {.most = &most, .link = BOARD_LINK, .is_sought = is_sought, .context = &look};
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	memfds.directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (memfds.directory < 0)
		return -1;
	memfds.first = handle_lowest_of(pid);
	int file = memfd_find(&memfds);

	close(memfds.directory);
	if (file >= 0 && !look.is_found) {
		close(file);
		file = -1;
	}
	*looked += DESCRIPTORS - most;
	return file;
}

/* The next entries; 0 if there are none. */
static ssize_t list(struct board_search *search, char *entries, size_t room)
{
	int directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t length = -1;

	if (directory >= 0) {
		lseek(directory, search->position, SEEK_SET);
		length = getdents64(directory, entries, room);
		close(directory);
	}
	search->is_blind = length < 0;
	return length < 0 ? 0 : length;
}

/* The kernel's positions in /proc stay what they are while processes come and go. */
int board_search_on(struct board_search *search, const struct board_rank *rank)
{
	_Alignas(struct dirent64) char entries[4096];
	ssize_t length = list(search, entries, sizeof entries);
	unsigned int processes = 0, looked = 0;
	const struct dirent64 *entry;
	ssize_t at = 0;
	int file = -1;

	if (length == 0)
		search->position = 0;
	while (at < length && file < 0 && processes < PROCESSES && looked < DESCRIPTORS) {
		entry = (const struct dirent64 *)(entries + at);
		at += entry->d_reclen;
		search->position = entry->d_off;
		if (isdigit((unsigned char)entry->d_name[0])) {
			file = look_at_process((pid_t)strtol(entry->d_name, NULL, 10), rank, &looked);
			processes++;
		}
	}
	return file;
}
