/*
 * libcuda.so.1: stands in front of the real driver library. What happens when, once the dynamic linker has loaded us
 * and, before us, the driver.
 *
 * We live in somebody else's process: whatever goes wrong here, the program runs on without us, and a line
 * on standard error says so.
 */
#include "hide.h"
#include "log.h"
#include "misfit.h"
#include "shim.h"
#include "strict.h"

#include <errno.h>

/* The link beside us (FACTS 10). Its usual name is ours here. */
#define DRIVER_NAME "libnvtaskset-driver.so.1"

__attribute__((constructor)) static void start(void)
{
	struct error error;
	int saved = errno;

	log_open();
	strict_open();
	hide_open();
	misfit_open();
	enum hook_state state = shim_set_up(DRIVER_NAME, false, &error);

	if (state != HOOK_SUBSCRIBED) {
		strict_refuse(error.reason);
		log_warning("%s; this program runs unrestricted%s", error.reason,
		            state == HOOK_WAITS ? " until it leaves" : "");
	}
	errno = saved;
}
