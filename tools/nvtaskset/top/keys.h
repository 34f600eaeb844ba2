/*
 * Keys, and their effects on the view.
 */
#pragma once

#include "model.h"

#include <stdbool.h>
#include <stddef.h>

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
