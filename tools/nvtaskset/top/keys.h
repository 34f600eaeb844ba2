/*
 * What the user types, and what becomes of the view.
 */
#ifndef NVTASKSET_KEYS_H
#define NVTASKSET_KEYS_H

#include "model.h"

#include <stdbool.h>
#include <stddef.h>

/* Keys that are no characters. */
enum {
	KEY_NONE = 256, /* a key that is not used here, or half of one */
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

/* Takes the first key of what a terminal sent: a byte, or one of the keys above. At least one byte is there. */
int key_next(const char **bytes, size_t *length);

/* Changes the view. `page` is how many rows the table shows. False if the key ends the program. */
bool view_take_key(struct view *view, int key, const struct model *model, size_t page);

#endif
