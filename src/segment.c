#include "segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define MEMFD_NAME "nvtaskset"
#define MEMFD_LINK "/memfd:" MEMFD_NAME " (deleted)" /* as /proc/PID/fd shows it */

/* The owner's descriptor: see choose_descriptor. */
#define FILE_USUAL 200
#define FILE_MIN (TABLE_MIN - TABLE_END)
#define TABLE_MIN 64 /* of the kernel, NR_OPEN_DEFAULT */
#define TABLE_END 16

#define MAGIC UINT64_C(0x6b73617464766e01) /* no text, so that no text file is taken for a segment */
#define VERSION 2
#define RING 8
#define PLACES 64
#define PLACES_TAKEN_MEANWHILE 8
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* How often a reader tries before it says that editors overtook it. */
#define READ_ATTEMPTS 4

/* How long an editor waits for another's lock. One edit takes microseconds: only a stopped one holds it. */
#define LOCK_WAIT_MS 2000

#define REVISION_WORDS (sizeof(struct segment_revision) / sizeof(uint64_t))

/*
 * The memory, 8-byte words in the machine's byte order:
 *
 *   0    magic, version, size,
 *        owner                   written once, magic last; the magic is taken away when all moves to a new file
 *        out of force            not 0 where the owner does not obey; older owners have left it 0
 *   64   the revision in force   raised by editors
 *   128  counters                added to by the owner; apart from what launches only read
 *   256  the places              where the owner's threads count launches
 *   4352 the ring of revisions   revision n stands at place n % RING
 *
 * Revisions are copied word by word with atomic accesses: they are read while they are written, and the
 * number tells afterwards whether what was read counts.
 */
struct segment_memory {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t size;
	uint64_t owner; /* its process id, as it sees itself */
	_Atomic uint64_t out_of_force;
	_Alignas(64) _Atomic uint64_t number;
	_Alignas(64) _Atomic uint64_t places_taken;
	_Atomic uint64_t refreshed;
	_Atomic uint64_t reasons[14];
	struct segment_place places[PLACES];
	_Alignas(64) _Atomic uint64_t ring[RING][REVISION_WORDS];
};

_Static_assert(sizeof(struct pci_address) == 8, "shared layout");
_Static_assert(sizeof(struct segment_partition) == 40, "shared layout");
_Static_assert(sizeof(struct segment_revision) == 8 + SEGMENT_GPUS * 40, "shared layout");
_Static_assert(offsetof(struct segment_memory, owner) == 16, "shared layout");
_Static_assert(offsetof(struct segment_memory, number) == 64, "shared layout");
_Static_assert(offsetof(struct segment_memory, places_taken) == 128, "shared layout");
_Static_assert(offsetof(struct segment_memory, places) == 256, "shared layout");
_Static_assert(offsetof(struct segment_memory, ring) == 4352, "shared layout");
_Static_assert(sizeof(struct segment_place) == 64, "shared layout");
_Static_assert(SEGMENT_REASON_COUNT <= 14, "shared layout");

const char *segment_reason_text(enum segment_reason reason)
{
	static const char *const texts[] = {
#define REASON_TEXT(identifier, text) text,
		SEGMENT_REASONS(REASON_TEXT)
#undef REASON_TEXT
	};

	return texts[reason];
}

/* --- revisions in the ring ------------------------------------------------------------------------ */

/* Those that a revision of so many partitions takes: an edit is quick because the others are not copied. */
static size_t words_used(uint32_t count)
{
	size_t partitions = count < SEGMENT_GPUS ? count : SEGMENT_GPUS;

	return (offsetof(struct segment_revision, partitions) + partitions * sizeof(struct segment_partition)) /
	       sizeof(uint64_t);
}

static void store_revision(struct segment_memory *memory, uint64_t number,
                           const struct segment_revision *revision)
{
	_Atomic uint64_t *place = memory->ring[number % RING];
	size_t used = words_used(revision->count);
	uint64_t words[REVISION_WORDS];

	memcpy(words, revision, used * sizeof words[0]);
	/* A reader that sees one of these words must also see that the number has come this far. */
	atomic_thread_fence(memory_order_release);
	for (size_t word = 0; word < used; word++)
		atomic_store_explicit(&place[word], words[word], memory_order_relaxed);
}

