#include "table.h"

/* Fibonacci hashing: handles are addresses, and the low bits hardly differ. */
unsigned int table_bucket(const void *handle)
{
	return (unsigned int)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* With NULL as the handle, finds the first vacant entry. */
static struct table_entry *find_in(const struct table *table, unsigned int bucket, const void *handle)
{
	struct table_entry *entry = atomic_load_explicit(&table->buckets[bucket], memory_order_acquire);

	while (entry && atomic_load_explicit(&entry->handle, memory_order_acquire) != (uintptr_t)handle)
		entry = entry->next;
	return entry;
}

struct table_entry *table_find(const struct table *table, const void *handle)
{
	return find_in(table, table_bucket(handle), handle);
}

void table_add(struct table *table, struct table_entry *entry, const void *handle)
{
	_Atomic(struct table_entry *) *bucket = &table->buckets[table_bucket(handle)];

	atomic_store_explicit(&entry->handle, (uintptr_t)handle, memory_order_relaxed);
	entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(bucket, &entry->next, entry, memory_order_release,
	                                              memory_order_relaxed))
		;
}

void table_remove(struct table *table, struct table_entry *entry)
{
	uintptr_t handle = atomic_load_explicit(&entry->handle, memory_order_relaxed);
	_Atomic(struct table_entry *) *bucket = &table->buckets[table_bucket((const void *)handle)];
	struct table_entry *before = atomic_load_explicit(bucket, memory_order_relaxed);

	if (before == entry) {
		atomic_store_explicit(bucket, entry->next, memory_order_relaxed);
	} else {
		while (before->next != entry)
			before = before->next;
		before->next = entry->next;
	}
}

void table_vacate(struct table_entry *entry)
{
	atomic_store_explicit(&entry->handle, 0, memory_order_release);
}

struct table_entry *table_find_vacant(const struct table *table, const void *handle)
{
	return find_in(table, table_bucket(handle), NULL);
}

bool table_occupy(struct table_entry *entry, const void *handle)
{
	uintptr_t vacant = 0;

	return atomic_compare_exchange_strong_explicit(&entry->handle, &vacant, (uintptr_t)handle, memory_order_release,
	                                               memory_order_relaxed);
}
