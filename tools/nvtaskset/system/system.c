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
#include "base/trust.h"
#include "ldconfig.h"
#include "start/bypass.h"
#include "start/driver.h"
#include "start/loader_cache.h"
#include "start/own_library.h"
#include "start/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files are read in the order of their names, in the language of whoever runs ldconfig: this one comes first, before
 * 00-nvcr of NVIDIA's containers too, whether the hyphen counts or not. */
#define CONFIGURATION "/etc/ld.so.conf.d/00-000-nvtaskset.conf"
#define ASIDE "/etc/ld.so.conf.d/.nvtaskset" /* not read: it does not end in .conf */
#define TRIED_CACHE "cache"                  /* in the directory of links: nobody but us sees it */

#define LINKS_MAX 3

struct link {
	char path[PATH_MAX];
	char target[PATH_MAX];
};

/* All that is written. */
struct place {
	char library[PATH_MAX];   /* the directory where we are installed */
	char directory[PATH_MAX]; /* that of links in it, for the dynamic linker */
	char below[PATH_MAX];     /* and one below, in which ldconfig does not look, for the driver */
	struct link links[LINKS_MAX];
	unsigned int link_count;
	char configuration[PATH_MAX + 512];
	int lock; /* of all this */
};

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

/* --- what is to be written --------------------------------------------------------------------------------- */

static void add_link(struct place *place, const char *directory, const char *name, const char *target)
{
	struct link *link = &place->links[place->link_count++];

	/* There is room: find_library has seen to it. */
	snprintf(link->path, sizeof link->path, "%.*s/%s", PATH_MAX - 64, directory, name);
	snprintf(link->target, sizeof link->target, "%s", target);
}

static int find_library(struct place *place, struct error *error)
{
	char own[PATH_MAX];

	if (own_library_directory(own, error) < 0)
		return -1;
	if (!realpath(own, place->library))
		return error_set_errno(error, "%.200s", own);
	/* How ldconfig tells directories from each other, and from comments. */
	if (strpbrk(place->library, " \t\r\n\f\v:,=#") || strlen(place->library) > PATH_MAX - 128)
		return error_set(error, "%.200s: a path that ldconfig does not take: install nvtaskset elsewhere",
		                 place->library);
	snprintf(place->directory, sizeof place->directory, "%.*s/system", PATH_MAX - 64, place->library);
	snprintf(place->below, sizeof place->below, "%.*s/driver", PATH_MAX - 64, place->directory);
	snprintf(place->configuration, sizeof place->configuration,
	         "# Written by nvtaskset system enable: programs find nvtaskset's library in front of the CUDA driver's.\n"
	         "# To undo it: nvtaskset system disable; or remove this file and run ldconfig.\n"
	         "%s\n",
	         place->directory);
	return 0;
}

/* The driver that programs find now, by the name that its upgrades keep; and by its other name, where it has that. */
static int find_driver(struct place *place, struct error *error)
{
	char driver[PATH_MAX], other[PATH_MAX];
	struct bypass bypass;

	if (driver_find_in_cache(DRIVER_NAME, driver)) {
		add_link(place, place->below, DRIVER_LINK, driver);
		add_link(place, place->directory, DRIVER_NAME, "../" DRIVER_NAME);
		if (driver_find_in_cache(DRIVER_OTHER_NAME, other))
			add_link(place, place->directory, DRIVER_OTHER_NAME, DRIVER_NAME);
	} else if (bypass_find(&bypass)) {
		return error_set(error, "programs find the driver, %.100s, by LD_LIBRARY_PATH (%s), before they ask for what is "
		                        "system-wide: put nvtaskset in front of them, or use --attach", bypass.driver, bypass.where);
	} else {
		return error_set(error, "no NVIDIA driver library (" DRIVER_NAME ") in " LDCONFIG_CACHE
		                        ", where programs look for it: install the driver, or run ldconfig");
	}
	return 0;
}

/* Programs with more privileges than their users load what lies there. */
static int check_library(const struct place *place, struct error *error)
{
	char library[PATH_MAX];
	struct error why;

	snprintf(library, sizeof library, "%.*s/" DRIVER_NAME, PATH_MAX - 64, place->library);
	return trust_check(library, 0, TRUST_FOREVER, &why) == 0
	               ? 0
	               : error_set(error, "%.200s, and every program would load our library from it: install nvtaskset elsewhere",
	                           why.reason);
}

/* --- writing ------------------------------------------------------------------------------------------------- */

