#include "driver.h"

#include "base/elf_note.h"
#include "base/trust.h"
#include "gpu/topology/cache.h"
#include "loader_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libcuda.so.1"
#define OTHER_NAME "libcuda.so"         /* some programs try this first */
#define LINK "libnvtaskset-driver.so.1" /* what our library is linked against */

#define SEPARATORS ":;$" /* what no directory in LD_LIBRARY_PATH can have in its name */
#define PLACES 18       /* to look for: two, and sixteen in /tmp */

/* Where packages and containers put the driver when nothing points there: NVIDIA's container images, Debian,
 * Red Hat, WSL, NixOS, Jetson, and last the toolkit's compatibility package. */
static const char *const usual_directories[] = {
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/wsl/lib",
	"/run/opengl-driver/lib",
	"/usr/lib/aarch64-linux-gnu/nvidia",
	"/usr/lib/aarch64-linux-gnu/tegra",
	"/usr/local/cuda/compat",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Says whether the whole path fitted. */
static bool join(char path[PATH_MAX], const char *directory, size_t length, const char *name)
{
	int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name);

	return length < PATH_MAX && written > 0 && written < PATH_MAX;
}

/* --- our own library ------------------------------------------------------------------------------ */

bool driver_is_ours(const char *path)
{
	const struct mark mark = MARK;
	char beginning[MARK_WITHIN];
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = file >= 0 ? read(file, beginning, sizeof beginning) : 0;

	if (file >= 0)
		close(file);
	return size > 0 && memmem(beginning, (size_t)size, &mark, sizeof mark) != NULL;
}

/* A toolkit's stub has the driver's name and functions that do nothing. */
static bool is_stub(const char *path)
{
	return strstr(path, "/stubs/") != NULL;
}

static bool is_driver(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0 &&
	       !is_stub(path) && !driver_is_ours(path);
}

static bool own_directory_is(char directory[PATH_MAX], const char *parent, const char *name)
{
	char library[PATH_MAX];

	return join(directory, parent, strlen(parent), name) &&
	       join(library, directory, strlen(directory), LIBRARY) && driver_is_ours(library);
}

int driver_own_directory(char directory[PATH_MAX], struct error *error)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0)
		return error_set_errno(error, "/proc, which has to be mounted");
	self[length] = '\0';
	if (!own_directory_is(directory, dirname(self), "lib") &&
	    !own_directory_is(directory, dirname(self), "lib/nvtaskset"))
		return error_set(error, "our library " LIBRARY " is neither beside the command nor in "
		                        "../lib/nvtaskset: install nvtaskset again");
	return 0;
}

/* --- finding the driver --------------------------------------------------------------------------- */

bool driver_find_in_directories(const char *directories, char path[PATH_MAX])
{
	bool found = false;

	while (*directories && !found) {
		size_t length = strcspn(directories, ":;");

		found = length > 0 && join(path, directories, length, LIBRARY) && is_driver(path);
		directories += length + (directories[length] != '\0');
	}
	return found;
}

static bool find_in_usual_directories(char path[PATH_MAX])
{
	bool found = false;

	for (size_t i = 0; i < COUNT(usual_directories) && !found; i++)
		found = join(path, usual_directories[i], strlen(usual_directories[i]), LIBRARY) &&
		        is_driver(path);
	return found;
}

static int use_named(const char *named, char path[PATH_MAX], struct error *error)
{
	if (access(named, R_OK) < 0)
		return error_set_errno(error, "NVTASKSET_DRIVER=%.200s", named);
	if (!is_driver(named))
		return error_set(error, "NVTASKSET_DRIVER=%.200s: not a driver library", named);
	if (!realpath(named, path))
		return error_set_errno(error, "NVTASKSET_DRIVER=%.200s", named);
	return 0;
}

/* The same file by a path that does not depend on where we stand. */
static int make_absolute(char path[PATH_MAX], struct error *error)
{
	char relative[PATH_MAX];

	if (path[0] == '/')
		return 0;
	strcpy(relative, path);
	if (!realpath(relative, path))
		return error_set_errno(error, "%.200s", relative);
	return 0;
}

