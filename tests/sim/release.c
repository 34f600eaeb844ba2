#include "release.h"

#include "context.h"
#include "faults.h"
#include "memory.h"

#include <stdatomic.h>
#include <string.h>

/* --- time --------------------------------------------------------------------------------------------- */

#define START_NS UINT64_C(1000000000000)
#define KERNEL_NS UINT64_C(2000)

static uint64_t time_of_end(void)
{
	static _Atomic uint64_t ended;

	return START_NS + KERNEL_NS * (atomic_fetch_add(&ended, 1) + 1);
}

/* --- the driver's own release --------------------------------------------------------------------------- */

/* On the GPU: the CPU cannot read it. Low enough for all versions of the descriptor. */
#define DRIVERS_ADDRESS UINT64_C(0x205000000)

/* A launch has ended before its call returns, so each thread needs to be told of one at a time. They are numbered from
 * 1 on. */
static _Thread_local uint32_t last_asked, last_ended;

uint32_t release_ask_for_end(CUcontext context, struct descriptor *descriptor)
{
	const struct release release = {.words = 1, .address = DRIVERS_ADDRESS, .payload = ++last_asked};

	return descriptor_set_release(descriptor, context->gpu, 0, &release) ? last_asked : 0;
}

void release_check_end(CUcontext context, uint32_t number)
{
	if (number != 0 && last_ended != number)
		context_fail(context, CUDA_ERROR_LAUNCH_FAILED);
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
		__atomic_store_n(&words[0], release->is_64_bit ? release->payload : (uint32_t)release->payload,
		                 __ATOMIC_RELAXED);
	}
}

static void carry_out(CUcontext context, const struct release *release, uint64_t now)
{
	size_t bytes = release->words * sizeof(uint32_t);
	bool is_drivers = release->address == DRIVERS_ADDRESS && release->words == 1;
	void *to = is_drivers ? &last_ended : memory_of_context(context, release->address, bytes);

	if (release->address % bytes != 0)
		fatal("a release to an address that is not aligned");
	if (!to)
		context_fail(context, CUDA_ERROR_LAUNCH_FAILED);
	else if (release->reduces)
		add(release, to);
	else
		store(release, to, now);
}

void release_all(CUcontext context, const struct descriptor *descriptor)
{
	uint64_t now = time_of_end();
	struct release release;

	for (unsigned int slot = 0; slot < DESCRIPTOR_SLOTS; slot++) {
		if (descriptor_release(descriptor, context->gpu, slot, &release))
			carry_out(context, &release, now);
	}
}
