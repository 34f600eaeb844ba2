#include "channels.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "gpu/topology/rm_abi.h"
#include "kernel_client.h"

#include <stdatomic.h>

enum {
	KIND_CHANNEL = 0x6f, /* the low byte of each generation's class: clc86f.h, … */
	KIND_COMPUTE = 0xc0  /* the same: clcbc0.h, … */
};

/* The CUDA driver numbers its objects from here on, in order, and uses no number again. Other handles lie outside. */
#define FIRST_HANDLE 0x5c000000
#define LAST_HANDLE 0x5d000000 /* more than any program comes to */

/* A watch that saw one of the first handles being made has seen all. */
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

/* --- what the CUDA driver makes ----------------------------------------------------------------------------------- */

static _Atomic uint64_t changes = 1; /* of the contexts */
static uint64_t changes_seen, looks;
static _Atomic uint32_t highest; /* handle given by the CUDA driver */
static atomic_bool saw_all;      /* since the CUDA driver's first object */
static atomic_bool are_suspended, some_are_new;

void channels_note_change(void)
{
	atomic_fetch_add(&changes, 1);
}

bool channels_are_current(void)
{
	return changes_seen == atomic_load(&changes);
}

/* Programs came to wait in the driver for ever after a suspension and a resumption in the middle of destroying a
 * context and making the next (hardware.md, "Time slices"). So nothing is suspended while a context comes or goes. A
 * change lasts CHANGE_NS at most: the end of a context is not announced, and channels may come without a context. */
#define CHANGE_NS UINT64_C(500000000)
static _Atomic uint64_t made, going; /* when the last channel was made, and a context began to go; 0: never */
static atomic_uint makers;           /* threads that have made channels, with no finished context since */
static __thread bool is_maker __attribute__((tls_model("initial-exec")));

static bool is_of_late(_Atomic uint64_t *when, uint64_t now)
{
	uint64_t since = atomic_load(when);

	return since != 0 && now - min_u64(now, since) < CHANGE_NS;
}

static bool are_changing(void)
{
	uint64_t now = process_clock_ns();

	return is_of_late(&going, now) || (atomic_load(&makers) > 0 && is_of_late(&made, now));
}

/* Several threads may be making contexts. */
void channels_context_made(void)
{
	if (is_maker)
		atomic_fetch_sub(&makers, 1);
	is_maker = false;
	channels_note_change();
}

void channels_context_going(void)
{
	atomic_store(&going, process_clock_ns());
	channels_note_change();
}

/* Channels that come during a suspension count as changes only afterwards: a context in the making needs channels. */
static void set_suspended(bool wanted)
{
	atomic_store(&are_suspended, wanted);
	if (!wanted && atomic_exchange(&some_are_new, false))
		channels_note_change();
}

static void note_new_channel(void)
{
	atomic_store(&made, process_clock_ns());
	if (!is_maker)
		atomic_fetch_add(&makers, 1);
	is_maker = true;
	if (atomic_load_explicit(&are_suspended, memory_order_relaxed))
		atomic_store_explicit(&some_are_new, true, memory_order_relaxed);
	else
		channels_note_change();
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

/* --- finding the channels ----------------------------------------------------------------------------------------- */

/* As many handles in a row may be of objects that have gone; GAP_SEEN: behind the highest handle seen at its making. */
#define GAP 2300
#define GAP_SEEN 64

struct channels_list channels_list;

/* Whether a struct of the array begins with the handle. Searched from the end. */
static bool has_handle(const void *structs, unsigned int count, size_t size, uint32_t handle)
{
	bool found = false;

	for (unsigned int i = count; i > 0 && !found; i--)
		found = *(const uint32_t *)((const char *)structs + (i - 1) * size) == handle;
	return found;
}

#define HAS(list, count, handle) has_handle(list, count, sizeof(list)[0], handle)

static bool add_group(uint32_t handle)
{
	struct channels_list *list = &channels_list;
	bool is_new = !HAS(list->groups, list->group_count, handle), has_room = list->group_count < GROUPS_MAX;

	if (is_new && has_room)
		list->groups[list->group_count++] = (struct channel_group){.handle = handle};
	return !is_new || has_room;
}

/* The channel of a compute object. Above the channel may be a group, and above the group the device. */
static bool add_channel(const struct kernel_client *client, uint32_t compute)
{
	uint32_t channel = kernel_client_parent_of(client, compute);
	uint32_t above = kernel_client_parent_of(client, channel);
	bool has_room = true;

	if (!is_channel(kernel_client_class_of(client, channel)) ||
	    HAS(channels_list.channels, channels_list.count, channel))
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

	if (class == CLASS_SUBDEVICE && list->subdevice_count < SUBDEVICES_MAX &&
	    !HAS(list->subdevices, list->subdevice_count, handle)) {
		list->subdevices[list->subdevice_count].handle = handle;
		list->subdevices[list->subdevice_count++].device = kernel_client_parent_of(client, handle);
	} else if (is_compute(class)) {
		has_room = add_channel(client, handle);
	}
	return has_room;
}

/* Channels of ended contexts leave the list. */
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

/* The handles up to here were asked about. Some may have become objects since. */
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

/* Brings the list up to date: removes channels that have gone, and looks for new channels. */
static enum channels_result make_list(const struct kernel_client *client, struct error *error)
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
		kernel_client_settle();
	}
	if (result != CHANNELS_REFUSED)
		changes_seen = now;
	return result;
}

