/*
 * Our library in a process that was running before it came: nvtaskset --attach has loaded it, and calls this on a
 * borrowed thread. Whatever is wrong is the command's to say, not the program's.
 */
#include "attach/attach.h"
#include "base/driver_names.h"
#include "base/log.h"
#include "driver/gpus.h"
#include "shim.h"

#include <errno.h>
#include <stddef.h>

__attribute__((visibility("default"))) const char *nvtaskset_attached(const char *argument);

/* See ATTACH_ENTRY. Told of the GPUs, as the environment tells programs that the command starts. */
const char *nvtaskset_attached(const char *argument)
{
	static struct error error;
	int saved = errno;

	log_open();
	gpus_hand(argument);
	enum hook_state state = shim_set_up(DRIVER_NAME, true, &error);

	gpus_hand(NULL);
	errno = saved;
	/* Where we wait, the segment says so. */
	return state == HOOK_FAILED ? error.reason : NULL;
}
