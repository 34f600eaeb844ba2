/* The version, said once: the command, the man page and the library take it from here. */
#ifndef NVTASKSET_VERSION_H
#define NVTASKSET_VERSION_H

#define NVTASKSET_VERSION "0.1.0"

#endif
