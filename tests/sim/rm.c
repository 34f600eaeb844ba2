#include "rm.h"

#include "base/clock.h"
#include "context.h"
#include "costs.h"
#include "engine.h"
#include "faults.h"
#include "hook.h"
#include "memory.h"
#include "gpu/topology/rm_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	CLASS_MEMORY = 0x40,
	CLASS_GROUP = 0xa06c,
	CLASS_CHANNEL = 0xc86f,
	CLASS_COMPUTE = 0xcbc0,
	CLASS_COPY = 0xc8b5
};

enum {
	RM_INVALID_ARGUMENT = 0x1f,
	RM_INVALID_CHANNEL = 0x21,
	RM_INVALID_PARAMETERS = 0x3a,
	RM_NOT_SUPPORTED = 0x56,
	RM_NOT_FOUND = 0x57
};

enum {
	HANDLE_INFO = 0xd02,
	MEMORY_INFO = 0x20801303,
	DISABLE_CHANNELS = 0x2080110b,
	SET_TIMESLICE = 0xa06c0103,
	GET_TIMESLICE = 0xa06c0104
};

struct rm_free { /* nvos.h, NVOS00_PARAMETERS */
	uint32_t client, parent, object, status;
};
#define IOCTL_FREE _IOWR('F', 0x29, struct rm_free)

struct handle_info {
	uint32_t handle, index;
	uint64_t result;
};

struct disable_channels {
	uint8_t disable;
	uint32_t count;
	uint8_t only_scheduling, rewind;
	uint64_t event;
	uint32_t clients[64], channels[64];
};

#define FIRST_HANDLE 0x5c000001
#define COMPUTE_SLICE_US ENGINE_SLICE_US
#define COPY_SLICE_US 1024

struct object {
	uint32_t class; /* 0: freed */
	uint32_t parent;
	CUcontext context;
	uint64_t slice_us;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects; /* by their handles, which are never used again */
static uint32_t count, room;
static int file = -1;
static uint32_t client;
static _Atomic(CUcontext) changing; /* whose objects are being made, or freed */
static atomic_bool is_broken;       /* since these were suspended meanwhile, as on the hardware */

/* --- objects ------------------------------------------------------------------------------------------------ */

static struct object *find(uint32_t handle)
{
	bool is_known = handle >= FIRST_HANDLE && handle - FIRST_HANDLE < count && objects[handle - FIRST_HANDLE].class != 0;

