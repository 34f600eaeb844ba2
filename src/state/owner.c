/* The owner's side: making a segment, keeping it, and counting in it. */
#include "layout.h"

#include "base/mapping.h"
#include "execution.h"
#include "handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the file ---------------------------------------------------------------------------------------- */

/* The kernel would end the process (SIGXFSZ) for a file that is longer. */
static int check_file_limit(struct error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct segment_memory)) {
		errno = EFBIG;
		return error_set(error, "no shared memory: it takes %zu bytes, and the limit for files (ulimit -f) is %llu",
		                 sizeof(struct segment_memory), (unsigned long long)limit.rlim_cur);
	}
	return 0;
}

static int make_file(struct error *error)
{
	if (check_file_limit(error) < 0)
		return -1;
	int file = memfd_create(SEGMENT_NAME, SEGMENT_FILE_FLAGS | MFD_NOEXEC_SEAL);

	if (file < 0 && errno == EINVAL)
		file = memfd_create(SEGMENT_NAME, SEGMENT_FILE_FLAGS);
	if (file < 0)
		return error_set_errno(error, "no shared memory");
	if (fchmod(file, SEGMENT_FILE_MODE) < 0 || ftruncate(file, sizeof(struct segment_memory)) < 0 ||
	    fcntl(file, F_ADD_SEALS, SEGMENT_FILE_SEALS) < 0) {
		error_set_errno(error, "shared memory cannot be set up");
		close(file);
		file = -1;
	}
	return file;
}

/* --- making it --------------------------------------------------------------------------------------- */

void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision)
{
	memory->version = SEGMENT_VERSION;
	memory->size = sizeof *memory;
	memory->owner = owner;
	segment_store(memory, 1, revision);
	atomic_store_explicit(&memory->number, 1, memory_order_release);
	atomic_store_explicit(&memory->magic, SEGMENT_MAGIC, memory_order_release);
}

/* Memory that is all zero, and its handle. */
static int make(struct segment *segment, int in_place_of, struct error *error)
{
	int file = make_file(error);

	*segment = segment_closed;
	if (file < 0)
		return -1;
	*segment = segment_map(file);
	if (!segment->memory)
		return error_set_errno(error, "shared memory cannot be mapped");
	segment->file = handle_make(file, in_place_of);
	if (segment->file < 0) {
		error_set_errno(error, "no shared memory");
		segment_close(segment);
		return -1;
	}
	return 0;
}

int segment_create(struct segment *segment, const struct segment_revision *revision, int in_place_of, struct error *error)
{
	int result = make(segment, in_place_of, error);

	if (result == 0)
		segment_prepare(segment->memory, identity_own(), revision);
	return result;
}

int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	struct segment_memory *memory =
		mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*segment = segment_closed;
	if (memory == MAP_FAILED)
		return error_set_errno(error, "no memory for the partition");
	*segment = segment_in(memory);
	segment_prepare(segment->memory, identity_own(), revision);
	return 0;
}

static bool is_own(const struct segment *segment)
{
	return identity_matches(segment->memory->owner, identity_own());
}

int segment_replace(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	struct segment before;
	int handle;

	segment_open_source(&before, &handle);
	bool is_left = before.memory && is_own(&before) && segment_may_write(&before);
	int result = segment_create(segment, revision, handle, error);

	if (result == 0 && is_left)
		atomic_store(&before.memory->magic, SEGMENT_MOVED);
	segment_close(&before);
	return result;
}

/* --- having it already --------------------------------------------------------------------------------- */

/* Whether something in this process's memory has mapped it: an exec leaves nothing of it. */
static bool is_mapped(const struct segment *segment)
{
	char *line = NULL;
	size_t size = 0;
	unsigned int mappings = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && getline(&line, &size, maps) > 0) {
		struct mapping mapping;

		mappings += mapping_parse(&mapping, line) && mapping.inode == segment->inode && strstr(mapping.path, SEGMENT_LINK);
	}
	free(line);
	if (maps)
		fclose(maps);
	return mappings > 1; /* this hold is one */
}

