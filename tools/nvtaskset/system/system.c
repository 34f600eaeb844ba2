/*
 * system enable, system disable: the dynamic linker's cache answers a request for the driver library with ours, for
 * every program of this machine.
 *
 * That takes a directory of links, PREFIX/lib/nvtaskset/system, which holds nothing but what programs are to find (ldconfig
 * would take a link to the driver beside it for another library of the same name), and a file that names it before all
 * other directories. The links lead through the names that upgrades of the driver keep. Nothing of the driver's is touched.
 *
 * Each step leaves the machine either as it was, or with our library found and tried out; so dying between two of them
 * does no harm, and `disable` takes away what is there.
 */
#include "actions.h"

#include "base/driver_names.h"
#include "ldconfig.h"
#include "place.h"
#include "start/bypass.h"
#include "start/loader_cache.h"
#include "start/own_library.h"
#include "start/probe.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void tell(const struct options *options, const char *format, ...)
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

static bool is_any(const char *path)
{
	(void)path;
	return true;
}

/* Whether a program that asks this cache gets ours. */
static int check_cache(const struct place *place, const char *cache, struct error *error)
{
	char expected[PATH_MAX], found[PATH_MAX] = "", ours[PATH_MAX];

	snprintf(expected, sizeof expected, "%.*s/" DRIVER_NAME, PATH_MAX - 64, place->directory);
	loader_cache_find(cache, DRIVER_NAME, is_any, found);
	if (strcmp(found, expected) == 0)
		return 0;
	if (!loader_cache_find(cache, DRIVER_NAME, own_library_is, ours))
		return error_set(error, "/etc/ld.so.conf does not include /etc/ld.so.conf.d/*.conf, where " CONFIGURATION
		                        " would stand: include it, as its first line");
	return error_set(error, "programs would still find %.150s first: /etc/ld.so.conf, or a file in /etc/ld.so.conf.d whose "
	                        "name comes before ours, names its directory", found);
}

/* In a cache of our own first. */
static int try_cache(const struct place *place, struct error *error)
{
	char cache[PATH_MAX];

	snprintf(cache, sizeof cache, "%.*s/" TRIED_CACHE, PATH_MAX - 64, place->directory);
	int result = ldconfig_make(cache, place->lock, error);

	if (result == 0)
		result = check_cache(place, cache, error);
	unlink(cache);
	return result;
}

static bool is_enabled(const struct place *place)
{
	char content[sizeof place->configuration + 1], directory[PATH_MAX];
	bool enabled = place_read_configuration(directory, content, sizeof content) &&
	               strcmp(content, place->configuration) == 0 && check_cache(place, LDCONFIG_CACHE, NULL) == 0;

	for (unsigned int i = 0; i < place->link_count; i++)
		enabled = enabled && place_leads_there(&place->links[i]);
	return enabled;
}

/* Back to what it was: without us. */
static void undo(const struct place *place)
{
	char ours[PATH_MAX];

	unlink(CONFIGURATION);
	/* As long as programs are led there, it has to be there. */
	if (!loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, own_library_is, ours) ||
	    ldconfig_make(LDCONFIG_CACHE, place->lock, NULL) == 0)
		place_remove(place->directory);
}

static int enable(const struct place *place, const struct options *options, struct error *error)
{
	tell(options, "%s: links to our library and to %s", place->directory, place->links[0].target);
	if (place_make_directories(place, error) < 0)
		return -1;
	tell(options, "trying our library out");
	if (probe_bare(place->directory, error) < 0)
		return -1;
	tell(options, "writing %s", CONFIGURATION);
	if (place_write_configuration(place, error) < 0 || try_cache(place, error) < 0)
		return -1;
	tell(options, "making %s anew", LDCONFIG_CACHE);
	if (ldconfig_make(LDCONFIG_CACHE, place->lock, error) < 0)
		return -1;
	tell(options, "trying it out as programs will find it");
	return probe_bare(NULL, error);
}

