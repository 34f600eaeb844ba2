/*
 * Our library in a process that was running before it came: nvtaskset --attach has loaded it, and calls this on a
 * borrowed thread. Whatever is wrong is the command's to say, not the program's.
 */
#include "attach/attach.h"
#include "graphs.h"
#include "log.h"
#include "shim.h"

#include <errno.h>
#include <stddef.h>

__attribute__((visibility("default"))) const char *nvtaskset_attached(void);

/* See ATTACH_ENTRY. */
const char *nvtaskset_attached(void)
{
	static struct error error;
	int saved = errno;

	log_open();
	graphs_expect_older();
	int result = shim_set_up("libcuda.so.1", &error);

	errno = saved;
	return result < 0 ? error.reason : NULL;
}
