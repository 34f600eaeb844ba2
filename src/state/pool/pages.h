/*
 * The memory of a pool's files, in a program.
 *
 * A hostile program of the group can make the file of a page shorter at any time, and a load from the mapping would end
 * the reader (SIGBUS). So no program loads from or stores to a page: the kernel copies (process_vm_readv,
 * process_vm_writev on the process itself), and refuses if the page is gone. No descriptor stays open: a program may
 * close and use all descriptors. No function waits.
 */
#pragma once

#include "layout.h"

/* NULL without a list of this version. Nobody but root can make the list shorter: loads are safe. */
const struct pool_memory *pool_map_list(const char *directory);

/* NULL for a shorter file, or under a lease. Fills in the inode number of the file. */
void *pool_map(const char *path, size_t size, bool to_write, uint64_t *inode);

/* NULL: no effect. A second thread may fork at any time, and the child unmaps the memory that a pointer still names:
 * the caller clears the pointer first. */
void pool_unmap(const void *memory, size_t size);

/* Copies pages, all in one call as long as no page is gone, and says which pages were copied. */
void pool_copy_pages(struct pool_page to[], const struct pool_page *const pages[], bool are_copied[],
                     unsigned int count);

/* False if the page is gone. */
bool pool_write_slot(struct pool_page *page, int place, const struct pool_slot *slot);
