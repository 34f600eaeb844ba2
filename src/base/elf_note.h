/*
 * What tells our library from the driver's, whose name it bears: an ELF note, which linkers put on a file's first page.
 */
#ifndef NVTASKSET_MARK_H
#define NVTASKSET_MARK_H

#include <stdint.h>

#define MARK_WITHIN 4096 /* bytes of the file's beginning */

/* elf(5), Elf64_Nhdr and the name; nothing more. */
struct mark {
	uint32_t name_size;
	uint32_t content_size;
	uint32_t type;
	char name[12];
};

#define MARK ((struct mark){.name_size = sizeof "nvtaskset", .type = 1, .name = "nvtaskset"})

#endif
