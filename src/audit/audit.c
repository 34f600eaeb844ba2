/*
 * Leads every request for the driver library to ours, whatever the program's search paths say (rtld-audit(7)).
 *
 * LD_LIBRARY_PATH comes after DT_RPATH, after what the program puts in front of it, and not at all where a program
 * opens the driver by its path. The dynamic linker asks its audit libraries before all that. It pays with room for the
 * libraries' thread-local storage, of which little is left then: so this is for --strict.
 *
 * An audit library lives in a namespace of its own. This one needs nothing, not even libc, which would be loaded a
 * second time into every process: it calls no function but its own.
 */
#include "base/driver_names.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>


/* The dynamic linker looks these two up. */
__attribute__((visibility("default"))) unsigned int la_version(unsigned int version);
__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* Copies, as programs overwrite their environment. "" where it does not say: then nothing is led anywhere. */
static char library[PATH_MAX];
static char driver[PATH_MAX];

/* What follows the prefix, or NULL. */
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

/* libcuda.so, libcuda.so.1, libcuda.so.580.159.04 */
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
