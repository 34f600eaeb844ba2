/* For test programs: what not every machine can run. */
#ifndef NVTASKSET_TESTS_SKIP_H
#define NVTASKSET_TESTS_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

/*
 * Ends the running test as skipped, and says why; tests/run, which takes the line for the reason, says what "needs …" means.
 * Not from a test's setup, where cmocka takes it for a failure.
 */
static inline _Noreturn void skip_because(const char *reason)
{
	print_message("# skipped: %s\n", reason);
	skip();
	abort(); /* skip() does not return, but does not say so */
}

#endif