/* False where editors came round the ring while we copied. */
static bool load_revision(const struct segment_memory *memory, uint64_t number,
                          struct segment_revision *revision)
{
	const _Atomic uint64_t *place = memory->ring[number % RING];
	uint64_t words[REVISION_WORDS] = {atomic_load_explicit(&place[0], memory_order_relaxed)};
	uint32_t count;

	memcpy(&count, words, sizeof count);
	for (size_t word = 1; word < words_used(count); word++)
		words[word] = atomic_load_explicit(&place[word], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	memcpy(revision, words, sizeof *revision);
	return atomic_load_explicit(&memory->number, memory_order_relaxed) - number < RING - 1;
}

bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number)
{
	bool whole = false;

	for (int attempt = 0; !whole && attempt < READ_ATTEMPTS; attempt++) {
		*number = segment_revision_number(segment);
		whole = load_revision(segment->memory, *number, revision);
	}
	return whole && revision->count <= SEGMENT_GPUS;
}

const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci)
{
	const struct segment_partition *found = NULL;

	for (uint32_t i = 0; i < revision->count && !found; i++) {
		if (pci_address_equal(revision->partitions[i].pci, pci))
			found = &revision->partitions[i];
	}
	return found;
}

/* --- the owner's side ------------------------------------------------------------------------------ */

/* The last number on a line of a process's status; `unknown` where the kernel does not say. */
static uint64_t read_status(const char *path, const char *field, uint64_t unknown)
{
	char *line = NULL;
	size_t size = 0;
	uint64_t number = unknown;
	FILE *file = fopen(path, "re");

	while (file && getline(&line, &size, file) > 0) {
		if (strncmp(line, field, strlen(field)) == 0)
			number = strtoull(strrchr(line, '\t'), NULL, 10);
	}
	free(line);
	if (file)
		fclose(file);
	return number;
}

static bool has_threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 + 1;
}

/* Far up, where nobody looks for one. But to make the table of descriptors larger, the kernel makes a process with threads
 * wait for all processors, 5 to 30 ms (Linux 6.18, expand_fdtable in fs/file.c): there, the end of the table will do. */
static int choose_descriptor(void)
{
	uint64_t table = has_threads() ? read_status("/proc/self/status", "FDSize:", 0) : 0;

	return table >= TABLE_MIN && table <= FILE_USUAL ? (int)table - TABLE_END : FILE_USUAL;
}

/* A new descriptor, out of the way of programs that count on the low numbers being free (or closed: 0 to 2
 * may be), close-on-exec. */
static int move_up(int file)
{
	int moved = fcntl(file, F_DUPFD_CLOEXEC, choose_descriptor());

	if (moved < 0)
		moved = fcntl(file, F_DUPFD_CLOEXEC, 3);
	close(file);
	return moved;
}

static int make_file(struct error *error)
{
	int file = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (file < 0 && errno == EINVAL)
		file = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file >= 0)
		file = move_up(file);
	if (file < 0)
		return error_set_errno(error, "the segment: no shared memory");
	if (fchmod(file, 0600) < 0 || ftruncate(file, sizeof(struct segment_memory)) < 0 ||
	    fcntl(file, F_ADD_SEALS, SEALS) < 0) {
		error_set_errno(error, "the segment: cannot be set up");
		close(file);
		file = -1;
	}
	return file;
}

/* Whether a file that calls itself a segment is one: its process may be hostile. */
static bool is_segment(int file)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW) &&
	       fstat(file, &status) == 0 && status.st_size == (off_t)sizeof(struct segment_memory);
}

static const struct segment closed = {.memory = NULL, .file = -1};

/* Maps the file, which is of the right size, and takes it over; `closed`, with errno, where that fails. */
static struct segment map_file(int file)
{
	struct segment_memory *memory =
		mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (memory == MAP_FAILED) {
		close(file);
		return closed;
	}
	return (struct segment){
		.memory = memory, .file = file, .number = &memory->number, .places = memory->places};
}

