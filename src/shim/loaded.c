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
	if (shim_set_up(DRIVER_NAME, &error) < 0) {
		strict_refuse(error.reason);
		log_warning("%s; this program runs unrestricted", error.reason);
	}
	errno = saved;
}
