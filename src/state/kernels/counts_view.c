#include "counts_view.h"

#include "area.h"
#include "base/identity.h"
#include "counts_layout.h"
#include "state/segment/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOT_MAPPED UINT64_MAX /* no file has this inode number */

#define KEPT_MAX 64

/* Mappings that other threads may still use. */
static struct kept {
	const void *memory;
	size_t size;
} kept[KEPT_MAX];
static unsigned int kept_count;
static bool keeps;

static void unmap(const void *memory, size_t size)
{
	if (!memory)
		return;
	if (!keeps)
		munmap((void *)memory, size);
	else if (kept_count < KEPT_MAX)
		kept[kept_count++] = (struct kept){memory, size};
}

void counts_views_keep(void)
{
	keeps = true;
}

void counts_views_release(void)
{
	while (kept_count > 0) {
		kept_count--;
		munmap((void *)kept[kept_count].memory, kept[kept_count].size);
	}
}

static int open_descriptors(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* An area that this process's own limits kept from being mapped is a gap, and is news again at the next look. */
static void map_area(struct counts_view_area *area, int directory, const struct segment_area *named)
{
	uint64_t inode = atomic_load_explicit(&named->inode, memory_order_acquire);

	unmap(area->memory, sizeof *area->memory);
	area->memory = NULL;
	if (inode != 0 && directory >= 0)
		area->memory = area_map(directory, atomic_load(&named->file), inode, sizeof *area->memory);
	bool is_limited = inode != 0 && !area->memory && (directory < 0 || area_is_limit(errno));

	area->inode = is_limited ? NOT_MAPPED : inode;
}

static bool is_news(const struct counts_view *view, int place)
{
	return view->areas[place].inode != atomic_load_explicit(&view->segment->areas[place].inode, memory_order_acquire);
}

void counts_view_follow(struct counts_view *view)
{
	int saved = errno, directory = -1;

	for (int i = 0; view->segment && i < SEGMENT_AREAS; i++) {
		if (is_news(view, i)) {
			directory = directory < 0 ? open_descriptors(view->pid) : directory;
			map_area(&view->areas[i], directory, &view->segment->areas[i]);
		}
	}
	if (directory >= 0)
		close(directory);
	errno = saved;
}

/* One that was moved is not what its owner's claim names for long. */
static bool is_segment(const struct segment_memory *memory)
{
	return atomic_load_explicit(&memory->magic, memory_order_acquire) == SEGMENT_MAGIC &&
	       memory->version == SEGMENT_VERSION && memory->size == sizeof *memory;
}

static const struct segment_memory *map_segment(int directory, uint64_t descriptor, uint64_t inode)
{
	const struct segment_memory *memory = area_map(directory, descriptor, inode, sizeof *memory);

	if (memory && !is_segment(memory)) {
		unmap(memory, sizeof *memory);
		memory = NULL;
	}
	return memory;
}

bool counts_view_open(struct counts_view *view, pid_t pid, uint64_t descriptor, uint64_t inode)
{
	int saved = errno, directory = open_descriptors(pid);

	*view = (struct counts_view){.pid = pid};
	if (directory >= 0) {
		view->segment = map_segment(directory, descriptor, inode);
		close(directory);
	}
	counts_view_follow(view);
	errno = saved;
	return view->segment != NULL;
}

void counts_view_close(struct counts_view *view)
{
	for (int i = 0; i < SEGMENT_AREAS; i++)
		unmap(view->areas[i].memory, sizeof *view->areas[i].memory);
	unmap(view->segment, sizeof *view->segment);
	*view = (struct counts_view){.segment = NULL};
}

bool counts_view_is_current(const struct counts_view *view)
{
	int saved = errno;

	errno = 0;
	uint64_t execution = view->segment ? execution_of(view->pid) : 0;
	bool is_limited = view->segment && execution == 0 && area_is_limit(errno);

	errno = saved;
	return is_limited || (execution != 0 && execution == atomic_load(&view->segment->execution));
}

struct counts_of_gpu counts_view_read(const struct counts_view *view, struct pci_address pci)
{
	const struct counts_memory *areas[SEGMENT_AREAS];
	unsigned int count = 0;

	for (int i = 0; i < SEGMENT_AREAS; i++) {
		if (view->areas[i].inode != 0)
			areas[count++] = view->areas[i].memory;
	}
	return counts_sum_on(areas, count, atomic_load_explicit(&view->segment->gaps, memory_order_acquire), pci);
}

unsigned int counts_view_places(const struct counts_view *view, struct pci_address pci, const struct counts_place *places[],
                                unsigned int room)
{
	unsigned int count = 0;

	for (int i = 0; i < SEGMENT_AREAS; i++)
		count = counts_places_on(view->areas[i].memory, pci, places, room, count);
	return count;
}

const _Atomic uint64_t *counts_view_number(const struct counts_view *view)
{
	return &view->segment->contexts;
}

bool counts_view_has_gap(const struct counts_view *view)
{
	return atomic_load_explicit(&view->segment->gaps, memory_order_acquire) != 0;
}
