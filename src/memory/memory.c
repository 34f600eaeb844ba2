#include "memory.h"

#include "account.h"
#include "base/extremes.h"
#include "calls_in_progress.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/hook.h"
#include "holdings.h"
#include "kinds.h"

#include <errno.h>
#include <stdatomic.h>

void memory_use(const struct segment *segment)
{
	accounts_use(segment);
}

void memory_after_fork(void)
{
	accounts_after_fork();
	holdings_after_fork();
	mapped_after_fork();
	pools_after_fork();
	graph_allocations_after_fork();
	overhead_after_fork();
	calls_in_progress_after_fork();
}

static bool look_at_older(CUcontext context)
{
	struct account *account = account_of_context(context);

	if (account && !overhead_look(account, true))
		account_note_gap();
	return true;
}

void memory_find_older(void)
{
	overhead_contexts_unknown();
	contexts_visit_primaries(look_at_older);
}

bool memory_wants_call(int id)
{
	return calls_are_about_memory(id) || calls_empty_pools(id) ||
	       (graph_allocations_exist() && calls_upload_nodes(id));
}

bool memory_may_want_call(int id)
{
	return calls_are_about_memory(id) || calls_upload_nodes(id) || (pools_exist() && calls_empty_pools(id));
}

/* --- reserving ---------------------------------------------------------------------------------------------------- */

#define PAGE_BYTES (UINT64_C(2) << 20)
#define UNIT_BYTES UINT64_C(512)

static uint64_t counted(uint64_t bytes)
{
	uint64_t unit = bytes >= PAGE_BYTES ? PAGE_BYTES : UNIT_BYTES;

	return bytes <= UINT64_MAX - unit ? (bytes + unit - 1) / unit * unit : bytes;
}

/* The memory of the dead, and the unused memory of pools. A capture stays unharmed. */
static void make_room(struct account *account)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed =
		driver.thread_exchange_capture_mode && driver.thread_exchange_capture_mode(&mode) == CUDA_SUCCESS;

	account_reclaim();
	pools_settle_all(account, true);
	overhead_look(account, true);
	if (is_relaxed)
		driver.thread_exchange_capture_mode(&mode);
}

/* `pool`: NULL for memory that is of no pool. */
static bool try_to_reserve(struct account *account, const void *pool, uint64_t bytes)
{
	return pool ? pools_reserve(account, pool, bytes) : account_reserve(account, bytes);
}

static void reserve(const struct call *call, struct account *account, const void *pool, uint64_t bytes)
{
	struct call_memory *memory = &call->frame->memory;

	overhead_reservation_begins(account, call->id == CALL_ALLOC_MANAGED);
	bool is_reserved = try_to_reserve(account, pool, bytes);

	if (!is_reserved) {
		make_room(account);
		is_reserved = try_to_reserve(account, pool, bytes);
	}
	memory->account = account;
	memory->holding = (void *)(uintptr_t)(is_reserved ? pool : NULL);
	memory->bytes = is_reserved ? bytes : 0;
	memory->is_refused = !is_reserved;
	if (!is_reserved)
		calls_refuse_memory(call);
}

static struct account *account_of_call(const struct call *call)
{
	CUcontext context = call->context;

	if (!context && driver.context_get_current(&context) != CUDA_SUCCESS)
		context = NULL;
	return account_of_context(context);
}

/* --- allocations -------------------------------------------------------------------------------------------------- */

static uint64_t bytes_asked(const struct call *call)
{
	const struct call_alloc_pitch *pitched = (const struct call_alloc_pitch *)call->arguments;
	uint64_t bytes;

	switch (call->id) {
	case CALL_ALLOC_PITCH:
		if (__builtin_mul_overflow(counted(pitched->width), pitched->height, &bytes))
			bytes = UINT64_MAX;
		break;
	case CALL_ARRAY_CREATE:
	case CALL_ARRAY_CREATE_3D:
	case CALL_MIPMAPS_CREATE:
		bytes = calls_bytes_of_array(call);
		break;
	default:
		bytes = ((const struct call_alloc *)call->arguments)->bytes;
	}
	return counted(bytes);
}

static void allocation_begins(const struct call *call)
{
	const struct call_alloc *asked = (const struct call_alloc *)call->arguments;
	struct account *account = call->id == CALL_MEMORY_CREATE
	                                  ? account_of_device(calls_device_of_place(asked->place))
	                                  : account_of_call(call);

	if (account)
		reserve(call, account, NULL, bytes_asked(call));
}

