/*
 * The file in the dynamic linker's configuration that names our library's directory: `nvtaskset system enable` writes
 * the file on the host, and the hook in an image. With the file, ld.so finds our library without LD_LIBRARY_PATH.
 */
#ifndef NVTASKSET_START_CONFIGURATION_H
#define NVTASKSET_START_CONFIGURATION_H

#define CONFIGURATION_DIRECTORY "/etc/ld.so.conf.d"

/* ldconfig reads files in the order of their names. The order depends on the locale: whether the locale ignores hyphens
 * or not, the name of our file comes first, also before 00-nvcr of NVIDIA's containers. */
#define CONFIGURATION_NAME "00-000-nvtaskset.conf"
#define CONFIGURATION CONFIGURATION_DIRECTORY "/" CONFIGURATION_NAME

#endif
