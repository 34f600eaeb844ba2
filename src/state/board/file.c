/* A board's file: making, checking and finding. */
#include "layout.h"

#include "base/purse.h"
#include "base/shared_file.h"
#include "state/handle.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_WORDS 3 /* magic, version, size */
#define SEALS_AGAINST_WRITING (F_SEAL_WRITE | 0x0010 /* F_SEAL_FUTURE_WRITE, Linux 5.1 */)

/* --- checking ----------------------------------------------------------------------------------------------------- */

static bool has_header(int file)
{
	uint64_t header[HEADER_WORDS];

	return pread(file, header, sizeof header, 0) == sizeof header && header[0] == BOARD_MAGIC &&
	       header[1] == BOARD_VERSION && header[2] == sizeof(struct board_memory);
}

/* The inode number of a board that this process may use and no process can make smaller; 0 for any other memfd. */
static ino_t check(int file)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	if (!shared_file_is_sealed(file) || fstat(file, &status) < 0)
		return 0;
	return (seals & SEALS_AGAINST_WRITING) == 0 &&
	               status.st_size == (off_t)sizeof(struct board_memory) &&
	               (status.st_mode & ALLPERMS) == BOARD_MODE && status.st_uid == geteuid() && has_header(file)
	               ? status.st_ino
	               : 0;
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

bool board_file_open(struct board_file *opened, int file)
{
	ino_t inode = check(file);
	struct board_memory *memory = inode != 0 ? shared_file_map(file, 0, sizeof *memory, true) : NULL;

	if (memory)
		*opened = (struct board_file){.memory = memory, .number = handle_move_up(file), .inode = inode};
	else
		close(file);
	return memory != NULL;
}

/* The magic comes last: without the magic, the file is no board yet. */
static bool fill(int file)
{
	struct board_memory *memory = shared_file_map(file, 0, sizeof *memory, true);

	if (memory) {
		atomic_store(&memory->version, BOARD_VERSION);
		atomic_store(&memory->size, sizeof *memory);
		atomic_store(&memory->magic, BOARD_MAGIC);
		munmap(memory, sizeof *memory);
	}
	return memory != NULL;
}

int board_file_make(struct board_file *made, struct error *error)
{
	int file = shared_file_make(BOARD_NAME, sizeof(struct board_memory), error);

	if (file < 0)
		return -1;
	if (fchmod(file, BOARD_MODE) < 0 || !fill(file)) {
		error_set_errno(error, "shared memory cannot be set up");
		close(file);
		return -1;
	}
	return board_file_open(made, file) ? 0 : error_set(error, "shared memory cannot be mapped");
}

/* Whether the descriptor still leads to the board: the program may have closed the descriptor, and opened another file
 * under the number. Only memfds have the seals. Also where statx is not permitted, as in some containers. */
static bool has_descriptor(const struct board_file *board)
{
	return shared_file_is_sealed(board->number) &&
	       handle_leads_to(board->number, board->inode, sizeof *board->memory);
}

bool board_file_is_kept(const struct board_file *board)
{
	return has_descriptor(board) && check(board->number) != 0;
}

/* Forgets the board first: a fork in the middle must not leave the child a pointer to unmapped memory. */
void board_file_close(struct board_file *board)
{
	struct board_file closed = *board;

	*board = (struct board_file){.memory = NULL};
	if (closed.memory) {
		munmap(closed.memory, sizeof *closed.memory);
		if (has_descriptor(&closed))
			close(closed.number);
	}
}

/* --- finding a board ------------------------------------------------------------------------------------------------
 * Through the descriptors of processes. The processes may be hostile: no open file of a process makes the search wait,
 * and each part of the search is short, for any number of descriptors. */

/* Limits of a part of the search: processes, and looks at descriptors. A process with LOOKS descriptors or more before
 * the board is not found. */
#define PROCESSES 16
#define LOOKS 4224

/* A process has one board, perhaps another inherited from the parent, and two on the way from board to board. */
#define BOARDS_OF_ONE 4

/* Whether the file is a board with an inode number lower than `before`; 0: any board. */
static bool is_sought(int file, int number, void *before)
{
	ino_t found = check(file), limit = *(const ino_t *)before;

	(void)number;
	return found != 0 && (limit == 0 || found < limit);
}

/* The next entries; 0 at the end. */
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

/* The kernel's positions in /proc stay valid while processes come and go. */
int board_search_on(struct board_search *search, ino_t before)
{
	_Alignas(struct dirent64) char entries[4096];
	ssize_t length = list(search, entries, sizeof entries);
	const struct memfd_search boards = {
		.link = BOARD_LINK,
		.lowest_of = handle_lowest_of,
		.files = BOARDS_OF_ONE,
		.is_sought = is_sought,
		.context = &before,
	};
	unsigned int processes = 0, looked = 0;
	const struct dirent64 *entry;
	ssize_t at = 0;
	int file = -1;

	if (length == 0)
		search->position = 0;
	while (at < length && file < 0 && processes < PROCESSES && looked < LOOKS) {
		entry = (const struct dirent64 *)(entries + at);
		at += entry->d_reclen;
		search->position = entry->d_off;
		if (isdigit((unsigned char)entry->d_name[0])) {
			struct purse purse = {.left = LOOKS};

			file = memfd_find_of((pid_t)strtol(entry->d_name, NULL, 10), &boards, &purse);
			looked += LOOKS - purse.left;
			processes++;
		}
	}
	return file;
}
