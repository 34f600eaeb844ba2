/*
 * The word system. With `enable`, every program of this machine that asks for the driver library finds
 * ours in the dynamic linker's cache.
 *
 * This needs two things. One is a directory of links, PREFIX/lib/nvtaskset/system, with only the files that programs
 * must find: if a link to the driver were in the same directory, ldconfig would take it for another library of the same
 * name. The other is a file in /etc/ld.so.conf.d that names this directory before all others. The links use names that
 * upgrades of the driver keep. No file of the driver is changed.
 *
 * After each step, programs find either the driver as before, or our library, which was tested. So it does no harm if
 * the command dies between two steps; `disable` then removes what is there.
 */
#include "cli/actions.h"

#include "base/driver_names.h"
#include "plan.h"
#include "start/driver.h"
#include "start/loader_cache.h"
#include "start/probe.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void print_step(const struct options *options, const char *format, ...)
{
	va_list arguments;

	if (!options->verbose)
		return;
	va_start(arguments, format);
	fputs("nvtaskset: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

/* --- enabling ------------------------------------------------------------------------------------------------ */

static bool accept_any(const char *path)
{
	(void)path;
	return true;
}

/* Checks that programs find our library in this cache. 0, or -1 with the reason. */
static int check_cache(const struct plan *plan, const char *cache, struct error *error)
{
	char expected[PATH_MAX], found[PATH_MAX] = "", ours[PATH_MAX];

	snprintf(expected, sizeof expected, "%.*s/" DRIVER_NAME, PATH_MAX - 64, plan->directory);
	loader_cache_find(cache, DRIVER_NAME, accept_any, found);
	if (strcmp(found, expected) == 0)
		return 0;
	if (!loader_cache_find(cache, DRIVER_NAME, own_library_is, ours))
		return error_set(error, "/etc/ld.so.conf does not include /etc/ld.so.conf.d/*.conf, where " CONFIGURATION
		                        " would stand: include it, as its first line");
	return error_set(error, "programs would still find %.150s first: /etc/ld.so.conf, or a file in /etc/ld.so.conf.d whose "
	                        "name comes before ours, names its directory", found);
}

/* Makes and checks a cache that no program uses, before the real one is changed. */
static int test_cache(const struct plan *plan, struct error *error)
{
	char cache[PATH_MAX];

	snprintf(cache, sizeof cache, "%.*s/" TEST_CACHE, PATH_MAX - 64, plan->directory);
	int result = plan_make_cache(cache, plan->lock, error);

	if (result == 0)
		result = check_cache(plan, cache, error);
	unlink(cache);
	return result;
}

static bool is_enabled(const struct plan *plan)
{
	char directory[PATH_MAX];
	bool enabled = plan_read_configuration(directory) && strcmp(directory, plan->directory) == 0 &&
	               check_cache(plan, LDCONFIG_CACHE, NULL) == 0;

	for (unsigned int i = 0; i < plan->link_count; i++)
		enabled = enabled && plan_link_is_made(&plan->links[i]);
	return enabled;
}

/* Restores the state before 'enable'. */
static void undo(const struct plan *plan)
{
	char ours[PATH_MAX];

	unlink(CONFIGURATION);
	/* As long as the cache leads programs to our files, these must stay. */
	if (!loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, own_library_is, ours) ||
	    plan_make_cache(LDCONFIG_CACHE, plan->lock, NULL) == 0)
		plan_remove_files(plan->directory);
}

static int enable(const struct plan *plan, const struct options *options, struct error *error)
{
	print_step(options, "%s: links to our library and to %s", plan->directory, plan->links[0].target);
	if (plan_make_directories(plan, error) < 0)
		return -1;
	print_step(options, "testing our library");
	if (probe_bare(plan->directory, error) < 0)
		return -1;
	print_step(options, "writing %s", CONFIGURATION);
	if (plan_write_configuration(plan, error) < 0 || test_cache(plan, error) < 0)
		return -1;
	print_step(options, "rebuilding %s", LDCONFIG_CACHE);
	if (plan_make_cache(LDCONFIG_CACHE, plan->lock, error) < 0)
		return -1;
	print_step(options, "testing our library as programs will find it");
	return probe_bare(NULL, error);
}

static void show_plan(const struct plan *plan)
{
	printf("%s:\n%s\n", CONFIGURATION, plan->configuration);
	for (unsigned int i = 0; i < plan->link_count; i++)
		printf("%s -> %s\n", plan->links[i].path, plan->links[i].target);
	printf("%s: rebuilt by ldconfig\n", LDCONFIG_CACHE);
}

/* Programs that find the driver by LD_LIBRARY_PATH are not reached. That is no failure, but deserves a warning. */
static void warn_of_bypass(void)
{
	struct driver_bypass bypass;

	if (driver_find_bypass(&bypass))
		fprintf(stderr, "nvtaskset: programs with the LD_LIBRARY_PATH %s still find %s and not our library: start them "
		                "with nvtaskset, or use --attach\n", bypass.where, bypass.driver);
}

/* --- the actions ------------------------------------------------------------------------------------------------ */

/* What programs find counts, whichever installation has written it. */
int action_system_status(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */
	static char found[PATH_MAX];
	bool are_ours = loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, accept_any, found) && own_library_is(found);

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
	return geteuid() == 0 ? 0 : error_set(error, "%s: only root can change what every program loads: sudo nvtaskset %s",
	                                      words, words);
}

/* Waits for the lock, and holds it until this process and the ldconfig that it started have ended. */
static int lock(struct plan *plan, struct error *error)
{
	plan->lock = open(plan->library, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return plan->lock >= 0 && flock(plan->lock, LOCK_EX) == 0 ? 0 : error_set_errno(error, "%.200s", plan->library);
}

int action_system_enable(const struct options *options, struct error *error)
{
	/* Large, and this is a process of its own. */
	static struct plan plan;

	if (plan_find_library(&plan, error) < 0 || plan_find_driver(&plan, error) < 0 || plan_check_library(&plan, error) < 0)
		return -1;
	if (options->dry_run) {
		show_plan(&plan);
		return 0;
	}
	if (require_root("system enable", error) < 0 || lock(&plan, error) < 0)
		return -1;
	if (is_enabled(&plan)) {
		puts("enabled already");
	} else if (enable(&plan, options, error) == 0) {
		puts("enabled: programs that start from now on can be given a partition with -p");
	} else {
		undo(&plan);
		return -1;
	}
	warn_of_bypass();
	return 0;
}

/* The files are removed last, when the cache no longer leads programs to them. */
static int disable(const struct plan *plan, const char *directory, bool configured, struct error *error)
{
	if (configured && rename(CONFIGURATION, INACTIVE) < 0)
		return error_set_errno(error, CONFIGURATION);
	if (plan_make_cache(LDCONFIG_CACHE, plan->lock, error) < 0) {
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

	if (require_root("system disable", error) < 0 || plan_find_library(&plan, error) < 0 || lock(&plan, error) < 0)
		return -1;
	bool configured = plan_read_configuration(directory);

	if (configured || loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, own_library_is, ours)) {
		print_step(options, "removing " CONFIGURATION " and its directory, and rebuilding %s", LDCONFIG_CACHE);
		result = disable(&plan, configured ? directory : plan.directory, configured, error);
		if (result == 0)
			puts("disabled: programs that start from now on find the driver alone");
	} else {
		plan_remove_files(plan.directory);
		puts("not enabled");
	}
	return result;
}