/* The driver has chosen the pitch. */
static void correct_pitch(const struct call *call)
{
	const struct call_alloc_pitch *pitched = (const struct call_alloc_pitch *)call->arguments;
	struct call_memory *memory = &call->frame->memory;
	uint64_t bytes = counted(*pitched->pitch * pitched->height);

	account_change(memory->account, (int64_t)(bytes - memory->bytes));
	memory->bytes = bytes;
}

static void allocation_succeeds(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;
	const void *made = *(void **)call->arguments[0];

	if (memory->account && call->id == CALL_MEMORY_CREATE)
		mapped_create(made, memory->account, memory->bytes);
	if (!memory->account || call->id == CALL_MEMORY_CREATE)
		return;
	if (call->id == CALL_ALLOC_PITCH)
		correct_pitch(call);
	holdings_add(&(struct holding){
		.key = made,
		.account = memory->account,
		.context = call->context,
		.bytes = memory->bytes,
		.is_managed = call->id == CALL_ALLOC_MANAGED,
	});
}

static void give_back(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->account && memory->bytes > 0)
		account_change(memory->account, -(int64_t)memory->bytes);
}

/* --- pools and graphs --------------------------------------------------------------------------------------------- */

#define MOST_ASKED (UINT64_C(1) << 60) /* sums do not overflow */

/* A captured call becomes a node that allocates. */
static void pool_allocation_begins(const struct call *call)
{
	struct call_alloc_from_pool asked = calls_pool_allocation(call);
	struct account *account = account_of_call(call);

	if (driver_captures(asked.stream)) {
		graph_allocations_expect();
	} else if (account) {
		const void *pool = asked.pool ? asked.pool : pools_current(account);

		reserve(call, account, pool, pool ? min_u64(asked.bytes, MOST_ASKED) : 0);
	}
}

static void pool_allocation_ended(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->holding)
		pools_settle(memory->holding, memory->bytes);
}

static void pool_allocation_succeeds(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->holding)
		pools_learn(memory->holding, *(CUdeviceptr *)call->arguments[0]);
	pool_allocation_ended(call);
}

static void pool_changed(const struct call *call)
{
	const struct call_create_pool *made = (const struct call_create_pool *)call->arguments;

	if (call->id == CALL_POOL_CREATE)
		pools_set_account(*made->made, account_of_device(calls_device_of_place(made->place)));
	else
		pools_settle(call->arguments[0], 0);
}

static void pool_destruction_begins(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;

	memory->account = pools_take(call->arguments[0], &memory->bytes);
}

static void pool_destruction_fails(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->account)
		pools_put_back(call->arguments[0], memory->account, memory->bytes);
}

static void graphs_trimmed(const struct call *call)
{
	struct account *account = account_of_device(*(const CUdevice *)call->arguments);

	if (account)
		pools_settle(account, 0);
}

static void node_made(const struct call *call)
{
	if (call->id == CALL_GRAPH_ADD_ALLOCATION || calls_node_parameters(call)->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		graph_allocations_expect();
}

static void graph_call_begins(const struct call *call)
{
	const struct call_exec *launched = (const struct call_exec *)call->arguments;
	bool was_launched = false;
	uint64_t bytes = calls_use_instance(call->id) ? graph_allocations_of(launched->exec, &was_launched) : 0;
	struct account *account = bytes > 0 ? account_of_call(call) : NULL;

	if (account)
		reserve(call, account, account, pools_asked_by_graph(account, bytes, was_launched));
}

static void graph_call_succeeds(const struct call *call)
{
	if (calls_instantiate_graph(call->id))
		graph_allocations_instantiated(call);
	else if (call->frame->memory.account)
		graph_allocations_launched(((const struct call_exec *)call->arguments)->exec);
	pool_allocation_ended(call);
}

/* --- frees -------------------------------------------------------------------------------------------------------- */

static void free_begins(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;
	struct holding taken = holdings_take(call->arguments[0]);

	memory->account = taken.bytes > 0 ? taken.account : NULL;
	memory->bytes = taken.bytes;
	memory->holding = taken.context;
	memory->is_managed = taken.is_managed;
}

static void free_fails(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->account)
		holdings_add(&(struct holding){call->arguments[0], memory->account, memory->holding, memory->bytes,
		                               memory->is_managed});
}

