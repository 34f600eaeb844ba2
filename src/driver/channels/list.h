/*
 * The channels that can run kernels, as they were found: for what is done with them (suspend.c, slice.c), in
 * our thread alone.
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_LIST_H
#define NVTASKSET_DRIVER_CHANNELS_LIST_H

#include "channels.h"
#include "kernel_client.h"

#include <stdbool.h>
#include <stdint.h>

#define SUBDEVICES_MAX 64
#define CHANNELS_MAX 4096
#define GROUPS_MAX (CHANNELS_MAX / 4)

extern struct channels_list {
	unsigned int count;
	struct channel {
		uint32_t handle;
		uint32_t device; /* whose subdevice is to be asked */
	} channels[CHANNELS_MAX];
	unsigned int subdevice_count;
	struct {
		uint32_t handle;
		uint32_t device;
	} subdevices[SUBDEVICES_MAX];
	unsigned int group_count;
	struct channel_group {
		uint32_t handle;
		uint64_t slice_us; /* that it has by itself; 0: not known yet */
		uint64_t ours_us;  /* that it has from us; 0: none */
	} groups[GROUPS_MAX];      /* their handles are never used again */
} channels_list __attribute__((visibility("hidden")));

/* Brings the list up to date: channels that have gone leave it, new ones are looked for. */
enum channels_result channels_list_make(const struct kernel_client *client, struct error *error);

/* The same, if channels have changed and are not suspended: a caller that suspends them must see that some are new. */
enum channels_result channels_list_refresh(const struct kernel_client *client, struct error *error);

/* While they are suspended, channels that come count as changes only when they are resumed: a context that is being made needs its
 * own. */
void channels_list_are_suspended(bool are_suspended);

#endif
