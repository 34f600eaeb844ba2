#include "channels.h"

#include "functions.h"
#include "gpu/topology/rm_abi.h"
#include "import.h"

#include <errno.h>
#include <stdatomic.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

/* --- the kernel driver's interface, published in open-gpu-kernel-modules --------------------------------------------- */

enum {
	CLASS_GROUP = 0xa06c, /* class/cla06c.h: a group of channels */
	KIND_CHANNEL = 0x6f,  /* the low byte of each generation's class: clc86f.h, … */
	KIND_COMPUTE = 0xc0   /* the same: clcbc0.h, … */
};

/* One handle of the list is no channel, and nothing was done. */
#define STATUS_NO_CHANNEL 0x21

#define HANDLE_INFO 0xd02 /* ctrl/ctrl0000/ctrl0000client.h */
struct handle_info {
	uint32_t handle;
	uint32_t index; /* of the question */
	uint64_t answer;
};

enum {
	ASK_PARENT = 1,
	ASK_CLASS = 2
};

#define DISABLE_CHANNELS 0x2080110b /* ctrl/ctrl2080/ctrl2080fifo.h */
#define CHANNELS_AT_ONCE 64
struct disable_channels {
	uint8_t disable;
	uint32_t count;
	uint8_t only_scheduling;
	uint8_t rewind;
	uint64_t event;
	uint32_t clients[CHANNELS_AT_ONCE];
	uint32_t channels[CHANNELS_AT_ONCE];
};

_Static_assert(sizeof(struct handle_info) == 16, "layout");
_Static_assert(sizeof(struct disable_channels) == 536, "layout");

/* Controls whose upper half is this are an object's of class CLASS_SUBDEVICE. */
#define OF_SUBDEVICE(command) ((command) >> 16 == CLASS_SUBDEVICE)

/* The CUDA driver numbers its objects from here on, in order; what has other handles has other purposes. */
#define FIRST_HANDLE 0x5c000000
#define HANDLES_MAX 200000

/* Whoever has seen one of the first being made has seen all. */
#define FIRST_HANDLES 4

static bool is_numbered(uint32_t handle)
{
	return handle >= FIRST_HANDLE && handle < FIRST_HANDLE + HANDLES_MAX;
}

static bool is_channel(uint32_t class)
{
	return (class & 0xff) == KIND_CHANNEL && class > 0xff;
}

static bool is_compute(uint32_t class)
{
	return (class & 0xff) == KIND_COMPUTE && class > 0xff;
}

/* --- what the CUDA driver has --------------------------------------------------------------------------------------- */

/* The client under which it asks about GPUs, and its descriptor, which must stay the same file. */
static struct known {
	uint32_t client; /* 0: not known yet */
	int file;
	dev_t device;
	ino_t inode;
} known;
static atomic_flag is_learning = ATOMIC_FLAG_INIT; /* guards it; nobody waits for it */
static _Atomic uint32_t known_client;
static atomic_bool is_proven; /* it has channels: no other client takes its place */
static _Atomic uint32_t highest; /* handle that the CUDA driver has given an object */
static atomic_bool saw_all;      /* since its first object */

static import_place next;

static void learn(int file, uint32_t client)
{
	struct stat status;

	if (atomic_load_explicit(&known_client, memory_order_relaxed) == client ||
	    atomic_load_explicit(&is_proven, memory_order_relaxed) || atomic_flag_test_and_set(&is_learning))
		return;
	if (fstat(file, &status) == 0) {
		known = (struct known){.client = client, .file = file, .device = status.st_dev, .inode = status.st_ino};
		atomic_store(&known_client, client);
	}
	atomic_flag_clear(&is_learning);
}

/* A context that is being made needs its channels. If others are put aside meanwhile, it is told of when it is ready
 * (channels_have_changed), or when they are back. */
static atomic_bool are_aside, some_are_new;

static void note_new_channel(void)
{
	if (atomic_load_explicit(&are_aside, memory_order_relaxed))
		atomic_store_explicit(&some_are_new, true, memory_order_relaxed);
	else
		channels_have_changed();
}

static void see_alloc(int file, const struct rm_alloc *call)
{
	uint32_t before = atomic_load_explicit(&highest, memory_order_relaxed);

	if (call->status != STATUS_OK || !is_numbered(call->object))
		return;
	if (is_channel(call->class) || is_compute(call->class))
		note_new_channel();
	if (call->object < FIRST_HANDLE + FIRST_HANDLES)
		atomic_store_explicit(&saw_all, true, memory_order_relaxed);
	while (call->object > before && !atomic_compare_exchange_weak(&highest, &before, call->object))
		;
	if (call->class == CLASS_GROUP)
		learn(file, call->client);
}

/* In place of the driver's import: passes the call on, and looks at it afterwards. */
static int watched_ioctl(int file, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);

	va_end(arguments);
	int result = atomic_load_explicit(&next, memory_order_acquire)(file, request, argument);
	int saved = errno;

	if (result == 0 && request == IOCTL_ALLOC) {
		see_alloc(file, argument);
	} else if (result == 0 && request == IOCTL_CONTROL) {
		const struct rm_control *call = argument;

		if (call->status == STATUS_OK && OF_SUBDEVICE(call->command))
			learn(file, call->client);
	}
	errno = saved;
	return result;
}