static bool leads_there(const struct link *link)
{
	char target[PATH_MAX];
	ssize_t length = readlink(link->path, target, sizeof target);

	return length == (ssize_t)strlen(link->target) && memcmp(target, link->target, (size_t)length) == 0;
}

static int make_link(const struct link *link, struct error *error)
{
	if (leads_there(link))
		return 0;
	if ((unlink(link->path) < 0 && errno != ENOENT) || symlink(link->target, link->path) < 0)
		return error_set_errno(error, "%.200s", link->path);
	return 0;
}

/* Whatever the umask is: everybody must be able to look in. */
static int make_directory(const char *path, struct error *error)
{
	if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
		return error_set_errno(error, "%.200s", path);
	return 0;
}

static int make_directories(const struct place *place, struct error *error)
{
	int result = make_directory(place->directory, error);

	if (result == 0)
		result = make_directory(place->below, error);
	for (unsigned int i = 0; result == 0 && i < place->link_count; i++)
		result = make_link(&place->links[i], error);
	return result;
}

/* Of ours, whichever step was the last. What others have put there stays, and so does the directory then. */
static void remove_the_rest(const char *directory)
{
	static const char *const names[] = {
		("driver/" DRIVER_LINK), "driver", DRIVER_NAME, DRIVER_OTHER_NAME, TRIED_CACHE, (TRIED_CACHE "~"), "",
	};
	char path[PATH_MAX];

	unlink(ASIDE);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, directory, names[i]);
		remove(path);
	}
}

static int write_configuration(const struct place *place, struct error *error)
{
	size_t length = strlen(place->configuration);
	int file = open(ASIDE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	int failed = file < 0 || fchmod(file, 0644) < 0 || write(file, place->configuration, length) != (ssize_t)length;

	if (file >= 0 && close(file) < 0)
		failed = 1;
	if (failed || rename(ASIDE, CONFIGURATION) < 0) {
		error_set_errno(error, CONFIGURATION);
		unlink(ASIDE);
		return -1;
	}
	return 0;
}

/* The directory that the file names, whoever wrote it: its last line; false where there is no such file. */
static bool read_configuration(char directory[PATH_MAX], char *content, size_t size)
{
	FILE *file = fopen(CONFIGURATION, "re");
	size_t length = file ? fread(content, 1, size - 1, file) : 0;

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
	bool enabled = read_configuration(directory, content, sizeof content) &&
	               strcmp(content, place->configuration) == 0 && check_cache(place, LDCONFIG_CACHE, NULL) == 0;

	for (unsigned int i = 0; i < place->link_count; i++)
		enabled = enabled && leads_there(&place->links[i]);
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
		remove_the_rest(place->directory);
}

static int enable(const struct place *place, const struct options *options, struct error *error)
{
	tell(options, "%s: links to our library and to %s", place->directory, place->links[0].target);
	if (make_directories(place, error) < 0)
		return -1;
	tell(options, "trying our library out");
	if (probe_bare(place->directory, error) < 0)
		return -1;
	tell(options, "writing %s", CONFIGURATION);
	if (write_configuration(place, error) < 0 || try_cache(place, error) < 0)
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
	if (find_library(&place, error) < 0 || find_driver(&place, error) < 0)
		return -1;
	if (is_enabled(&place))
		printf("enabled: programs that start find %s/" LIBRARY " in front of %s\n", place.directory, place.links[0].target);
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

	if (find_library(&place, error) < 0 || find_driver(&place, error) < 0 || check_library(&place, error) < 0)
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
	remove_the_rest(directory);
	return 0;
}

int action_system_disable(const struct options *options, struct error *error)
{
	/* Large, and this is a process of its own. */
	static struct place place;
	static char content[sizeof place.configuration + 1], directory[PATH_MAX], ours[PATH_MAX];
	int result = 0;

	if (be_root("system disable", error) < 0 || find_library(&place, error) < 0 || lock(&place, error) < 0)
		return -1;
	bool configured = read_configuration(directory, content, sizeof content);

	if (configured || loader_cache_find(LDCONFIG_CACHE, DRIVER_NAME, own_library_is, ours)) {
		tell(options, "removing " CONFIGURATION " and its directory, and making %s anew", LDCONFIG_CACHE);
		result = disable(&place, configured ? directory : place.directory, configured, error);
		if (result == 0)
			puts("disabled: programs that start from now on find the driver alone");
	} else {
		remove_the_rest(place.directory);
		puts("not enabled");
	}
	return result;
}
