/*
 * Stands for the original libsmctrl when a program is linked: like that one, it has no soname, its symbols have no version,
 * and functions that set a mask return nothing.
 */
#include <stdint.h>

void libsmctrl_set_global_mask(uint64_t mask);
void libsmctrl_set_stream_mask(void *stream, uint64_t mask);
void libsmctrl_set_next_mask(uint64_t mask);
int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive);

#pragma GCC visibility push(default)

void libsmctrl_set_global_mask(uint64_t mask)
{
}

void libsmctrl_set_stream_mask(void *stream, uint64_t mask)
{
}

void libsmctrl_set_next_mask(uint64_t mask)
{
}

int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive)
{
	return (int)high_exclusive;
}

#pragma GCC visibility pop
