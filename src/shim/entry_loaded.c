/*
 * libcuda.so.1: stands in front of the real driver library. What happens when, once the dynamic linker has loaded us
 * and, before us, the driver.
 *
 * Programs with more privileges than their users may carry us too (nvtaskset system enable), so nothing in the library
 * reads a variable but by secure_getenv.
 *
 * We live in somebody else's process: whatever goes wrong here, the program runs on without us, and a line
 * on standard error says so.
 */
#include "base/driver_names.h"
#include "base/elf_note.h"
#include "base/log.h"
#include "escape.h"
#include "hide.h"
#include "misfit.h"
#include "shim.h"
#include "state/segment.h"
#include "strict.h"

#include <errno.h>
#include <stdlib.h>

static const struct mark mark __attribute__((section(".note.nvtaskset"), aligned(4), used)) = MARK;

__attribute__((constructor)) static void start(void)
{
	struct error error;
	int saved = errno;

	log_open();
	if (!secure_getenv(SEGMENT_ENVIRONMENT))
		log_idle();
	strict_open();
	hide_open();
	misfit_open();
	enum hook_state state = shim_set_up(DRIVER_LINK, false, &error);

	if (state != HOOK_SUBSCRIBED)
		escape_note_all(error.reason, state == HOOK_WAITS ? " until it leaves" : "");
	errno = saved;
}
