/*
 * The word system. With `enable`, every program of this machine that asks for the driver library finds ours in the
 * dynamic linker's cache.
 *
 * This needs two things. One is a directory of links, PREFIX/lib/nvtaskset/system, with only the files that programs
 * must find. A link to the driver is in a directory below: in the same directory, ldconfig would take the link for
 * another library of the same name. The other is a file in /etc/ld.so.conf.d that names the directory of links before
 * all others. The links use names that upgrades of the driver keep. No file of the driver is changed.
 *
 * Container tools bind or copy the file listed as libcuda.so.1 by ldconfig: the driver, as before, since ldconfig lists
 * our library as libcuda.so.01. For the dynamic linker both are one name, since numbers in names are compared by their
 * values, and the first file of the name is loaded. If a container's own cache has both files, our library may be
 * loaded in the container, without the link to the driver. For containers ldconfig lists libcuda.so.nvtaskset, too: a
 * file that depends on the libcuda.so.1 in the same directory.
 *
 * After each step, programs find either the driver as before, or our library, which was tested. The command may die
 * between two steps without harm; `disable` then removes the files that are there.
 */
#include "cli/actions.h"

#include "base/driver_names.h"
#include "base/error.h"
#include "base/trust.h"
#include "start/configuration.h"
#include "start/driver.h"
#include "start/loader_cache.h"
#include "start/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INACTIVE "/etc/ld.so.conf.d/.nvtaskset" /* ldconfig reads only names in .conf */
#define TEST_CACHE "cache"                      /* in the directory of links; unused by programs */

#define ALIAS_LIBRARY "libnvtaskset-alias.so" /* our libcuda.so (src/listed/alias.c) */

#define LINKS_MAX 5

struct link {
	char path[PATH_MAX];
	char target[PATH_MAX];
};

struct plan {
	char library[PATH_MAX];   /* where we are installed */
	char directory[PATH_MAX]; /* the directory of links there, for the dynamic linker */
	char driver[PATH_MAX];    /* below, with links to the driver and ours; unlisted */
	struct link links[LINKS_MAX];
	unsigned int link_count;
	char configuration[PATH_MAX + 512]; /* the content of the file */
	int lock; /* a single process changes files at a time */
	bool is_verbose;
};

/* --- the plan ---------------------------------------------------------------------------------------------- */

static void add_link(struct plan *plan, const char *directory, const char *name, const char *target)
{
	struct link *link = &plan->links[plan->link_count++];

	/* The path fits: plan_find_library has checked the length. */
	snprintf(link->path, sizeof link->path, "%.*s/%s", PATH_MAX - 64, directory, name);
	snprintf(link->target, sizeof link->target, "%s", target);
}

/* Finds where we are installed: first, since the rest of the plan depends on this. */
static int plan_find_library(struct plan *plan, struct error *error)
{
	char own[PATH_MAX];

	if (start_library_directory(own, error) < 0)
		return -1;
	if (!realpath(own, plan->library))
		return error_set_errno(error, "%.200s", own);
	/* In a file for ldconfig, the characters separate directories or begin a comment. */
	if (strpbrk(plan->library, " \t\r\n\f\v:,=#") || strlen(plan->library) > PATH_MAX - 128)
		return error_set(error, "%.200s: a path that ldconfig does not take: install nvtaskset elsewhere",
		                 plan->library);
	snprintf(plan->directory, sizeof plan->directory, "%.*s/system", PATH_MAX - 64, plan->library);
	snprintf(plan->driver, sizeof plan->driver, "%.*s/driver", PATH_MAX - 64, plan->directory);
	snprintf(plan->configuration, sizeof plan->configuration,
	         "# Written by nvtaskset system enable: programs find nvtaskset's library in front of the CUDA "
	         "driver's.\n# To undo it: nvtaskset system disable; or remove this file and run ldconfig.\n%s\n",
	         plan->directory);
	return 0;
}

/* Plans links to the present driver, by the name that upgrades keep, and by the second name, if any. */
static int plan_find_driver(struct plan *plan, struct error *error)
{
	char driver[PATH_MAX], other[PATH_MAX];
	struct driver_bypass bypass;

	if (driver_find_in_cache(DRIVER_NAME, driver)) {
		add_link(plan, plan->driver, DRIVER_LISTED_LINK, driver);
		add_link(plan, plan->driver, DRIVER_NAME, "../../" OUR_LISTED_NAME);
		add_link(plan, plan->directory, OUR_LISTED_NAME, "../" OUR_LISTED_NAME);
		add_link(plan, plan->directory, DRIVER_LISTED_LINK, "../" DRIVER_LISTED_LINK);
		if (driver_find_in_cache(DRIVER_OTHER_NAME, other))
			add_link(plan, plan->directory, DRIVER_OTHER_NAME, "../" ALIAS_LIBRARY);
	} else if (driver_find_bypass(&bypass)) {
		return error_set(error, "programs find the driver, %.100s, by LD_LIBRARY_PATH (%s), before they look "
		                        "into the dynamic linker's cache: start them with nvtaskset, or use --attach",
		                 bypass.driver, bypass.where);
	} else {
		return error_set(error, "no NVIDIA driver library (" DRIVER_NAME ") in " LOADER_CACHE
		                        ", where programs look for it: install the driver, or run ldconfig");
	}
	return 0;
}

