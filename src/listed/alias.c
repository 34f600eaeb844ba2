/*
 * libcuda.so, the driver's other name, as the dynamic linker's cache leads to it after nvtaskset system enable. It has
 * the driver's functions, and depends on libcuda.so.1. There the dynamic linker finds our library; and the driver in
 * a container with a copy of this file.
 */
#include "base/driver_names.h"
#include "names/names.h"

static const struct elf_note note __attribute__((section(".note.nvtaskset"), aligned(4), used)) = ELF_NOTE;

const char names_library[] = DRIVER_NAME;

__attribute__((constructor)) static void start(void)
{
	names_open();
}
