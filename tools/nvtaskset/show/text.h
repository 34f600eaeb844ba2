/*
 * Text that others wrote (command lines, names of users), made fit to be shown.
 */
#ifndef NVTASKSET_TEXT_H
#define NVTASKSET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Room for the UTF-8 of any `bytes` bytes, as text_clean leaves it. */
#define TEXT_ROOM(bytes) ((bytes) * 3 + 1)

/* Writes `length` bytes as UTF-8, with NULs as spaces: whatever is not UTF-8, moves the cursor, or hides or reorders
 * text becomes U+FFFD. `clean` has room for TEXT_ROOM(length) bytes, and is returned. */
const char *text_clean(char *clean, const char *bytes, size_t length);

/* How many columns clean text takes; where the terminal is not UTF-8, each character that is not ASCII is a '?'. */
size_t text_width(const char *text, bool utf8);

/* Writes clean text into at most `columns` columns. Sequences that set colours, which are ours, take no room, and come
 * through whole even behind what is cut. Returns the columns that it took. */
size_t text_print(FILE *file, const char *text, size_t columns, bool utf8);

#define TEXT_WHOLE ((size_t)-1) /* columns: not cut */

#endif
