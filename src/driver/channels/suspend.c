#include "channels.h"

#include "gpu/topology/rm_abi.h"
#include "list.h"

/* One handle of the list is no channel, and nothing was done. */
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

static const struct channels_list *const list = &channels_list;

/* One call for those of this subdevice from `from` on, which then is where the next call goes on; at most up to `end`. */
static uint32_t set(const struct kernel_client *client, unsigned int subdevice, bool suspends, unsigned int *from,
                    unsigned int end)
{
	static struct disable_channels call;
	unsigned int place = *from;

	call = (struct disable_channels){.disable = suspends};
	for (; place < end && call.count < CHANNELS_AT_ONCE; place++) {
		if (list->channels[place].device == list->subdevices[subdevice].device) {
			call.clients[call.count] = client->handle;
			call.channels[call.count++] = list->channels[place].handle;
		}
	}
	uint32_t status = call.count == 0 ? (uint32_t)STATUS_OK
	                                  : kernel_client_control(client, list->subdevices[subdevice].handle, DISABLE_CHANNELS,
	                                                          &call, sizeof call);

	*from = place;
	return status;
}

/* The first status that is not STATUS_OK; it ends the work, unless everything is to be tried. */
static uint32_t set_all(const struct kernel_client *client, bool suspends, bool tries_all)
{
	uint32_t first = STATUS_OK;

	for (unsigned int subdevice = 0; subdevice < list->subdevice_count && (first == STATUS_OK || tries_all); subdevice++) {
		unsigned int place = 0;

		while (place < list->count && (first == STATUS_OK || tries_all)) {
			uint32_t status = set(client, subdevice, suspends, &place, list->count);

			first = first == STATUS_OK ? status : first;
		}
	}
	return first;
}

/* Each channel by itself: one that is gone does not keep the others from coming back. False if one is refused that is there. */
static bool resume_each(const struct kernel_client *client)
{
	bool are_back = true;

	for (unsigned int subdevice = 0; subdevice < list->subdevice_count; subdevice++) {
		for (unsigned int place = 0; place < list->count;) {
			uint32_t status = set(client, subdevice, false, &place, place + 1);

			are_back = are_back && (status == STATUS_OK || status == STATUS_NO_CHANNEL);
		}
	}
	return are_back;
}

static bool resume(const struct kernel_client *client)
{
	struct error error;
	uint32_t status = set_all(client, false, true);

	if (status == STATUS_NO_CHANNEL && channels_list_make(client, &error) == CHANNELS_DONE)
		status = set_all(client, false, true);
	return status == STATUS_OK || resume_each(client);
}

/* All, or none. */
static uint32_t suspend(const struct kernel_client *client)
{
	uint32_t status = set_all(client, true, false);

	if (status != STATUS_OK)
		resume(client);
	return status;
}

/* A list that is out of date is brought up to date once. */
static enum channels_result suspend_listed(const struct kernel_client *client, struct error *error)
{
	enum channels_result result = channels_are_current() ? CHANNELS_DONE : channels_list_make(client, error);
	uint32_t status = result == CHANNELS_DONE ? suspend(client) : STATUS_OK;

	if (status == STATUS_NO_CHANNEL) {
		result = channels_list_make(client, error);
		status = result == CHANNELS_DONE ? suspend(client) : STATUS_OK;
	}
	if (status != STATUS_OK) {
		error_set(error, "the kernel driver does not suspend its work (status %#x)", status);
		result = CHANNELS_REFUSED;
	}
	return result;
}

enum channels_result channels_suspend(struct error *error)
{
	struct kernel_client client;
	enum channels_result result = kernel_client_reach(&client, error) < 0 ? CHANNELS_REFUSED
	                                                                      : suspend_listed(&client, error);

	channels_list_are_suspended(result == CHANNELS_DONE);
	return result;
}

int channels_resume(struct error *error)
{
	struct kernel_client client;

	channels_list_are_suspended(false);
	if (kernel_client_reach(&client, error) < 0)
		return -1;
	return resume(&client) ? 0 : error_set(error, "the kernel driver does not resume its work");
}
