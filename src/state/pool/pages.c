#include "pages.h"

#include "base/shared_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* No open waits for a lease of a hostile program. */
#define OPEN_FLAGS (O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)

void *pool_map(const char *path, size_t size, bool to_write, uint64_t *inode)
{
	struct stat status = {.st_size = 0};
	int file = open(path, (to_write ? O_RDWR : O_RDONLY) | OPEN_FLAGS);
	void *memory = NULL;

	if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= (off_t)size)
		memory = shared_file_map(file, 0, size, to_write);
	if (file >= 0)
		close(file);
	*inode = status.st_ino;
	return memory;
}

const struct pool_memory *pool_map_list(const char *directory)
{
	char path[PATH_MAX];
	uint64_t inode;
	struct pool_memory *memory = NULL;

	if (snprintf(path, sizeof path, "%s/" POOL_LIST, directory) < (int)sizeof path)
		memory = pool_map(path, sizeof *memory, false, &inode);
	if (memory && (atomic_load(&memory->magic) != POOL_MAGIC || atomic_load(&memory->version) != POOL_VERSION)) {
		munmap(memory, sizeof *memory);
		memory = NULL;
	}
	return memory;
}

void pool_unmap(const void *memory, size_t size)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (memory)
		munmap((void *)memory, size);
}

void pool_copy_pages(struct pool_page to[], const struct pool_page *const pages[], bool are_copied[],
                     unsigned int count)
{
	struct iovec there[POOL_GROUPS];

	for (unsigned int i = 0; i < count; i++)
		there[i] = (struct iovec){(void *)pages[i], POOL_PAGE};
	for (unsigned int done = 0; done < count; done++) {
		const struct iovec here = {&to[done], (count - done) * POOL_PAGE};
		ssize_t length = process_vm_readv(getpid(), &here, 1, &there[done], count - done, 0);
		unsigned int whole = length > 0 ? (unsigned int)((size_t)length / POOL_PAGE) : 0;

		for (unsigned int i = 0; i < whole; i++)
			are_copied[done + i] = true;
		done += whole;
		if (done < count)
			are_copied[done] = false;
	}
}

bool pool_write_slot(struct pool_page *page, int place, const struct pool_slot *slot)
{
	const struct iovec here = {(void *)slot, sizeof *slot}, there = {&page->slots[place], sizeof *slot};

	return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof *slot;
}
