/*
 * --hide: the program sees a GPU that is as large as its partition.
 *
 * We change the driver's answers about the number of SMs and about how many clusters or blocks run at once. They hold
 * for that moment: after a change of the partition, the program must ask again. SM ids are not renumbered: the limit of
 * MPS that would do so makes cuBLAS compute wrong products.
 *
 * cuBLAS gets the driver's own answers. If it sees 100, 98, 76, 74, 54, 52 or 44 SMs of an H200's 132, for whatever
 * reason, it computes wrong products (hardware.md). A cuBLAS that is linked statically into the program cannot be
 * distinguished from the program.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_HIDE_H
#define NVTASKSET_LAUNCH_SPACE_HIDE_H

#include "driver/calls.h"

#include <stdbool.h>

#define HIDE_ENVIRONMENT "NVTASKSET_HIDE"

/* Reads the environment. Call it before another thread can change that. */
void hide_open(void);

/* Whether we must hear of this API call. */
bool hide_wants_call(int id);

/* Such a call has ended: reduces its answer. */
void hide_call_ended(const struct call *call);

#endif
