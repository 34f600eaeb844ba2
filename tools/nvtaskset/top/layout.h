/*
 * Where on the page each thing of `nvtaskset top` stands: a pure function of what is shown, what the user has chosen and
 * the terminal.
 *
 *   nvtaskset top: 2 programs, every 1 s
 *   GPU 0 [16013=============|16014======|                   ]  62.0% NVIDIA H200
 *     PID USER GPU TPCS BUSY% TPC% KERNELS/s INFLIGHT    TIME COMMAND
 *   16013 ana  0   0-31  91.3 44.3     20341        2 0:12.52 ./train
 *
 * No line is wider than the terminal, there are no more lines than it has rows, and the headings of the table are always
 * there. What is less important goes where there is no room.
 */
#ifndef NVTASKSET_LAYOUT_H
#define NVTASKSET_LAYOUT_H

#include "base/error.h"
#include "model.h"
#include "terminal/terminal.h"

#include <stdio.h>

/* Writes whole lines. A terminal of TERMINAL_ENDLESS rows gets everything, and no line for keys. -1 with the reason if
 * there is no memory. */
int layout_draw(const struct model *model, const struct view *view, const struct terminal *terminal, FILE *page,
                struct error *error);

/* How many rows such a page shows at most, of the table that is scrolled: of one program, that of its kernels. */
size_t layout_rows(const struct model *model, const struct view *view, const struct terminal *terminal);

#endif
