#include "front.h"

#include "base/driver_names.h"
#include "base/path.h"
#include "base/trust.h"
#include "gpu/topology/cache.h"
#include "own_library.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEPARATORS ":;$" /* what no directory in LD_LIBRARY_PATH can have in its name */
#define PLACES 18       /* to look for: two, and sixteen in /tmp */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- links ------------------------------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* FNV-1a: one directory for each pair of library and driver. */
static uint64_t hash(uint64_t value, const char *text)
{
	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return value;
}

/* Makes the link, atomically, whatever another process that makes the same one does. */
static int make_link(const char *target, const char *directory, const char *name, struct error *error)
{
	/* Large, as others below: stacks can be small, and this is a process of its own. */
	static char path[PATH_MAX], temporary[PATH_MAX];
	char suffix[64];

	snprintf(suffix, sizeof suffix, ".%s.%d", name, (int)getpid());
	if (!path_join(path, directory, name) || !path_join(temporary, directory, suffix))
		return error_set(error, "%.200s: the path is too long", directory);
	if (same_file(path, target))
		return 0;
	unlink(temporary);
	if (symlink(target, temporary) < 0 || rename(temporary, path) < 0)
		return error_set_errno(error, "%.200s: no link to %.100s", path, target);
	return 0;
}

/* --- where they can be -------------------------------------------------------------------------------------- */

/* Programs that run on after their user's session start others, and these would find the driver without us: so what
 * outlives it comes first. In /tmp, another user may have been there before. */
static bool name_users_place(unsigned int number, char base[PATH_MAX])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned int user = (unsigned int)geteuid();
	bool found = true;

	if (number == 0)
		found = cache_directory(base);
	else if (number == 1)
		found = runtime && runtime[0] == '/' && path_join(base, runtime, "nvtaskset");
	else if (number == 2)
		snprintf(base, PATH_MAX, "/tmp/nvtaskset-%u", user);
	else
		snprintf(base, PATH_MAX, "/tmp/nvtaskset-%u.%u", user, number - 2);
	return found;
}

/* None in /tmp: where that is cleaned while a program of root's runs, somebody else could make what it loads next. */
static bool name_roots_place(unsigned int number, char base[PATH_MAX])
{
	static const char *const fixed[] = {"/var/cache/nvtaskset", "/run/nvtaskset"};
	bool found = true;

	if (number == 0)
		found = cache_directory(base);
	else if (number <= COUNT(fixed))
		strcpy(base, fixed[number - 1]);
	else
		found = false;
	return found;
}

/* In a user namespace whose / is somebody else's, root is a user like others. */
static bool is_root(void)
{
	struct stat top;

	return geteuid() == 0 && stat("/", &top) == 0 && top.st_uid == 0;
}

/* Whether there are others in our user namespace. */
static bool has_other_users(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long users = 0, more;

	while (map && fscanf(map, "%*u %*u %lu", &more) == 1)
		users += more;
	if (map)
		fclose(map);
	return !map || users > 1;
}

/* Whether COMMAND could be a program that goes on as another user, as su and daemons do. It needs the capability, and there
 * have to be others. Not by trying: the kernel lets nobody look into a process that has been another user for a moment, and
 * those who choose TPCs at the same time have to see us (turn.h). */
static bool can_change_user(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, sets) == 0 && sets[0].effective & 1u << CAP_SETUID && has_other_users();
}

/* --- making them -------------------------------------------------------------------------------------------- */

/* A directory to be made, and what it is to lead to. */
struct links {
	char name[32]; /* of the directory: one for each pair of library and driver */
	char library[PATH_MAX];
	const char *driver;
};

static int make_links(const struct links *links, const char *base, char directory[PATH_MAX], struct error *error)
{
	static char path[PATH_MAX];

	if (!path_join(path, base, links->name))
		return error_set(error, "%.200s: the path is too long", base);
	if (trust_make_directory(path, directory, error) < 0)
		return -1;
	if (strpbrk(directory, SEPARATORS))
		return error_set(error, "%.200s: has one of : ; $ in its name, which the dynamic linker does not take",
		                 directory);
	if (make_link(links->driver, directory, DRIVER_LINK, error) < 0 ||
	    make_link(links->library, directory, DRIVER_NAME, error) < 0 ||
	    make_link(links->library, directory, DRIVER_OTHER_NAME, error) < 0)
		return -1;
	return 0;
}

/* In the first place that will do. -1 with what speaks against the best one. */
static int make_somewhere(const struct links *links, bool open, char directory[PATH_MAX], struct error *error)
{
	bool (*const name_place)(unsigned int, char *) = is_root() ? name_roots_place : name_users_place;
	static char base[PATH_MAX];
	struct error why;
	int result = -1;

	error_set(error, "%s", "");
	for (unsigned int i = 0; i < PLACES && result < 0; i++) {
		if (!name_place(i, base))
			continue;
		result = make_links(links, base, directory, &why);
		if (result == 0 && open)
			result = trust_check_open(directory, &why);
		if (result < 0 && error->reason[0] == '\0')
			*error = why;
	}
	return result;
}

static int make_directory(const char *own, const char *driver, char directory[PATH_MAX], struct error *error)
{
	static struct links links;
	struct error why;
	uint64_t key = hash(hash(UINT64_C(0xcbf29ce484222325), own), driver);

	links.driver = driver;
	snprintf(links.name, sizeof links.name, "%016llx", (unsigned long long)key);
	if (!path_join(links.library, own, DRIVER_NAME))
		return error_set(error, "%.200s: the path is too long", own);
	if ((can_change_user() && make_somewhere(&links, true, directory, &why) == 0) ||
	    make_somewhere(&links, false, directory, &why) == 0)
		return 0;
	return error_set(error, "%.200s; nor is there another place for links to our library: set XDG_CACHE_HOME to a "
	                        "directory that only you can write to", why.reason);
}

int front_check_others(const char *directory, struct error *error)
{
	static const char *const names[] = {DRIVER_NAME, DRIVER_LINK};
	char path[PATH_MAX];
	struct error why;
	int result = 0;

	for (size_t i = 0; i < COUNT(names) && result == 0 && can_change_user(); i++) {
		if (path_join(path, directory, names[i]) && trust_check_open(path, &why) < 0)
			result = error_set(error, "%.200s: a program that changes its user runs unrestricted", why.reason);
	}
	return result;
}

int front_directory(const char *driver, char directory[PATH_MAX], struct error *error)
{
	static char own[PATH_MAX], link[PATH_MAX];
	int result = own_library_directory(own, error);

	if (result == 0 && !strpbrk(own, SEPARATORS) && path_join(link, own, DRIVER_LINK) && same_file(link, driver))
		strcpy(directory, own);
	else if (result == 0)
		result = make_directory(own, driver, directory, error);
	return result;
}
