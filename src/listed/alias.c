/*
 * libcuda.so, the driver's other name, in the dynamic linker's cache after nvtaskset system enable. The file has the
 * driver's functions, and depends on libcuda.so.1: our library there, and the driver in a container with a copy of the
 * file.
 */
#include "base/driver_names.h"
#include "names/names.h"

static const struct elf_note note __attribute__((section(".note.nvtaskset"), aligned(4), used)) = ELF_NOTE;

const char names_library[] = DRIVER_NAME;

__attribute__((constructor)) static void start(void)
{
	names_open();
}
