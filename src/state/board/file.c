/* A board's file: making it, and what makes a file one. */
#include "layout.h"

#include "base/shared_file.h"
#include "state/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_WORDS 3 /* magic, version, size */
#define SEALS_AGAINST_WRITING (F_SEAL_WRITE | 0x0010 /* F_SEAL_FUTURE_WRITE, Linux 5.1 */)

/* --- which ones --------------------------------------------------------------------------------------------------- */

bool board_rank_is_before(struct board_rank a, struct board_rank b)
{
	return a.inode < b.inode;
}

static bool has_header(int file)
{
	uint64_t header[HEADER_WORDS];

	return pread(file, header, sizeof header, 0) == sizeof header && header[0] == BOARD_MAGIC &&
	       header[1] == BOARD_VERSION && header[2] == sizeof(struct board_memory);
}

bool board_file_check(int file, struct board_rank *rank)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	if (seals < 0 || fstat(file, &status) < 0)
		return false;
	*rank = (struct board_rank){.inode = status.st_ino};
	return (seals & BOARD_SEALS) == BOARD_SEALS && (seals & SEALS_AGAINST_WRITING) == 0 &&
	       status.st_size == (off_t)sizeof(struct board_memory) && (status.st_mode & ALLPERMS) == BOARD_MODE &&
	       status.st_uid == geteuid() && has_header(file);
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static struct board_memory *map(int file)
{
	void *memory = mmap(NULL, sizeof(struct board_memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

bool board_file_open(struct board_file *opened, int file)
{
	struct board_rank rank;
	struct board_memory *memory = board_file_check(file, &rank) ? map(file) : NULL;

	if (memory)
		*opened = (struct board_file){.memory = memory, .number = handle_move_up(file), .rank = rank};
	else
		close(file);
	return memory != NULL;
}

/* The magic comes last: without it, this is no board yet. */
static bool fill(int file)
{
	struct board_memory *memory = map(file);

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

static bool is_sealed(int file)
{
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & BOARD_SEALS) == BOARD_SEALS;
}

/* Whether the descriptor still is what it was: the program may have closed it, and have opened something else. Only memfds
 * are sealed so. Also where statx is not permitted, as in some containers. */
static bool has_descriptor(const struct board_file *board)
{
	return is_sealed(board->number) && handle_leads_to(board->number, board->rank.inode, sizeof *board->memory);
}

bool board_file_is_kept(const struct board_file *board)
{
	struct board_rank rank;

	return has_descriptor(board) && board_file_check(board->number, &rank);
}

/* Forgets it first: a fork in the middle must not leave the child memory that is gone. */
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
