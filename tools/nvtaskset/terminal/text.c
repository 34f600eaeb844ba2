#include "text.h"

#include <stdint.h>
#include <string.h>
#include <wchar.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ESCAPE '\033'

/* --- UTF-8 ------------------------------------------------------------------------------------------------- */

/* Decodes the first character of `length` bytes (at least 1), and returns its number of bytes; 0 unless valid UTF-8
 * (RFC 3629): the shortest form, no surrogate, at most U+10FFFF. */
static size_t decode(const char *text, size_t length, uint32_t *character)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t size = bytes[0] < 0x80 ? 1 : bytes[0] < 0xc0 ? 0 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

	if (size == 0 || size > length || bytes[0] > 0xf4)
		return 0;
	*character = size == 1 ? bytes[0] : bytes[0] & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (bytes[i] & 0x3f);
	}
	if (*character < smallest[size] || *character > 0x10ffff || (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return size;
}

/* --- cleaning ------------------------------------------------------------------------------------------------ */

/* Control characters, which a terminal obeys, and characters that hide or reorder text. */
static bool is_harmful(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x61c, 0x61c},
		{0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfeff, 0xfeff},
		{0xfff9, 0xfffb},   {0xe0000, 0xe007f},
	};
	bool harmful = false;

	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		harmful = harmful || (character >= ranges[i].first && character <= ranges[i].last);
	return harmful;
}

const char *text_clean(char *clean, const char *bytes, size_t length)
{
	char *end = clean;

	for (size_t at = 0; at < length;) {
		uint32_t character = 0;
		size_t size = decode(bytes + at, length - at, &character);

		if (size == 1 && character == 0)
			*end++ = ' ';
		else if (size == 0 || is_harmful(character))
			end = stpcpy(end, REPLACEMENT);
		else
			end = mempcpy(end, bytes + at, size);
		at += size > 0 ? size : 1;
	}
	*end = '\0';
	return clean;
}

void text_copy(char *to, size_t room, const char *text)
{
	char clean[TEXT_ROOM(4)];
	size_t length;

	*to = '\0';
	for (uint32_t character; *text; text += length) {
		length = decode(text, strnlen(text, 4), &character);
		length += length == 0;
		text_clean(clean, text, length);
		if (strlen(clean) >= room)
			break;
		room -= strlen(clean);
		to = stpcpy(to, clean);
	}
}

/* --- showing -------------------------------------------------------------------------------------------------- */

/* A character, an escape sequence or an invalid byte: its bytes and columns. */
struct piece {
	size_t size, columns;
	bool ascii;
};

static struct piece next_piece(const char *text, bool utf8)
{
	uint32_t character = 0;
	struct piece piece = {.size = decode(text, strnlen(text, 4), &character), .columns = 1};

	piece.ascii = piece.size == 1;
	if (text[0] == ESCAPE) {
		piece.size = strcspn(text, "m");
		piece.size += text[piece.size] == 'm';
		piece.columns = 0;
	} else if (piece.size == 0) {
		piece.size = 1;
	} else if (utf8) {
		int width = wcwidth((wchar_t)character);

		piece.columns = width >= 0 ? (size_t)width : 1;
	}
	return piece;
}

size_t text_width(const char *text, bool utf8)
{
	size_t width = 0;

	for (struct piece piece; *text; text += piece.size) {
		piece = next_piece(text, utf8);
		width += piece.columns;
	}
	return width;
}

size_t text_print(FILE *file, const char *text, size_t columns, bool utf8)
{
	bool cut = false;
	size_t width = 0;

	for (struct piece piece; *text; text += piece.size) {
		piece = next_piece(text, utf8);
		cut = cut || piece.columns > columns - width;
		if (cut && text[0] != ESCAPE)
			continue;
		if (piece.ascii || text[0] == ESCAPE || utf8)
			fwrite(text, 1, piece.size, file);
		else
			putc('?', file);
		width += piece.columns;
	}
	return width;
}
