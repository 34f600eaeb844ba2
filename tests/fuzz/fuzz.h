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

/* Called by libFuzzer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
