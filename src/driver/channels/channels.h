/*
 * Suspends this process's work on the GPUs, in the middle of kernels, and resumes it; and sets for how long at a time it
 * runs (facts.md, "Time slices").
 *
 * A channel is a way for work to a GPU, an object of NVIDIA's kernel driver. Each context has some that can run kernels, all
 * in one group. The kernel driver lets a process stop its own ones, and set the time slice of its own groups, through the client
 * that the CUDA driver has (kernel_client.h). We ask for the client's objects ourselves.
 *
 * What calls of suspended programs do is in hardware.md: many wait. So the thread that suspends must not call the CUDA
 * driver.
 *
 * Under MPS all clients' channels are in the server's group: this must not be used there.
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_CHANNELS_H
#define NVTASKSET_DRIVER_CHANNELS_CHANNELS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on, the driver's calls of the kernel driver are watched, as kernel_client_watch says. */
int channels_watch(struct error *error);
void channels_unwatch(void);

/* A context has been made; is being destroyed; or either: the channels are looked for again before they are suspended. From any
 * thread. */
void channels_are_there(void);
void channels_are_going(void);
void channels_have_changed(void);

enum channels_result {
	CHANNELS_DONE,
	CHANNELS_NONE,     /* there are none, since there is no context */
	CHANNELS_CHANGING, /* a context comes or goes, or has of late: none is suspended meanwhile */
	CHANNELS_REFUSED   /* with the reason */
};

/* Looks for channels that have come since the last time, and forgets those that have gone: 5 to 11 ms on the hardware where the
 * driver was not watched from its begin on. Only one thread may call this and the next three. */
enum channels_result channels_find(struct error *error);

/* Suspends all channels that can run kernels, of all contexts on all GPUs, or none: then none remains suspended, either. Looks for
 * them first if they have changed; otherwise this takes 0.5 ms for one context and 1.4 ms for ten. */
enum channels_result channels_suspend(struct error *error);

/* Resumes all of them, whatever became of them meanwhile. -1 with the reason if the kernel driver cannot be asked any more: its
 * descriptor is gone, and with it the channels; or if it refuses one. */
int channels_resume(struct error *error);

/* From here on, all of them run for `slice_us` at a time, while others have work; 0: for as long as by themselves. Those that came
 * since the last call get it with this one, and are looked for unless they are suspended. 0.4 ms for one context; nothing is asked
 * where nothing changes. A channel that is refused keeps what it has. */
enum channels_result channels_set_slice(uint64_t slice_us, struct error *error);

/* Whether the channels were looked for since a context was made or destroyed. */
bool channels_are_current(void);

/* How often they were looked for. */
uint64_t channels_looks(void);

/* What was found, in our thread alone. */
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

/* In the child of a fork: it has no client, and no channels. */
void channels_after_fork(void);

#endif
