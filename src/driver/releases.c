#include "releases.h"

#include "contexts.h"
#include "functions.h"
#include "gpus.h"

#include <pthread.h>

static struct segment segment;
static bool is_on;

/* Guards only the areas: the driver is not called under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counts_areas areas;
static struct timestamps_areas timestamps_areas;

/* By the numbers of the places, used again with the places, but never freed: a thread may be about to launch. */
static struct releases of_places[SEGMENT_AREAS * COUNTS_PLACES];

const struct releases releases_unknown = {.are_unknown = true};

/* For contexts without a place. */
static struct releases nowhere;

void releases_use(const struct segment *wanted)
{
	segment = *wanted;
	is_on = true;
}

void releases_read(struct counts *counts)
{
	pthread_mutex_lock(&lock);
	counts_read_own(&areas, &segment, counts);
	pthread_mutex_unlock(&lock);
}

unsigned int releases_places(struct pci_address pci, const struct counts_place *places[], unsigned int room)
{
	pthread_mutex_lock(&lock);
	unsigned int count = counts_own_places(&areas, pci, places, room);

	pthread_mutex_unlock(&lock);
	return count;
}

/* A thread of the parent may have held the lock. */
void releases_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	is_on = false;
	contexts_after_fork();
	counts_after_fork(&areas);
	timestamps_after_fork(&timestamps_areas);
}

/* --- registering ------------------------------------------------------------------------------------------------ */

/* Whole pages: a place's, or a ring's. */
static CUresult register_pages(void *start, size_t bytes, CUdeviceptr *address)
{
	CUresult result =
	    driver.memory_register(start, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);

	return result == CUDA_SUCCESS ? driver.memory_get_device_pointer(address, start, 0) : result;
}

/* Otherwise the driver refuses while this thread, or in the global mode any thread, captures a stream; and the capture
 * is lost (hardware.md). */
static CUresult register_beside_captures(void *start, size_t bytes, CUdeviceptr *address)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult result = driver.thread_exchange_capture_mode(&mode);

	if (result == CUDA_SUCCESS) {
		result = register_pages(start, bytes, address);
		driver.thread_exchange_capture_mode(&mode);
	}
	return result;
}

/* `address`: the memory's for the GPU. */
static CUresult register_in(CUcontext context, void *start, size_t bytes, CUdeviceptr *address)
{
	bool is_pushed;
	CUresult result = contexts_enter(context, &is_pushed);

	if (result == CUDA_SUCCESS) {
		result = register_beside_captures(start, bytes, address);
		contexts_leave(is_pushed);
	}
	return result;
}

/* --- preparing -------------------------------------------------------------------------------------------------- */

static struct counts_place *take_place(const struct gpu *gpu, uint64_t reach, unsigned int from)
{
	struct error error;

	pthread_mutex_lock(&lock);
	struct counts_place *place = counts_take(&areas, &segment, gpu->pci, reach, from, &error);

	pthread_mutex_unlock(&lock);
	return place;
}

/* NULL without memory. `address` stays 0 if the driver refuses. A place with a former context not quite gone yet is
 * left to a later context: `context` gets the next suitable place. */
static struct counts_place *have_registered(CUcontext context, const struct gpu *gpu, CUdeviceptr *address)
{
	uint64_t reach = qmd_release_reach(gpu->family);
	struct counts_place *place = take_place(gpu, reach, 0);

	while (place && register_in(context, place, COUNTS_PAGE, address) ==
	                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
		unsigned int next = counts_number(place) + 1;

		counts_end(place);
		place = take_place(gpu, reach, next);
	}
	return place;
}

static bool prepare_releases(struct releases *releases, const struct gpu *gpu, CUdeviceptr address)
{
	bool done = true;

	for (int kind = 0; kind < COUNTS_KINDS; kind++) {
		uint64_t at =
		    (uintptr_t)counts_ended(releases->place, (enum counts_kind)kind) - (uintptr_t)releases->place;

		done = done && qmd_release_prepare(&releases->of_kind[kind], gpu->family, QMD_COUNTING_SLOT, QMD_ADDS,
		                                   address + at, 1);
	}
	return done;
}

/* The ring beside the place. NULL if there is no memory. */
static struct timestamps *take_ring(const struct gpu *gpu, const struct counts_place *place)
{
	struct error error;

