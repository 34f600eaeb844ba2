#include "contexts.h"

#include "base/table.h"
#include "functions.h"
#include "gpus.h"

/* The entry of a context that is destroyed becomes vacant, for another context of the same bucket. */
#define ROOM (4 * TABLE_BUCKETS)

/* Readers take no lock. In an entry that is used again, the facts are set after the context and cleared before it: a
 * reader that finds a context and facts has the right facts. */
struct known_context {
	struct table_entry entry;
	_Atomic(struct gpu *) gpu;
	_Atomic(struct releases *) releases;
};

static struct table table;
static struct known_context contexts[ROOM];
static atomic_uint used;

static struct known_context *find(CUcontext context)
{
	return TABLE_CONTENT(table_find(&table, context), struct known_context, entry);
}

struct releases *contexts_releases(CUcontext context)
{
	struct known_context *known = find(context);

	return known ? atomic_load_explicit(&known->releases, memory_order_acquire) : NULL;
}

bool contexts_set_releases(CUcontext context, struct releases *releases)
{
	struct known_context *known = find(context);

	if (known)
		atomic_store_explicit(&known->releases, releases, memory_order_release);
	return known;
}

/* An entry that was never used; NULL if there is none. */
static struct known_context *take_new(void)
{
	unsigned int next = atomic_load_explicit(&used, memory_order_relaxed) < ROOM ? atomic_fetch_add(&used, 1) : ROOM;

	return next < ROOM ? &contexts[next] : NULL;
}

static void remember(CUcontext context, struct gpu *gpu)
{
	struct table_entry *vacant = table_find_vacant(&table, context);
	struct known_context *known = vacant ? TABLE_CONTENT(vacant, struct known_context, entry) : take_new();

	if (vacant && table_occupy(vacant, context)) {
		atomic_store_explicit(&known->gpu, gpu, memory_order_release);
	} else if (!vacant && known) {
		atomic_store_explicit(&known->gpu, gpu, memory_order_relaxed);
		table_add(&table, &known->entry, context);
	}
}

CUresult contexts_device(CUcontext context, CUdevice *device)
{
	CUcontext current = NULL;
	CUresult result = driver.context_get_current(&current);

	if (result == CUDA_SUCCESS && current == context) {
		result = driver.context_get_device(device);
	} else if (driver.context_push(context) == CUDA_SUCCESS) {
		result = driver.context_get_device(device);
		driver.context_pop(&current);
	}
	return result;
}

struct context_facts contexts_find(CUcontext context)
{
	struct known_context *known = find(context);
	struct context_facts facts = {.gpu = NULL};
	CUdevice device;

	if (known) {
		facts.gpu = atomic_load_explicit(&known->gpu, memory_order_acquire);
		facts.releases = atomic_load_explicit(&known->releases, memory_order_acquire);
	}
	if (!facts.gpu) {
		bool says = contexts_device(context, &device) == CUDA_SUCCESS;

		facts.gpu = gpus_of_device(says ? device : GPUS_NO_DEVICE);
		if (says)
			remember(context, facts.gpu);
	}
	return facts;
}

struct gpu *contexts_gpu(CUcontext context)
{
	return contexts_find(context).gpu;
}

/* A loop: two threads may have remembered the same context, in two entries. */
void contexts_forget(CUcontext context)
{
	for (struct known_context *known = find(context); known; known = find(context)) {
		atomic_store_explicit(&known->releases, NULL, memory_order_release);
		atomic_store_explicit(&known->gpu, NULL, memory_order_release);
		table_vacate(&known->entry);
	}
}

void contexts_after_fork(void)
{
	for (unsigned int i = 0; i < ROOM; i++)
		atomic_store_explicit(&contexts[i].releases, NULL, memory_order_relaxed);
}
