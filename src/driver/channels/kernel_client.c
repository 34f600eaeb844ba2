#include "kernel_client.h"

#include "driver/contexts.h"
#include "driver/functions.h"
#include "gpu/topology/rm_abi.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>

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

_Static_assert(sizeof(struct handle_info) == 16, "layout");

/* Controls with this upper half are for an object of class CLASS_SUBDEVICE. */
#define OF_SUBDEVICE(command) ((command) >> 16 == CLASS_SUBDEVICE)

/* --- learning ----------------------------------------------------------------------------------------------------- */

static struct kernel_client known;
static atomic_flag is_learning = ATOMIC_FLAG_INIT; /* guards `known`; only our thread waits, for a moment */
static _Atomic uint32_t known_handle;
static atomic_bool is_proven;

static import_place next;
static void (*_Atomic tell_of)(uint32_t object, uint32_t class);

static void learn_client(int file, uint32_t handle)
{
	struct stat status;

	if (atomic_load_explicit(&known_handle, memory_order_relaxed) == handle ||
	    atomic_load_explicit(&is_proven, memory_order_relaxed) || atomic_flag_test_and_set(&is_learning))
		return;
	if (fstat(file, &status) == 0) {
		known = (struct kernel_client){
		    .handle = handle, .file = file, .device = status.st_dev, .inode = status.st_ino};
		atomic_store(&known_handle, handle);
	}
	atomic_flag_clear(&is_learning);
}

static void see_alloc(int file, const struct rm_alloc *call)
{
	if (call->status != STATUS_OK)
		return;
	atomic_load_explicit(&tell_of, memory_order_relaxed)(call->object, call->class);
	if (call->class == CLASS_GROUP)
		learn_client(file, call->client);
}

/* In place of the driver's import: passes the call on, and looks at the call afterwards. */
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
			learn_client(file, call->client);
	}
	errno = saved;
	return result;
}

int kernel_client_watch(void (*made)(uint32_t object, uint32_t class), struct error *error)
{
	atomic_store(&tell_of, made);
	return import_replace(watched_ioctl, &next, error);
}

void kernel_client_unwatch(void)
{
	import_restore(watched_ioctl);
}

bool kernel_client_is_known(void)
{
	return atomic_load(&known_handle) != 0;
}

void kernel_client_settle(void)
{
	atomic_store(&is_proven, true);
}

/* --- provoking ---------------------------------------------------------------------------------------------------- */

/* A capture under way stays unharmed. */
void kernel_client_provoke(void)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	size_t free_bytes, total_bytes;

	if (driver.memory_get_info && driver.thread_exchange_capture_mode &&
	    driver.thread_exchange_capture_mode(&mode) == CUDA_SUCCESS) {
		driver.memory_get_info(&free_bytes, &total_bytes);
		driver.thread_exchange_capture_mode(&mode);
	}
}

static bool ask_in(CUcontext context)
{
	bool is_pushed;

	if (contexts_enter(context, &is_pushed) == CUDA_SUCCESS) {
		kernel_client_provoke();
		contexts_leave(is_pushed);
	}
	return !kernel_client_is_known();
}

void kernel_client_provoke_in_primary(void)
{
	if (!kernel_client_is_known())
		contexts_visit_primaries(ask_in);
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

int kernel_client_reach(struct kernel_client *client, struct error *error)
{
	struct stat status;

	while (atomic_flag_test_and_set(&is_learning))
		sched_yield();
	*client = known;
	atomic_flag_clear(&is_learning);
	if (client->handle == 0)
		return error_set(error, "the driver's way to the kernel driver is not known");
	if (fstat(client->file, &status) < 0 || status.st_dev != client->device || status.st_ino != client->inode)
		return error_set(error, "the driver's way to the kernel driver is gone");
	return 0;
}

uint32_t kernel_client_control(const struct kernel_client *client, uint32_t object, uint32_t command, void *parameters,
                               uint32_t size)
{
	struct rm_control call = {
		.client = client->handle,
		.object = object,
		.command = command,
		.parameters = (uintptr_t)parameters,
		.size = size,
	};

	return atomic_load(&next)(client->file, IOCTL_CONTROL, &call) < 0 ? STATUS_NOT_PERMITTED : call.status;
}

static uint32_t ask_about(const struct kernel_client *client, uint32_t handle, uint32_t index)
{
	struct handle_info info = {.handle = handle, .index = index};
	uint32_t status = kernel_client_control(client, client->handle, HANDLE_INFO, &info, sizeof info);

	return status == STATUS_OK ? (uint32_t)info.answer : 0;
}

uint32_t kernel_client_parent_of(const struct kernel_client *client, uint32_t handle)
{
	return ask_about(client, handle, ASK_PARENT);
}

uint32_t kernel_client_class_of(const struct kernel_client *client, uint32_t handle)
{
	return ask_about(client, handle, ASK_CLASS);
}

void kernel_client_after_fork(void)
{
	atomic_flag_clear(&is_learning);
	atomic_store(&known_handle, 0);
	atomic_store(&is_proven, false);
	known = (struct kernel_client){.handle = 0};
}
