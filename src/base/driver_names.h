/* The names by which programs load the driver library, and our library in front of the driver. */
#pragma once

#include <stdint.h>

#define DRIVER_NAME "libcuda.so.1"
#define DRIVER_OTHER_NAME "libcuda.so"         /* some programs try this name first */
#define DRIVER_LINK "libnvtaskset-driver.so.1" /* our library depends on the driver by this link */

/* After `nvtaskset system enable`, the linker's cache has two more names (tools/nvtaskset/system/system.c). */
#define OUR_LISTED_NAME "libcuda.so.01"           /* our library */
#define DRIVER_LISTED_LINK "libcuda.so.nvtaskset" /* the driver, as our library loads it */

/* An ELF note tells our library from the driver's of the same name. Linkers put notes on a file's first page. */
#define ELF_NOTE_WITHIN 4096 /* bytes at the beginning of a file, with the note */

/* elf(5): an Elf64_Nhdr and the name, without content. */
struct elf_note {
	uint32_t name_size;
	uint32_t content_size;
	uint32_t type;
	char name[12];
};

#define ELF_NOTE ((struct elf_note){.name_size = sizeof "nvtaskset", .type = 1, .name = "nvtaskset"})
