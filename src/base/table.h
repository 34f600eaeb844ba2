/*
 * A hash table with data about the driver's handles (contexts, graphs). The user allocates the entries: structs with a
 * member of type table_entry.
 *
 * Any thread may find and add at any time, without waiting. Removing needs more: either a lock of the user keeps all
 * threads out of the table, or entries are vacated instead, and occupied again by another handle. Of several entries
 * with the same handle, the last added entry is found.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_BUCKETS 256 /* the hash has 8 bits */

struct table_entry {
	struct table_entry *next;
	_Atomic(uintptr_t) handle; /* 0 if vacant */
};

/* All zero is an empty table. */
struct table {
	_Atomic(struct table_entry *) buckets[TABLE_BUCKETS];
};

/* 0 … TABLE_BUCKETS - 1. */
unsigned int table_bucket(const void *handle);

/* NULL without an entry. */
struct table_entry *table_find(const struct table *table, const void *handle);

void table_add(struct table *table, struct table_entry *entry, const void *handle);

/* Takes the entry out of the table. The caller holds a lock taken by all users of the table, and frees the entry. */
void table_remove(struct table *table, struct table_entry *entry);

/* Makes the entry vacant. A thread that has found the entry before may still read the entry's data: the entry must
 * never be freed. */
void table_vacate(struct table_entry *entry);

/* A vacant entry that the handle can occupy; NULL if there is none. */
struct table_entry *table_find_vacant(const struct table *table, const void *handle);

/* Gives the vacant entry to the handle. False if another thread was faster. */
bool table_occupy(struct table_entry *entry, const void *handle);

/* The struct that has the entry as `member`; NULL if `entry` is NULL. */
#define TABLE_CONTENT(entry, type, member) ((type *)table_content((entry), offsetof(type, member)))

static inline void *table_content(struct table_entry *entry, size_t offset)
{
	return entry ? (char *)entry - offset : NULL;
}