int channels_watch(struct error *error)
{
	return import_replace(watched_ioctl, &next, error);
}

void channels_unwatch(void)
{
	atomic_store(&saw_all, false);
	import_restore(watched_ioctl);
}

bool channels_are_reachable(void)
{
	return atomic_load(&known_client) != 0;
}

/* --- provoking ------------------------------------------------------------------------------------------------------ */

/* Whatever is being captured stays unharmed. */
void channels_provoke(void)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	size_t free_bytes, total_bytes;

	if (driver.memory_get_info && driver.thread_exchange_capture_mode &&
	    driver.thread_exchange_capture_mode(&mode) == CUDA_SUCCESS) {
		driver.memory_get_info(&free_bytes, &total_bytes);
		driver.thread_exchange_capture_mode(&mode);
	}
}

static void ask_in_primary(CUdevice device)
{
	CUcontext context = NULL;
	unsigned int flags;
	int is_active = 0;

	if (driver.primary_get_state(device, &flags, &is_active) != CUDA_SUCCESS || !is_active ||
	    driver.primary_retain(&context, device) != CUDA_SUCCESS)
		return;
	if (driver.context_push(context) == CUDA_SUCCESS) {
		channels_provoke();
		driver.context_pop(&context);
	}
	driver.primary_release(device);
}

void channels_provoke_in_primary(void)
{
	bool can_find = driver.primary_get_state && driver.primary_retain && driver.primary_release;
	int count = 0;
	CUdevice device;

	if (!can_find || driver.device_get_count(&count) != CUDA_SUCCESS)
		return;
	for (int number = 0; number < count && !channels_are_reachable(); number++) {
		if (driver.device_get(&device, number) == CUDA_SUCCESS)
			ask_in_primary(device);
	}
}

/* --- asking --------------------------------------------------------------------------------------------------------- */

/* A copy of `known`. False if it is not known, or the descriptor is another file now: the program may have closed it. */
static bool reach(struct known *reached)
{
	struct stat status;

	while (atomic_flag_test_and_set(&is_learning))
		sched_yield();
	*reached = known;
	atomic_flag_clear(&is_learning);
	return reached->client != 0 && fstat(reached->file, &status) == 0 && status.st_dev == reached->device &&
	       status.st_ino == reached->inode;
}

static uint32_t control(const struct known *reached, uint32_t object, uint32_t command, void *parameters, uint32_t size)
{
	struct rm_control call = {
		.client = reached->client,
		.object = object,
		.command = command,
		.parameters = (uintptr_t)parameters,
		.size = size,
	};

	return atomic_load(&next)(reached->file, IOCTL_CONTROL, &call) < 0 ? STATUS_NOT_PERMITTED : call.status;
}

/* 0 if there is no such object. */
static uint32_t ask(const struct known *reached, uint32_t handle, uint32_t index)
{
	struct handle_info info = {.handle = handle, .index = index};

	return control(reached, reached->client, HANDLE_INFO, &info, sizeof info) == STATUS_OK ? (uint32_t)info.answer : 0;
}

/* --- finding the channels ------------------------------------------------------------------------------------------- */

/* So many handles in a row may be of objects that have gone; behind the highest one that was seen being made, too. */
#define GAP 2300
#define GAP_SEEN 64
#define SUBDEVICES_MAX 64
#define CHANNELS_MAX 4096

static struct channel {
	uint32_t handle;
	uint32_t device; /* whose subdevice is to be asked */
} channels[CHANNELS_MAX];
static unsigned int channel_count;

static struct {
	uint32_t handle;
	uint32_t device;
} subdevices[SUBDEVICES_MAX];
static unsigned int subdevice_count;

static _Atomic uint64_t changes = 1; /* of the contexts */
static uint64_t changes_seen;

void channels_have_changed(void)
{
	atomic_fetch_add(&changes, 1);
}

bool channels_are_current(void)
{
	return changes_seen == atomic_load(&changes);
}

unsigned int channels_count(void)
{
	return channel_count;
}

/* A channel whose object this is: above it may be a group, and above that the device. */
static bool add_channel(const struct known *reached, uint32_t compute)
{
	uint32_t channel = ask(reached, compute, ASK_PARENT);
	uint32_t above = ask(reached, channel, ASK_PARENT);

	if (!is_channel(ask(reached, channel, ASK_CLASS)))
		return true;
	if (ask(reached, above, ASK_CLASS) == CLASS_GROUP)
		above = ask(reached, above, ASK_PARENT);
	if (channel_count == CHANNELS_MAX)
		return false;
	channels[channel_count++] = (struct channel){.handle = channel, .device = above};
	return true;
}

static bool add_object(const struct known *reached, uint32_t handle, uint32_t class)
{
	bool has_room = true;

	if (class == CLASS_SUBDEVICE && subdevice_count < SUBDEVICES_MAX) {
		subdevices[subdevice_count].handle = handle;
		subdevices[subdevice_count++].device = ask(reached, handle, ASK_PARENT);
	} else if (is_compute(class)) {
		has_room = add_channel(reached, handle);
	}
	return has_room;
}