int segment_create(struct segment *segment, const struct segment_revision *revision, struct error *error)
{
	int file = make_file(error);

	*segment = file >= 0 ? map_file(file) : closed;
	if (file >= 0 && !segment->memory)
		error_set_errno(error, "the segment: cannot be mapped");
	if (!segment->memory)
		return -1;
	segment->memory->version = VERSION;
	segment->memory->size = sizeof *segment->memory;
	segment->memory->owner = (uint64_t)getpid();
	store_revision(segment->memory, 1, revision);
	atomic_store_explicit(&segment->memory->number, 1, memory_order_release);
	atomic_store_explicit(&segment->memory->magic, MAGIC, memory_order_release);
	return 0;
}

/* Editors who have the old file open are told; but not those of a parent whose segment this process shares. Either the
 * content that is copied from now on has an edit, or its editor sees the mark: see edit_locked. */
static void mark_moved(struct segment_memory *memory, bool moved)
{
	if (memory->owner == (uint64_t)getpid())
		atomic_store_explicit(&memory->magic, moved ? 0 : MAGIC, memory_order_relaxed);
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
	if (is_segment(segment->file))
		return 0;
	int file = make_file(error);

	if (file < 0)
		return -1;
	struct segment moved = map_file(file);

	if (!moved.memory)
		return error_set_errno(error, "the segment: cannot be mapped");
	mark_moved(segment->memory, true);
	copy_content(moved.memory, segment->memory);
	/* Those that threads take just now, in the old one. */
	atomic_fetch_add_explicit(&moved.memory->places_taken, PLACES_TAKEN_MEANWHILE, memory_order_relaxed);
	moved.memory->owner = (uint64_t)getpid();
	atomic_store_explicit(&moved.memory->magic, MAGIC, memory_order_release);
	/* At one stroke for the other threads. */
	if (mremap(moved.memory, sizeof *moved.memory, sizeof *moved.memory, MREMAP_MAYMOVE | MREMAP_FIXED,
	           segment->memory) == MAP_FAILED) {
		error_set_errno(error, "the segment: cannot be moved");
		mark_moved(segment->memory, false);
		segment_close(&moved);
		return -1;
	}
	segment->file = file;
	return 0;
}

struct segment_place *segment_take_place(const struct segment *segment)
{
	uint64_t taken = atomic_fetch_add_explicit(&segment->memory->places_taken, 1, memory_order_relaxed);

	return taken < PLACES - 1 ? &segment->places[taken + 1] : NULL;
}

void segment_count_reason(const struct segment *segment, enum segment_reason reason)
{
	atomic_fetch_add_explicit(&segment->memory->reasons[reason], 1, memory_order_relaxed);
}

void segment_count_refresh(const struct segment *segment)
{
	atomic_fetch_add_explicit(&segment->memory->refreshed, 1, memory_order_relaxed);
}

void segment_set_in_force(const struct segment *segment, bool in_force)
{
	atomic_store_explicit(&segment->memory->out_of_force, !in_force, memory_order_relaxed);
}

/* --- the editor's side: finding ------------------------------------------------------------------- */

/* Takes over `file`: it is the segment's or closed. */
static enum segment_state map_segment(struct segment *segment, int file, struct error *error)
{
	enum segment_state state = SEGMENT_FAILED;

	if (!is_segment(file)) {
		error_set(error, "its segment is not one that this version knows");
		close(file);
		return SEGMENT_FAILED;
	}
	*segment = map_file(file);
	if (!segment->memory)
		error_set_errno(error, "its segment cannot be mapped");
	else if (atomic_load_explicit(&segment->memory->magic, memory_order_acquire) != MAGIC ||
	         segment->memory->version != VERSION || segment->memory->size != sizeof *segment->memory)
		error_set(error, "its segment has another version: use the nvtaskset that started it");
	else
		state = SEGMENT_FOUND;
	if (state != SEGMENT_FOUND)
		segment_close(segment);
	return state;
}

/* Whether the owner's descriptor is FILE_MIN or above: see choose_descriptor. */
static bool has_room_above(pid_t pid)
{
	struct rlimit limit;

	return prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur > FILE_USUAL;
}

/* Whose segment is looked for. */
struct seeker {
	pid_t pid;
	uint64_t own_number; /* that the process has for itself, in a PID namespace of its own; 0: not asked yet */
};

