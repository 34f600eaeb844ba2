/*
 * Suspends the work of this process on the GPUs, in the middle of kernels, and resumes the work; and sets for how long
 * the work runs at a time (docs/internals/facts.md, "Time slices").
 *
 * A channel is a way for work to a GPU, an object of NVIDIA's kernel driver. Each context has some channels that can
 * run kernels, all in one group. The kernel driver lets a process stop its own channels, and set the time slice of its
 * own groups, through the client of the CUDA driver (kernel_client.h). We ask for the client's objects ourselves.
 *
 * hardware.md says how calls of suspended programs behave: many wait. So the suspending thread must not call the CUDA
 * driver.
 *
 * Under MPS the channels of all clients are in the server's group: not to be used there.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on, the driver's calls of the kernel driver are watched, as kernel_client_watch says. */
int channels_watch(struct error *error);
void channels_unwatch(void);

/* A context has been made; a context is being destroyed; channels may have come or gone. The next suspension looks for
 * channels again. Any thread. */
void channels_context_made(void);
void channels_context_going(void);
void channels_note_change(void);

enum channels_result {
	CHANNELS_DONE,
	CHANNELS_NONE,     /* no channels, since there is no context */
	CHANNELS_CHANGING, /* a context comes or goes, now or of late: nothing is suspended meanwhile */
	CHANNELS_REFUSED   /* with the reason */
};

/* Looks for channels that have come since the last time, and forgets channels that have gone: 5 to 11 ms on the
 * hardware if the driver was not watched from the begin on. For one thread, as _suspend, _resume and _set_slice. */
enum channels_result channels_find(struct error *error);

/* Suspends all channels that can run kernels, of all contexts on all GPUs. On failure no channel is suspended any more.
 * After a change, channels are looked for first; otherwise 0.5 ms for one context and 1.4 ms for ten. */
enum channels_result channels_suspend(struct error *error);

/* Resumes all channels, also if some have gone meanwhile. -1 with the reason if the kernel driver cannot be asked any
 * more, since the descriptor is gone, and the channels too; or if the kernel driver refuses a channel. */
int channels_resume(struct error *error);

/* From here on, all channels run for `slice_us` at a time while further programs have work; 0: for the slice without
 * us. Channels that came since the last call get the slice now, and are looked for unless suspended. 0.4 ms for one
 * context; nothing is asked where nothing changes. A refused channel keeps its slice. */
enum channels_result channels_set_slice(uint64_t slice_us, struct error *error);

/* Whether the channels were looked for since a context was made or destroyed. */
bool channels_are_current(void);

/* Rises with each look for channels: there may be new channels. */
uint64_t channels_looks(void);

/* The channels found. For the thread of channels_find alone. */
#define SUBDEVICES_MAX 64
#define CHANNELS_MAX 4096
#define GROUPS_MAX (CHANNELS_MAX / 4)

extern struct channels_list {
	unsigned int count;
	struct channel {
		uint32_t handle;
		uint32_t device; /* ask a subdevice of the device */
	} channels[CHANNELS_MAX];
	unsigned int subdevice_count;
	struct {
		uint32_t handle;
		uint32_t device;
	} subdevices[SUBDEVICES_MAX];
	unsigned int group_count;
	struct channel_group {
		uint32_t handle;
		uint64_t slice_us; /* without us; 0: not known yet */
		uint64_t ours_us;  /* from us; 0: no slice */
	} groups[GROUPS_MAX];      /* handles are never used again */
} channels_list __attribute__((visibility("hidden")));

/* In the child of a fork, which has no client and no channels. */
void channels_after_fork(void);
