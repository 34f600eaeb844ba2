#include "channels.h"

#include "channels_list.h"
#include "gpu/topology/rm_abi.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum {
	KIND_CHANNEL = 0x6f, /* the low byte of each generation's class: clc86f.h, … */
	KIND_COMPUTE = 0xc0  /* the same: clcbc0.h, … */
};

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

/* --- what the CUDA driver makes ------------------------------------------------------------------------------------- */

static _Atomic uint64_t changes = 1; /* of the contexts */
static uint64_t changes_seen, looks;
static _Atomic uint32_t highest; /* handle that the CUDA driver has given an object */
static atomic_bool saw_all;      /* since its first object */
static atomic_bool are_aside, some_are_new;

void channels_have_changed(void)
{
	atomic_fetch_add(&changes, 1);
}

bool channels_are_current(void)
{
	return changes_seen == atomic_load(&changes);
}

void channels_list_are_aside(bool wanted)
{
	atomic_store(&are_aside, wanted);
	if (!wanted && atomic_exchange(&some_are_new, false))
		channels_have_changed();
}

static void note_new_channel(void)
{
	if (atomic_load_explicit(&are_aside, memory_order_relaxed))
		atomic_store_explicit(&some_are_new, true, memory_order_relaxed);
	else
		channels_have_changed();
}

static void see_object(uint32_t object, uint32_t class)
{
	uint32_t before = atomic_load_explicit(&highest, memory_order_relaxed);

	if (!is_numbered(object))
		return;
	if (is_channel(class) || is_compute(class))
		note_new_channel();
	if (object < FIRST_HANDLE + FIRST_HANDLES)
		atomic_store_explicit(&saw_all, true, memory_order_relaxed);
	while (object > before && !atomic_compare_exchange_weak(&highest, &before, object))
		;
}

int channels_watch(struct error *error)
{
	return kernel_client_watch(see_object, error);
}

void channels_unwatch(void)
{
	atomic_store(&saw_all, false);
	kernel_client_unwatch();
}

/* --- finding the channels ------------------------------------------------------------------------------------------- */

/* So many handles in a row may be of objects that have gone; behind the highest one that was seen being made, too. */
#define GAP 2300
#define GAP_SEEN 64

struct channels_list channels_list;

unsigned int channels_count(void)
{
	return channels_list.count;
}

static struct channel_group *find_group(struct channel_group *groups, unsigned int count, uint32_t handle)
{
	struct channel_group *found = NULL;

	for (unsigned int i = count; i > 0 && !found; i--)
		found = groups[i - 1].handle == handle ? &groups[i - 1] : NULL;
	return found;
}

static bool add_group(uint32_t handle)
{
	struct channels_list *list = &channels_list;
	bool is_new = !find_group(list->groups, list->group_count, handle), has_room = list->group_count < GROUPS_MAX;

	if (is_new && has_room)
		list->groups[list->group_count++] = (struct channel_group){.handle = handle};
	return !is_new || has_room;
}

/* A channel whose object this is: above it may be a group, and above that the device. */
static bool add_channel(const struct kernel_client *client, uint32_t compute)
{
	uint32_t channel = kernel_client_parent_of(client, compute);
	uint32_t above = kernel_client_parent_of(client, channel);
	bool has_room = true;

	if (!is_channel(kernel_client_class_of(client, channel)))
		return true;
	if (kernel_client_class_of(client, above) == CLASS_GROUP) {
		has_room = add_group(above);
		above = kernel_client_parent_of(client, above);
	}
	if (!has_room || channels_list.count == CHANNELS_MAX)
		return false;
	channels_list.channels[channels_list.count++] = (struct channel){.handle = channel, .device = above};
	return true;
}

static bool add_object(const struct kernel_client *client, uint32_t handle, uint32_t class)
{
	struct channels_list *list = &channels_list;
	bool has_room = true;

	if (class == CLASS_SUBDEVICE && list->subdevice_count < SUBDEVICES_MAX) {
		list->subdevices[list->subdevice_count].handle = handle;
		list->subdevices[list->subdevice_count++].device = kernel_client_parent_of(client, handle);
	} else if (is_compute(class)) {
		has_room = add_channel(client, handle);
	}
	return has_room;
}

static bool add_all(const struct kernel_client *client)
{
	uint32_t end = atomic_load(&highest);
	uint32_t gap = atomic_load(&saw_all) ? GAP_SEEN : GAP;
	bool has_room = true;

	if (end < FIRST_HANDLE)
		end = FIRST_HANDLE;
	for (uint32_t handle = FIRST_HANDLE; handle < end + gap && is_numbered(handle) && has_room; handle++) {
		uint32_t class = kernel_client_class_of(client, handle);

		if (class != 0 && handle > end)
			end = handle;
		if (class != 0)
			has_room = add_object(client, handle, class);
	}
	return has_room;
}

static void keep_what_is_known(struct channel_group *before, unsigned int count)
{
	for (unsigned int i = 0; i < channels_list.group_count; i++) {
		struct channel_group *group = &channels_list.groups[i];
		const struct channel_group *known = find_group(before, count, group->handle);

		*group = known ? *known : *group;
	}
}

int channels_list_make(const struct kernel_client *client, struct error *error)
{
	static struct channel_group groups[GROUPS_MAX];
	unsigned int group_count = channels_list.group_count;
	uint64_t now = atomic_load(&changes);

	memcpy(groups, channels_list.groups, group_count * sizeof groups[0]);
	channels_list.count = channels_list.subdevice_count = channels_list.group_count = 0;
	looks++;
	bool has_room = add_all(client);

	keep_what_is_known(groups, group_count);
	if (!has_room)
		return error_set(error, "it has more contexts than can be put aside");
	if (channels_list.count == 0 || channels_list.subdevice_count == 0)
		return error_set(error, "none of its work can be found in the kernel driver");
	changes_seen = now;
	kernel_client_is_proven();
	return 0;
}

int channels_list_refresh(const struct kernel_client *client, struct error *error)
{
	return channels_are_current() || atomic_load(&are_aside) ? 0 : channels_list_make(client, error);
}

uint64_t channels_looks(void)
{
	return looks;
}

int channels_find(struct error *error)
{
	struct kernel_client client;

	return kernel_client_reach(&client) ? channels_list_make(&client, error)
	                                    : error_set(error, "the driver's way to the kernel driver is not known");
}

void channels_after_fork(void)
{
	kernel_client_after_fork();
	atomic_store(&highest, 0);
	atomic_store(&saw_all, false);
	atomic_store(&are_aside, false);
	channels_list.count = channels_list.subdevice_count = channels_list.group_count = 0;
	channels_have_changed();
}
