#include "channels.h"

#include "gpu/topology/rm_abi.h"
#include "list.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
	KIND_CHANNEL = 0x6f, /* the low byte of each generation's class: clc86f.h, … */
	KIND_COMPUTE = 0xc0  /* the same: clcbc0.h, … */
};

/* The CUDA driver numbers its objects from here on, in order, and uses no number again; what has other handles has other
 * purposes. */
#define FIRST_HANDLE 0x5c000000
#define LAST_HANDLE 0x5d000000 /* more than any program comes to */

/* Whoever has seen one of the first being made has seen all. */
#define FIRST_HANDLES 4

static bool is_numbered(uint32_t handle)
{
	return handle >= FIRST_HANDLE && handle < LAST_HANDLE;
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
static atomic_bool are_suspended, some_are_new;

void channels_have_changed(void)
{
	atomic_fetch_add(&changes, 1);
}

bool channels_are_current(void)
{
	return changes_seen == atomic_load(&changes);
}

void channels_list_are_suspended(bool wanted)
{
	atomic_store(&are_suspended, wanted);
	if (!wanted && atomic_exchange(&some_are_new, false))
		channels_have_changed();
}

static void note_new_channel(void)
{
	if (atomic_load_explicit(&are_suspended, memory_order_relaxed))
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

static bool has_channel(uint32_t handle)
{
	bool found = false;

	for (unsigned int i = channels_list.count; i > 0 && !found; i--)
		found = channels_list.channels[i - 1].handle == handle;
	return found;
}

/* A channel whose object this is: above it may be a group, and above that the device. */
static bool add_channel(const struct kernel_client *client, uint32_t compute)
{
	uint32_t channel = kernel_client_parent_of(client, compute);
	uint32_t above = kernel_client_parent_of(client, channel);
	bool has_room = true;

	if (!is_channel(kernel_client_class_of(client, channel)) || has_channel(channel))
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

static bool has_subdevice(uint32_t handle)
{
	bool found = false;

	for (unsigned int i = 0; i < channels_list.subdevice_count && !found; i++)
		found = channels_list.subdevices[i].handle == handle;
	return found;
}

static bool add_object(const struct kernel_client *client, uint32_t handle, uint32_t class)
{
	struct channels_list *list = &channels_list;
	bool has_room = true;

	if (class == CLASS_SUBDEVICE && list->subdevice_count < SUBDEVICES_MAX && !has_subdevice(handle)) {
		list->subdevices[list->subdevice_count].handle = handle;
		list->subdevices[list->subdevice_count++].device = kernel_client_parent_of(client, handle);
	} else if (is_compute(class)) {
		has_room = add_channel(client, handle);
	}
	return has_room;
}

/* Those of contexts that have gone leave the list. */
static void keep_living(const struct kernel_client *client)
{
	struct channels_list *list = &channels_list;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < list->count; i++) {
		if (is_channel(kernel_client_class_of(client, list->channels[i].handle)))
			list->channels[kept++] = list->channels[i];
	}
	list->count = kept;
	kept = 0;
	for (unsigned int i = 0; i < list->group_count; i++) {
		if (kernel_client_class_of(client, list->groups[i].handle) == CLASS_GROUP)
			list->groups[kept++] = list->groups[i];
	}
	list->group_count = kept;
}

/* The handles up to here were asked about; some before it may have been about to become objects. */
static uint32_t asked = FIRST_HANDLE;

static bool add_new(const struct kernel_client *client)
{
	uint32_t end = atomic_load(&highest), gap = atomic_load(&saw_all) ? GAP_SEEN : GAP;
	uint32_t first = asked - FIRST_HANDLE > GAP_SEEN ? asked - GAP_SEEN : FIRST_HANDLE;
	bool has_room = true;

	if (end < first)
		end = first;
	for (uint32_t handle = first; handle < end + gap && is_numbered(handle) && has_room; handle++) {
		uint32_t class = kernel_client_class_of(client, handle);

		if (class != 0 && handle > end)
			end = handle;
		if (class != 0)
			has_room = add_object(client, handle, class);
	}
	asked = has_room ? end : asked;
	return has_room;
}

enum channels_result channels_list_make(const struct kernel_client *client, struct error *error)
{
	uint64_t now = atomic_load(&changes);
	enum channels_result result = CHANNELS_DONE;

	looks++;
	keep_living(client);
	if (!add_new(client)) {
		error_set(error, "it has more contexts than can be suspended");
		result = CHANNELS_REFUSED;
	} else if (channels_list.count == 0 || channels_list.subdevice_count == 0) {
		error_set(error, "none of its work can be found in the kernel driver");
		result = CHANNELS_NONE;
	} else {
		kernel_client_is_proven();
	}
	if (result != CHANNELS_REFUSED)
		changes_seen = now;
	return result;
}

enum channels_result channels_list_refresh(const struct kernel_client *client, struct error *error)
{
	enum channels_result result = channels_list.count > 0 ? CHANNELS_DONE : CHANNELS_NONE;

	if (!channels_are_current() && !atomic_load(&are_suspended))
		result = channels_list_make(client, error);
	return result;
}

uint64_t channels_looks(void)
{
	return looks;
}

enum channels_result channels_find(struct error *error)
{
	struct kernel_client client;

	return kernel_client_reach(&client, error) < 0 ? CHANNELS_REFUSED : channels_list_make(&client, error);
}

void channels_after_fork(void)
{
	kernel_client_after_fork();
	atomic_store(&highest, 0);
	atomic_store(&saw_all, false);
	atomic_store(&are_suspended, false);
	channels_list.count = channels_list.subdevice_count = channels_list.group_count = 0;
	asked = FIRST_HANDLE;
	channels_have_changed();
}