bool segment_find_own(struct segment *segment)
{
	int handle;
	bool found = segment_open_source(segment, &handle) == SEGMENT_OWN;

	if (!found) {
		segment_close(segment);
		return false;
	}
	close(segment->file);
	segment->file = handle;
	/* The number alone does not tell: see execution.h. */
	if (atomic_load(&segment->memory->execution) == execution_own() && is_mapped(segment))
		segment_keep_places();
	else
		segment_set_in_force(segment, true);
	return true;
}

void segment_set_at_work(const struct segment *segment)
{
	atomic_store(&segment->memory->execution, execution_own());
}

void segment_set_in_force(const struct segment *segment, bool in_force)
{
	atomic_store_explicit(&segment->memory->out_of_force, !in_force, memory_order_relaxed);
}

/* --- keeping it findable --------------------------------------------------------------------------------- */

/* Editors who have the old file open are told; but not those of a parent whose segment this process shares. Either the
 * content that is copied from now on has an edit, or its editor sees the mark: see segment_edit. */
static void mark_moved(struct segment_memory *memory, bool moved)
{
	if (identity_matches(memory->owner, identity_own()))
		atomic_store_explicit(&memory->magic, moved ? SEGMENT_MOVED : SEGMENT_MAGIC, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* The whole content, as it was at some moment of the copying; but not the magic, without which it is no segment yet. */
static void copy_content(struct segment_memory *to, const struct segment_memory *from)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)to;
	const _Atomic uint64_t *source = (const _Atomic uint64_t *)from;

	for (size_t word = 1; word < sizeof *to / sizeof *target; word++)
		atomic_store_explicit(&target[word], atomic_load_explicit(&source[word], memory_order_acquire),
		                      memory_order_relaxed);
}

bool segment_is_findable(const struct segment *segment)
{
	return handle_leads_to(segment->file, segment->inode);
}

int segment_keep_findable(struct segment *segment, struct error *error)
{
	struct segment moved;

	if (segment_is_findable(segment))
		return 0;
	if (make(&moved, -1, error) < 0)
		return -1;
	mark_moved(segment->memory, true);
	copy_content(moved.memory, segment->memory);
	moved.memory->owner = identity_own();
	atomic_store_explicit(&moved.memory->magic, SEGMENT_MAGIC, memory_order_release);
	/* At one stroke for the other threads. */
	if (mremap(moved.memory, sizeof *moved.memory, sizeof *moved.memory, MREMAP_MAYMOVE | MREMAP_FIXED,
	           segment->memory) == MAP_FAILED) {
		error_set_errno(error, "shared memory cannot be moved");
		mark_moved(segment->memory, false);
		segment_close(&moved);
		return -1;
	}
	segment->file = moved.file;
	segment->inode = moved.inode;
	return 0;
}

/* --- places ------------------------------------------------------------------------------------------------ */

/* Those that threads of this process have: bit n stands for place n, and the first is nobody's. Not in the shared memory:
 * whatever stands there, two threads have two places. */
#define NOBODYS UINT64_C(1)

static _Atomic uint64_t places_taken = NOBODYS;

_Static_assert(SEGMENT_PLACES == 64, "a bit for each");

struct segment_place *segment_take_place(const struct segment *segment)
{
	uint64_t taken = atomic_load_explicit(&places_taken, memory_order_relaxed), free = ~taken;

	/* Bounded: where others take or give all the time, the common place will do. */
	for (int attempt = 0; attempt < SEGMENT_PLACES && free != 0; attempt++) {
		int place = __builtin_ctzll(free);

		if (atomic_compare_exchange_strong_explicit(&places_taken, &taken, taken | UINT64_C(1) << place,
		                                            memory_order_acquire, memory_order_relaxed))
			return &segment->places[place];
		free = ~taken;
	}
	return NULL;
}

void segment_give_place(const struct segment *segment, const struct segment_place *place)
{
	atomic_fetch_and_explicit(&places_taken, ~(UINT64_C(1) << (place - segment->places)), memory_order_release);
}

void segment_free_places(void)
{
	atomic_store(&places_taken, NOBODYS);
}

void segment_keep_places(void)
{
	atomic_store(&places_taken, UINT64_MAX);
}
