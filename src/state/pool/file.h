/*
 * A pool's files, made and changed by root (pool.h). Each pool is a small file system in memory, in the directory POOLS
 * beside the groups' files. A hostile program can make a page longer, and fills no more than the pool. The room of each
 * page is taken when the page is made.
 *
 * Callers of pool_file_put and pool_file_remove hold the lock of the groups' directory (group_file_lock_directory).
 */
#pragma once

#include "base/error.h"
#include "state/group/group.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define POOLS ".pools"
#define POOL_NAME_MAX 64 /* with the '\0' */

/* The group's place in a pool. */
struct pool_place {
	char name[POOL_NAME_MAX]; /* of the pool */
	char directory[PATH_MAX];
	char page[PATH_MAX];
	bool is_client; /* of MPS: the group's programs */
};

/* Puts the group with the file into the pool, or changes the group's claim there. Makes the pool if there is no such
 * pool. A group stays in the group's pool of before until pool_file_remove. -1 with the reason. */
int pool_file_put(const char *group_path, const char *pool, const struct segment_revision *revision, bool is_client,
                  struct pool_place *place, struct error *error);

/* The pool of the group with the file; false without a pool. `but`: a pool that does not count; NULL: none. */
bool pool_file_find(const char *group_path, const char *but, struct pool_place *place);

/* Takes the group out of the group's pools, but out of the pool `but`; no failure without a pool. An empty pool goes.
 * -1 with the reason. */
int pool_file_remove(const char *group_path, const char *but, struct error *error);

/* After a change of the group: the group's pool, if any, gets the change, too. -1 with the reason. */
int pool_file_follow(const struct group *group, struct error *error);

/* Both: group_change and pool_file_follow. -1 with the reason, also if only the pool could not follow. */
int pool_file_change(struct group *group, const struct segment_revision *wanted, struct error *error);
