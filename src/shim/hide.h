/*
 * --hide: a program is told of a GPU that is as large as its partition.
 *
 * That is the number of SMs, and how many clusters or blocks run at once: what it asks the driver for at that moment, so
 * a partition that changes later is seen by whoever asks again. SM ids are not renumbered: the limit of MPS that would do
 * so makes cuBLAS compute wrong products.
 *
 * cuBLAS gets the truth. Told 100, 98, 76, 74, 54, 52 or 44 SMs of an H200's 132, it computes wrong products, whoever
 * tells it (docs/hardware.md); a cuBLAS that is linked into the program itself cannot be told from the program.
 */
#ifndef NVTASKSET_SHIM_HIDE_H
#define NVTASKSET_SHIM_HIDE_H

#include "driver/calls.h"

#include <stdbool.h>

#define HIDE_ENVIRONMENT "NVTASKSET_HIDE"

/* Reads the environment: before any other thread can change it. */
void hide_open(void);

/* Whether we must hear of a call of the driver. */
bool hide_wants_call(int id);

/* Such a call has ended: what it has answered is made smaller. */
void hide_call_ended(const struct call *call);

#endif
