/* libsmctrl: setting and making masks. */
#include "libsmctrl.h"

#include "attach/entry.h"
#include "base/driver_names.h"
#include "base/log.h"
#include "launch/space/app_masks.h"
#include "shim/shim.h"
#include "version.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

/* --- the library that enforces them --------------------------------------------------------------------------- */

/* Ours, if nvtaskset has started the process or attached; otherwise the copy in libsmctrl. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static app_masks_set *set_mask;

/* Uses the copy of the library in libsmctrl. The program may have used the driver before. */
static app_masks_set *set_up_own(struct error *error)
{
	enum hook_state state = shim_set_up(DRIVER_NAME, true, NULL, error);

	if (state == HOOK_WAITS)
		log_warning("%s; libsmctrl's masks have no effect until it leaves", error->reason);
	return state == HOOK_FAILED ? NULL : nvtaskset_set_mask_1;
}

static app_masks_set *look_up(void *library)
{
	return library ? (app_masks_set *)dlsym(library, APP_MASKS_ENTRY) : NULL;
}

/* NULL with the reason. */
static app_masks_set *find_setter(struct error *error)
{
	void *driver = dlopen(DRIVER_NAME, RTLD_LAZY);
	app_masks_set *found = look_up(driver);

	if (!driver) {
		error_set(error, "the driver library: %s", dlerror());
		return NULL;
	}
	if (!found)
		found = look_up(dlopen(ATTACH_LIBRARY, RTLD_LAZY | RTLD_NOLOAD));
	if (!found) {
		found = set_up_own(error);
	} else if (found(APP_MASKS_ASK, NULL, NULL) != 0) {
		error_set(error, "nvtaskset's library in this program cannot see launches");
		found = NULL;
	}
	return found;
}

static void make_ready(void)
{
	struct error error;

	log_open();
	set_mask = find_setter(&error);
	if (!set_mask)
		log_warning("%s; libsmctrl's masks have no effect", error.reason);
}

/* The function that sets a mask; NULL if launches will never be announced. The first call finds the function; after a
 * failure, the first call prints the reason on standard error. */
static app_masks_set *ready(void)
{
	int saved = errno;

	pthread_once(&once, make_ready);
	errno = saved;
	return set_mask;
}

/* --- setting them ---------------------------------------------------------------------------------------------- */

/* Some GPUs have more TPCs than a 64-bit mask has bits. All others are disabled (libsmctrl.h). */
static uint128_t widen(uint64_t mask)
{
	return mask == 0 ? 0 : (uint128_t)UINT64_MAX << 64 | mask;
}

static int set_in_scope(enum app_masks_scope scope, void *stream, uint128_t mask)
{
	const uint64_t words[APP_MASKS_WORDS] = {(uint64_t)mask, (uint64_t)(mask >> 64)};
	app_masks_set *function = ready();

	return function ? function(scope, stream, words) : ENOTSUP;
}

int libsmctrl_set_global_mask_ext(uint128_t mask)
{
	return set_in_scope(APP_MASKS_ALL, NULL, mask);
}

int libsmctrl_set_global_mask(uint64_t mask)
{
	return libsmctrl_set_global_mask_ext(widen(mask));
}

int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask)
{
	return set_in_scope(APP_MASKS_STREAM, stream, mask);
}

int libsmctrl_set_stream_mask(void *stream, uint64_t mask)
{
	return libsmctrl_set_stream_mask_ext(stream, widen(mask));
}

int libsmctrl_set_next_mask_ext(uint128_t mask)
{
	return set_in_scope(APP_MASKS_NEXT, NULL, mask);
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
