/* For test programs: skips what not every machine can run. */
#ifndef NVTASKSET_TESTS_SKIP_H
#define NVTASKSET_TESTS_SKIP_H

#include "cases.h"

/*
 * Ends the running test as skipped, and prints why; tests/run reads that line, and its head explains "needs …". Not for
 * a test's setup, where cmocka counts it as a failure.
 */
static inline _Noreturn void skip_because(const char *reason)
{
	print_message("# skipped: %s\n", reason);
	skip();
	abort(); /* skip() does not return, but does not say so */
}

#endif