/* Checks that only root can change our library: set-user-ID programs will load it. */
static int plan_check_library(const struct plan *plan, struct error *error)
{
	char library[PATH_MAX];
	struct error why;

	snprintf(library, sizeof library, "%.*s/" DRIVER_NAME, PATH_MAX - 64, plan->library);
	return trust_check(library, 0, TRUST_FOREVER, &why) == 0
	               ? 0
	               : error_set(error, "%.200s, and every program would load our library from it: install nvtaskset "
	                                  "elsewhere", why.reason);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

static bool plan_link_is_made(const struct link *link)
{
	char target[PATH_MAX];
	ssize_t length = readlink(link->path, target, sizeof target);

	return length == (ssize_t)strlen(link->target) && memcmp(target, link->target, (size_t)length) == 0;
}

static int make_link(const struct link *link, struct error *error)
{
	if (plan_link_is_made(link))
		return 0;
	if ((unlink(link->path) < 0 && errno != ENOENT) || symlink(link->target, link->path) < 0)
		return error_set_errno(error, "%.200s", link->path);
	return 0;
}

/* Every user must be able to read the directory, for any umask. */
static int make_directory(const char *path, struct error *error)
{
	if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
		return error_set_errno(error, "%.200s", path);
	return 0;
}

static int plan_make_directories(const struct plan *plan, struct error *error)
{
	int result = make_directory(plan->directory, error);

	if (result == 0)
		result = make_directory(plan->driver, error);
	for (unsigned int i = 0; result == 0 && i < plan->link_count; i++)
		result = make_link(&plan->links[i], error);
	return result;
}

/* Removes our files, as far as they exist. A directory with foreign files stays. */
static void plan_remove_files(const char *directory)
{
	static const char *const names[] = {
		("driver/" DRIVER_LINK), ("driver/" DRIVER_LISTED_LINK), ("driver/" DRIVER_NAME), "driver",
		OUR_LISTED_NAME, DRIVER_LISTED_LINK, DRIVER_NAME, DRIVER_OTHER_NAME, TEST_CACHE, (TEST_CACHE "~"),
		"",
	};
	char path[PATH_MAX];

	unlink(INACTIVE);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, directory, names[i]);
		remove(path);
	}
}

