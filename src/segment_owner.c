/* The owner's side: making a segment, keeping it, and counting in it. */
#include "segment_layout.h"

#include "execution.h"
#include "proc_status.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* So far below the end of a small table, so that nobody's lowest free descriptor is there. */
#define FILE_BELOW_LIMIT 8

/* --- the file ---------------------------------------------------------------------------------------- */

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}

/* Far up, where nobody looks for one. But to make the table of descriptors larger, the kernel makes a process with threads
 * wait for all processors, 5 to 30 ms (Linux 6.18, expand_fdtable in fs/file.c): there, the end of the table will do. */
static int choose_descriptor(void)
{
	uint64_t table = has_threads() ? proc_status("self", "FDSize:", 0) : 0;

	return table >= SEGMENT_TABLE_MIN && table <= SEGMENT_FILE_USUAL ? (int)table - SEGMENT_TABLE_END
	                                                                 : SEGMENT_FILE_USUAL;
}

/* Not to be passed on to programs where `flags` is F_DUPFD_CLOEXEC. Out of the way of programs that count on the low numbers
 * being free (or closed: 0 to 2 may be). */
static int move_up(int file, int flags)
{
	struct rlimit limit = {.rlim_cur = 0};
	int moved = fcntl(file, flags, choose_descriptor());

	if (moved < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * FILE_BELOW_LIMIT)
		moved = fcntl(file, flags, (int)limit.rlim_cur - FILE_BELOW_LIMIT);
	if (moved < 0)
		moved = fcntl(file, flags, 3);
	close(file);
	return moved;
}

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
	int file = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (file < 0 && errno == EINVAL)
		file = memfd_create(SEGMENT_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file >= 0)
		file = move_up(file, F_DUPFD);
	if (file < 0)
		return error_set_errno(error, "no shared memory");
	if (fchmod(file, 0600) < 0 || ftruncate(file, sizeof(struct segment_memory)) < 0 ||
	    fcntl(file, F_ADD_SEALS, SEALS) < 0) {
		error_set_errno(error, "shared memory cannot be set up");
		close(file);
		file = -1;
	}
	return file;
}

/* --- making it --------------------------------------------------------------------------------------- */

void segment_prepare(struct segment_memory *memory, pid_t owner, const struct segment_revision *revision)
{
	memory->version = SEGMENT_VERSION;
	memory->size = sizeof *memory;
	memory->owner = (uint64_t)owner;
	segment_store(memory, 1, revision);
	atomic_store_explicit(&memory->number, 1, memory_order_release);
	atomic_store_explicit(&memory->magic, SEGMENT_MAGIC, memory_order_release);
}

int segment_create(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	int file = make_file(error);

	*segment = file >= 0 ? segment_map(file) : segment_closed;
	if (file >= 0 && !segment->memory)
		error_set_errno(error, "shared memory cannot be mapped");
	if (!segment->memory)
		return -1;
	segment_prepare(segment->memory, getpid(), revision);
	return 0;
}

int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	struct segment_memory *memory =
		mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*segment = segment_closed;
	if (memory == MAP_FAILED)
		return error_set_errno(error, "no memory for the partition");
	*segment = segment_in(memory);
	segment_prepare(segment->memory, getpid(), revision);
	return 0;
}

void segment_put_in_place_of(struct segment *segment, int file)
{
	if (segment->file >= 0 && segment_is_file(file) && dup3(segment->file, file, 0) == file) {
		close(segment->file);
		segment->file = file;
	}
}

int segment_replace(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	struct segment own, inherited;
	int own_file, inherited_file;
	bool has_own = segment_open_own(&own, &own_file);
	bool has_inherited = segment_open_inherited(&inherited, getpid(), &inherited_file);
	int result = segment_create(segment, revision, error);

	if (result == 0 && has_inherited)
		segment_put_in_place_of(segment, inherited_file);
	if (result == 0 && has_own) {
		segment_put_in_place_of(segment, own_file);
		atomic_store(&own.memory->magic, SEGMENT_MOVED);
	}
	segment_close(&own);
	segment_close(&inherited);
	return result;
}

/* --- having it already --------------------------------------------------------------------------------- */

bool segment_find_own(struct segment *segment)
{
	int file;
	bool found = segment_open_own(segment, &file);
	bool is_shared = found && atomic_load(&segment->memory->execution) == execution_own();

	if (is_shared) {
		segment->file = move_up(segment->file, F_DUPFD_CLOEXEC);
		segment_keep_places();
	} else if (found) {
		/* From before the exec, by the descriptor that came through it. */
		close(segment->file);
		segment->file = file;
		segment_set_in_force(segment, true);
	}
	return found;
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
	if (memory->owner == (uint64_t)getpid())
		atomic_store_explicit(&memory->magic, moved ? SEGMENT_MOVED : SEGMENT_MAGIC, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* The whole content, as it was at some moment of the copying. */
static void copy_content(struct segment_memory *to, const struct segment_memory *from)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)to;
	const _Atomic uint64_t *source = (const _Atomic uint64_t *)from;

	for (size_t word = 0; word < sizeof *to / sizeof *target; word++)
		atomic_store_explicit(&target[word], atomic_load_explicit(&source[word], memory_order_acquire),
		                      memory_order_relaxed);
}

int segment_keep_findable(struct segment *segment, struct error *error)
{
	if (segment_is_file(segment->file))
		return 0;
	int file = make_file(error);

	if (file < 0)
		return -1;
	struct segment moved = segment_map(file);

	if (!moved.memory)
		return error_set_errno(error, "shared memory cannot be mapped");
	mark_moved(segment->memory, true);
	copy_content(moved.memory, segment->memory);
	moved.memory->owner = (uint64_t)getpid();
	atomic_store_explicit(&moved.memory->magic, SEGMENT_MAGIC, memory_order_release);
	/* At one stroke for the other threads. */
	if (mremap(moved.memory, sizeof *moved.memory, sizeof *moved.memory, MREMAP_MAYMOVE | MREMAP_FIXED,
	           segment->memory) == MAP_FAILED) {
		error_set_errno(error, "shared memory cannot be moved");
		mark_moved(segment->memory, false);
		segment_close(&moved);
		return -1;
	}
	segment->file = file;
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
