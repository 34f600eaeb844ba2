/*
 * Text from outside (command lines, names of users), made harmless for terminals and JSON.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The size of a buffer for text_clean's result from `bytes` bytes. */
#define TEXT_ROOM(bytes) ((bytes) * 3 + 1)

/* Copies `length` bytes as UTF-8, with NULs as spaces. Every byte that is not UTF-8, and every character that moves the
 * cursor, or hides or reorders text, becomes U+FFFD. `clean` has room for TEXT_ROOM(length) bytes, and is returned. */
const char *text_clean(char *clean, const char *bytes, size_t length);

/* Copies text, made clean as by text_clean, and cut between characters. */
void text_copy(char *to, size_t room, const char *text);

/* The columns that text_print takes for the whole of a clean text. */
size_t text_width(const char *text, bool utf8);

/* Prints clean text in at most `columns` columns, and returns the used columns. Our own escape sequences for colours
 * take no column, and are printed even behind cut text. Without `utf8`, '?' replaces each character outside ASCII. */
size_t text_print(FILE *file, const char *text, size_t columns, bool utf8);

#define TEXT_WHOLE ((size_t)-1) /* for `columns`: print the whole text */
