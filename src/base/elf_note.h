/*
 * An ELF note that distinguishes our library from the driver's, which has the same name. Linkers put notes on a
 * file's first page.
 */
#ifndef NVTASKSET_BASE_ELF_NOTE_H
#define NVTASKSET_BASE_ELF_NOTE_H

#include <stdint.h>

#define ELF_NOTE_WITHIN 4096 /* it lies within so many bytes of the file's beginning */

/* elf(5): an Elf64_Nhdr and the name, without content. */
struct elf_note {
	uint32_t name_size;
	uint32_t content_size;
	uint32_t type;
	char name[12];
};

#define ELF_NOTE ((struct elf_note){.name_size = sizeof "nvtaskset", .type = 1, .name = "nvtaskset"})

#endif
