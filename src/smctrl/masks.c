/* libsmctrl: setting and making masks. */
#include "libsmctrl.h"
#include "smctrl/ready.h"
#include "version.h"

#include <errno.h>
#include <stddef.h>

/* Some GPUs have more TPCs than a 64-bit mask has bits. All others are disabled (libsmctrl.h). */
static uint128_t widen(uint64_t mask)
{
	return mask == 0 ? 0 : (uint128_t)UINT64_MAX << 64 | mask;
}

static int set(enum app_masks_scope scope, void *stream, uint128_t mask)
{
	const uint64_t words[APP_MASKS_WORDS] = {(uint64_t)mask, (uint64_t)(mask >> 64)};
	app_masks_set *set_mask = ready();

	return set_mask ? set_mask(scope, stream, words) : ENOTSUP;
}

int libsmctrl_set_global_mask_ext(uint128_t mask)
{
	return set(APP_MASKS_ALL, NULL, mask);
}

int libsmctrl_set_global_mask(uint64_t mask)
{
	return libsmctrl_set_global_mask_ext(widen(mask));
}

int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask)
{
	return set(APP_MASKS_ONE, stream, mask);
}

int libsmctrl_set_stream_mask(void *stream, uint64_t mask)
{
	return libsmctrl_set_stream_mask_ext(stream, widen(mask));
}

int libsmctrl_set_next_mask_ext(uint128_t mask)
{
	return set(APP_MASKS_NEXT, NULL, mask);
}

int libsmctrl_set_next_mask(uint64_t mask)
{
	return libsmctrl_set_next_mask_ext(widen(mask));
}

/* --- making them ------------------------------------------------------------------------------------------- */

/* A mask of the lowest `count` bits; `count` is 0 to 128. */
static uint128_t lowest(uint32_t count)
{
	return count == 0 ? 0 : ~(uint128_t)0 >> (128 - count);
}

int libsmctrl_make_mask_ext(uint128_t *result, uint32_t low, uint32_t high_exclusive)
{
	if (low >= high_exclusive || high_exclusive > 128)
		return EINVAL;
	*result = ~(lowest(high_exclusive) & ~lowest(low));
	return 0;
}

int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive)
{
	uint128_t wide;
	int error = high_exclusive > 64 ? EINVAL : libsmctrl_make_mask_ext(&wide, low, high_exclusive);

	if (error == 0)
		*result = (uint64_t)wide;
	return error;
}

/* --- initialising ------------------------------------------------------------------------------------------------ */

int libsmctrl_init(void)
{
	return ready() ? 0 : ENOTSUP;
}

int libsmctrl_init_from_cuda(void)
{
	return libsmctrl_init();
}

int libsmctrl_is_init(void)
{
	return ready() != NULL;
}

const char *libsmctrl_get_version(void)
{
	return NVTASKSET_VERSION;
}
