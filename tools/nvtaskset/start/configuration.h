/* The file that `nvtaskset system enable` writes: where it is, ld.so finds our library without LD_LIBRARY_PATH. */
#ifndef NVTASKSET_START_CONFIGURATION_H
#define NVTASKSET_START_CONFIGURATION_H

/* ldconfig reads files in the order of their names, which depends on the locale. This name comes first, also before
 * 00-nvcr of NVIDIA's containers, whether the locale ignores hyphens or not. */
#define CONFIGURATION "/etc/ld.so.conf.d/00-000-nvtaskset.conf"

#endif
