/*
 * Puts this process's work on the GPUs aside, in the middle of kernels, and takes it back (docs/facts.md, "Time slices").
 *
 * A channel is a way for work to a GPU, an object of NVIDIA's kernel driver. Each context has some that can run kernels, all
 * in one group. The kernel driver lets a process stop its own ones, through the descriptor and the client that the CUDA
 * driver has. To learn these two, we watch what the CUDA driver asks the kernel driver (import.h). Then we ask for the
 * client's objects ourselves; nothing is asked about any other client.
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

/* From here on, the driver's calls of the kernel driver are watched. What is learnt needs no memory, lock or system call
 * but one fstat for each client. -1 with the reason, and nothing has changed. May be repeated. */
int channels_watch(struct error *error);
void channels_unwatch(void);

/* Whether the driver's client is known. */
bool channels_are_reachable(void);

/* Makes the driver ask the kernel driver, so that its client becomes known: in this thread's context; or in an active
 * primary one, which is held meanwhile. Calls the CUDA driver. */
void channels_provoke(void);
void channels_provoke_in_primary(void);

/* A context has been made or destroyed: the channels are looked for again before they are put aside. From any thread. */
void channels_have_changed(void);

/* Looks for the channels: 5 to 11 ms on the hardware where the driver was not watched from its begin on. -1 with the reason if
 * there are none. Only one thread may call this and the next two. */
int channels_find(struct error *error);

/* Puts aside all channels that can run kernels, of all contexts on all GPUs, or none. -1 with the reason if there are none,
 * or one cannot be put aside: those that were are back then. Looks for them first if they have changed; otherwise this takes
 * 0.5 ms for one context and 1.4 ms for ten.
 *
 * Takes all of them back, whatever became of them meanwhile. -1 with the reason if the kernel driver cannot be asked any
 * more: its descriptor is gone, and with it the channels. */
int channels_put_aside(struct error *error);
int channels_take_back(struct error *error);

/* Whether the channels were looked for since a context was made or destroyed. */
bool channels_are_current(void);

/* Of the last look: channels that can run kernels. */
unsigned int channels_count(void);

/* In the child of a fork: it has no client, and no channels. */
void channels_after_fork(void);

#endif
