/* The board that this process is on, where all places are taken. */
#ifndef NVTASKSET_TESTS_OWN_BOARD_H
#define NVTASKSET_TESTS_OWN_BOARD_H

#include "base/memfd_find.h"
#include "base/proc.h"
#include "cases.h"
#include "state/board/layout.h"

static inline struct board_memory *own_board_map(void)
{
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int number = memfd_next(directory, 0, BOARD_LINK, NULL);
	struct board_memory *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);

	close(directory);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* Gives all places to that process, which lives; 0: to nobody. */
static inline void own_board_fill(pid_t pid)
{
	struct board_memory *memory = own_board_map();
	char stat[PROC_STAT_TEXT] = "";

	if (pid != 0)
		proc_stat_read(pid, stat);
	for (int i = 0; i < BOARD_PLACES; i++)
		atomic_store(&memory->places[i].who, board_who((uint64_t)pid, proc_stat_field(stat, 22)));
	assert_int_equal(munmap(memory, sizeof *memory), 0);
}

#endif