uint64_t channels_looks(void)
{
	return looks;
}

enum channels_result channels_find(struct error *error)
{
	struct kernel_client client;

	return kernel_client_reach(&client, error) < 0 ? CHANNELS_REFUSED : make_list(&client, error);
}

/* --- suspending them ---------------------------------------------------------------------------------------------- */

/* A handle of the list is no channel, and nothing was done. */
#define STATUS_NO_CHANNEL 0x21

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

_Static_assert(sizeof(struct disable_channels) == 536, "layout");

/* One call for channels of the subdevice, from `from` up to `end` at most. The next call goes on at the new `from`. */
static uint32_t disable(const struct kernel_client *client, unsigned int subdevice, bool suspends, unsigned int *from,
                    unsigned int end)
{
	static struct disable_channels call;
	unsigned int place = *from;

	call = (struct disable_channels){.disable = suspends};
	for (; place < end && call.count < CHANNELS_AT_ONCE; place++) {
		if (channels_list.channels[place].device == channels_list.subdevices[subdevice].device) {
			call.clients[call.count] = client->handle;
			call.channels[call.count++] = channels_list.channels[place].handle;
		}
	}
	uint32_t status = call.count == 0 ? (uint32_t)STATUS_OK
	                                  : kernel_client_control(client, channels_list.subdevices[subdevice].handle,
	                                                          DISABLE_CHANNELS, &call, sizeof call);

	*from = place;
	return status;
}

/* Returns the first status that is not STATUS_OK. The work ends there without `tries_all`. */
static uint32_t disable_all(const struct kernel_client *client, bool suspends, bool tries_all)
{
	uint32_t first = STATUS_OK;

	for (unsigned int subdevice = 0; subdevice < channels_list.subdevice_count && (first == STATUS_OK || tries_all);
	     subdevice++) {
		unsigned int place = 0;

		while (place < channels_list.count && (first == STATUS_OK || tries_all)) {
			uint32_t status = disable(client, subdevice, suspends, &place, channels_list.count);

			first = first == STATUS_OK ? status : first;
		}
	}
	return first;
}

/* Each channel by itself: an ended channel does not keep the rest suspended. False if a living channel is refused. */
static bool resume_each(const struct kernel_client *client)
{
	bool are_back = true;

	for (unsigned int subdevice = 0; subdevice < channels_list.subdevice_count; subdevice++) {
		for (unsigned int place = 0; place < channels_list.count;) {
			uint32_t status = disable(client, subdevice, false, &place, place + 1);

			are_back = are_back && (status == STATUS_OK || status == STATUS_NO_CHANNEL);
		}
	}
	return are_back;
}

static int resume(const struct kernel_client *client, struct error *error)
{
	struct error unused;
	uint32_t status = disable_all(client, false, true);

	if (status == STATUS_NO_CHANNEL && make_list(client, &unused) == CHANNELS_DONE)
		status = disable_all(client, false, true);
	return status == STATUS_OK || resume_each(client)
		   ? 0
		   : error_set(error, "the kernel driver does not resume its work");
}

/* All channels, or no channel. */
static uint32_t suspend(const struct kernel_client *client)
{
	uint32_t status = disable_all(client, true, false);
	struct error unused;

	if (status != STATUS_OK)
		resume(client, &unused);
	return status;
}

/* No list while a context comes or goes, also if the change begins during the search. */
static enum channels_result list_for_suspension(const struct kernel_client *client, bool is_current,
                                                struct error *error)
{
	enum channels_result result = is_current || are_changing() ? CHANNELS_DONE : make_list(client, error);

	return result == CHANNELS_DONE && are_changing() ? CHANNELS_CHANGING : result;
}