static int plan_write_configuration(const struct plan *plan, struct error *error)
{
	size_t length = strlen(plan->configuration);
	int file = open(INACTIVE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	int failed = file < 0 || fchmod(file, 0644) < 0 || write(file, plan->configuration, length) != (ssize_t)length;

	if (file >= 0 && close(file) < 0)
		failed = 1;
	if (failed || rename(INACTIVE, CONFIGURATION) < 0) {
		error_set_errno(error, CONFIGURATION);
		unlink(INACTIVE);
		return -1;
	}
	return 0;
}

/* Reads the directory in the last line of the file, perhaps of another installation. False without a file. */
static bool plan_read_configuration(char directory[PATH_MAX])
{
	static char content[sizeof((struct plan *)NULL)->configuration + 1]; /* large */
	FILE *file = fopen(CONFIGURATION, "re");
	size_t length = file ? fread(content, 1, sizeof content - 1, file) : 0;

	content[length] = '\0';
	directory[0] = '\0';
	for (char *line = content; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
		if (line[0] == '/')
			snprintf(directory, PATH_MAX, "%.*s", (int)strcspn(line, "\n"), line);
	}
	if (file)
		fclose(file);
	return file != NULL;
}

/* --- the dynamic linker's cache ---------------------------------------------------------------------------------- */

#define PROGRAM "/sbin/ldconfig" /* not searched in PATH: root runs it */

static int start_ldconfig(pid_t *pid, const char *cache, int held)
{
	char *const arguments[] = {PROGRAM, "-X", "-C", (char *)cache, NULL};
	char *const environment[] = {NULL}; /* no locale: ldconfig's order of files depends on the locale */
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	/* ldconfig warns of missing directories, which are common and harmless. */
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, held, held); /* keeps the descriptor open */
	int failed = posix_spawn(pid, PROGRAM, &actions, NULL, arguments, environment);

	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

/* Rebuilds the dynamic linker's cache in the file `cache`, from the directories of the files in /etc/ld.so.conf.d, and
 * makes no links in the directories. Meanwhile there is a temporary file with the name of `cache` and "~". ldconfig
 * keeps the descriptor `held` open: a lock until the end of ldconfig, even if we are killed. */
static int make_cache(const char *cache, int held, struct error *error)
{
	/* Under a parent that ignored SIGCHLD, no child would leave a status. */
	const struct sigaction ordinary = {.sa_handler = SIG_DFL};
	struct sigaction inherited;
	int status = -1;
	pid_t pid;

	sigaction(SIGCHLD, &ordinary, &inherited);
	int failed = start_ldconfig(&pid, cache, held);

	if (failed == 0)
		(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	sigaction(SIGCHLD, &inherited, NULL);
	errno = failed;
	if (failed)
		return error_set_errno(error, PROGRAM ", which makes the dynamic linker's cache");
	return status == 0 ? 0 : error_set(error, PROGRAM ", which makes the dynamic linker's cache, failed: run it to "
	                                                  "see why");
}

static void print_step(const struct plan *plan, const char *format, ...)
{
	va_list arguments;

	if (!plan->is_verbose)
		return;
	va_start(arguments, format);
	fputs("nvtaskset: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

/* --- enabling ------------------------------------------------------------------------------------------------ */

/* Checks that programs find our library in the cache. 0, or -1 with the reason. */
static int check_cache(const struct plan *plan, const char *cache, struct error *error)
{
	char found[PATH_MAX] = "", ours[PATH_MAX];
	size_t length = strlen(plan->directory);

	loader_cache_find(cache, DRIVER_NAME, NULL, found);
	if (strncmp(found, plan->directory, length) == 0 && found[length] == '/')
		return 0;
	if (!loader_cache_find(cache, DRIVER_NAME, start_is_our_library, ours))
		return error_set(error,
		                 "/etc/ld.so.conf does not include /etc/ld.so.conf.d/*.conf, where " CONFIGURATION
		                 " would stand: include it, as its first line");
	return error_set(error, "programs would still find %.150s first: /etc/ld.so.conf, or a file in "
	                        "/etc/ld.so.conf.d whose name comes before ours, names its directory", found);
}

/* Makes and checks an unused cache, before the real cache is changed. */
static int test_cache(const struct plan *plan, struct error *error)
{
	char cache[PATH_MAX];

	snprintf(cache, sizeof cache, "%.*s/" TEST_CACHE, PATH_MAX - 64, plan->directory);
	int result = make_cache(cache, plan->lock, error);

	if (result == 0)
		result = check_cache(plan, cache, error);
	unlink(cache);
	return result;
}

/* The link of an older version. */
static void find_older(const struct plan *plan, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/" DRIVER_NAME, PATH_MAX - 64, plan->directory);
}

/* Removes the older link once the cache has the new link: programs start meanwhile. */
static int replace_older(const struct plan *plan, struct error *error)
{
	char older[PATH_MAX];

	find_older(plan, older);
	return unlink(older) == 0 ? make_cache(LOADER_CACHE, plan->lock, error) : 0;
}

static bool is_enabled(const struct plan *plan)
{
	char directory[PATH_MAX], older[PATH_MAX];
	bool enabled = plan_read_configuration(directory) && strcmp(directory, plan->directory) == 0 &&
	               check_cache(plan, LOADER_CACHE, NULL) == 0;

	find_older(plan, older);
	enabled = enabled && access(older, F_OK) < 0;
	for (unsigned int i = 0; i < plan->link_count; i++)
		enabled = enabled && plan_link_is_made(&plan->links[i]);
	return enabled;
}

static void undo(const struct plan *plan)
{
	char ours[PATH_MAX];

	unlink(CONFIGURATION);
	/* As long as the cache leads programs to our files, the files must stay. */
	if (!loader_cache_find(LOADER_CACHE, DRIVER_NAME, start_is_our_library, ours) ||
	    make_cache(LOADER_CACHE, plan->lock, NULL) == 0)
		plan_remove_files(plan->directory);
}

static int enable(const struct plan *plan, struct error *error)
{
	print_step(plan, "%s: links to our library and to %s", plan->directory, plan->links[0].target);
	if (plan_make_directories(plan, error) < 0)
		return -1;
	print_step(plan, "testing our library");
	if (probe_bare(plan->driver, error) < 0)
		return -1;
	print_step(plan, "writing %s", CONFIGURATION);
	if (plan_write_configuration(plan, error) < 0 || test_cache(plan, error) < 0)
		return -1;
	print_step(plan, "rebuilding %s", LOADER_CACHE);
	if (make_cache(LOADER_CACHE, plan->lock, error) < 0 || replace_older(plan, error) < 0)
		return -1;
	print_step(plan, "testing our library as programs will find it");
	return probe_bare(NULL, error);
}

/* Programs that find the driver by LD_LIBRARY_PATH are not reached: a warning, and no failure. */
static void warn_of_bypass(void)
{
	struct driver_bypass bypass;

	if (driver_find_bypass(&bypass))
		fprintf(stderr, "nvtaskset: programs with the LD_LIBRARY_PATH %s still find %s and not our library: "
		                "start them with nvtaskset, or use --attach\n", bypass.where, bypass.driver);
}

/* --- the actions ------------------------------------------------------------------------------------------------ */

/* Shows the library that programs find, of any installation. */
int action_system_status(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */
	static char found[PATH_MAX];
	bool are_ours = loader_cache_find(LOADER_CACHE, DRIVER_NAME, NULL, found) && start_is_our_library(found);

	(void)options;
	(void)error;
	if (!are_ours)
		puts("not enabled");
	else if (plan_find_library(&plan, NULL) == 0 && plan_find_driver(&plan, NULL) == 0 && is_enabled(&plan))
		printf("enabled: programs that start find %s in front of %s\n", found, plan.links[0].target);
	else
		printf("enabled, by another installation or before the driver moved: programs that start find %s; "
		       "'nvtaskset system enable' makes it anew\n", found);
	return 0;
}

static int require_root(const char *words, struct error *error)
{
	return geteuid() == 0 ? 0 : error_set(error,
	                                      "%s: only root can change what every program loads: sudo nvtaskset %s",
	                                      words, words);
}

/* Waits for the lock, and holds the lock until the end of this process and its ldconfig. */
static int lock(struct plan *plan, struct error *error)
{
	plan->lock = open(plan->library, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return plan->lock >= 0 && flock(plan->lock, LOCK_EX) == 0 ? 0 : error_set_errno(error, "%.200s", plan->library);
}

int action_system_enable(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */

	plan.is_verbose = options->verbose;
	if (plan_find_library(&plan, error) < 0 || plan_find_driver(&plan, error) < 0 ||
	    plan_check_library(&plan, error) < 0)
		return -1;
	if (options->dry_run) {
		printf("%s:\n%s\n", CONFIGURATION, plan.configuration);
		for (unsigned int i = 0; i < plan.link_count; i++)
			printf("%s -> %s\n", plan.links[i].path, plan.links[i].target);
		printf("%s: rebuilt by ldconfig\n", LOADER_CACHE);
		return 0;
	}
	if (require_root("system enable", error) < 0 || lock(&plan, error) < 0)
		return -1;
	if (is_enabled(&plan)) {
		puts("enabled already");
	} else if (enable(&plan, error) == 0) {
		puts("enabled: programs that start from now on can be given a partition with -p\n"
		     "containers that get what 'ldconfig -p' lists, as by Apptainer's --nv, get the driver alone: all "
		     "TPCs");
	} else {
		undo(&plan);
		return -1;
	}
	warn_of_bypass();
	return 0;
}

/* The files go last, when the cache no longer leads programs to them. */
static int disable(const struct plan *plan, const char *directory, bool configured, struct error *error)
{
	if (configured && rename(CONFIGURATION, INACTIVE) < 0)
		return error_set_errno(error, CONFIGURATION);
	if (make_cache(LOADER_CACHE, plan->lock, error) < 0) {
		if (configured)
			rename(INACTIVE, CONFIGURATION);
		return -1;
	}
	plan_remove_files(directory);
	return 0;
}

int action_system_disable(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */
	static char directory[PATH_MAX], ours[PATH_MAX];
	int result = 0;

	plan.is_verbose = options->verbose;
	if (require_root("system disable", error) < 0 || plan_find_library(&plan, error) < 0 || lock(&plan, error) < 0)
		return -1;
	bool configured = plan_read_configuration(directory);

	if (configured || loader_cache_find(LOADER_CACHE, DRIVER_NAME, start_is_our_library, ours)) {
		print_step(&plan, "removing " CONFIGURATION " and its directory, and rebuilding %s", LOADER_CACHE);
		result = disable(&plan, configured ? directory : plan.directory, configured, error);
		if (result == 0)
			puts("disabled: programs that start from now on find the driver alone");
	} else {
		plan_remove_files(plan.directory);
		puts("not enabled");
	}
	return result;
}
