/* Memory of another process's that its segment names: an area of counts.h or stamps.h. */
#ifndef NVTASKSET_STATE_KERNELS_AREA_H
#define NVTASKSET_STATE_KERNELS_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps it for reading. `directory` is the process's /proc/PID/fd, `number` its descriptor. NULL if that is not a memfd with
 * this inode number and size that nobody can cut; errno then tells of a limit only if there was one. The process may be
 * hostile. The caller unmaps it. */
const void *area_map(int directory, uint64_t number, uint64_t inode, size_t size);

/* The same, in the place of what is mapped there; NULL: anywhere. */
const void *area_map_at(int directory, uint64_t number, uint64_t inode, size_t size, void *at);

/* Whether this errno is a limit of the reader's own: it says nothing about the process. */
bool area_is_limit(int code);

#endif
