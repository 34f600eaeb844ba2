/*
 * libcuda.so.01, as the dynamic linker's cache leads to it after nvtaskset system enable: our library with this name
 * for the driver that it depends on. In a container with a copy of the library, another file has that name (system.c).
 */
#include "base/driver_names.h"
#include "names/names.h"

const char names_library[] = DRIVER_LISTED_LINK;