static void mapped_end_begins(const struct call *call)
{
	call->frame->memory.holding = call->id == CALL_MEMORY_RELEASE
	                                      ? mapped_release(call->arguments[0])
	                                      : mapped_unmap(call->arguments[0], (size_t)call->arguments[1]);
}

static void mapped_end_ended(const struct call *call)
{
	mapped_ended(call->frame->memory.holding, *call->result == CUDA_SUCCESS);
}

/* --- mappings ----------------------------------------------------------------------------------------------------- */

static void mapped(const struct call *call)
{
	const struct call_map *mapping = (const struct call_map *)call->arguments;

	mapped_map(mapping->handle, mapping->address, mapping->bytes);
}

static void retained(const struct call *call)
{
	const struct call_retain *retained = (const struct call_retain *)call->arguments;

	mapped_retain(*retained->handle, retained->address);
}

/* --- the driver's own memory -------------------------------------------------------------------------------------- */

static void context_begins(const struct call *call)
{
	struct account *account =
		accounts_are_limited() ? account_of_device(calls_device_of_context(call)) : NULL;

	if (account)
		overhead_context_begins(account);
	call->frame->memory.account = account;
}

static void context_made(const struct call *call)
{
	overhead_context_known(*(CUcontext *)call->arguments[0], calls_device_of_context(call));
	if (call->frame->memory.account)
		overhead_context_made(call->frame->memory.account);
}

static void count_anew(const struct call *call)
{
	struct account *account = accounts_are_limited() ? account_of_call(call) : NULL;

	if (account) {
		pools_settle_all(account, false);
		overhead_look(account, false);
	}
}

/* --- sizes for the program ---------------------------------------------------------------------------------------- */

static void lower(size_t *number, uint64_t most)
{
	if (number && *number > most)
		*number = (size_t)most;
}

static void say_total(const struct call *call)
{
	const struct call_total_memory *asked = (const struct call_total_memory *)call->arguments;
	struct account *account = accounts_are_limited() ? account_of_device(asked->device) : NULL;

	if (account)
		lower(asked->bytes, account_room(account).limit);
}

static void say_free(const struct call *call)
{
	const struct call_memory_info *asked = (const struct call_memory_info *)call->arguments;
	struct account *account = accounts_are_limited() ? account_of_call(call) : NULL;

	if (!account)
		return;
	account_reclaim();
	pools_settle_all(account, false);
	overhead_look(account, false);
	struct account_room room = account_room(account);

	lower(asked->total, room.limit);
	lower(asked->free, room.free);
}

/* --- which calls -------------------------------------------------------------------------------------------------- */

/* What is done about a call: at the begin, and at the end. */
struct way {
	void (*begins)(const struct call *call);
	void (*succeeds)(const struct call *call);
	void (*fails)(const struct call *call);
};

static void nothing(const struct call *call)
{
	(void)call;
}

static const struct way *way_of_graph(int id)
{
	static const struct way launch_or_instantiation = {graph_call_begins, graph_call_succeeds,
	                                                   pool_allocation_ended};
	static const struct way other = {nothing, nothing, nothing};

	return calls_upload_nodes(id) ? &launch_or_instantiation : &other;
}

