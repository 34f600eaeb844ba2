/*
 * What `enable` writes: a directory of links, and a file that names it to ldconfig (system.c).
 */
#ifndef NVTASKSET_PLAN_H
#define NVTASKSET_PLAN_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* ldconfig reads files in the order of their names, which depends on the locale. This name comes first, also before
 * 00-nvcr of NVIDIA's containers, whether the locale ignores hyphens or not. */
#define CONFIGURATION "/etc/ld.so.conf.d/00-000-nvtaskset.conf"
#define INACTIVE "/etc/ld.so.conf.d/.nvtaskset" /* ldconfig does not read it: it does not end in .conf */
#define TEST_CACHE "cache"                      /* in the directory of links; no program uses it */

#define LINKS_MAX 3

struct link {
	char path[PATH_MAX];
	char target[PATH_MAX];
};

/* Everything that 'enable' writes. */
struct plan {
	char library[PATH_MAX];   /* the directory where we are installed */
	char directory[PATH_MAX]; /* the directory of links in it, for the dynamic linker */
	char driver[PATH_MAX];    /* a directory in that one, for the link to the driver: ldconfig does not search it */
	struct link links[LINKS_MAX];
	unsigned int link_count;
	char configuration[PATH_MAX + 512]; /* the content of the file */
	int lock; /* one process changes all this at a time */
};

/* --- what is to be written: -1 with the reason ----------------------------------------------------------------- */

/* Finds where we are installed. The others need it. */
int plan_find_library(struct plan *plan, struct error *error);

/* Plans links to the driver that programs find now, by the name that upgrades keep, and by its other name if it has
 * that. */
int plan_find_driver(struct plan *plan, struct error *error);

/* Checks that only root can change our library: set-user-ID programs will load it. */
int plan_check_library(const struct plan *plan, struct error *error);

/* --- writing it: -1 with the reason ------------------------------------------------------------------------------ */

/* The directories, and the links in them. */
int plan_make_directories(const struct plan *plan, struct error *error);
int plan_write_configuration(const struct plan *plan, struct error *error);

/* Rebuilds the dynamic linker's cache in the file `cache` by ldconfig, from the directories that the files in /etc/ld.so.conf.d name,
 * and changes nothing else: no links in the directories. Meanwhile there is a temporary file with the name of `cache` and "~". ldconfig
 * keeps the descriptor `held` open: a lock that must last until it has ended, even if we are killed. */
#define LDCONFIG_CACHE "/etc/ld.so.cache"
int plan_make_cache(const char *cache, int held, struct error *error);

/* --- what is there ----------------------------------------------------------------------------------------------- */

bool plan_link_is_made(const struct link *link);

/* Reads the directory that the last line of the file names; another installation may have written it. False if there is
 * no such file. */
bool plan_read_configuration(char directory[PATH_MAX]);

/* Removes our files, whichever of them exist. If the directory has other files, these and the directory stay. */
void plan_remove_files(const char *directory);

#endif
