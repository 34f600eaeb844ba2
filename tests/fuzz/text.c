/* Text that others wrote: for any bytes, the result has no control characters, is valid JSON text, and fits. */
#include "../../tools/nvtaskset/terminal/text.c"

#include "fuzz.h"

#include <locale.h>
#include <stdlib.h>

/* Neither control characters nor broken UTF-8 are left: cleaning again changes nothing. */
static void check_clean(const char *clean)
{
	size_t length = strlen(clean);
	char *again = malloc(TEXT_ROOM(length));

	must(strcmp(text_clean(again, clean, length), clean) == 0);
	for (size_t i = 0; i < length; i++)
		must((unsigned char)clean[i] >= ' ' && clean[i] != 0x7f);
	free(again);
}

/* Printed text has the width that is returned, which is at most the given one. */
static void check_printed(const char *clean, size_t columns, bool utf8)
{
	char *printed;
	size_t length;
	FILE *file = open_memstream(&printed, &length);
	size_t width = text_print(file, clean, columns, utf8);

	fclose(file);
	must(width <= columns && width == text_width(printed, utf8));
	must(text_width(clean, utf8) > columns || width == text_width(clean, utf8));
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	char *clean = malloc(TEXT_ROOM(size));

	ready = ready || setlocale(LC_CTYPE, "C.UTF-8");
	text_clean(clean, (const char *)data, size);
	check_clean(clean);
	check_printed(clean, size > 0 ? data[0] : 0, true);
	check_printed(clean, size > 0 ? data[0] : 0, false);
	free(clean);
	return 0;
}
