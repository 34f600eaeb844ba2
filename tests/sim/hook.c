#include "hook.h"

#include "context.h"
#include "engine.h"
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define DOMAINS 0x20
#define IDS 1024
#define FEATURES 11 /* 0 to 10 */
#define FEATURE_GREEN_CONTEXTS 7

enum {
	DOMAIN_RESOURCE = 0x2,
	RESOURCE_MODULE_LOADED = 17,
	DOMAIN_API = 0x6,
	DOMAIN_LAUNCH = 0xb,
	DOMAIN_SEGMENT = 0x12,
	LAUNCH_BEFORE_UPLOAD = 1,
	LAUNCH_GRAPH_NODE = 3,
	SEGMENT_WRITTEN = 2,
	SEGMENT_SUBMITTED = 4,
	SEGMENT_RING = 6
};

typedef void callback(void *user, int domain, int id, const void *parameters);

/* --- the one slot --------------------------------------------------------------------------------------- */

struct subscription {
	uint32_t handle;
	callback *function;
	void *user;
	bool has_launches, has_segments; /* as the faults were at the subscription */
	_Atomic uint32_t features;       /* one bit each */
	struct subscription *previous;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct subscription *) slot; /* NULL if free */
static _Atomic uint64_t enabled[DOMAINS][IDS / 64];

/* A callback may still run for a subscription that has ended, so no subscription is freed. */
static struct subscription *all_subscriptions;

