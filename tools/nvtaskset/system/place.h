/*
 * What `enable` writes: a directory of links, and a file that names it to ldconfig (system.c).
 */
#ifndef NVTASKSET_PLACE_H
#define NVTASKSET_PLACE_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

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

/* --- what is to be written: -1 with the reason ----------------------------------------------------------------- */

/* The first thing to be found. */
int place_find_library(struct place *place, struct error *error);

/* The driver that programs find now, by the name that its upgrades keep; and by its other name, where it has that. */
int place_find_driver(struct place *place, struct error *error);

/* Programs with more privileges than their users load what lies there: whether they may. */
int place_check_library(const struct place *place, struct error *error);

/* --- writing it: -1 with the reason ------------------------------------------------------------------------------ */

/* The directories, and the links in them. */
int place_make_directories(const struct place *place, struct error *error);
int place_write_configuration(const struct place *place, struct error *error);

/* --- what is there ----------------------------------------------------------------------------------------------- */

bool place_leads_there(const struct link *link);

/* The file, and the directory that it names, whoever wrote it: its last line; false where there is no such file. */
bool place_read_configuration(char directory[PATH_MAX], char *content, size_t size);

/* Takes away what is ours in a directory, whichever step was the last. What others have put there stays, and so does the
 * directory then. */
void place_remove(const char *directory);

#endif