/* Whether the file is another process's segment, which this one edits or has inherited. */
static bool is_others(int file, struct seeker *seeker)
{
	uint64_t header[3]; /* magic, version and size, owner */
	int saved = errno;  /* says what could not be opened */
	bool is_own = !is_segment(file) || pread(file, header, sizeof header, 0) != sizeof header ||
	              header[0] != MAGIC || header[2] == (uint64_t)seeker->pid;

	if (!is_own && seeker->own_number == 0) {
		char path[64];

		snprintf(path, sizeof path, "/proc/%d/status", (int)seeker->pid);
		seeker->own_number = read_status(path, "NSpid:", (uint64_t)seeker->pid);
	}
	errno = saved;
	return !is_own && header[2] != seeker->own_number;
}

/* Where a file lies, as far as is known without asking its file system; 0: not known, and no device. */
static uint64_t device_of(int file)
{
	struct statx status;
	bool known = statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) == 0;

	return known ? (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor : 0;
}

/* Where all files in memory lie: asked until it is known. */
static uint64_t memory_device(void)
{
	static _Atomic uint64_t device;
	int file = atomic_load(&device) == 0 ? memfd_create("nvtaskset-where", MFD_CLOEXEC) : -1;

	if (file >= 0) {
		atomic_store(&device, device_of(file));
		close(file);
	}
	return atomic_load(&device);
}

/* Whether a file, of which we have but the path, is one in memory: on other file systems, FUSE say, a hostile process can
 * make us wait for ever, as soon as we open one or ask for what is not known of it yet. */
static bool is_in_memory(int path)
{
	uint64_t device = device_of(path);

	return device != 0 && device == memory_device();
}

