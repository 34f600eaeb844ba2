/* What the hardware writes when a kernel has ended (facts.md, "Releases"), and how the driver itself learns of the end. */
#include "context.h"
#include "faults.h"
#include "gpu_time.h"
#include "launch.h"
#include "memory.h"

#include <stdatomic.h>
#include <string.h>

/* --- the driver's own release --------------------------------------------------------------------------- */

/* On the GPU: the CPU cannot read it. Low enough for all versions of the descriptor. Each stream has a line, whose words take
 * turns (hardware.md, "Releases"). */
#define DRIVERS_ADDRESS UINT64_C(0x205000000)
#define LINES 1024
#define LINE_BYTES 64
#define FENCES 8

/* A launch has ended before its call returns, so each thread needs to be told of one at a time. They are numbered from 1 on. */
static _Thread_local uint32_t last_asked, last_ended;

static uint64_t address_of(CUstream stream, uint32_t number)
{
	uint64_t line = stream == CU_STREAM_LEGACY ? 0 : (uintptr_t)stream / sizeof(void *) % LINES;

	return DRIVERS_ADDRESS + line * LINE_BYTES + 0x3c - number % FENCES * 8;
}

static bool is_drivers_own(const struct release *release)
{
	return release->words == 1 && release->address >= DRIVERS_ADDRESS &&
	       release->address < DRIVERS_ADDRESS + LINES * LINE_BYTES;
}

uint32_t release_ask_for_end(CUcontext context, CUstream stream, struct descriptor *descriptor)
{
	uint32_t number = ++last_asked;
	const struct release release = {.words = 1, .address = address_of(stream, number), .payload = number};

	return descriptor_set_release(descriptor, context->gpu, 0, &release) ? number : 0;
}

void release_check_end(uint32_t number)
{
	if (number != 0 && last_ended != number)
		context_fail(CUDA_ERROR_LAUNCH_FAILED);
}

/* --- all releases ------------------------------------------------------------------------------------------ */

/* Programs read and write the same memory at the same time. */
static void add(const struct release *release, void *to)
{
	if (release->operation != 0 || release->words == 4)
		fatal("a reduction that the simulator does not know");
	if (release->is_64_bit && release->words == 2)
		__atomic_fetch_add((uint64_t *)to, release->payload, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add((uint32_t *)to, (uint32_t)release->payload, __ATOMIC_RELAXED);
}

static void store(const struct release *release, void *to, uint64_t now)
{
	uint64_t *words = to;

	if (release->words == 1) {
		__atomic_store_n((uint32_t *)to, (uint32_t)release->payload, __ATOMIC_RELAXED);
	} else {
		if (release->words == 4)
			__atomic_store_n(&words[1], now, __ATOMIC_RELAXED);
		__atomic_store_n(&words[0], release->is_64_bit ? release->payload : (uint32_t)release->payload, __ATOMIC_RELAXED);
	}
}

static void carry_out(CUcontext context, const struct release *release, uint64_t now)
{
	size_t bytes = release->words * sizeof(uint32_t);
	void *to = is_drivers_own(release) ? &last_ended : memory_of_context(context, release->address, bytes);

	if (release->address % bytes != 0)
		fatal("a release to an address that is not aligned");
	if (!to)
		context_fail(CUDA_ERROR_LAUNCH_FAILED);
	else if (release->reduces)
		add(release, to);
	else
		store(release, to, now);
}

static bool tells_time(CUcontext context, const struct descriptor *descriptor)
{
	struct release release;
	bool tells = false;

	for (unsigned int slot = 0; slot < DESCRIPTOR_SLOTS; slot++)
		tells = tells || (descriptor_release(descriptor, context->gpu, slot, &release) && release.words == 4);
	return tells;
}

void release_all(CUcontext context, const struct descriptor *descriptor)
{
	uint64_t now = tells_time(context, descriptor) ? gpu_time_release() : 0;
	struct release release;

	for (unsigned int slot = 0; slot < DESCRIPTOR_SLOTS; slot++) {
		if (descriptor_release(descriptor, context->gpu, slot, &release))
			carry_out(context, &release, now);
	}
}
