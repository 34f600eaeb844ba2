#include "memory.h"

#include "account.h"
#include "calls_in_progress.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "graph_allocations.h"
#include "holdings.h"
#include "mapped.h"
#include "overhead.h"
#include "pools.h"

#include <errno.h>

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
		account_has_gap();
	return true;
}

void memory_find_older(void)
{
	contexts_visit_primaries(look_at_older);
}

bool memory_wants_call(int id)
{
	return calls_are_about_memory(id) || (graph_allocations_exist() && calls_upload_nodes(id));
}

bool memory_may_want_call(int id)
{
	return calls_are_about_memory(id) || calls_upload_nodes(id);
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

static void reserve(const struct call *call, struct account *account, uint64_t bytes)
{
	struct call_memory *memory = &call->frame->memory;
	bool is_reserved = account_reserve(account, bytes);

	if (!is_reserved) {
		make_room(account);
		is_reserved = account_reserve(account, bytes);
	}
	memory->account = account;
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

static void alloc_begins(const struct call *call, struct account *account)
{
	if (account)
		reserve(call, account, bytes_asked(call));
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

static void alloc_ended(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;
	void *made = *(void **)call->arguments[0];

	if (call->id == CALL_ALLOC_PITCH)
		correct_pitch(call);
	if (call->id == CALL_ALLOC_MANAGED)
		overhead_has_managed();
	if (call->id == CALL_MEMORY_CREATE)
		mapped_create(made, memory->account, memory->bytes);
	else
		holdings_add(&(struct holding){made, memory->account, call->context, memory->bytes});
}

/* --- pools and graphs --------------------------------------------------------------------------------------------- */

/* A captured call becomes a node that allocates. */
static void pool_call_begins(const struct call *call)
{
	struct call_alloc_from_pool asked = calls_pool_allocation(call);
	struct account *account = account_of_call(call);
	bool is_captured = driver_captures(asked.stream);

	if (is_captured)
		graph_allocations_expect();
	else if (account)
		reserve(call, account, pools_growth(account, &asked.pool, asked.bytes));
	call->frame->memory.holding = asked.pool;
}

static void graph_call_begins(const struct call *call)
{
	const struct call_exec *launched = (const struct call_exec *)call->arguments;
	bool was_launched = false;
	uint64_t bytes = calls_launch_graph(call->id) ? graph_allocations_of(launched->exec, &was_launched) : 0;
	struct account *account = bytes > 0 ? account_of_call(call) : NULL;

	if (account)
		reserve(call, account, pools_growth_of_graph(account, bytes, was_launched));
}

static void settle_graph(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (*call->result == CUDA_SUCCESS)
		graph_allocations_launched(((const struct call_exec *)call->arguments)->exec);
	pools_settle_graphs(memory->account, memory->bytes);
}

static void graph_call_ended(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (calls_instantiate_graph(call->id))
		graph_allocations_instantiated(call);
	else if (memory->account)
		settle_graph(call);
}

/* --- frees -------------------------------------------------------------------------------------------------------- */

static void free_begins(const struct call *call)
{
	struct holding taken = holdings_take(call->arguments[0]);

	call->frame->memory.account = taken.bytes > 0 ? taken.account : NULL;
	call->frame->memory.bytes = taken.bytes;
	call->frame->memory.holding = taken.context;
}

static void free_failed(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->account)
		holdings_add(&(struct holding){call->arguments[0], memory->account, memory->holding, memory->bytes});
}

static void end_begins(const struct call *call, struct mapped_end end)
{
	call->frame->memory.account = end.account;
	call->frame->memory.bytes = end.bytes;
}

static void give_back(const struct call *call)
{
	const struct call_memory *memory = &call->frame->memory;

	if (memory->account && memory->bytes > 0)
		account_change(memory->account, -(int64_t)memory->bytes);
}

/* --- the driver's own memory -------------------------------------------------------------------------------------- */

static void context_begins(const struct call *call)
{
	struct account *account = account_of_device(calls_device_of_context(call));

	if (account)
		overhead_context_begins(account);
	call->frame->memory.account = account;
}

static void look(struct account *account)
{
	if (account)
		overhead_look(account, false);
}

/* --- sizes for the program ---------------------------------------------------------------------------------------- */

static void lower(size_t *number, uint64_t most)
{
	if (number && *number > most)
		*number = (size_t)most;
}

static void say_total(const struct call_total_memory *asked)
{
	struct account *account = account_of_device(asked->device);

	if (account)
		lower(asked->bytes, account_room(account).limit);
}

static void say_free(const struct call *call)
{
	const struct call_memory_info *asked = (const struct call_memory_info *)call->arguments;
	struct account *account = account_of_call(call);

	if (!account || account_room(account).limit == SEGMENT_MEMORY_OFF)
		return;
	account_reclaim();
	pools_settle_all(account, false);
	overhead_look(account, false);
	struct account_room room = account_room(account);

	lower(asked->total, room.limit);
	lower(asked->free, room.free);
}

/* --- dispatch ----------------------------------------------------------------------------------------------------- */

static void begin(const struct call *call)
{
	const struct call_alloc *asked = (const struct call_alloc *)call->arguments;

	switch (call->id) {
	case CALL_ALLOC:
	case CALL_ALLOC_MANAGED:
	case CALL_ALLOC_PITCH:
	case CALL_ARRAY_CREATE:
	case CALL_ARRAY_CREATE_3D:
	case CALL_MIPMAPS_CREATE:
		alloc_begins(call, account_of_call(call));
		break;
	case CALL_MEMORY_CREATE:
		alloc_begins(call, account_of_device(calls_device_of_place(asked->place)));
		break;
	case CALL_ALLOC_ASYNC:
	case CALL_ALLOC_ASYNC_PER_THREAD:
	case CALL_ALLOC_FROM_POOL:
	case CALL_ALLOC_FROM_POOL_PER_THREAD:
		pool_call_begins(call);
		break;
	case CALL_FREE:
	case CALL_ARRAY_DESTROY:
	case CALL_MIPMAPS_DESTROY:
		free_begins(call);
		break;
	case CALL_MEMORY_RELEASE:
		end_begins(call, mapped_release(call->arguments[0]));
		break;
	case CALL_MEMORY_UNMAP:
		end_begins(call, mapped_unmap(call->arguments[0], (size_t)call->arguments[1]));
		break;
	case CALL_CONTEXT_CREATE_2:
	case CALL_CONTEXT_CREATE_3:
	case CALL_CONTEXT_CREATE_4:
	case CALL_PRIMARY_RETAIN:
		context_begins(call);
		break;
	case CALL_GRAPH_ADD_ALLOCATION:
		graph_allocations_expect();
		break;
	default:
		if (calls_upload_nodes(call->id))
			graph_call_begins(call);
	}
}

static void succeed(const struct call *call)
{
	const struct call_map *mapping = (const struct call_map *)call->arguments;
	const struct call_retain *retained = (const struct call_retain *)call->arguments;
	struct call_memory *memory = &call->frame->memory;

	switch (call->id) {
	case CALL_ALLOC:
	case CALL_ALLOC_MANAGED:
	case CALL_ALLOC_PITCH:
	case CALL_ARRAY_CREATE:
	case CALL_ARRAY_CREATE_3D:
	case CALL_MIPMAPS_CREATE:
	case CALL_MEMORY_CREATE:
		if (memory->account)
			alloc_ended(call);
		break;
	case CALL_ALLOC_ASYNC:
	case CALL_ALLOC_ASYNC_PER_THREAD:
	case CALL_ALLOC_FROM_POOL:
	case CALL_ALLOC_FROM_POOL_PER_THREAD:
		if (memory->account && memory->holding)
			pools_settle(memory->account, memory->holding, memory->bytes);
		break;
	case CALL_FREE:
	case CALL_ARRAY_DESTROY:
	case CALL_MIPMAPS_DESTROY:
	case CALL_MEMORY_RELEASE:
	case CALL_MEMORY_UNMAP:
		give_back(call);
		break;
	case CALL_CONTEXT_CREATE_2:
	case CALL_CONTEXT_CREATE_3:
	case CALL_CONTEXT_CREATE_4:
	case CALL_PRIMARY_RETAIN:
		if (memory->account)
			overhead_context_made(memory->account);
		break;
	case CALL_CONTEXT_SET_LIMIT:
	case CALL_MODULE_LOAD:
	case CALL_MODULE_LOAD_DATA:
	case CALL_MODULE_LOAD_DATA_EX:
	case CALL_MODULE_LOAD_FAT_BINARY:
	case CALL_LIBRARY_LOAD:
	case CALL_LIBRARY_LOAD_DATA:
		look(account_of_call(call));
		break;
	case CALL_MEMORY_MAP:
		mapped_map(mapping->handle, mapping->address, mapping->bytes);
		break;
	case CALL_MEMORY_RETAIN:
		mapped_retain(*retained->handle, retained->address);
		break;
	case CALL_POOL_DESTROY:
		pools_forget(call->arguments[0]);
		break;
	case CALL_MEMORY_GET_INFO:
		say_free(call);
		break;
	case CALL_TOTAL_MEMORY:
		say_total((const struct call_total_memory *)call->arguments);
		break;
	default:
		if (calls_upload_nodes(call->id))
			graph_call_ended(call);
	}
}

static void fail(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;

	if (call->id == CALL_FREE || call->id == CALL_ARRAY_DESTROY || call->id == CALL_MIPMAPS_DESTROY)
		free_failed(call);
	else
		give_back(call);
	if (memory->is_refused)
		*call->result = CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- around calls ------------------------------------------------------------------------------------------------- */

void memory_call_begins(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;
	int saved = errno;

	if (driver_is_called_by_us() || memory->depth++ > 0)
		return;
	*memory = (struct call_memory){.depth = 1};
	memory_call_is_in_progress(true);
	begin(call);
	errno = saved;
}

void memory_call_ended(const struct call *call)
{
	struct call_memory *memory = &call->frame->memory;
	int saved = errno;

	if (driver_is_called_by_us() || memory->depth == 0 || --memory->depth > 0)
		return;
	if (*call->result == CUDA_SUCCESS)
		succeed(call);
	else
		fail(call);
	memory_call_is_in_progress(false);
	errno = saved;
}

void memory_context_destroyed(CUcontext context)
{
	holdings_forget(context);
}
