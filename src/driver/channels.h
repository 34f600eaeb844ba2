/*
 * Puts this process's work on the GPUs aside, in the middle of kernels, and takes it back (channels_aside.c); and says for how
 * long at a time it runs (channels_slice.c; docs/facts.md, "Time slices").
 *
 * A channel is a way for work to a GPU, an object of NVIDIA's kernel driver. Each context has some that can run kernels, all
 * in one group. The kernel driver lets a process stop its own ones, and set the time slice of its own groups, through the client
 * that the CUDA driver has (kernel_client.h). We ask for the client's objects ourselves.
 *
 * What put-aside programs' calls do is in docs/hardware.md: many wait. So whoever puts aside must not call the CUDA driver.
 *
 * Under MPS all clients' channels are in the server's group: this must not be used there.
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_H
#define NVTASKSET_DRIVER_CHANNELS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on, the driver's calls of the kernel driver are watched, as kernel_client_watch says. */
int channels_watch(struct error *error);
void channels_unwatch(void);

/* A context has been made or destroyed: the channels are looked for again before they are put aside. From any thread. */
void channels_have_changed(void);

/* Looks for the channels: 5 to 11 ms on the hardware where the driver was not watched from its begin on. -1 with the reason if
 * there are none. Only one thread may call this and the next three. */
int channels_find(struct error *error);

/* Puts aside all channels that can run kernels, of all contexts on all GPUs, or none. -1 with the reason if there are none,
 * or one cannot be put aside: those that were are back then. Looks for them first if they have changed; otherwise this takes
 * 0.5 ms for one context and 1.4 ms for ten.
 *
 * Takes all of them back, whatever became of them meanwhile. -1 with the reason if the kernel driver cannot be asked any
 * more: its descriptor is gone, and with it the channels. */
int channels_put_aside(struct error *error);
int channels_take_back(struct error *error);

/* From here on, all of them run for `slice_us` at a time, while others want to run; 0: for as long as by themselves. Those that
 * came since the last call get it with this one, and are looked for unless they are put aside. 0.4 ms for one context; nothing is
 * asked where nothing changes. -1 with the reason if there are none, or the kernel driver refuses one: it then keeps what it has. */
int channels_set_slice(uint64_t slice_us, struct error *error);

/* Whether the channels were looked for since a context was made or destroyed. */
bool channels_are_current(void);

/* How often they were looked for. Of the last look: channels that can run kernels. */
uint64_t channels_looks(void);
unsigned int channels_count(void);

/* In the child of a fork: it has no client, and no channels. */
void channels_after_fork(void);

#endif