/* A file in memory under this name, opened, or -1. Nor may a lease on it make us wait. */
static int open_in_memory(int directory, const char *name)
{
	int path = openat(directory, name, O_PATH | O_CLOEXEC), file = -1;
	char link[32];

	snprintf(link, sizeof link, "/proc/self/fd/%d", path);
	if (path >= 0 && is_in_memory(path))
		file = open(link, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (path >= 0) {
		int saved = errno; /* says what could not be opened */

		close(path);
		errno = saved;
	}
	return file;
}

/* Opens the descriptor of this name if it is the segment, or returns -1. Its process may be hostile. */
static int open_descriptor(int directory, const char *name, struct seeker *seeker)
{
	char link[sizeof MEMFD_LINK + 1];
	ssize_t length = readlinkat(directory, name, link, sizeof link);
	bool is_ours = length == sizeof MEMFD_LINK - 1 && memcmp(link, MEMFD_LINK, (size_t)length) == 0;
	int file = is_ours ? open_in_memory(directory, name) : -1;

	if (file >= 0 && is_others(file, seeker)) {
		close(file);
		file = -1;
	}
	return file;
}

/* Opens the segment among the descriptors in /proc/PID/fd from `first` on, or returns -1. Without opendir: it takes as
 * long as all the rest. */
static int find_descriptor(int directory, int first, pid_t pid)
{
	_Alignas(struct dirent64) char entries[4096];
	struct seeker seeker = {.pid = pid};
	int file = -1;
	ssize_t length;

	/* The kernel's: positions 0 and 1 are "." and "..", and descriptor n is at n + 2 (fs/proc/fd.c). */
	lseek(directory, first + 2, SEEK_SET);
	while (file < 0 && (length = getdents64(directory, entries, sizeof entries)) > 0) {
		const struct dirent64 *entry;

		for (ssize_t at = 0; file < 0 && at < length; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(entries + at);
			file = open_descriptor(directory, entry->d_name, &seeker);
		}
	}
	return file;
}

/* Whether one of the file's pieces, each ended by `end`, contains the text. */
static bool file_contains(pid_t pid, const char *name, int end, const char *text)
{
	char path[64], *piece = NULL;
	size_t size = 0;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	FILE *file = fopen(path, "re");

	while (file && !found && getdelim(&piece, &size, end, file) > 0)
		found = strstr(piece, text) != NULL;
	free(piece);
	if (file)
		fclose(file);
	return found;
}

static bool uses_cuda(pid_t pid)
{
	return file_contains(pid, "maps", '\n', "/libcuda.so.");
}

bool segment_is_expected(pid_t pid)
{
	return file_contains(pid, "environ", '\0', SEGMENT_ENVIRONMENT "=");
}

enum segment_state segment_absence(pid_t pid)
{
	enum segment_state state = SEGMENT_NOT_OURS;

	/* Without CUDA, what it has mapped are the segments of others, which it edits. */
	if (!uses_cuda(pid))
		state = SEGMENT_NO_CUDA;
	else if (file_contains(pid, "maps", '\n', MEMFD_LINK))
		state = SEGMENT_CLOSED;
	else if (segment_is_expected(pid))
		state = SEGMENT_NOT_IN_FORCE;
	return state;
}

const char *segment_absence_text(enum segment_state state)
{
	const char *text = "was started without nvtaskset: --attach gives it a partition all the same";

	if (state == SEGMENT_CLOSED)
		text = "has closed the file of its partition, which is out of reach until it makes its next CUDA context";
	else if (state == SEGMENT_NO_CUDA)
		text = "has not loaded CUDA";
	else if (state == SEGMENT_NOT_IN_FORCE)
		text = "its partition is not in force: the driver was loaded without our library, is being loaded just now, or "
		       "our library said on standard error why not";
	return text;
}

static enum segment_state explain_absence(pid_t pid, struct error *error)
{
	enum segment_state state = SEGMENT_NOT_OURS;

	if (error) {
		state = segment_absence(pid);
		error_set(error, "pid %d: %s", (int)pid, segment_absence_text(state));
	}
	return state;
}

static enum segment_state explain_closed(pid_t pid, struct error *error)
{
	enum segment_state state = SEGMENT_FAILED;

	if (errno == EACCES || errno == EPERM) {
		state = SEGMENT_NOT_PERMITTED;
		error_set(error, "pid %d: belongs to another user, or does not let itself be inspected",
		          (int)pid);
	} else if (access("/proc/self", F_OK) < 0) {
		error_set(error, "/proc is not mounted, where processes are found");
	} else if (errno == ENOENT || errno == ESRCH) {
		state = SEGMENT_NO_PROCESS;
		error_set(error, "pid %d: no such process", (int)pid);
	} else {
		error_set_errno(error, "pid %d: its descriptors cannot be read", (int)pid);
	}
	return state;
}

enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error)
{
	char path[64];
	enum segment_state state;

	*segment = closed;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return explain_closed(pid, error);
	errno = 0;
	int file = find_descriptor(directory, !error && has_room_above(pid) ? FILE_MIN : 0, pid);

	if (file >= 0) {
		state = map_segment(segment, file, error);
		if (state != SEGMENT_FOUND && error) {
			struct error why = *error;

			error_set(error, "pid %d: %.200s", (int)pid, why.reason);
		}
	} else if (errno == EACCES || errno == EPERM || errno == EWOULDBLOCK) {
		state = explain_closed(pid, error);
	} else {
		state = explain_absence(pid, error);
	}
	close(directory);
	return state;
}

bool segment_find_own(struct segment *segment)
{
	bool found = segment_open(segment, getpid(), NULL) == SEGMENT_FOUND;

	/* An editor has others' open. */
	if (found && segment->memory->owner != (uint64_t)getpid()) {
		segment_close(segment);
		found = false;
	}
	if (found)
		segment->file = move_up(segment->file);
	return found;
}

void segment_close(struct segment *segment)
{
	if (segment->memory)
		munmap(segment->memory, sizeof *segment->memory);
	/* The program may have closed it, and have a file of its own there. */
	if (is_segment(segment->file))
		close(segment->file);
	*segment = closed;
}

/* --- the editor's side: changing ------------------------------------------------------------------ */

bool segment_has_moved(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->magic, memory_order_relaxed) != MAGIC;
}

static int lock(int file, struct error *error)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};
	int locked = flock(file, LOCK_EX | LOCK_NB);

	for (int waited = 0; locked < 0 && errno == EWOULDBLOCK && waited < LOCK_WAIT_MS; waited++) {
		nanosleep(&millisecond, NULL);
		locked = flock(file, LOCK_EX | LOCK_NB);
	}
	if (locked < 0 && errno == EWOULDBLOCK)
		return error_set(error, "the partition is being changed by another process, which is stopped");
	if (locked < 0)
		return error_set_errno(error, "the partition cannot be locked");
	return 0;
}

