/* The file that `nvtaskset system enable` writes. With the file, ld.so finds our library without LD_LIBRARY_PATH. */
#ifndef NVTASKSET_START_CONFIGURATION_H
#define NVTASKSET_START_CONFIGURATION_H

/* ldconfig reads files in the order of their names. The order depends on the locale: whether the locale ignores hyphens
 * or not, the name of our file comes first, also before 00-nvcr of NVIDIA's containers. */
#define CONFIGURATION "/etc/ld.so.conf.d/00-000-nvtaskset.conf"

#endif
