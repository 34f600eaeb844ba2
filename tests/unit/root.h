/* For unit tests of code that reads /proc, /sys, /dev and /var: a root directory of their own. */
#ifndef NVTASKSET_TESTS_ROOT_H
#define NVTASKSET_TESTS_ROOT_H

#include "../cases.h"

static char root[32];

/* Runs a shell command in this root; it must succeed. */
static void __attribute__((format(printf, 1, 2))) root_run(const char *format, ...)
{
	char command[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	assert_int_equal(system(text_of("cd %s && %s", root, command)), 0);
}

/* Make an empty root that every user may read, and remove it. For cmocka. */
static int root_make(void **state)
{
	strcpy(root, "/tmp/nvtaskset-test-XXXXXX");
	return mkdtemp(root) && chmod(root, 0755) == 0 ? 0 : -1;
}

static int root_remove(void **state)
{
	root_run("rm -rf %s", root);
	return 0;
}

#endif
