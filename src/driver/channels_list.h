/*
 * The channels that can run kernels, as they were found: for what is done with them (channels_aside.c, channels_slice.c), in
 * our thread alone.
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_LIST_H
#define NVTASKSET_DRIVER_CHANNELS_LIST_H

#include "base/error.h"
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

/* Makes the list anew. Of groups that were there before, what is known stays. -1 with the reason if there are none. */
int channels_list_make(const struct kernel_client *client, struct error *error);

/* The same, if channels have changed and are not put aside: whoever puts them aside must see that some are new. */
int channels_list_refresh(const struct kernel_client *client, struct error *error);

/* While they are aside, channels that come are told of when they are back: a context that is being made needs its own. */
void channels_list_are_aside(bool are_aside);

#endif
