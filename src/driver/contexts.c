#include "contexts.h"

#include "base/table.h"
#include "functions.h"
#include "gpus.h"

/* A destroyed context leaves a vacant entry, for a new context of the same bucket. */
#define ROOM (4 * TABLE_BUCKETS)

/* Readers take no lock. When an entry is used again, the facts are set after the context and cleared before: a reader
 * that finds a context and facts has the right facts. */
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

/* An entry never used before; NULL: no entry is left. */
static struct known_context *take_new(void)
{
	unsigned int next =
	    atomic_load_explicit(&used, memory_order_relaxed) < ROOM ? atomic_fetch_add(&used, 1) : ROOM;

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

CUresult contexts_enter(CUcontext context, bool *is_pushed)
{
	CUcontext current = NULL;
	CUresult result = driver.context_get_current(&current);

	*is_pushed = result == CUDA_SUCCESS && current != context;
	return *is_pushed ? driver.context_push(context) : result;
}

void contexts_leave(bool is_pushed)
{
	CUcontext former;

	if (is_pushed)
		driver.context_pop(&former);
}

CUresult contexts_device(CUcontext context, CUdevice *device)
{
	bool is_pushed;
	CUresult result = contexts_enter(context, &is_pushed);

	if (result == CUDA_SUCCESS) {
		result = driver.context_get_device(device);
		contexts_leave(is_pushed);
	}
	return result;
}

/* Without our hold, the context could go. */
static bool visit_primary(CUdevice device, bool (*visit)(CUcontext context))
{
	CUcontext context = NULL;
	unsigned int flags;
	int is_active = 0;
	bool goes_on = true;

	if (driver.primary_get_state(device, &flags, &is_active) == CUDA_SUCCESS && is_active &&
	    driver.primary_retain(&context, device) == CUDA_SUCCESS) {
		goes_on = visit(context);
		driver.primary_release(device);
	}
	return goes_on;
}

void contexts_visit_primaries(bool (*visit)(CUcontext context))
{
	bool goes_on = driver.primary_get_state && driver.primary_retain && driver.primary_release;
	CUdevice device;
	int count = 0;

	if (driver.device_get_count(&count) != CUDA_SUCCESS)
		count = 0;
	for (int number = 0; number < count && goes_on; number++) {
		if (driver.device_get(&device, number) == CUDA_SUCCESS)
			goes_on = visit_primary(device, visit);
	}
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

void contexts_visit(void (*visit)(CUcontext context))
{
	for (unsigned int i = 0; i < ROOM; i++) {
		uintptr_t handle = atomic_load_explicit(&contexts[i].entry.handle, memory_order_acquire);

		if (handle != 0)
			visit((CUcontext)handle);
	}
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
