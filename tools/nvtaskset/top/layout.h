/*
 * The page of `nvtaskset top`: a pure function of the model, the user's choices and the terminal.
 *
 *   nvtaskset top: 2 programs, every 1 s
 *   GPU 0 [16013=============|16014======|                   ]  62.0% NVIDIA H200
 *     PID USER GPU TPCS BUSY% TPC% KERNELS/s INFLIGHT    TIME COMMAND
 *   16013 ana  0   0-31  91.3 44.3     20341        2 0:12.52 ./train
 *
 * No line is wider than the terminal, and no page is higher. The headings of the table are always there. Without enough
 * room, less important parts go.
 */
#pragma once

#include "base/error.h"
#include "model.h"
#include "terminal/terminal.h"

#include <stdio.h>

/* Writes whole lines. A terminal of TERMINAL_ENDLESS rows gets everything, and no line for keys. -1 without memory. */
int layout_draw(const struct model *model, const struct view *view, const struct terminal *terminal, FILE *page,
                struct error *error);

/* The most rows of the scrolled table on the page; for a single program, of the table of its kernels. */
size_t layout_rows(const struct model *model, const struct view *view, const struct terminal *terminal);

/* --- keys.c: keys, and their effects on the view ------------------------------------------------------------------ */

enum {
	KEY_NONE = 256, /* an unused key, or half of a key */
	KEY_ESCAPE,
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_F6,
	KEY_F10
};

/* Takes the first key of a terminal's bytes, at least one: a byte, or a key of the enum. */
int key_next(const char **bytes, size_t *length);

/* Changes the view. `page`: the rows that the table shows. False if the key ends the program. */
bool keys_take(struct view *view, int key, const struct model *model, size_t page);
