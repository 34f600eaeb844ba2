#include "strict.h"

#include "base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool strict;

void strict_open(void)
{
	const char *value = secure_getenv("NVTASKSET_STRICT");

	strict = value && *value;
}

/* Not exit: it would run the program's handlers on a thread that is in the middle of a launch. A second thread waits,
 * so that the first has time to print the reason; it launches nothing meanwhile. */
static _Noreturn void end(const char *reason)
{
	static atomic_flag ending = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&ending))
		sleep(1);
	else
		log_last_words("%s; --strict lets nothing run unrestricted", reason);
	_exit(EXIT_FAILURE);
}

void strict_refuse(const char *reason)
{
	if (strict)
		end(reason);
}