	return is_known ? &objects[handle - FIRST_HANDLE] : NULL;
}

static void make_room(uint32_t more)
{
	if (count + more > room) {
		room = 2 * (count + more);
		objects = realloc(objects, room * sizeof *objects);
		if (!objects)
			fatal("no memory");
	}
}

/* As if so many objects had been made, and freed. */
static void use_up(uint32_t handles)
{
	pthread_mutex_lock(&lock);
	make_room(handles);
	memset(objects + count, 0, handles * sizeof *objects);
	count += handles;
	pthread_mutex_unlock(&lock);
}

static uint32_t alloc(const struct rm_alloc *call)
{
	if (call->class == CLASS_CLIENT)
		return STATUS_OK;
	if (call->object != FIRST_HANDLE + count)
		fatal("an object whose handle is not the next one");
	make_room(1);
	objects[count++] = (struct object){
		.class = call->class,
		.parent = call->parent,
		.context = atomic_load(&changing),
		.slice_us = 0, /* or gcc 11 warns */
	};
	return STATUS_OK;
}

static uint32_t get_info(struct handle_info *info)
{
	const struct object *object = find(info->handle);

	if (info->handle == client)
		info->result = CLASS_CLIENT;
	else if (!object)
		return RM_NOT_FOUND;
	else
		info->result = info->index == 2 ? object->class : object->parent;
	return STATUS_OK;
}

/* --- groups of channels --------------------------------------------------------------------------------------- */

static uint32_t group_of(uint32_t handle)
{
	const struct object *object = find(handle);

	return object && object->class == CLASS_CHANNEL ? object->parent : handle;
}

static bool is_compute(uint32_t group)
{
	bool found = false;

	for (uint32_t i = 0; i < count && !found; i++)
		found = objects[i].class == CLASS_COMPUTE && group_of(objects[i].parent) == group;
	return found;
}

/* A list with one handle that is no channel of this GPU does nothing at all. */
static uint32_t check_channels(uint32_t subdevice, const struct disable_channels *list)
{
	uint32_t status = list->count > 0 && list->count <= 64 ? STATUS_OK : RM_INVALID_PARAMETERS;

	for (uint32_t i = 0; i < list->count && i < 64 && status == STATUS_OK; i++) {
		const struct object *group = find(group_of(list->channels[i]));

		if (list->clients[i] != client || !group || group->class != CLASS_GROUP || group->parent != find(subdevice)->parent)
			status = RM_INVALID_CHANNEL;
	}
	return status;
}

/* From `begin` on. Whoever asks the kernel driver for anything else meanwhile waits, too. */
static void wait_for(uint64_t begin, unsigned int cost)
{
	const struct timespec end = clock_for_kernel(begin + cost_ns(cost));

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

static bool refuses_to_suspend(void)
{
	static _Atomic unsigned int calls;

	return fault(FAULT_NO_ASIDE) || (fault(FAULT_SECOND_ASIDE) && ++calls % 2 == 0);
}

/* One channel stops and starts its whole group. */
static uint32_t disable_channels(uint32_t subdevice, const struct disable_channels *list)
{
	uint32_t status = check_channels(subdevice, list);
	uint64_t begin = process_clock_ns();

	if (status == STATUS_OK && (list->disable ? refuses_to_suspend() : fault(FAULT_KEEPS_ASIDE)))
		status = RM_NOT_SUPPORTED;
	if (status == STATUS_OK)
		wait_for(begin, list->disable ? COST_STOP : COST_BACK_CALL);
	for (uint32_t i = 0; i < list->count && status == STATUS_OK; i++) {
		uint32_t group = group_of(list->channels[i]);

		if (list->disable && find(group)->context == atomic_load(&changing))
			atomic_store(&is_broken, true);
		if (!list->only_scheduling && is_compute(group) && !fault(FAULT_INERT_ASIDE))
			engine_put_aside(find(group)->context, list->disable);
	}
	if (status == STATUS_OK && list->disable)
		wait_for(begin, COST_STOP_CALL);
	return status;
}

/* --- answering -------------------------------------------------------------------------------------------------- */

static uint32_t control_object(const struct rm_control *call, const struct object *object)
{
	void *parameters = (void *)(uintptr_t)call->parameters;
	uint32_t status = RM_NOT_SUPPORTED;

	if (object->class == CLASS_SUBDEVICE && call->command == MEMORY_INFO) {
		status = STATUS_OK;
	} else if (object->class == CLASS_SUBDEVICE && call->command == DISABLE_CHANNELS) {
		status = call->size == sizeof(struct disable_channels) ? disable_channels(call->object, parameters)
		                                                       : RM_INVALID_ARGUMENT;
	} else if (object->class == CLASS_GROUP && call->command == SET_TIMESLICE && !fault(FAULT_NO_SLICE)) {
		objects[call->object - FIRST_HANDLE].slice_us = *(const uint64_t *)parameters;
		if (is_compute(call->object))
			engine_set_slice(object->context, object->slice_us);
		status = STATUS_OK;
	} else if (object->class == CLASS_GROUP && call->command == GET_TIMESLICE) {
		*(uint64_t *)parameters = object->slice_us;
		status = STATUS_OK;
	}
	return status;
}

static uint32_t control(const struct rm_control *call)
{
	const struct object *object = find(call->object);
	uint32_t status = RM_NOT_FOUND;

	if (call->client != client && call->client + 1 != client)
		fatal("a question about a client that does not exist");
	if (call->object == client && call->command == HANDLE_INFO)
		status = get_info((void *)(uintptr_t)call->parameters);
	else if (object)
		status = control_object(call, object);
	return status;
}

static int answer(unsigned long request, void *argument)
{
	int result = 0;

	if (request == IOCTL_ALLOC) {
		struct rm_alloc *call = argument;

		call->status = alloc(call);
	} else if (request == IOCTL_CONTROL) {
		struct rm_control *call = argument;

		call->status = control(call);
	} else if (request == IOCTL_FREE) {
		struct rm_free *call = argument;
		struct object *object = find(call->object);

		call->status = object ? STATUS_OK : RM_NOT_FOUND;
		if (object)
			object->class = 0;
	} else {
		errno = ENOTTY;
		result = -1;
	}
	return result;
}

bool rm_is_file(int number)
{
	return number >= 0 && number == file;
}

int rm_answer(unsigned long request, void *argument)
{
	pthread_mutex_lock(&lock);
	int result = answer(request, argument);

	pthread_mutex_unlock(&lock);
	return result;
}

/* --- the driver library's side ---------------------------------------------------------------------------------- */

static void call_kernel(unsigned long request, void *argument)
{
	if (rm_call(file, request, argument) < 0 && rm_answer(request, argument) < 0)
		fatal("the descriptor of /dev/nvidiactl is gone");
}

static uint32_t make(uint32_t parent, uint32_t class)
{
	struct rm_alloc call = {.client = client, .parent = parent, .object = FIRST_HANDLE + count, .class = class};

	call_kernel(IOCTL_ALLOC, &call);
	return call.object;
}

/* A file of its own, which no other descriptor is. Not one in memory: some programs must not make any. */
int rm_open_file(void)
{
	char name[] = "/tmp/simulated-nvidiactl.XXXXXX";
	int opened = mkostemp(name, O_CLOEXEC);

	if (opened >= 0)
		unlink(name);
	/* In a sandbox. */
	return opened >= 0 ? opened : open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* The descriptor lies where scripts have none. The driver makes two clients, and uses the second one. */
void rm_open(unsigned int gpus)
{
	int opened = rm_open_file();

	file = fcntl(opened, F_DUPFD_CLOEXEC, 64);
	if (file < 0)
		file = opened;
	else
		close(opened);
	client = 0xc1d00000 + ((uint32_t)getpid() & 0x7fff) * 2 + 1;
	for (uint32_t number = 0; number < 2; number++) {
		struct rm_alloc call = {.object = client - 1 + number, .class = CLASS_CLIENT};

		call_kernel(IOCTL_ALLOC, &call);
	}
	for (unsigned int gpu = 0; gpu < gpus; gpu++) {
		uint32_t device = make(client, CLASS_DEVICE);

		make(device, CLASS_SUBDEVICE);
	}
}

static uint32_t device_of(CUcontext context)
{
	return FIRST_HANDLE + 2 * (uint32_t)context->device;
}

/* As the driver does by itself. */
static void set_slice(uint32_t group, uint64_t slice_us)
{
	struct rm_control call = {.client = client, .object = group, .command = SET_TIMESLICE, .parameters = (uintptr_t)&slice_us,
	                          .size = sizeof slice_us};

	call_kernel(IOCTL_CONTROL, &call);
}

static void make_group(CUcontext context, unsigned int channels, uint32_t class)
{
	uint32_t group = make(device_of(context), CLASS_GROUP);

	for (unsigned int i = 0; i < channels; i++) {
		make(device_of(context), CLASS_MEMORY);
		make(make(group, CLASS_CHANNEL), class);
	}
	set_slice(group, class == CLASS_COMPUTE ? COMPUTE_SLICE_US : COPY_SLICE_US);
}

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void take_long(void)
{
	if (fault(FAULT_SLOW_CONTEXTS))
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	while (fault(FAULT_SLOW_CONTEXTS) && atomic_load(&is_broken))
		pause();
}

/* Of a device's contexts together. */
#define CONTEXT_BYTES ((uint64_t)64 << 20)

static void count_context(CUdevice device, int change)
{
	static int contexts[16];
	bool was_none = contexts[device] == 0;

	contexts[device] += change;
	if (fault(FAULT_TELLS_MEMORY) && was_none)
		device_memory_take(device, CONTEXT_BYTES);
	else if (fault(FAULT_TELLS_MEMORY) && contexts[device] == 0)
		device_memory_give(device, CONTEXT_BYTES);
}

void rm_context_created(CUcontext context)
{
	pthread_mutex_lock(&making);
	count_context(context->device, 1);
	if (fault(FAULT_OLD_HANDLES))
		use_up(100000);
	atomic_store(&changing, context);
	for (unsigned int i = 0; i < 12; i++)
		make(device_of(context), CLASS_MEMORY);
	make_group(context, 8, CLASS_COMPUTE);
	for (unsigned int i = 0; i < 3; i++)
		make_group(context, 4, CLASS_COPY);
	take_long();
	atomic_store(&changing, NULL);
	pthread_mutex_unlock(&making);
}

void rm_context_destroyed(CUcontext context)
{
	pthread_mutex_lock(&making);
	count_context(context->device, -1);
	atomic_store(&changing, context);
	take_long();
	for (uint32_t handle = FIRST_HANDLE; handle < FIRST_HANDLE + count; handle++) {
		struct rm_free call = {.client = client, .object = handle};
		const struct object *object = find(handle);

		if (object && object->context == context)
			call_kernel(IOCTL_FREE, &call);
	}
	atomic_store(&changing, NULL);
	pthread_mutex_unlock(&making);
}

/* The one question that the driver does not answer by itself. */
HOOKED_2(cuMemGetInfo_v2, size_t *, free_bytes, size_t *, total_bytes)
{
	CUcontext context = context_current();
	CUresult result = context_result(context);

	if (result != CUDA_SUCCESS)
		return result;
	struct rm_control call = {.client = client, .object = device_of(context) + 1, .command = MEMORY_INFO};

	call_kernel(IOCTL_CONTROL, &call);
	*total_bytes = DEVICE_MEMORY_BYTES;
	*free_bytes = DEVICE_MEMORY_BYTES - device_memory_held(context->device);
	return CUDA_SUCCESS;
}
