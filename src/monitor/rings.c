#include "base/clock.h"
#include "parts.h"
#include "state/kernels/area.h"
#include "state/segment/edit.h"
#include "state/segment/layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t look_now(const struct look *look)
{
	return process_clock_ns() + (uint64_t)look->clock_offset;
}

/* NULL if there is no memory, or no room, as only a hostile process needs. */
struct watched_gpu *look_gpu_for(struct look *look, struct pci_address pci)
{
	struct watched_gpu *found = NULL;

	for (unsigned int i = 0; i < look->gpu_count && !found; i++)
		found = pci_address_equal(look->gpus[i]->taken.pci, pci) ? look->gpus[i] : NULL;
	if (!found && look->gpu_count < LOOK_GPUS && look_take_memory(look, sizeof *found)) {
		found = calloc(1, sizeof *found);
		if (found) {
			found->taken.pci = pci;
			times_open(&found->times, &times_usual, look->began);
			if (pci_address_is_known(pci))
				times_share(&found->times, shared_clock_join(pci, look->user), (uint64_t)look->clock_offset);
			look->gpus[look->gpu_count++] = found;
		}
	}
	return found;
}

static void free_ring(struct look *look, struct watched_ring *ring)
{
	for (unsigned int i = 0; ring && i < ring->graph_count; i++)
		free(ring->graphs[i]);
	if (ring) {
		ring->gpu->graphs -= ring->graph_count;
		look_return_memory(look, sizeof *ring + ring->graph_count * sizeof *ring->graphs[0]);
		look->ring_count--;
	}
	free(ring);
}

void look_rings_leave(struct look *look, unsigned int number)
{
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		free_ring(look, look->areas[number].rings[i]);
		look->areas[number].rings[i] = NULL;
	}
	if (look->areas[number].memory)
		munmap((void *)look->areas[number].memory, sizeof *look->areas[number].memory);
	look->areas[number].memory = NULL;
	look->areas[number].inode = 0;
}

/* After an exec, the areas are others. */
static void find_area(struct look *look, int directory, unsigned int number)
{
	const struct segment_area *area = &look->editor.segment.memory->timestamps[number];
	uint64_t inode = atomic_load_explicit(&area->inode, memory_order_acquire);

	if (inode != look->areas[number].inode) {
		look_rings_leave(look, number);
		look->areas[number].inode = inode;
		if (inode != 0)
			look->areas[number].memory = area_map(directory, atomic_load(&area->file), inode,
			                                      sizeof *look->areas[number].memory);
	}
	if (inode != 0 && !area_is(look->areas[number].memory, &area_of_timestamps))
		look->gaps |= LOOK_BIT(LOOK_CLOSED);
}

static void find_areas(struct look *look)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)look->editor.pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		find_area(look, directory, i);
	if (directory >= 0)
		close(directory);
}

/* A ring that was not there when we began to look is read from its first launch on. */
static struct watched_ring *open_ring(struct look *look, const struct timestamps *timestamps, bool is_first)
{
	struct watched_gpu *gpu = look->ring_count < LOOK_RINGS_MOST ? look_gpu_for(look, timestamps->pci) : NULL;
	struct watched_ring *ring = gpu && look_take_memory(look, sizeof *ring) ? calloc(1, sizeof *ring) : NULL;

	if (ring) {
		look->ring_count++;
		ring->gpu = gpu;
		ring->reader.ring = timestamps;
		if (is_first)
			timestamps_reader_begin(&ring->reader, timestamps);
	}
	return ring;
}

static uint32_t gaps_of_ring(const struct timestamps *timestamps)
{
	uint64_t gaps = atomic_load(&timestamps->gaps);

	return (gaps >> TIMESTAMPS_NO_SLOTS & 1 ? LOOK_BIT(LOOK_NO_SLOTS) : 0) |
	       (gaps >> TIMESTAMPS_REFUSED & 1 ? LOOK_BIT(LOOK_REFUSED) : 0) |
	       (gaps >> TIMESTAMPS_SLOT_USED & 1 ? LOOK_BIT(LOOK_PROFILER) : 0);
}

static void set_shared(struct watched_gpu *gpu, bool is_shared_by_mps)
{
	gpu->times.calibration = is_shared_by_mps ? times_under_mps : times_usual;
	gpu->taken.is_presence |= !is_shared_by_mps;
}

static void find_rings(struct look *look, unsigned int number, bool is_first)
{
	const struct timestamps_memory *memory = look->areas[number].memory;

	for (unsigned int i = 0; area_is(memory, &area_of_timestamps) && i < COUNTS_PLACES; i++) {
		struct watched_ring **ring = &look->areas[number].rings[i];

		if (!*ring && atomic_load(&memory->rings[i].magic) == TIMESTAMPS_MAGIC)
			*ring = open_ring(look, &memory->rings[i], is_first);
		if (*ring) {
			(*ring)->gpu->has_ring = true;
			(*ring)->gpu->taken.gaps |= gaps_of_ring(&memory->rings[i]);
			set_shared((*ring)->gpu, atomic_load(&memory->rings[i].is_shared_by_mps));
		}
	}
}

void look_rings_find(struct look *look, bool is_first)
{
	find_areas(look);
	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		find_rings(look, i, is_first);
}

void look_rings_each(struct look *look, look_ring_action *act)
{
	for (unsigned int area = 0; area < SEGMENT_AREAS; area++) {
		for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
			if (look->areas[area].rings[i])
				act(look, look->areas[area].rings[i]);
		}
	}
}