/* Puts a partition into a revision: in place of the one on the same GPU, else behind the others. */
static int put_partition(struct segment_revision *revision, const struct segment_partition *partition,
                         struct error *error)
{
	uint32_t place = 0;

	while (place < revision->count && !pci_address_equal(revision->partitions[place].pci, partition->pci))
		place++;
	if (place == SEGMENT_GPUS)
		return error_set(error, "the partition already names %u GPUs, and no more fit", SEGMENT_GPUS);
	revision->partitions[place] = *partition;
	if (place == revision->count)
		revision->count++;
	return 0;
}

static int edit_locked(struct segment *segment, const struct segment_partition *partition,
                       struct error *error)
{
	struct segment_revision revision;
	uint64_t number;

	if (!segment_read(segment, &revision, &number))
		return error_set(error, "the segment is damaged");
	if (put_partition(&revision, partition, error) < 0)
		return -1;
	store_revision(segment->memory, number + 1, &revision);
	atomic_store_explicit(&segment->memory->number, number + 1, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return segment_has_moved(segment) ? error_set(error, "the partition has moved to a new file just now: try again")
	                                  : 0;
}

int segment_edit(struct segment *segment, const struct segment_partition *partition, struct error *error)
{
	int result = lock(segment->file, error);

	if (result == 0) {
		result = edit_locked(segment, partition, error);
		flock(segment->file, LOCK_UN);
	}
	return result;
}

const char *segment_obstacle(const struct segment *segment)
{
	bool out_of_force = atomic_load_explicit(&segment->memory->out_of_force, memory_order_relaxed);

	return out_of_force ? "its partition is not in force until another tool (a profiler or debugger) gives up the driver's "
	                      "callback slot"
	                    : NULL;
}

static uint64_t sum_launches(const struct segment_memory *memory, bool restricted)
{
	uint64_t sum = 0;

	for (int place = 0; place < PLACES; place++) {
		uint64_t own = atomic_load_explicit(&memory->places[place].launches[restricted], memory_order_relaxed);

		sum = sum + own >= sum ? sum + own : UINT64_MAX;
	}
	return sum;
}

void segment_read_counters(const struct segment *segment, struct segment_counters *counters)
{
	const struct segment_memory *memory = segment->memory;

	counters->restricted = sum_launches(memory, true);
	counters->unrestricted = sum_launches(memory, false);
	counters->refreshed = atomic_load_explicit(&memory->refreshed, memory_order_relaxed);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		counters->reasons[reason] =
			atomic_load_explicit(&memory->reasons[reason], memory_order_relaxed);
}

/* --- the environment ------------------------------------------------------------------------------- */

/* One "PCI=LIST" of `length` characters. */
static int parse_partition(struct segment_revision *revision, const char *text, size_t length,
                           struct error *error)
{
	char copy[PCI_ADDRESS_TEXT + TPCSET_TEXT];
	struct segment_partition partition;

	if (length >= sizeof copy)
		return error_set(error, "%s: an entry is too long", SEGMENT_ENVIRONMENT);
	memcpy(copy, text, length);
	copy[length] = '\0';
	char *list = strchr(copy, '=');

	if (!list)
		return error_set(error, "%s: '%.40s' is not GPU=TPCs", SEGMENT_ENVIRONMENT, copy);
	*list++ = '\0';
	memset(&partition, 0, sizeof partition);
	if (pci_address_parse(&partition.pci, copy, error) < 0 ||
	    tpcset_parse_list(&partition.set, list, TPCSET_MAX, "TPC", error) < 0)
		return -1;
	return put_partition(revision, &partition, error);
}

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error)
{
	const char *at = text;
	int result = 0;

	memset(revision, 0, sizeof *revision);
	while (result == 0 && *at) {
		size_t length = strcspn(at, ";");

		result = parse_partition(revision, at, length, error);
		at += length + (at[length] == ';');
	}
	return result;
}

const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX])
{
	char pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];
	size_t length = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < revision->count; i++)
		length += (size_t)snprintf(text + length, SEGMENT_ENVIRONMENT_MAX - length, "%s%s=%s",
		                           i ? ";" : "", pci_address_format(revision->partitions[i].pci, pci),
		                           tpcset_format_list(&revision->partitions[i].set, list));
	return text;
}
