/* Shared by the fuzz targets. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define must(condition)          \
	do {                     \
		if (!(condition)) \
			abort(); \
	} while (0)

/* The input again and again, so that a short one reaches all of a place. */
static inline void fill(void *place, size_t room, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < room; at++)
		((uint8_t *)place)[at] = size > 0 ? data[at % size] : 0;
}

/* Called by libFuzzer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
