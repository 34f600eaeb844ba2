#include "kinds.h"

#include "base/pointer_map.h"

#include <pthread.h>
#include <stdlib.h>

struct piece {
	struct account *account;
	uint64_t bytes;
	unsigned int users; /* handles and mappings, until the calls that end them have succeeded */
};

/* Of a handle, until the handle is given back. */
struct named {
	const void *handle;
	struct piece *piece; /* NULL: no longer there */
	unsigned int count;  /* how often the program must give the handle back */
};

struct mapping {
	const void *address;
	size_t bytes;
	struct piece *piece; /* NULL: no longer there */
};

struct mapped_ending {
	struct mapped_ending *next;
	struct piece *piece;
	const void *key; /* a handle or an address */
	size_t bytes;    /* of a mapping; 0: a handle */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map handles, mappings;

/* The memory ends with the last user. */
static void leave(struct piece *piece, unsigned int users)
{
	piece->users -= users;
	if (piece->users == 0) {
		account_change(piece->account, -(int64_t)piece->bytes);
		free(piece);
	}
}

/* A former piece of the handle was given back unseen. */
static void add_handle(struct named *named, struct piece *piece)
{
	struct named former = *named;

	piece->users++;
	named->piece = piece;
	named->count = former.piece == piece ? former.count + 1 : 1;
	if (former.piece && former.piece != piece)
		leave(former.piece, former.count);
}

/* A former mapping of the address was ended unseen. */
static void set_mapping(struct mapping *mapping, size_t bytes, struct piece *piece)
{
	struct piece *former = mapping->piece;

	piece->users++;
	mapping->bytes = bytes;
	mapping->piece = piece;
	if (former)
		leave(former, 1);
}

void mapped_create(const void *handle, struct account *account, uint64_t bytes)
{
	struct piece *piece = malloc(sizeof *piece);

	pthread_mutex_lock(&lock);
	struct named *named = piece ? pointer_map_have(&handles, sizeof *named, handle) : NULL;

	if (named) {
		*piece = (struct piece){.account = account, .bytes = bytes};
		add_handle(named, piece);
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
	struct named *named = piece ? pointer_map_have(&handles, sizeof *named, handle) : NULL;

	if (named)
		add_handle(named, piece);
	pthread_mutex_unlock(&lock);
}

void mapped_map(const void *handle, const void *address, size_t bytes)
{
	pthread_mutex_lock(&lock);
	struct named *named = pointer_map_find(&handles, sizeof *named, handle);
	struct mapping *mapping =
		named && named->piece ? pointer_map_have(&mappings, sizeof *mapping, address) : NULL;

	if (mapping)
		set_mapping(mapping, bytes, named->piece);
	pthread_mutex_unlock(&lock);
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

/* False without memory: nothing ends. */
static bool begin_end(struct mapped_ending **list, struct piece *piece, const void *key, size_t bytes)
{
	struct mapped_ending *new = malloc(sizeof *new);

	if (new)
		*new = (struct mapped_ending){*list, piece, key, bytes};
	*list = new ? new : *list;
	return new;
}

struct mapped_ending *mapped_release(const void *handle)
{
	struct mapped_ending *list = NULL;

	pthread_mutex_lock(&lock);
	struct named *named = pointer_map_find(&handles, sizeof *named, handle);

	if (named && named->piece && begin_end(&list, named->piece, handle, 0) && --named->count == 0)
		named->piece = NULL;
	pthread_mutex_unlock(&lock);
	return list;
}

static void begin_unmap(struct mapped_ending **list, struct mapping *mapping)
{
	if (begin_end(list, mapping->piece, mapping->address, mapping->bytes))
		mapping->piece = NULL;
}

static bool is_within(const struct mapping *mapping, const void *address, size_t bytes)
{
	size_t offset = (uintptr_t)mapping->address - (uintptr_t)address;

	return offset < bytes && mapping->bytes <= bytes - offset;
}

/* One call can unmap several mappings, also between mappings of memory that is not in the table. */
struct mapped_ending *mapped_unmap(const void *address, size_t bytes)
{
	struct mapped_ending *list = NULL;

	pthread_mutex_lock(&lock);
	struct mapping *all = mappings.structs, *exact = pointer_map_find(&mappings, sizeof *exact, address);
	bool is_only = exact && exact->piece && exact->bytes == bytes;

	if (is_only)
		begin_unmap(&list, exact);
	for (size_t i = 0; i < mappings.room && !is_only; i++) {
		if (all[i].piece && is_within(&all[i], address, bytes))
			begin_unmap(&list, &all[i]);
	}
	pthread_mutex_unlock(&lock);
	return list;
}

static void put_back(const struct mapped_ending *ending)
{
	struct named *named = ending->bytes > 0 ? NULL : pointer_map_have(&handles, sizeof *named, ending->key);
	struct mapping *mapping = ending->bytes > 0 ? pointer_map_have(&mappings, sizeof *mapping, ending->key) : NULL;

	if (named)
		add_handle(named, ending->piece);
	if (mapping)
		set_mapping(mapping, ending->bytes, ending->piece);
}

void mapped_ended(struct mapped_ending *ending, bool is_done)
{
	struct mapped_ending *next;

	pthread_mutex_lock(&lock);
	for (; ending; ending = next) {
		next = ending->next;
		if (!is_done)
			put_back(ending);
		leave(ending->piece, 1);
		free(ending);
	}
	pthread_mutex_unlock(&lock);
}

void mapped_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pointer_map_forget(&handles);
	pointer_map_forget(&mappings);
}
