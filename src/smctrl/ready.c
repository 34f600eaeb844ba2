#include "smctrl/ready.h"

#include "attach/entry.h"
#include "base/driver_names.h"
#include "base/log.h"
#include "shim/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

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
static app_masks_set *find(struct error *error)
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
	set_mask = find(&error);
	if (!set_mask)
		log_warning("%s; libsmctrl's masks have no effect", error.reason);
}

app_masks_set *ready(void)
{
	int saved = errno;

	pthread_once(&once, make_ready);
	errno = saved;
	return set_mask;
}
