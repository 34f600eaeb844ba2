#include "area.h"

#include "base/memfd_find.h"
#include "base/shared_file.h"
#include "state/handle.h"
#include "state/segment/layout.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the owner's side ------------------------------------------------------------------------------------------- */

int area_make(struct area *area, const struct area_kind *kind, uint64_t reach, struct error *error)
{
	struct stat status;
	int file = shared_file_make(kind->name, kind->size, error);

	if (file < 0)
		return -1;
	file = handle_move_up(file);
	*area = (struct area){.memory = shared_file_map_low(file, kind->size, reach), .file = file};
	if (!area->memory || fstat(file, &status) < 0) {
		error_set_errno(error, "%s: shared memory cannot be mapped", kind->name);
		if (area->memory)
			munmap(area->memory, kind->size);
		close(file);
		*area = (struct area){.memory = NULL};
		return -1;
	}
	area->inode = status.st_ino;
	area->memory->version = kind->version;
	area->memory->size = kind->size;
	atomic_store_explicit(&area->memory->magic, kind->magic, memory_order_release);
	return 0;
}

void area_name(const struct area *area, struct segment_area *here)
{
	atomic_store_explicit(&here->file, (uint64_t)area->file, memory_order_relaxed);
	atomic_store_explicit(&here->inode, area->inode, memory_order_release);
}

bool area_is_open(const struct area *area, const struct area_kind *kind)
{
	return area->memory && handle_leads_to(area->file, area->inode, kind->size);
}

void area_leave(struct area *area, const struct area_kind *kind)
{
	if (area_is_open(area, kind))
		close(area->file);
	*area = (struct area){.memory = NULL};
}

/* --- the reader's side -------------------------------------------------------------------------------------------- */

static bool is_sound(int file, uint64_t inode, size_t size)
{
	struct stat status;

	return shared_file_is_sealed(file) && fstat(file, &status) == 0 && status.st_ino == inode &&
	       status.st_size == (off_t)size;
}

const void *area_map_at(int directory, uint64_t number, uint64_t inode, size_t size, void *at)
{
	void *memory = MAP_FAILED;

	errno = 0;
	int file = number <= INT32_MAX ? memfd_open(directory, (int)number) : -1;

	if (file >= 0 && is_sound(file, inode, size))
		memory = mmap(at, size, PROT_READ, MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
	if (file >= 0)
		close(file);
	return memory == MAP_FAILED ? NULL : memory;
}

const void *area_map(int directory, uint64_t number, uint64_t inode, size_t size)
{
	return area_map_at(directory, number, inode, size, NULL);
}

bool area_is(const void *memory, const struct area_kind *kind)
{
	const struct area_header *header = memory;

	return header && atomic_load_explicit(&header->magic, memory_order_acquire) == kind->magic &&
	       header->version == kind->version && header->size == kind->size;
}
