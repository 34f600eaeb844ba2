#include "uuid.h"

#include <stdio.h>

void uuid_format(const unsigned char bytes[UUID_BYTES], char text[UUID_TEXT])
{
	char *to = text + sprintf(text, "GPU-");

	for (int i = 0; i < UUID_BYTES; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}
