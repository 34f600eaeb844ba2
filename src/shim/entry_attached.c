/*
 * The library in a process that was already running: nvtaskset --attach has loaded us and calls nvtaskset_attached on a
 * borrowed thread. Errors are returned, and the command reports errors; the program prints nothing.
 */
#include "base/driver_names.h"
#include "base/log.h"
#include "shim.h"

#include <errno.h>
#include <stddef.h>

__attribute__((visibility("default"))) const char *nvtaskset_attached(const char *argument);

/* See ATTACH_ENTRY. `argument` describes the GPUs, like the environment of a program from the command. */
const char *nvtaskset_attached(const char *argument)
{
	static struct error error;
	int saved = errno;

	log_open();
	enum hook_state state = shim_set_up(DRIVER_NAME, true, argument, &error);

	errno = saved;
	/* HOOK_WAITS is no error: the segment says that the partition is not in force yet. */
	return state == HOOK_FAILED ? error.reason : NULL;
}