static enum channels_result suspend_listed(const struct kernel_client *client, struct error *error)
{
	enum channels_result result = list_for_suspension(client, channels_are_current(), error);
	uint32_t status = result == CHANNELS_DONE ? suspend(client) : STATUS_OK;

	if (status == STATUS_NO_CHANNEL) {
		result = list_for_suspension(client, false, error);
		status = result == CHANNELS_DONE ? suspend(client) : STATUS_OK;
	}
	if (status != STATUS_OK) {
		error_set(error, "the kernel driver does not suspend its work (status %#x)", status);
		result = CHANNELS_REFUSED;
	}
	return result;
}

/* After a failure nothing stays suspended, also from an earlier suspension: no later call would resume the channels. */
enum channels_result channels_suspend(struct error *error)
{
	struct kernel_client client;
	bool is_reached = kernel_client_reach(&client, error) == 0;
	enum channels_result result = is_reached ? suspend_listed(&client, error) : CHANNELS_REFUSED;

	if (is_reached && result != CHANNELS_DONE && atomic_load(&are_suspended) && resume(&client, error) < 0)
		result = CHANNELS_REFUSED;
	set_suspended(result == CHANNELS_DONE);
	return result;
}

int channels_resume(struct error *error)
{
	struct kernel_client client;

	set_suspended(false);
	return kernel_client_reach(&client, error) < 0 ? -1 : resume(&client, error);
}

/* --- their time slices -------------------------------------------------------------------------------------------- */

#define SET_TIMESLICE 0xa06c0103 /* ctrl/ctrla06c/ctrla06cgpfifo.h: of a group, in us */
#define GET_TIMESLICE 0xa06c0104

/* Brings the list up to date, except during a suspension: the next suspension must see that some channels are new. */
static enum channels_result refresh_list(const struct kernel_client *client, struct error *error)
{
	enum channels_result result = channels_list.count > 0 ? CHANNELS_DONE : CHANNELS_NONE;

	if (!channels_are_current() && !atomic_load(&are_suspended))
		result = make_list(client, error);
	return result;
}

/* A slice of 0 could not be given back. */
static uint32_t remember(const struct kernel_client *client, struct channel_group *group)
{
	uint32_t status = STATUS_OK;

	if (group->slice_us == 0)
		status = kernel_client_control(client, group->handle, GET_TIMESLICE, &group->slice_us,
		                               sizeof group->slice_us);
	return status == STATUS_OK && group->slice_us == 0 ? (uint32_t)STATUS_NOT_PERMITTED : status;
}

static uint32_t set_slice(const struct kernel_client *client, struct channel_group *group, uint64_t slice_us)
{
	if (group->ours_us == slice_us)
		return STATUS_OK;
	uint32_t status = remember(client, group);
	uint64_t wanted = slice_us > 0 ? slice_us : group->slice_us;

	if (status == STATUS_OK)
		status = kernel_client_control(client, group->handle, SET_TIMESLICE, &wanted, sizeof wanted);
	if (status == STATUS_OK)
		group->ours_us = slice_us;
	return status;
}

/* A refusal for a group does not keep further groups from new slices. */
static enum channels_result set_slices(const struct kernel_client *client, uint64_t slice_us, struct error *error)
{
	uint32_t first = STATUS_OK;

	for (unsigned int i = 0; i < channels_list.group_count; i++) {
		struct channel_group *group = &channels_list.groups[i];
		uint32_t status = set_slice(client, group, slice_us);

		/* A group that is gone refuses, too. */
		if (first == STATUS_OK && status != STATUS_OK &&
		    kernel_client_class_of(client, group->handle) == CLASS_GROUP)
			first = status;
	}
	if (first != STATUS_OK)
		error_set(error, "the kernel driver does not set its time slices (status %#x)", first);
	return first == STATUS_OK ? CHANNELS_DONE : CHANNELS_REFUSED;
}

enum channels_result channels_set_slice(uint64_t slice_us, struct error *error)
{
	struct kernel_client client;
	enum channels_result result = kernel_client_reach(&client, error) < 0 ? CHANNELS_REFUSED
	                                                                      : refresh_list(&client, error);

	return result == CHANNELS_DONE ? set_slices(&client, slice_us, error) : result;
}

void channels_after_fork(void)
{
	kernel_client_after_fork();
	atomic_store(&highest, 0);
	atomic_store(&saw_all, false);
	atomic_store(&are_suspended, false);
	atomic_store(&made, 0);
	atomic_store(&going, 0);
	atomic_store(&makers, 0);
	is_maker = false;
	channels_list.count = channels_list.subdevice_count = channels_list.group_count = 0;
	asked = FIRST_HANDLE;
	channels_note_change();
}
