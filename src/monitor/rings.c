#include "base/proc.h"
#include "parts.h"
#include "state/kernels/area.h"
#include "state/segment/edit.h"
#include "state/segment/layout.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* NULL if there is no memory, or no room, as only a hostile process needs. */
struct watched_gpu *monitor_gpu_for(struct monitor *monitor, struct pci_address pci)
{
	struct watched_gpu *found = NULL;

	for (unsigned int i = 0; i < monitor->gpu_count && !found; i++)
		found = pci_address_equal(monitor->gpus[i]->taken.pci, pci) ? monitor->gpus[i] : NULL;
	if (!found && monitor->gpu_count < MONITOR_GPUS && monitor_reserve_memory(monitor, sizeof *found)) {
		found = calloc(1, sizeof *found);
		if (found) {
			found->taken.pci = pci;
			times_open(&found->times, &times_usual, monitor->began);
			if (pci_address_is_known(pci))
				times_share(&found->times, shared_clock_join(pci, monitor->user));
			monitor->gpus[monitor->gpu_count++] = found;
		}
	}
	return found;
}

static void free_ring(struct monitor *monitor, struct watched_ring *ring)
{
	for (unsigned int i = 0; ring && i < ring->graph_count; i++)
		free(ring->graphs[i]);
	if (ring) {
		ring->gpu->graphs -= ring->graph_count;
		monitor_return_memory(monitor, sizeof *ring + ring->graph_count * sizeof *ring->graphs[0]);
		monitor->ring_count--;
	}
	free(ring);
}

void monitor_rings_leave(struct monitor *monitor, unsigned int number)
{
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		free_ring(monitor, monitor->areas[number].rings[i]);
		monitor->areas[number].rings[i] = NULL;
	}
	if (monitor->areas[number].memory)
		munmap((void *)monitor->areas[number].memory, sizeof *monitor->areas[number].memory);
	monitor->areas[number].memory = NULL;
	monitor->areas[number].inode = 0;
}

/* After an exec, the areas are new. */
static void find_area(struct monitor *monitor, int directory, unsigned int number)
{
	const struct segment_area *area = &monitor->editor.segment.memory->timestamps[number];
	uint64_t inode = atomic_load_explicit(&area->inode, memory_order_acquire);

	if (inode != monitor->areas[number].inode) {
		monitor_rings_leave(monitor, number);
		monitor->areas[number].inode = inode;
		if (inode != 0)
			monitor->areas[number].memory = area_map(directory, atomic_load(&area->file), inode,
			                                         sizeof *monitor->areas[number].memory);
	}
	if (inode != 0 && !area_is(monitor->areas[number].memory, &timestamps_area_kind))
		monitor->gaps |= MONITOR_BIT(MONITOR_CLOSED);
}

static void find_areas(struct monitor *monitor)
{
	int directory = proc_open(monitor->editor.pid, "fd", O_RDONLY | O_DIRECTORY);

	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		find_area(monitor, directory, i);
	if (directory >= 0)
		close(directory);
}

/* A ring made during the look is read from its first launch on. */
static struct watched_ring *open_ring(struct monitor *monitor, const struct timestamps *timestamps, bool is_first)
{
	struct watched_gpu *gpu =
	    monitor->ring_count < MONITOR_RINGS_MOST ? monitor_gpu_for(monitor, timestamps->pci) : NULL;
	bool has_memory = gpu && monitor_reserve_memory(monitor, sizeof(struct watched_ring));
	struct watched_ring *ring = has_memory ? calloc(1, sizeof *ring) : NULL;

	if (ring) {
		monitor->ring_count++;
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

	return (gaps >> TIMESTAMPS_NO_SLOTS & 1 ? MONITOR_BIT(MONITOR_NO_SLOTS) : 0) |
	       (gaps >> TIMESTAMPS_REFUSED & 1 ? MONITOR_BIT(MONITOR_REFUSED) : 0) |
	       (gaps >> TIMESTAMPS_SLOT_USED & 1 ? MONITOR_BIT(MONITOR_PROFILER) : 0);
}

static void set_shared(struct watched_gpu *gpu, bool is_shared_by_mps)
{
	gpu->times.calibration = is_shared_by_mps ? times_under_mps : times_usual;
	gpu->taken.is_presence |= !is_shared_by_mps;
}

static void find_rings(struct monitor *monitor, unsigned int number, bool is_first)
{
	const struct timestamps_memory *memory = monitor->areas[number].memory;

	for (unsigned int i = 0; area_is(memory, &timestamps_area_kind) && i < COUNTS_PLACES; i++) {
		struct watched_ring **ring = &monitor->areas[number].rings[i];

		if (!*ring && atomic_load(&memory->rings[i].magic) == TIMESTAMPS_MAGIC)
			*ring = open_ring(monitor, &memory->rings[i], is_first);
		if (*ring) {
			(*ring)->gpu->has_ring = true;
			(*ring)->gpu->taken.gaps |= gaps_of_ring(&memory->rings[i]);
			set_shared((*ring)->gpu, atomic_load(&memory->rings[i].is_shared_by_mps));
		}
	}
}

void monitor_rings_find(struct monitor *monitor, bool is_first)
{
	find_areas(monitor);
	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		find_rings(monitor, i, is_first);
}

void monitor_rings_each(struct monitor *monitor, monitor_ring_action *act)
{
	for (unsigned int area = 0; area < SEGMENT_AREAS; area++) {
		for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
			if (monitor->areas[area].rings[i])
				act(monitor, monitor->areas[area].rings[i]);
		}
	}
}
