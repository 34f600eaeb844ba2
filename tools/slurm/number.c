#include "number.h"

#include <string.h>

int number_parse(unsigned int *number, const char *text, unsigned int least, unsigned int most)
{
	unsigned long long value = 0;

	/* Ten digits cannot overflow. */
	if (!*text || strlen(text) > 10 || text[strspn(text, "0123456789")])
		return -1;
	for (const char *digit = text; *digit; digit++)
		value = value * 10 + (unsigned int)(*digit - '0');
	if (value < least || value > most)
		return -1;
	*number = (unsigned int)value;
	return 0;
}
