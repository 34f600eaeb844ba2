#include "channels.h"

#include "channels_list.h"
#include "gpu/topology/rm_abi.h"

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
static uint32_t set(const struct kernel_client *client, unsigned int subdevice, bool is_aside, unsigned int *from,
                    unsigned int end)
{
	static struct disable_channels call;
	unsigned int place = *from;

	call = (struct disable_channels){.disable = is_aside};
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
static uint32_t set_all(const struct kernel_client *client, bool is_aside, bool tries_all)
{
	uint32_t first = STATUS_OK;

	for (unsigned int subdevice = 0; subdevice < list->subdevice_count && (first == STATUS_OK || tries_all); subdevice++) {
		unsigned int place = 0;

		while (place < list->count && (first == STATUS_OK || tries_all)) {
			uint32_t status = set(client, subdevice, is_aside, &place, list->count);

			first = first == STATUS_OK ? status : first;
		}
	}
	return first;
}

/* Each channel by itself: one that is gone does not keep the others from coming back. */
static void take_back_each(const struct kernel_client *client)
{
	for (unsigned int subdevice = 0; subdevice < list->subdevice_count; subdevice++) {
		for (unsigned int place = 0; place < list->count;)
			set(client, subdevice, false, &place, place + 1);
	}
}

static bool take_back(const struct kernel_client *client)
{
	struct error error;
	uint32_t status = set_all(client, false, true);

	if (status == STATUS_NO_CHANNEL && channels_list_make(client, &error) == 0)
		status = set_all(client, false, true);
	if (status != STATUS_OK)
		take_back_each(client);
	return status == STATUS_OK;
}

/* A list that is out of date is made anew once. */
int channels_put_aside(struct error *error)
{
	struct kernel_client client;
	uint32_t status = STATUS_NO_CHANNEL;
	int result = kernel_client_reach(&client) ? 0 : error_set(error, "the driver's way to the kernel driver is not known");

	for (int attempt = 0; attempt < 2 && result == 0 && status == STATUS_NO_CHANNEL; attempt++) {
		if (attempt > 0 || !channels_are_current())
			result = channels_list_make(&client, error);
		if (result == 0) {
			status = set_all(&client, true, false);
			if (status != STATUS_OK)
				take_back(&client);
		}
	}
	channels_list_are_aside(result == 0 && status == STATUS_OK);
	if (result == 0 && status != STATUS_OK)
		result = error_set(error, "the kernel driver does not put its work aside (status %#x)", status);
	return result;
}

int channels_take_back(struct error *error)
{
	struct kernel_client client;

	channels_list_are_aside(false);
	if (!kernel_client_reach(&client))
		return error_set(error, "the driver's way to the kernel driver is gone");
	take_back(&client);
	return 0;
}
