/* Whether an address lies in our library, or in a program with our code. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The linker's symbols for begin and end. dladdr would search all symbols of the driver. */
#define OWN __attribute__((visibility("hidden")))
extern const char __ehdr_start[] OWN, _end[] OWN; /* NOLINT(bugprone-reserved-identifier) */

static inline bool own_image_has(const void *address)
{
	return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}
