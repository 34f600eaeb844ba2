/*
 * Makes the dynamic linker load our library at each request for the driver library, for any search paths of the program
 * (rtld-audit(7)).
 *
 * LD_LIBRARY_PATH is not enough: DT_RPATH and the program's own directories may come first, and a program may open the
 * driver by path. The dynamic linker asks audit libraries before all paths. But an audit library leaves little room for
 * the thread-local storage of later libraries, so only --strict uses one.
 *
 * An audit library has a namespace of its own. Any library needed here, even libc, would be loaded into every process a
 * second time. So only functions of this file are called.
 */
#include "base/driver_names.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* The dynamic linker finds both by name. */
__attribute__((visibility("default"))) unsigned int la_version(unsigned int version);
__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* Copies of the environment, which programs may overwrite. If either is "", no request is redirected. */
static char library[PATH_MAX];
static char driver[PATH_MAX];

/* The text after the prefix; NULL without the prefix. */
static const char *behind(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix) {
		text++;
		prefix++;
	}
	return *prefix ? NULL : text;
}

static void copy(char path[PATH_MAX], const char *from)
{
	unsigned int length = 0;

	while (length < PATH_MAX - 1 && from[length]) {
		path[length] = from[length];
		length++;
	}
	path[length] = '\0';
}

__attribute__((constructor)) static void read_environment(int count, char **arguments, char **environment)
{
	(void)count;
	(void)arguments;
	for (; *environment; environment++) {
		const char *ours = behind(*environment, "NVTASKSET_SHIM=");
		const char *real = behind(*environment, "NVTASKSET_DRIVER=");

		if (ours)
			copy(library, ours);
		else if (real)
			copy(driver, real);
	}
}

static const char *file_name(const char *path)
{
	const char *name = path;

	for (; *path; path++) {
		if (*path == '/')
			name = path + 1;
	}
	return name;
}

/* For libcuda.so, libcuda.so.1, libcuda.so.580.159.04. */
static int is_driver(const char *name)
{
	const char *rest = behind(name, DRIVER_OTHER_NAME);

	return rest && (*rest == '\0' || *rest == '.');
}

static int is_link(const char *name)
{
	const char *rest = behind(name, DRIVER_LINK);

	return rest && *rest == '\0';
}

unsigned int la_version(unsigned int version)
{
	return version;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	char *answer = (char *)name;

	(void)cookie;
	if (flag == LA_SER_ORIG && library[0] && driver[0]) {
		if (is_link(name))
			answer = driver;
		else if (is_driver(file_name(name)))
			answer = library;
	}
	return answer;
}