	pthread_mutex_lock(&lock);
	struct timestamps *timestamps = timestamps_take(&timestamps_areas, &segment, counts_number(place), gpu->pci,
	                                                qmd_release_reach(gpu->family), &error);

	pthread_mutex_unlock(&lock);
	return timestamps;
}

/* False if the driver does not say. */
static bool has_attribute(CUcontext context, int attribute)
{
	CUdevice device;
	int value = 0;

	return driver.device_get_attribute && contexts_device(context, &device) == CUDA_SUCCESS &&
	       driver.device_get_attribute(&value, attribute, device) == CUDA_SUCCESS && value;
}

static void prepare_timestamps(CUcontext context, struct releases *releases, const struct gpu *gpu)
{
	struct timestamps *timestamps = take_ring(gpu, releases->place);
	CUdeviceptr address = 0;

	releases->timestamps = NULL;
	if (!timestamps)
		return;
	timestamps_begin(timestamps, has_attribute(context, CU_DEVICE_ATTRIBUTE_MPS_ENABLED));
	register_in(context, timestamps_cells(timestamps), TIMESTAMPS_BYTES, &address);
	if (address != 0 &&
	    qmd_release_prepare(&releases->stamping, gpu->family, QMD_STAMPING_SLOT, QMD_STAMPS, address, 0)) {
		releases->timestamps_at = address;
		releases->timestamps = timestamps;
	} else {
		timestamps_note_gap(timestamps, TIMESTAMPS_REFUSED);
	}
}

static bool has_slots(const struct gpu *gpu)
{
	return gpu->family && qmd_release_reach(gpu->family) > 0 && driver_can_register() && driver_has_graphs();
}

/* Writes over PCIe or NVLink are coherent with the processor's caches. For a GPU on the processor's chip only shared
 * atomics make coherence certain. Jetson Orin does not share atomics (by NVIDIA's description, not tried). Without
 * counts, a program never counts as idle, and lends nothing. */
static bool is_coherent(CUcontext context)
{
	return !has_attribute(context, CU_DEVICE_ATTRIBUTE_INTEGRATED) ||
	       has_attribute(context, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED);
}

/* COUNTS_GAP_COUNT: no obstacle. */
static enum counts_gap obstacle(CUcontext context, const struct gpu *gpu)
{
	enum counts_gap gap = COUNTS_GAP_COUNT;

	if (!has_slots(gpu))
		gap = COUNTS_NO_SLOTS;
	else if (!is_coherent(context))
		gap = COUNTS_INCOHERENT;
	return gap;
}

/* The context's releases; without memory the place is NULL. */
static struct releases *make_releases(CUcontext context, const struct gpu *gpu)
{
	CUdeviceptr address = 0;
	enum counts_gap gap = obstacle(context, gpu);
	struct counts_place *place = gap == COUNTS_GAP_COUNT ? have_registered(context, gpu, &address)
	                                                     : take_place(gpu, UINT64_MAX, 0);
	struct releases *releases = place ? &of_places[counts_number(place)] : &nowhere;

	if (!place) {
		counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
	} else {
		releases->place = place;
		releases->are_ready = address != 0 && prepare_releases(releases, gpu, address);
		if (!releases->are_ready)
			counts_note_gap(place, gap == COUNTS_GAP_COUNT ? COUNTS_REFUSED : gap);
		else
			prepare_timestamps(context, releases, gpu);
		counts_begin(place);
		counts_announce(&segment);
	}
	return releases;
}

void releases_context_created(CUcontext context)
{
	if (is_on && !contexts_set_releases(context, make_releases(context, contexts_gpu(context))))
		counts_note_gap_everywhere(&segment, COUNTS_NO_MEMORY);
}

void releases_context_destroyed(CUcontext context)
{
	struct releases *releases = contexts_releases(context);

	if (releases && releases->timestamps)
		timestamps_end(releases->timestamps);
	if (releases && releases->place)
		counts_end(releases->place);
}

/* --- after an attach -------------------------------------------------------------------------------------------- */

static bool adopt(CUcontext context)
{
	if (!contexts_releases(context))
		releases_context_created(context);
	return true;
}

/* The current context of this thread cannot go meanwhile. */
void releases_find_older(void)
{
	CUcontext context = NULL;

	if (driver.context_get_current(&context) == CUDA_SUCCESS && context)
		adopt(context);
	contexts_visit_primaries(adopt);
}