static void show_plan(const struct place *place)
{
	printf("%s:\n%s\n", CONFIGURATION, place->configuration);
	for (unsigned int i = 0; i < place->link_count; i++)
		printf("%s -> %s\n", place->links[i].path, place->links[i].target);
	printf("%s: made anew by ldconfig\n", LDCONFIG_CACHE);
}

/* Where it does not reach is no failure, but nobody should have to find out. */
static void warn_of_bypass(void)
{
	struct bypass bypass;

	if (bypass_find(&bypass))
		fprintf(stderr, "nvtaskset: programs whose LD_LIBRARY_PATH is the one %s go on to find %s without us: put "
		                "nvtaskset in front of them, or use --attach\n", bypass.where, bypass.driver);
}

/* --- the actions ------------------------------------------------------------------------------------------------ */

int action_system_status(const struct options *options, struct error *error)
{
	/* Large, and this is a process of its own. */
	static struct place place;

	(void)options;
	if (place_find_library(&place, error) < 0 || place_find_driver(&place, error) < 0)
		return -1;
	if (is_enabled(&place))
		printf("enabled: programs that start find %s/" DRIVER_NAME " in front of %s\n", place.directory, place.links[0].target);
	else
		puts("not enabled");
	return 0;
}

static int be_root(const char *words, struct error *error)
{
	return geteuid() == 0 ? 0 : error_set(error, "%s: only root can change what every program loads: sudo nvtaskset %s",
	                                      words, words);
}

/* One at a time; until this process ends, and an ldconfig that outlives it. */
static int lock(struct place *place, struct error *error)
{
	place->lock = open(place->library, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place->lock >= 0 && flock(place->lock, LOCK_EX) == 0 ? 0 : error_set_errno(error, "%.200s", place->library);
}

int action_system_enable(const struct options *options, struct error *error)
{
	/* Large, and this is a process of its own. */
	static struct place place;

	if (place_find_library(&place, error) < 0 || place_find_driver(&place, error) < 0 || place_check_library(&place, error) < 0)
		return -1;
	if (options->dry_run) {
		show_plan(&place);
		return 0;
	}
	if (be_root("system enable", error) < 0 || lock(&place, error) < 0)
		return -1;
	if (is_enabled(&place)) {
		puts("enabled already");
	} else if (enable(&place, options, error) == 0) {
		puts("enabled: programs that start from now on can be given a partition with -p");
	} else {
		undo(&place);
		return -1;
	}
	warn_of_bypass();
	return 0;
}

/* First nobody is led there any more, then it goes away. */
static int disable(const struct place *place, const char *directory, bool configured, struct error *error)
{
	if (configured && rename(CONFIGURATION, ASIDE) < 0)
		return error_set_errno(error, CONFIGURATION);
	if (ldconfig_make(LDCONFIG_CACHE, place->lock, error) < 0) {
		if (configured)
			rename(ASIDE, CONFIGURATION);
		return -1;
	}
	place_remove(directory);
	return 0;
}

int action_system_disable(const struct options *options, struct error *error)
{
	/* Large, and this is a process of its own. */
	static struct place place;
	static char content[sizeof place.configuration + 1], directory[PATH_MAX], ours[PATH_MAX];
	int result = 0;

	if (be_root("system disable", error) < 0 || place_find_library(&place, error) < 0 || lock(&place, error) < 0)
		return -1;
	bool configured = place_read_configuration(directory, content, sizeof content);

	if (configured || loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, own_library_is, ours)) {
		tell(options, "removing " CONFIGURATION " and its directory, and making %s anew", LDCONFIG_CACHE);
		result = disable(&place, configured ? directory : place.directory, configured, error);
		if (result == 0)
			puts("disabled: programs that start from now on find the driver alone");
	} else {
		place_remove(place.directory);
		puts("not enabled");
	}
	return result;
}