static const struct way *way_of(int id)
{
	static const struct way allocation = {allocation_begins, allocation_succeeds, give_back};
	static const struct way pool_allocation = {pool_allocation_begins, pool_allocation_succeeds,
	                                           pool_allocation_ended};
	static const struct way node = {nothing, node_made, nothing};
	static const struct way freeing = {free_begins, give_back, free_fails};
	static const struct way mapped_end = {mapped_end_begins, mapped_end_ended, mapped_end_ended};
	static const struct way mapping = {nothing, mapped, nothing};
	static const struct way retaining = {nothing, retained, nothing};
	static const struct way change_of_pool = {nothing, pool_changed, nothing};
	static const struct way destruction_of_pool = {pool_destruction_begins, give_back, pool_destruction_fails};
	static const struct way trimming_of_graphs = {nothing, graphs_trimmed, nothing};
	static const struct way context = {context_begins, context_made, nothing};
	static const struct way drivers_own = {nothing, count_anew, nothing};
	static const struct way rest = {nothing, say_free, nothing};
	static const struct way total = {nothing, say_total, nothing};

	switch (id) {
	case CALL_ALLOC:
	case CALL_ALLOC_MANAGED:
	case CALL_ALLOC_PITCH:
	case CALL_ARRAY_CREATE:
	case CALL_ARRAY_CREATE_3D:
	case CALL_MIPMAPS_CREATE:
	case CALL_MEMORY_CREATE:
		return &allocation;
	case CALL_ALLOC_ASYNC:
	case CALL_ALLOC_ASYNC_PER_THREAD:
	case CALL_ALLOC_FROM_POOL:
	case CALL_ALLOC_FROM_POOL_PER_THREAD:
		return &pool_allocation;
	case CALL_GRAPH_ADD_ALLOCATION:
	case CALL_GRAPH_NODE_ADD:
	case CALL_GRAPH_NODE_ADD_2:
		return &node;
	case CALL_FREE:
	case CALL_FREE_ASYNC: /* of memory from a pool, nothing is known */
	case CALL_FREE_ASYNC_PER_THREAD:
	case CALL_ARRAY_DESTROY:
	case CALL_MIPMAPS_DESTROY:
		return &freeing;
	case CALL_MEMORY_RELEASE:
	case CALL_MEMORY_UNMAP:
		return &mapped_end;
	case CALL_MEMORY_MAP:
		return &mapping;
	case CALL_MEMORY_RETAIN:
		return &retaining;
	case CALL_POOL_CREATE:
	case CALL_POOL_TRIM:
		return &change_of_pool;
	case CALL_POOL_DESTROY:
		return &destruction_of_pool;
	case CALL_GRAPH_MEMORY_TRIM:
		return &trimming_of_graphs;
	case CALL_CONTEXT_CREATE_2:
	case CALL_CONTEXT_CREATE_3:
	case CALL_CONTEXT_CREATE_4:
	case CALL_PRIMARY_RETAIN:
		return &context;
	case CALL_CONTEXT_SET_LIMIT:
	case CALL_MODULE_LOAD:
	case CALL_MODULE_LOAD_DATA:
	case CALL_MODULE_LOAD_DATA_EX:
	case CALL_MODULE_LOAD_FAT_BINARY:
	case CALL_LIBRARY_LOAD:
	case CALL_LIBRARY_LOAD_DATA:
		return &drivers_own;
	case CALL_MEMORY_GET_INFO:
		return &rest;
	case CALL_TOTAL_MEMORY:
		return &total;
	default:
		return way_of_graph(id);
	}
}

/* --- around calls ------------------------------------------------------------------------------------------------- */

void memory_call_begins(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;
	int saved = errno;

	if (driver_is_called_by_us() || calls_empty_pools(call->id) || memory->depth++ > 0)
		return;
	*memory = (struct call_memory){.depth = 1};
	memory_note_call(true);
	way_of(call->id)->begins(call);
	errno = saved;
}

/* A thread is not in a call about memory while the thread waits for the GPU. */
static void synchronized(const struct call *call)
{
	int saved = errno;

	if (driver_is_called_by_us() || call->frame->memory.depth > 0)
		return;
	memory_note_call(true);
	pools_synchronized();
	memory_note_call(false);
	errno = saved;
}

/* From the first pool on, synchronisations matter. */
static void listen_to_more(void)
{
	static atomic_bool listens;

	if (pools_exist() && !atomic_load_explicit(&listens, memory_order_relaxed) && !atomic_exchange(&listens, true))
		hook_want_more();
}

static void other_ended(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;
	const struct way *way = way_of(call->id);
	int saved = errno;

	if (driver_is_called_by_us() || memory->depth == 0 || --memory->depth > 0)
		return;
	if (*call->result == CUDA_SUCCESS) {
		way->succeeds(call);
	} else {
		way->fails(call);
		*call->result = memory->is_refused ? CUDA_ERROR_OUT_OF_MEMORY : *call->result;
	}
	memory_note_call(false);
	listen_to_more();
	errno = saved;
}

void memory_call_ended(const struct call *call)
{
	if (calls_empty_pools(call->id))
		synchronized(call);
	else
		other_ended(call);
}

void memory_context_destroyed(CUcontext context)
{
	holdings_forget(context);
	overhead_context_ends(context);
}