static CUresult subscribe(uint32_t *handle, callback *function, void *user)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (atomic_load(&slot) || fault(FAULT_SLOT_TAKEN)) {
		result = CUDA_ERROR_ALREADY_ACQUIRED;
	} else {
		struct subscription *new = calloc(1, sizeof *new);

		if (!new)
			fatal("out of memory");
		new->handle = all_subscriptions ? all_subscriptions->handle + 1 : 1;
		new->function = function;
		new->user = user;
		new->has_launches = !fault(FAULT_NO_LAUNCH_EVENTS);
		new->has_segments = !fault(FAULT_NO_SEGMENTS);
		new->previous = all_subscriptions;
		all_subscriptions = new;
		*handle = new->handle;
		atomic_store(&slot, new);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult subscribe_with_name(uint32_t *handle, callback *function, void *user, const char *name)
{
	return name ? subscribe(handle, function, user) : CUDA_ERROR_INVALID_VALUE;
}

/* The subscription in the slot if this is its handle, otherwise NULL. */
static struct subscription *find(uint32_t handle)
{
	struct subscription *current = atomic_load(&slot);

	return current && current->handle == handle ? current : NULL;
}

static CUresult unsubscribe(uint32_t handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	if (find(handle)) {
		atomic_store(&slot, NULL);
		for (unsigned int domain = 0; domain < DOMAINS; domain++)
			for (unsigned int word = 0; word < IDS / 64; word++)
				atomic_store(&enabled[domain][word], 0);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* --- enabled events and features -------------------------------------------------------------------------- */

static bool is_known(int domain, int id)
{
	return domain >= 0 && domain < DOMAINS && id >= 0 && id < IDS;
}

static void set_enabled(_Atomic uint64_t *word, uint64_t bits, bool on)
{
	if (on)
		atomic_fetch_or(word, bits);
	else
		atomic_fetch_and(word, ~bits);
}

static CUresult enable(uint32_t on, uint32_t handle, int domain, int id)
{
	const struct subscription *subscription = find(handle);

	if (!subscription || !is_known(domain, id))
		return CUDA_ERROR_INVALID_VALUE;
	if ((domain == DOMAIN_LAUNCH && !subscription->has_launches) ||
	    (domain == DOMAIN_SEGMENT && !subscription->has_segments))
		return CUDA_ERROR_NOT_SUPPORTED;
	set_enabled(&enabled[domain][id / 64], UINT64_C(1) << (id % 64), on);
	return CUDA_SUCCESS;
}

static CUresult enable_domain(uint32_t on, uint32_t handle, int domain)
{
	if (!find(handle) || !is_known(domain, 0))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int word = 0; word < IDS / 64; word++)
		set_enabled(&enabled[domain][word], UINT64_MAX, on);
	return CUDA_SUCCESS;
}

static CUresult enable_all(uint32_t on, uint32_t handle)
{
	CUresult result = CUDA_SUCCESS;

	for (int domain = 0; domain < DOMAINS && result == CUDA_SUCCESS; domain++)
		result = enable_domain(on, handle, domain);
	return result;
}

static CUresult declare_feature(uint32_t on, uint32_t handle, int feature)
{
	struct subscription *subscription = find(handle);

	if (!subscription || feature < 0 || feature >= FEATURES)
		return CUDA_ERROR_INVALID_VALUE;
	if (on)
		atomic_fetch_or(&subscription->features, 1u << feature);
	else
		atomic_fetch_and(&subscription->features, ~(1u << feature));
	return CUDA_SUCCESS;
}

/* The order of the arguments is a guess, by analogy with entry 5. */
static CUresult query_feature(uint32_t *on, uint32_t handle, int feature)
{
	struct subscription *subscription = find(handle);

	if (!subscription || feature < 0 || feature >= FEATURES)
		return CUDA_ERROR_INVALID_VALUE;
	*on = atomic_load(&subscription->features) >> feature & 1;
	return CUDA_SUCCESS;
}

bool hook_hides_green_contexts(void)
{
	struct subscription *current = atomic_load(&slot);

	return current && !(atomic_load(&current->features) >> FEATURE_GREEN_CONTEXTS & 1);
}

/* --- the table -------------------------------------------------------------------------------------------- */

/* Entries 1 and 2 enumerate, as in CUPTI's interface, 5 says what is enabled: nobody here calls them. */
static CUresult not_called(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY(function) ((void *)(function))

#define TABLE_ENTRIES 12
#define SHORT_TABLE_ENTRIES 3

/* Read-only, like the driver's: the page must be made writable to replace an entry (facts.md, "The callback table"). */
static void *const table[TABLE_ENTRIES] = {
	(void *)sizeof table, ENTRY(not_called), ENTRY(not_called), ENTRY(subscribe), ENTRY(unsubscribe), ENTRY(not_called),
	ENTRY(enable), ENTRY(enable_domain), ENTRY(enable_all), ENTRY(declare_feature), ENTRY(query_feature),
	ENTRY(subscribe_with_name),
};

_Static_assert(sizeof table == 96, "the size that was measured");

static void *const short_table[SHORT_TABLE_ENTRIES] = {(void *)sizeof short_table, ENTRY(not_called), ENTRY(not_called)};

/* --- announcing ------------------------------------------------------------------------------------------- */

/* How many callbacks this thread is in. */
static _Thread_local unsigned int callbacks;

bool hook_is_in_callback(void)
{
	return callbacks > 0;
}

static void announce(int domain, int id, const uint64_t *parameters)
{
	struct subscription *current = atomic_load(&slot);

	callbacks++;
	if (current && atomic_load(&enabled[domain][id / 64]) >> (id % 64) & 1)
		current->function(current->user, domain, id, parameters);
	callbacks--;
}

static uint64_t word(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

void hook_context(enum hook_context_event event, CUcontext context)
{
	const uint64_t parameters[40 / 8] = {event == CONTEXT_CREATED ? 40 : 24, word(context)};

	announce(DOMAIN_RESOURCE, event, parameters);
}

void hook_module_loaded(CUcontext context, CUmodule module, const void *code, size_t size, bool is_drivers)
{
	const uint64_t parameters[112 / 8] = {sizeof parameters, word(context), word(module), [4] = word(code), [5] = size,
	                                        [7] = is_drivers ? 1 : 2};

	announce(DOMAIN_RESOURCE, RESOURCE_MODULE_LOADED, parameters);
}

/* How many callbacks of 0xb/1 this thread is in. */
static _Thread_local unsigned int uploads;

void hook_check_launch(const char *kernel)
{
	if (uploads > 0)
		fatal("%s: launched in the callback for another launch (0xb/1), of which NVIDIA's driver dies", kernel);
}

void hook_before_upload(CUcontext context, CUfunction function, void *qmd)
{
	static _Atomic unsigned int all;
	uint64_t launches = atomic_fetch_add(&context->launches, 1) + 1;
	const uint64_t parameters[88 / 8] = {sizeof parameters, word(context), word(context->object), word(function), word(qmd),
	                                     launches, [9] = word(context)};

	uploads++;
	if (!fault(FAULT_LOST_LAUNCHES) || atomic_fetch_add(&all, 1) % 1000 != 999)
		announce(DOMAIN_LAUNCH, LAUNCH_BEFORE_UPLOAD, parameters);
	uploads--;
}

static void announce_segment(int id, const struct hook_segment *segment, uint32_t put)
{
	uint32_t length = fault(FAULT_ODD_SEGMENTS) ? segment->bytes / 4 : segment->bytes;
	const uint64_t parameters[64 / 8] = {sizeof parameters, word(segment->context), word(segment->segment),
	                                     (uint64_t)segment->channel << 32 | length, (uint64_t)segment->put << 32, put};

	announce(DOMAIN_SEGMENT, id, parameters);
}

void hook_segment(const struct hook_segment *segment)
{
	const uint64_t ring[3] = {0, UINT64_C(1) << 32 | segment->put, word(segment->ring)};
	const uint64_t parameters[32 / 8] = {sizeof parameters, word(segment->context), word(ring), 1};

	announce_segment(SEGMENT_WRITTEN, segment, segment->put);
	announce(DOMAIN_SEGMENT, SEGMENT_RING, parameters);
	announce_segment(SEGMENT_SUBMITTED, segment, segment->put + 1);
}

/* Addresses on the GPU, which the CPU cannot read. */
#define UPLOADED_QMD UINT64_C(0x7f0000000000)

void hook_graph_node_launch(CUcontext context, CUfunction function, void *qmd)
{
	const uint64_t parameters[168 / 8] = {sizeof parameters, word(context), word(context->object), word(function), word(qmd),
	                                      UPLOADED_QMD};

	announce(DOMAIN_LAUNCH, LAUNCH_GRAPH_NODE, parameters);
}

/* The result before there is one. */
#define NO_RESULT_YET 999

static void announce_call(struct hook_call *call, bool is_exit)
{
	const uint64_t parameters[104 / 8] = {
		sizeof parameters, [5] = word(&call->result), [6] = word(call->name), [7] = word(call->arguments),
		[8] = word(context_current()), [10] = (uint64_t)is_exit << 32 | call->id,
	};

	announce(DOMAIN_API, (int)call->id, parameters);
}

/* The one thread that can resume what is suspended must not wait for it, not even for a lock of the driver's. */
static void check_caller(const char *name)
{
	char thread[16] = "";

	if (engine_some_are_aside() && prctl(PR_GET_NAME, thread) == 0 && strcmp(thread, "nvtaskset") == 0)
		fatal("%s: called by nvtaskset's thread while work is suspended", name);
}

/* The announcement of a wait costs the program time. */
static void check_wait(enum api_id id, const char *name)
{
	bool waits = id == API_ID_cuCtxSynchronize || id == API_ID_cuStreamSynchronize;

	if (waits && fault(FAULT_HEARD_WAITS) && atomic_load(&enabled[DOMAIN_API][id / 64]) >> (id % 64) & 1)
		fatal("%s: announced", name);
}

void hook_enter(struct hook_call *call, enum api_id id, const char *name, void *arguments)
{
	check_caller(name);
	check_wait(id, name);
	*call = (struct hook_call){.id = id, .name = name, .arguments = arguments, .result = NO_RESULT_YET};
	announce_call(call, false);
}

CUresult hook_leave(struct hook_call *call, CUresult result)
{
	call->result = result;
	announce_call(call, true);
	/* A callback may have changed it, as seen on an H200. */
	return call->result;
}

/* --- who asks for the table --------------------------------------------------------------------------------- */

HOOKED_2(cuGetExportTable, const void **, found, const CUuuid *, id)
{
	static const CUuuid tools = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71,
	                              0x9f, 0xe5, 0xf7, 0x4b}};

	if (memcmp(id, &tools, sizeof tools) != 0 || fault(FAULT_NO_TABLE))
		return CUDA_ERROR_NOT_FOUND;
	*found = fault(FAULT_SHORT_TABLE) ? short_table : table;
	return CUDA_SUCCESS;
}
