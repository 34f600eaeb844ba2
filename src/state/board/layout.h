/*
 * The memory of a board as all members map the board, and the file of the memory. Any word of the memory may be
 * nonsense at any time: all programs of the user can write there.
 */
#pragma once

#include "base/memfd_find.h"
#include "board.h"

#include <stdatomic.h>

#define BOARD_NAME "nvtaskset-board"
#define BOARD_LINK MEMFD_LINK(BOARD_NAME)
#define BOARD_MAGIC UINT64_C(0x6472616f62766e01) /* not text */
#define BOARD_VERSION 5
#define BOARD_MODE 0600

/* --- places ------------------------------------------------------------------------------------------------------- */

/* The owner of a place. pid and start time (clock ticks since the machine started) share a word: taken in one step. */
struct board_owner {
	uint64_t who;       /* 0: the place is free */
	uint64_t namespace; /* of PIDs; 0: unknown */
};

#define BOARD_PID_BITS 22 /* the kernel's largest number is 2^22 */

static inline uint64_t board_who(uint64_t pid, uint64_t start)
{
	return start << BOARD_PID_BITS | pid;
}

/* A claim and the claim's owner. */
struct board_entry {
	struct board_owner owner;
	struct board_claim claim;
};

#define BOARD_WORDS (sizeof(struct board_entry) / sizeof(uint64_t))

/* A place has two versions of an entry; the version `number % 2` is in force (base/ring.h). A writer that dies or waits
 * for a CPU in the middle leaves the version before. A version counts only if the owner of the place wrote the
 * version. */
#define BOARD_VERSIONS 2

struct board_place {
	_Alignas(64) _Atomic uint64_t who; /* 0: free */
	_Atomic uint64_t number;
	_Atomic uint64_t versions[BOARD_VERSIONS][BOARD_WORDS];
};

/* Copies the owner's claim. False if the claim changes all the time, or the writer does not own the place. `entry` may
 * be nonsense unless board_place_is_sound. */
bool board_place_read(const struct board_place *place, struct board_entry *entry);

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
	int number;                  /* of the descriptor by which other processes find the board */
	ino_t inode;                 /* the board with the lowest number comes first */
};

/* Makes a board that other processes can find. -1 with the reason. */
int board_file_make(struct board_file *made, struct error *error);

/* Maps the board, and takes the descriptor over in any case. */
bool board_file_open(struct board_file *opened, int file);

/* Whether other processes can find the board through this process, and the file still is a board for this process. */
bool board_file_is_kept(const struct board_file *board);

/* Unmaps the board, and closes the descriptor unless the program has done so. */
void board_file_close(struct board_file *board);

/* --- finding a board ---------------------------------------------------------------------------------------------- */

/* A search through all processes, in parts. */
struct board_search {
	off_t position; /* in /proc; 0: none has begun */
	bool is_blind;  /* there is no /proc */
};

/* Looks at some more processes, until a board is found with an inode number lower than `before` (0: any board). Returns
 * the file of the board, or -1. The search has looked at all processes when `position` is 0 again. */
int board_search_on(struct board_search *search, ino_t before);
