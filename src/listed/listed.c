/*
 * libcuda.so.01 in the dynamic linker's cache after nvtaskset system enable: our library, with a second name for the
 * driver. In a container with a copy of the library, another file has the second name (system.c).
 */
#include "base/driver_names.h"
#include "names/names.h"

const char names_library[] = DRIVER_LISTED_LINK;
