/*
 * The file in the dynamic linker's configuration that names our library's directory: `nvtaskset system enable` writes
 * the file on the host, and the hook in an image. With the file, ld.so finds our library without LD_LIBRARY_PATH.
 */
#pragma once

#define CONFIGURATION_DIRECTORY "/etc/ld.so.conf.d"

/* ldconfig reads files in the order of their names, which depends on the locale. The name of our file comes first in
 * locales with and without hyphens, also before 00-nvcr of NVIDIA's containers. */
#define CONFIGURATION_NAME "00-000-nvtaskset.conf"
#define CONFIGURATION CONFIGURATION_DIRECTORY "/" CONFIGURATION_NAME
