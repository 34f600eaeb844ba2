#include "kinds.h"

#include "base/pointer_map.h"

#include <pthread.h>
#include <stdlib.h>

struct piece {
	struct account *account;
	uint64_t bytes;
	unsigned int handles, mappings;
};

/* Of a handle, until the handle is given back. */
struct named {
	const void *handle;
	struct piece *piece; /* NULL: no longer there */
};

struct mapping {
	const void *address;
	size_t bytes;
	struct piece *piece; /* NULL: no longer there */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map handles, mappings;

/* Finds or adds; NULL if there is no memory. */
static void *entry(struct pointer_map *map, size_t size, const void *key)
{
	void *there = pointer_map_find(map, size, key);

	return there || !key ? there : pointer_map_add(map, size, key);
}

void mapped_create(const void *handle, struct account *account, uint64_t bytes)
{
	struct piece *piece = malloc(sizeof *piece);

	pthread_mutex_lock(&lock);
	struct named *named = piece ? entry(&handles, sizeof *named, handle) : NULL;

	if (named) {
		*piece = (struct piece){.account = account, .bytes = bytes, .handles = 1};
		named->piece = piece;
	}
	pthread_mutex_unlock(&lock);
	if (!named) {
		free(piece);
		account_change(account, -(int64_t)bytes);
	}
}

/* The address may lie inside. */
static struct piece *piece_at(const void *address)
{
	const struct mapping *all = mappings.structs, *exact = pointer_map_find(&mappings, sizeof *all, address);
	struct piece *found = exact ? exact->piece : NULL;

	for (size_t i = 0; i < mappings.room && !found; i++) {
		if (all[i].address && (uintptr_t)address - (uintptr_t)all[i].address < all[i].bytes)
			found = all[i].piece;
	}
	return found;
}

void mapped_retain(const void *handle, const void *address)
{
	pthread_mutex_lock(&lock);
	struct piece *piece = piece_at(address);
	struct named *named = piece ? entry(&handles, sizeof *named, handle) : NULL;

	if (named) {
		named->piece = piece;
		piece->handles++;
	}
	pthread_mutex_unlock(&lock);
}

void mapped_map(const void *handle, const void *address, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct named *named = pointer_map_find(&handles, sizeof *named, handle);
	struct mapping *mapping = named && named->piece ? entry(&mappings, sizeof *mapping, address) : NULL;

	if (mapping) {
		mapping->bytes = bytes;
		mapping->piece = named->piece;
		named->piece->mappings++;
	}
	pthread_mutex_unlock(&lock);
}

/* Adds the bytes that end with the last handle or mapping of the piece. Nearly always, all bytes of a call are of
 * one GPU: the rest is given back at once. */
static void end_piece(struct piece *piece, struct mapped_end *end)
{
	if (piece->handles + piece->mappings > 0)
		return;
	if (end->account && end->account != piece->account) {
		account_change(piece->account, -(int64_t)piece->bytes);
	} else {
		end->account = piece->account;
		end->bytes += piece->bytes;
	}
	free(piece);
}

struct mapped_end mapped_release(const void *handle)
{
	struct mapped_end end = {.account = NULL};

	pthread_mutex_lock(&lock);
	struct named *named = pointer_map_find(&handles, sizeof *named, handle);
	struct piece *piece = named ? named->piece : NULL;

	if (piece) {
		piece->handles--;
		named->piece = piece->handles > 0 ? piece : NULL;
		end_piece(piece, &end);
	}
	pthread_mutex_unlock(&lock);
	return end;
}

/* One call can unmap several mappings side by side. */
struct mapped_end mapped_unmap(const void *address, size_t bytes)
{
	struct mapped_end end = {.account = NULL};
	uintptr_t at = (uintptr_t)address, last = at + bytes;

	pthread_mutex_lock(&lock);
	struct mapping *mapping = pointer_map_find(&mappings, sizeof *mapping, address);

	while (mapping && mapping->piece && at < last) {
		struct piece *piece = mapping->piece;

		at += mapping->bytes;
		mapping->piece = NULL;
		piece->mappings--;
		end_piece(piece, &end);
		mapping = pointer_map_find(&mappings, sizeof *mapping, (const void *)at);
	}
	pthread_mutex_unlock(&lock);
	return end;
}

void mapped_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pointer_map_forget(&handles);
	pointer_map_forget(&mappings);
}