bool driver_find_in_cache(const char *name, char path[PATH_MAX])
{
	return loader_cache_find("/etc/ld.so.cache", name, is_driver, path);
}

int driver_find(char path[PATH_MAX], struct error *error)
{
	const char *named = getenv("NVTASKSET_DRIVER"), *directories = getenv("LD_LIBRARY_PATH");

	if (named && *named)
		return use_named(named, path, error);
	if (!(directories && driver_find_in_directories(directories, path)) &&
	    !driver_find_in_cache(LIBRARY, path) && !find_in_usual_directories(path))
		return error_set(error, "no NVIDIA driver library (" LIBRARY ") on this machine: install the "
		                        "driver, or name the file with NVTASKSET_DRIVER");
	return make_absolute(path, error);
}

/* --- the directory in front of it ------------------------------------------------------------------ */

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
	if (!join(path, directory, strlen(directory), name) ||
	    !join(temporary, directory, strlen(directory), suffix))
		return error_set(error, "%.200s: the path is too long", directory);
	if (same_file(path, target))
		return 0;
	unlink(temporary);
	if (symlink(target, temporary) < 0 || rename(temporary, path) < 0)
		return error_set_errno(error, "%.200s: no link to %.100s", path, target);
	return 0;
}

/* --- where that is ---------------------------------------------------------------------------------------- */

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
		found = runtime && runtime[0] == '/' && join(base, runtime, strlen(runtime), "nvtaskset");
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

/* Whether COMMAND could be a program that goes on as another user, as su and daemons do. It needs the capability, and there
 * have to be others. */
static bool can_change_user(void)
{
	const uid_t other = 65534;
	uid_t own = (uid_t)setfsuid(other);
	bool changed = (uid_t)setfsuid(own) == other;

	return changed && own != other;
}

/* A directory to be made, and what it is to lead to. */
struct links {
	char name[32]; /* of the directory: one for each pair of library and driver */
	char library[PATH_MAX];
	const char *driver;
};

static int make_links(const struct links *links, const char *base, char directory[PATH_MAX], struct error *error)
{
	static char path[PATH_MAX];

	if (!join(path, base, strlen(base), links->name))
		return error_set(error, "%.200s: the path is too long", base);
	if (trust_make_directory(path, directory, error) < 0)
		return -1;
	if (strpbrk(directory, SEPARATORS))
		return error_set(error, "%.200s: has one of : ; $ in its name, which the dynamic linker does not take",
		                 directory);
	if (make_link(links->driver, directory, LINK, error) < 0 ||
	    make_link(links->library, directory, LIBRARY, error) < 0 ||
	    make_link(links->library, directory, OTHER_NAME, error) < 0)
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
	if (!join(links.library, own, strlen(own), LIBRARY))
		return error_set(error, "%.200s: the path is too long", own);
	if ((can_change_user() && make_somewhere(&links, true, directory, &why) == 0) ||
	    make_somewhere(&links, false, directory, &why) == 0)
		return 0;
	return error_set(error, "%.200s; nor is there another place for links to our library: set XDG_CACHE_HOME to a "
	                        "directory that only you can write to", why.reason);
}

int driver_check_others(const char *directory, struct error *error)
{
	static const char *const names[] = {LIBRARY, LINK};
	char path[PATH_MAX];
	struct error why;
	int result = 0;

	for (size_t i = 0; i < COUNT(names) && result == 0 && can_change_user(); i++) {
		if (join(path, directory, strlen(directory), names[i]) && trust_check_open(path, &why) < 0)
			result = error_set(error, "%.200s: a program that changes its user runs unrestricted", why.reason);
	}
	return result;
}

int driver_library_directory(const char *driver, char directory[PATH_MAX], struct error *error)
{
	static char own[PATH_MAX], link[PATH_MAX];
	int result = driver_own_directory(own, error);

	if (result == 0 && !strpbrk(own, SEPARATORS) && join(link, own, strlen(own), LINK) && same_file(link, driver))
		strcpy(directory, own);
	else if (result == 0)
		result = make_directory(own, driver, directory, error);
	return result;
}
