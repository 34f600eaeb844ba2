/*
 * Makes the dynamic linker load our library whenever the driver library is requested, whatever the program's search
 * paths are (rtld-audit(7)).
 *
 * LD_LIBRARY_PATH is not enough: DT_RPATH and directories that the program puts in front come first, and a program may
 * open the driver by its path. The dynamic linker asks audit libraries before all that. But an audit library leaves
 * little room for the thread-local storage of libraries that are loaded later, so only --strict uses it.
 *
 * An audit library has a namespace of its own. This one needs no other library: even libc would be loaded into every
 * process a second time. So it calls only its own functions.
 */
#include "base/driver_names.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* The dynamic linker finds these two by name. */
__attribute__((visibility("default"))) unsigned int la_version(unsigned int version);
__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* Copies of the environment, which programs may overwrite. If one is "", no request is redirected. */
static char library[PATH_MAX];
static char driver[PATH_MAX];

/* The text after the prefix; NULL if the text does not begin with it. */
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

/* Such as libcuda.so, libcuda.so.1, libcuda.so.580.159.04. */
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
