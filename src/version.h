/* The version, said once: the command, the man page and the library take it from here. */
#pragma once

#define NVTASKSET_VERSION "0.1.0"
