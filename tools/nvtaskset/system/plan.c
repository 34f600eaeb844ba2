#include "plan.h"

#include "base/driver_names.h"
#include "base/trust.h"
#include "start/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the plan ---------------------------------------------------------------------------------------------- */

static void add_link(struct plan *plan, const char *directory, const char *name, const char *target)
{
	struct link *link = &plan->links[plan->link_count++];

	/* The path fits: plan_find_library has checked the length. */
	snprintf(link->path, sizeof link->path, "%.*s/%s", PATH_MAX - 64, directory, name);
	snprintf(link->target, sizeof link->target, "%s", target);
}

int plan_find_library(struct plan *plan, struct error *error)
{
	char own[PATH_MAX];

	if (own_library_directory(own, error) < 0)
		return -1;
	if (!realpath(own, plan->library))
		return error_set_errno(error, "%.200s", own);
	/* In a file that ldconfig reads, these separate directories or begin a comment. */
	if (strpbrk(plan->library, " \t\r\n\f\v:,=#") || strlen(plan->library) > PATH_MAX - 128)
		return error_set(error, "%.200s: a path that ldconfig does not take: install nvtaskset elsewhere",
		                 plan->library);
	snprintf(plan->directory, sizeof plan->directory, "%.*s/system", PATH_MAX - 64, plan->library);
	snprintf(plan->driver, sizeof plan->driver, "%.*s/driver", PATH_MAX - 64, plan->directory);
	snprintf(plan->configuration, sizeof plan->configuration,
	         "# Written by nvtaskset system enable: programs find nvtaskset's library in front of the CUDA driver's.\n"
	         "# To undo it: nvtaskset system disable; or remove this file and run ldconfig.\n"
	         "%s\n",
	         plan->directory);
	return 0;
}

int plan_find_driver(struct plan *plan, struct error *error)
{
	char driver[PATH_MAX], other[PATH_MAX];
	struct driver_bypass bypass;

	if (driver_find_in_cache(DRIVER_NAME, driver)) {
		add_link(plan, plan->driver, DRIVER_LINK, driver);
		add_link(plan, plan->directory, DRIVER_NAME, "../" DRIVER_NAME);
		if (driver_find_in_cache(DRIVER_OTHER_NAME, other))
			add_link(plan, plan->directory, DRIVER_OTHER_NAME, DRIVER_NAME);
	} else if (driver_find_bypass(&bypass)) {
		return error_set(error, "programs find the driver, %.100s, by LD_LIBRARY_PATH (%s), before they look into "
		                        "the dynamic linker's cache: start them with nvtaskset, or use --attach", bypass.driver,
		                 bypass.where);
	} else {
		return error_set(error, "no NVIDIA driver library (" DRIVER_NAME ") in " LDCONFIG_CACHE
		                        ", where programs look for it: install the driver, or run ldconfig");
	}
	return 0;
}

int plan_check_library(const struct plan *plan, struct error *error)
{
	char library[PATH_MAX];
	struct error why;

	snprintf(library, sizeof library, "%.*s/" DRIVER_NAME, PATH_MAX - 64, plan->library);
	return trust_check(library, 0, TRUST_FOREVER, &why) == 0
	               ? 0
	               : error_set(error, "%.200s, and every program would load our library from it: install nvtaskset elsewhere",
	                           why.reason);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

bool plan_link_is_made(const struct link *link)
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

/* Every user must be able to read the directory, whatever the umask is. */
static int make_directory(const char *path, struct error *error)
{
	if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
		return error_set_errno(error, "%.200s", path);
	return 0;
}

int plan_make_directories(const struct plan *plan, struct error *error)
{
	int result = make_directory(plan->directory, error);

	if (result == 0)
		result = make_directory(plan->driver, error);
	for (unsigned int i = 0; result == 0 && i < plan->link_count; i++)
		result = make_link(&plan->links[i], error);
	return result;
}

void plan_remove_files(const char *directory)
{
	static const char *const names[] = {
		("driver/" DRIVER_LINK), "driver", DRIVER_NAME, DRIVER_OTHER_NAME, TEST_CACHE, (TEST_CACHE "~"), "",
	};
	char path[PATH_MAX];

	unlink(INACTIVE);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, directory, names[i]);
		remove(path);
	}
}

int plan_write_configuration(const struct plan *plan, struct error *error)
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

bool plan_read_configuration(char directory[PATH_MAX])
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

static int start(pid_t *pid, const char *cache, int held)
{
	char *const arguments[] = {PROGRAM, "-X", "-C", (char *)cache, NULL};
	char *const environment[] = {NULL}; /* no locale: the order in which files are read depends on it */
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	/* It warns of directories that do not exist, which is common and harmless. */
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, held, held); /* keeps it open */
	int failed = posix_spawn(pid, PROGRAM, &actions, NULL, arguments, environment);

	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

int plan_make_cache(const char *cache, int held, struct error *error)
{
	int status = -1;
	pid_t pid;
	int failed = start(&pid, cache, held);

	if (failed) {
		errno = failed;
		return error_set_errno(error, PROGRAM ", which makes the dynamic linker's cache");
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0 ? 0 : error_set(error, PROGRAM ", which makes the dynamic linker's cache, failed: run it to see why");
}
