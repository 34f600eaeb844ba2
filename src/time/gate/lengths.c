#include "lengths.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/functions.h"
#include "state/kernels/counts_read.h"
#include "time/demand/wakeup.h"

#include <string.h>

#define LENGTHS 1024
#define NEAR 4 /* places where a key may be */

/* A measurement counts if the end was seen so soon, or sooner than by this part of it; and is given up after so long. */
#define CLOSE_NS UINT64_C(100000)
#define PART 8
#define PATIENCE_NS UINT64_C(200000000)

static struct length lengths[LENGTHS];

/* --- the table -------------------------------------------------------------------------------------------------------- */

/* Blocks that must run at once, and what communicates between GPUs, wait for others. */
static bool waits_for_others(const struct launched_work *work)
{
	const char *name = NULL;
	bool has_name = !work->is_graph && driver.function_get_name &&
	                driver.function_get_name(&name, (CUfunction)work->what) == CUDA_SUCCESS && name;

	return work->is_cooperative || (has_name && (strstr(name, "nccl") || strstr(name, "nvshmem")));
}

/* In a place near that is free, or was launched least. */
static __attribute__((noinline)) struct length *add(struct length *near, uint64_t key, const struct launched_work *work)
{
	struct length *found = near;

	for (int i = 1; i < NEAR && atomic_load(&found->key) != 0; i++) {
		if (atomic_load(&near[i].key) == 0 || atomic_load(&near[i].launches) < atomic_load(&found->launches))
			found = &near[i];
	}
	atomic_store(&found->key, 0);
	atomic_store(&found->lengths, 0);
	atomic_store(&found->ns, waits_for_others(work) ? LENDING_NEVER : 0);
	atomic_store(&found->launches, 0);
	atomic_store(&found->until, 0);
	atomic_store(&found->key, key);
	return found;
}

struct length *lengths_find(const struct launched_work *work)
{
	uint64_t mixed = ((uintptr_t)work->what ^ work->grid * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
	uint64_t key = (mixed ^ mixed >> 29) | 1;
	struct length *near = &lengths[(key >> 32) % (LENGTHS / NEAR) * NEAR], *found = NULL;

	for (int i = 0; i < NEAR && !found; i++)
		found = atomic_load_explicit(&near[i].key, memory_order_acquire) == key ? &near[i] : NULL;
	return found ? found : add(near, key, work);
}

void lengths_forget(void)
{
	memset(lengths, 0, sizeof lengths);
}

/* --- measuring -------------------------------------------------------------------------------------------------------- */

static uint64_t ended(const struct others_on_gpu *others)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < others->own_count; i++)
		sum += counts_place_ended(others->own[i]);
	return sum;
}

bool measure_begin(struct measure *measure, const struct others_on_gpu *others, struct length *length,
                   const struct launched_work *work, bool is_borrowed)
{
	if (atomic_load(&measure->is_on) || atomic_flag_test_and_set(&measure->is_looked_at))
		return false;
	measure->length = length;
	measure->key = atomic_load(&length->key);
	measure->limit_ns = others->limit_ns;
	measure->is_borrowed = is_borrowed;
	measure->ended = ended(others);
	measure->looked = process_clock_ns();
	atomic_store(&measure->stream, work->is_graph ? 0 : (uintptr_t)work->stream);
	atomic_store(&measure->began, measure->looked);
	atomic_store(&measure->is_on, true);
	atomic_flag_clear(&measure->is_looked_at);
	wakeup_ring();
	return true;
}

void measure_drop(struct measure *measure)
{
	atomic_store(&measure->is_on, false);
}

void measure_disturb(struct measure *measure, const struct launched_work *work)
{
	if (atomic_load_explicit(&measure->is_on, memory_order_relaxed) &&
	    (work->is_graph || (uintptr_t)work->stream != atomic_load(&measure->stream)))
		atomic_store(&measure->is_on, false);
}

static bool note(const struct measure *measure, uint64_t now)
{
	uint64_t ns = now - atomic_load(&measure->began), all = lending_add_length(atomic_load(&measure->length->lengths), ns);
	bool is_close = now - measure->looked <= max_u64(CLOSE_NS, ns / PART);

	if (is_close && atomic_load(&measure->length->key) == measure->key) {
		atomic_store(&measure->length->lengths, all);
		atomic_store(&measure->length->ns, lending_longest(all));
	}
	return is_close && measure->is_borrowed && ns > measure->limit_ns;
}

bool measure_look(struct measure *measure, const struct others_on_gpu *others)
{
	bool is_over = false;

	if (!atomic_load_explicit(&measure->is_on, memory_order_relaxed) || atomic_flag_test_and_set(&measure->is_looked_at))
		return false;
	bool has_ended = ended(others) > measure->ended && (atomic_load(&measure->stream) != 0 || others_own_in_flight(others) == 0);
	uint64_t now = process_clock_ns();

	if (has_ended && atomic_load(&measure->is_on))
		is_over = note(measure, now);
	if (has_ended || now - atomic_load(&measure->began) > PATIENCE_NS)
		atomic_store(&measure->is_on, false);
	measure->looked = now;
	atomic_flag_clear(&measure->is_looked_at);
	return is_over;
}
