/*
 * What is known about handles of others: a hash table of entries that its user allocates, each of which has one of these
 * as a member.
 *
 * Finding and adding are for any thread at any time, and wait for nobody. Removing is not: either a lock of
 * the user's sees to it that nobody is in the table then, or entries stay where they are, are vacated, and occupied again
 * by another handle. Several entries may have one handle; the one that was added last is found.
 */
#ifndef NVTASKSET_BASE_TABLE_H
#define NVTASKSET_BASE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_BUCKETS 256 /* what the hash has bits for */

struct table_entry {
	struct table_entry *next;
	_Atomic(uintptr_t) handle; /* 0 where vacant */
};

/* All 0 is an empty one. */
struct table {
	_Atomic(struct table_entry *) buckets[TABLE_BUCKETS];
};

/* 0 … TABLE_BUCKETS - 1. */
unsigned int table_bucket(const void *handle);

/* NULL where there is none. */
struct table_entry *table_find(const struct table *table, const void *handle);

void table_add(struct table *table, struct table_entry *entry, const void *handle);

/* With a lock held that all users of the table take. The entry is in the table. */
void table_remove(struct table *table, struct table_entry *entry);

/* From here on the entry is nobody's. What it says of the handle may be looked at by who has found it before. */
void table_vacate(struct table_entry *entry);

/* An entry of nobody's where one for this handle can stand; NULL where there is none. */
struct table_entry *table_find_vacant(const struct table *table, const void *handle);

/* The entry is the handle's. False where another thread was faster. */
bool table_occupy(struct table_entry *entry, const void *handle);

/* The struct that has the entry as this member; NULL for NULL. */
#define TABLE_CONTENT(entry, type, member) ((type *)table_content((entry), offsetof(type, member)))

static inline void *table_content(struct table_entry *entry, size_t offset)
{
	return entry ? (char *)entry - offset : NULL;
}

#endif