static int find(const struct known *reached, struct error *error)
{
	uint64_t now = atomic_load(&changes);
	uint32_t end = atomic_load(&highest);
	uint32_t gap = atomic_load(&saw_all) ? GAP_SEEN : GAP;
	bool has_room = true;

	channel_count = subdevice_count = 0;
	if (end < FIRST_HANDLE)
		end = FIRST_HANDLE;
	for (uint32_t handle = FIRST_HANDLE; handle < end + gap && is_numbered(handle) && has_room; handle++) {
		uint32_t class = ask(reached, handle, ASK_CLASS);

		if (class != 0 && handle > end)
			end = handle;
		if (class != 0)
			has_room = add_object(reached, handle, class);
	}
	if (!has_room)
		return error_set(error, "it has more contexts than can be put aside");
	if (channel_count == 0 || subdevice_count == 0)
		return error_set(error, "none of its work can be found in the kernel driver");
	changes_seen = now;
	atomic_store(&is_proven, true);
	return 0;
}

int channels_find(struct error *error)
{
	struct known reached;

	return reach(&reached) ? find(&reached, error) : error_set(error, "the driver's way to the kernel driver is not known");
}

/* --- putting aside -------------------------------------------------------------------------------------------------- */

/* One call for those of this subdevice from `from` on, which then is where the next call goes on; at most up to `end`. */
static uint32_t set(const struct known *reached, unsigned int subdevice, bool is_aside, unsigned int *from, unsigned int end)
{
	static struct disable_channels list;
	unsigned int place = *from;

	list = (struct disable_channels){.disable = is_aside};
	for (; place < end && list.count < CHANNELS_AT_ONCE; place++) {
		if (channels[place].device == subdevices[subdevice].device) {
			list.clients[list.count] = reached->client;
			list.channels[list.count++] = channels[place].handle;
		}
	}
	uint32_t status = list.count == 0 ? (uint32_t)STATUS_OK
	                                  : control(reached, subdevices[subdevice].handle, DISABLE_CHANNELS, &list, sizeof list);

	*from = place;
	return status;
}

/* The first status that is not STATUS_OK; it ends the work, unless everything is to be tried. */
static uint32_t set_all(const struct known *reached, bool is_aside, bool tries_all)
{
	uint32_t first = STATUS_OK;

	for (unsigned int subdevice = 0; subdevice < subdevice_count && (first == STATUS_OK || tries_all); subdevice++) {
		unsigned int place = 0;

		while (place < channel_count && (first == STATUS_OK || tries_all)) {
			uint32_t status = set(reached, subdevice, is_aside, &place, channel_count);

			first = first == STATUS_OK ? status : first;
		}
	}
	return first;
}

/* Each channel by itself: one that is gone does not keep the others from coming back. */
static void take_back_each(const struct known *reached)
{
	for (unsigned int subdevice = 0; subdevice < subdevice_count; subdevice++) {
		for (unsigned int place = 0; place < channel_count;)
			set(reached, subdevice, false, &place, place + 1);
	}
}

static bool take_back(const struct known *reached)
{
	struct error error;
	uint32_t status = set_all(reached, false, true);

	if (status == STATUS_NO_CHANNEL && find(reached, &error) == 0)
		status = set_all(reached, false, true);
	if (status != STATUS_OK)
		take_back_each(reached);
	return status == STATUS_OK;
}

/* A list that is out of date is made anew once. */
int channels_put_aside(struct error *error)
{
	struct known reached;
	uint32_t status = STATUS_NO_CHANNEL;
	int result = reach(&reached) ? 0 : error_set(error, "the driver's way to the kernel driver is not known");

	for (int attempt = 0; attempt < 2 && result == 0 && status == STATUS_NO_CHANNEL; attempt++) {
		if (attempt > 0 || !channels_are_current())
			result = find(&reached, error);
		if (result == 0) {
			status = set_all(&reached, true, false);
			if (status != STATUS_OK)
				take_back(&reached);
		}
	}
	atomic_store(&are_aside, result == 0 && status == STATUS_OK);
	if (result == 0 && status != STATUS_OK)
		result = error_set(error, "the kernel driver does not put its work aside (status %#x)", status);
	return result;
}

int channels_take_back(struct error *error)
{
	struct known reached;

	atomic_store(&are_aside, false);
	if (atomic_exchange(&some_are_new, false))
		channels_have_changed();
	if (!reach(&reached))
		return error_set(error, "the driver's way to the kernel driver is gone");
	take_back(&reached);
	return 0;
}

void channels_after_fork(void)
{
	atomic_flag_clear(&is_learning);
	atomic_store(&known_client, 0);
	atomic_store(&is_proven, false);
	atomic_store(&highest, 0);
	atomic_store(&saw_all, false);
	known = (struct known){.client = 0};
	atomic_store(&are_aside, false);
	channel_count = subdevice_count = 0;
	channels_have_changed();
}
