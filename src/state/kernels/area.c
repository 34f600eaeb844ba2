#include "area.h"

#include "base/memfd_find.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_area(int file, uint64_t inode, size_t size)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW) &&
	       fstat(file, &status) == 0 && status.st_ino == inode && status.st_size == (off_t)size;
}

const void *area_map_at(int directory, uint64_t number, uint64_t inode, size_t size, void *at)
{
	void *memory = MAP_FAILED;

	errno = 0;
	int file = number <= INT32_MAX ? memfd_open(directory, (int)number) : -1;

	if (file >= 0 && is_area(file, inode, size))
		memory = mmap(at, size, PROT_READ, MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
	if (file >= 0)
		close(file);
	return memory == MAP_FAILED ? NULL : memory;
}

const void *area_map(int directory, uint64_t number, uint64_t inode, size_t size)
{
	return area_map_at(directory, number, inode, size, NULL);
}

bool area_is_limit(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM;
}
