/*
 * libcuda.so.1: stands in front of the real driver library. The dynamic linker loads the driver, our dependency, and
 * then calls our constructor.
 *
 * Programs with more privileges than their users may load us too (nvtaskset system enable). So all of the library reads
 * the environment by secure_getenv only.
 *
 * The process is not ours: if anything fails here, the program runs on without us, and standard error says so.
 */
#include "base/driver_names.h"
#include "base/log.h"
#include "launch/account/violation.h"
#include "launch/space/hide.h"
#include "launch/space/residency.h"
#include "names/names.h"
#include "shim.h"
#include "state/revision_text.h"
#include "state/segment/segment.h"

#include <errno.h>
#include <stdlib.h>

static const struct elf_note note __attribute__((section(".note.nvtaskset"), aligned(4), used)) = ELF_NOTE;

/* src/listed/listed.c has a name in place of the weak default. */
const char names_library[] __attribute__((weak)) = DRIVER_LINK;

__attribute__((constructor)) static void start(void)
{
	struct error error;
	int saved = errno;

	names_open();
	log_open();
	if (!secure_getenv(SEGMENT_ENVIRONMENT))
		log_idle();
	violation_open();
	hide_open();
	residency_open();
	enum hook_state state = shim_set_up(names_library, false, NULL, &error);

	if (state != HOOK_SUBSCRIBED)
		violation_note_all(error.reason, state == HOOK_WAITS ? " until it leaves" : "");
	errno = saved;
}
