#include "front.h"

#include "base/driver_names.h"
#include "base/path.h"
#include "base/trust.h"
#include "driver.h"
#include "gpu/topology/cache.h"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEPARATORS ":;$" /* not possible in a directory of LD_LIBRARY_PATH */
#define BASES_MAX 18     /* base directories: two of the user, and sixteen in /tmp */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- links ------------------------------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* FNV-1a. Names the directory of each pair of library and driver. */
static uint64_t hash(uint64_t value, const char *text)
{
	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return value;
}

/* Makes the link atomically: other processes may be making or using the same link. */
static int make_link(const char *target, const char *directory, const char *name, struct error *error)
{
	/* Static, here and below: large, and stacks can be small. */
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

/* --- base directories --------------------------------------------------------------------------------------------- */

/* Base directories to try, in order; false at the end. A user's cache comes before XDG_RUNTIME_DIR: the latter is
 * removed at the end of the session. Programs may outlive the session, and their children would find the driver without
 * us. In /tmp, another user may have taken a name. Root's are not in /tmp: after a cleaning of /tmp, another user could
 * put a library there, for a running program of root's to load. */
static bool find_base(bool is_root, unsigned int number, char base[PATH_MAX])
{
	static const char *const roots[] = {"", "/var/cache/nvtaskset", "/run/nvtaskset"};
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	unsigned int user = (unsigned int)geteuid();
	bool found = true;

	if (number == 0)
		found = cache_directory(base);
	else if (is_root)
		found = number < COUNT(roots) && strcpy(base, roots[number]);
	else if (number == 1)
		found = runtime && runtime[0] == '/' && path_join(base, runtime, "nvtaskset");
	else if (number == 2)
		snprintf(base, PATH_MAX, "/tmp/nvtaskset-%u", user);
	else
		snprintf(base, PATH_MAX, "/tmp/nvtaskset-%u.%u", user, number - 2);
	return found;
}

/* In a user namespace where root does not own /, root has no more rights than other users. */
static bool is_root(void)
{
	struct stat top;

	return geteuid() == 0 && stat("/", &top) == 0 && top.st_uid == 0;
}

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

/* Whether COMMAND could change its user, like su and daemons: with the capability, in a user namespace with a second
 * user. We do not try: the kernel lets nobody look into a process after a change of its user, and commands that choose
 * TPCs at the same time must see us (turn.h). */
static bool can_change_user(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, sets) == 0 && sets[0].effective & 1u << CAP_SETUID && has_other_users();
}

/* --- directories with links --------------------------------------------------------------------------------------- */

struct links {
	char name[32]; /* the hash of library and driver */
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

/* Makes the links in the first usable base directory; `for_others`: readable for all users. On failure, the reason is
 * of the first base directory. */
static int make_in_some_base(const struct links *links, bool for_others, char directory[PATH_MAX], struct error *error)
{
	const bool as_root = is_root();
	static char base[PATH_MAX];
	struct error why;
	int result = -1;

	error_set(error, "%s", "");
	for (unsigned int i = 0; i < BASES_MAX && result < 0; i++) {
		if (!find_base(as_root, i, base))
			continue;
		result = make_links(links, base, directory, &why);
		if (result == 0 && for_others)
			result = trust_check_readable(directory, &why);
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
	if ((can_change_user() && make_in_some_base(&links, true, directory, &why) == 0) ||
	    make_in_some_base(&links, false, directory, &why) == 0)
		return 0;
	return error_set(error, "%.200s; there is no other place for links to our library: set XDG_CACHE_HOME to a "
	                        "directory that only you can write to", why.reason);
}

int front_check_others(const char *directory, struct error *error)
{
	static const char *const names[] = {DRIVER_NAME, DRIVER_LINK};
	static char path[PATH_MAX];
	size_t count = can_change_user() ? COUNT(names) : 0;
	struct error why;
	int result = 0;

	for (size_t i = 0; i < count && result == 0; i++) {
		if (path_join(path, directory, names[i]) && trust_check_readable(path, &why) < 0)
			result = error_set(error, "%.200s: a program that changes its user runs unrestricted",
			                   why.reason);
	}
	return result;
}

int front_directory(const char *driver, char directory[PATH_MAX], struct error *error)
{
	static char own[PATH_MAX], link[PATH_MAX];
	int result = start_library_directory(own, error);

	if (result == 0 && !strpbrk(own, SEPARATORS) && path_join(link, own, DRIVER_LINK) && same_file(link, driver))
		strcpy(directory, own);
	else if (result == 0)
		result = make_directory(own, driver, directory, error);
	return result;
}
