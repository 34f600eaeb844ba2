/*
 * --hide: the program sees a GPU as large as the partition.
 *
 * We change the driver's answers about the number of SMs and about how many clusters or blocks run at once. An answer
 * holds for the moment: after a change of the partition, the program must ask again. SM ids are not renumbered: the
 * limit of MPS for that makes cuBLAS compute wrong products.
 *
 * cuBLAS gets the driver's own answers. With 100, 98, 76, 74, 54, 52 or 44 SMs of an H200's 132, for whatever reason,
 * cuBLAS computes wrong products (hardware.md). A statically linked cuBLAS cannot be distinguished from the program.
 */
#pragma once

#include "driver/calls.h"

#define HIDE_ENVIRONMENT "NVTASKSET_HIDE"

/* Reads the environment: to be called before another thread can change it. */
void hide_open(void);

bool hide_wants_call(int id);

/* A wanted call has ended: reduces the answer. */
void hide_call_ended(const struct call *call);
