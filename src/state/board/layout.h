/*
 * The memory of a board, as all who take part map it, and the file that it lies in. Any word of it may be nonsense at
 * any time: other programs of the user write it.
 */
#ifndef NVTASKSET_STATE_BOARD_LAYOUT_H
#define NVTASKSET_STATE_BOARD_LAYOUT_H

#include "base/memfd_find.h"
#include "board.h"

#include <stdatomic.h>
#include <stddef.h>

#define BOARD_NAME "nvtaskset-board"
#define BOARD_LINK MEMFD_LINK(BOARD_NAME)
#define BOARD_MAGIC UINT64_C(0x6472616f62766e01) /* not text */
#define BOARD_VERSION 5
#define BOARD_MODE 0600

/* --- places ------------------------------------------------------------------------------------------------------- */

/* Who has a place, as words: pid and start time (in clock ticks since the machine started) are one, so that a place
 * is taken at once. */
struct board_owner {
	uint64_t who;       /* 0: nobody */
	uint64_t namespace; /* of PIDs; 0: unknown */
};

#define BOARD_PID_BITS 22 /* the kernel's largest number is 2^22 */

static inline uint64_t board_who(uint64_t pid, uint64_t start)
{
	return start << BOARD_PID_BITS | pid;
}

/* A claim, and whose it is. */
struct board_entry {
	struct board_owner owner;
	struct board_claim claim;
};

#define BOARD_WORDS (sizeof(struct board_entry) / sizeof(uint64_t))

/* Two versions, of which number % 2 is in force (base/ring.h): one whose writer dies or waits for a CPU in the
 * middle leaves the one before. A version counts only if it is by the place's owner. */
#define BOARD_VERSIONS 2

struct board_place {
	_Alignas(64) _Atomic uint64_t who; /* 0: free */
	_Atomic uint64_t number;
	_Atomic uint64_t versions[BOARD_VERSIONS][BOARD_WORDS];
};

/* Copies what the owner claims. False if that changes all the time, or is by nobody who has the place. `entry` may be
 * nonsense unless board_place_is_sound. */
bool board_place_read(const struct board_place *place, struct board_entry *entry);

/* Whether its numbers are in range. */
bool board_place_is_sound(const struct board_claim *claim);

void board_place_write(struct board_place *place, struct board_owner owner, const struct board_claim *claim);

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* 8-byte words in the machine's byte order. */
struct board_memory {
	_Atomic uint64_t magic; /* written last */
	_Atomic uint64_t version;
	_Atomic uint64_t size;
	_Alignas(64) _Atomic uint64_t used[BOARD_PLACES / 64]; /* a bit for each place to look at */
	struct board_place places[BOARD_PLACES];
};

_Static_assert(sizeof(struct board_entry) == BOARD_WORDS * sizeof(uint64_t), "whole words");
_Static_assert(sizeof(struct board_place) == 256, "shared layout");
_Static_assert(offsetof(struct board_memory, places) == 128, "shared layout");

/* --- files -------------------------------------------------------------------------------------------------------- */

struct board_file {
	struct board_memory *memory; /* NULL: none */
	int number;                  /* of the descriptor by which others find it */
	ino_t inode;                 /* of boards, that with the lowest comes first */
};

/* Makes one, findable for others. -1 with the reason. */
int board_file_make(struct board_file *made, struct error *error);

/* The inode number if it is a board on which this process may be, and nobody can make it smaller; otherwise 0. `file` is a memfd. */
ino_t board_file_check(int file);

/* Maps it, and takes the descriptor over in any case. */
bool board_file_open(struct board_file *opened, int file);

/* Whether others can find it through this process, and it still is a board for this process. */
bool board_file_is_kept(const struct board_file *board);

/* Its descriptor, too, if the program has not closed it. */
void board_file_close(struct board_file *board);

/* --- finding it --------------------------------------------------------------------------------------------------- */

/* A search through all processes, in parts. */
struct board_search {
	off_t position; /* in /proc; 0: none has begun */
	bool is_blind;  /* there is no /proc */
};

/* Looks at some more processes, until it finds a board with a lower inode number than this (0: any); returns its file, or -1.
 * The search has looked at all when its position is 0 again. */
int board_search_on(struct board_search *search, ino_t before);

#endif
