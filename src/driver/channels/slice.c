#include "channels.h"

#include "gpu/topology/rm_abi.h"
#include "list.h"

#define SET_TIMESLICE 0xa06c0103 /* ctrl/ctrla06c/ctrla06cgpfifo.h: of a group, in us */
#define GET_TIMESLICE 0xa06c0104

/* Its context has gone meanwhile. */
static bool is_gone(const struct kernel_client *client, const struct channel_group *group)
{
	return kernel_client_class_of(client, group->handle) != CLASS_GROUP;
}

/* A slice that is 0 would be none that could be given back. */
static uint32_t remember(const struct kernel_client *client, struct channel_group *group)
{
	uint32_t status = STATUS_OK;

	if (group->slice_us == 0)
		status = kernel_client_control(client, group->handle, GET_TIMESLICE, &group->slice_us, sizeof group->slice_us);
	return status == STATUS_OK && group->slice_us == 0 ? (uint32_t)STATUS_NOT_PERMITTED : status;
}

static uint32_t set(const struct kernel_client *client, struct channel_group *group, uint64_t slice_us)
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

/* One that refuses does not keep the others from theirs. */
static enum channels_result set_all(const struct kernel_client *client, uint64_t slice_us, struct error *error)
{
	uint32_t first = STATUS_OK;

	for (unsigned int i = 0; i < channels_list.group_count; i++) {
		struct channel_group *group = &channels_list.groups[i];
		uint32_t status = set(client, group, slice_us);

		if (first == STATUS_OK && status != STATUS_OK && !is_gone(client, group))
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
	                                                                      : channels_list_refresh(&client, error);

	return result == CHANNELS_DONE ? set_all(&client, slice_us, error) : result;
}
