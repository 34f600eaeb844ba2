/* The editor's side: finding a process's segment. The process may be hostile, and so may be what it has open. */
#include "segment_layout.h"

#include "execution.h"
#include "memfd_find.h"
#include "proc_status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- whose a segment is ----------------------------------------------------------------------------- */

enum kind {
	KIND_OWN,
	KIND_NOT_READY, /* which it may be making */
	KIND_INHERITED  /* an ancestor's, that came through an exec or a fork */
};

/* What is looked for, among the descriptors of which process. */
struct seeker {
	pid_t pid;
	uint64_t own_number; /* that the process has for itself, in a PID namespace of its own; 0: not asked yet */
	enum kind kind;
	int number;          /* of the descriptor, once one is found */
};

struct header {
	uint64_t magic, version_and_size, owner;
};

/* All zero where that is no segment, or none yet. */
static struct header read_header(int file)
{
	struct header header = {.magic = 0};

	if (!segment_is_file(file) || pread(file, &header, sizeof header, 0) != sizeof header)
		header.magic = 0;
	return header;
}

static bool owns(struct seeker *seeker, uint64_t owner)
{
	if (owner != (uint64_t)seeker->pid && seeker->own_number == 0) {
		char process[16];

		snprintf(process, sizeof process, "%d", (int)seeker->pid);
		seeker->own_number = proc_status(process, "NSpid:", (uint64_t)seeker->pid);
	}
	return owner == (uint64_t)seeker->pid || owner == seeker->own_number;
}

/* Who edits another's segment has it open for itself alone. What is passed on is a partition. */
static bool is_passed_on(pid_t pid, int number)
{
	char path[64], line[64];
	unsigned int flags = O_CLOEXEC;

	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)pid, number);
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file))
		sscanf(line, "flags: %o", &flags);
	if (file)
		fclose(file);
	return !(flags & O_CLOEXEC);
}

/* One that has moved is nobody's. */
static bool is_sought(int file, int number, void *context)
{
	struct seeker *seeker = context;
	int saved = errno;
	struct header header = read_header(file);
	bool is_ready = header.magic == SEGMENT_MAGIC, sought = false;

	if (seeker->kind == KIND_NOT_READY)
		sought = !is_ready && header.magic != SEGMENT_MOVED;
	else if (is_ready && owns(seeker, header.owner))
		sought = seeker->kind == KIND_OWN;
	else if (is_ready)
		sought = seeker->kind == KIND_INHERITED && is_passed_on(seeker->pid, number);
	if (sought)
		seeker->number = number;
	errno = saved;
	return sought;
}

/* --- among descriptors -------------------------------------------------------------------------------- */

static int find_descriptor(int directory, int first, struct seeker *seeker)
{
	const struct memfd_search search = {
		.pid = seeker->pid,
		.directory = directory,
		.first = first,
		.link = SEGMENT_LINK,
		.is_sought = is_sought,
		.context = seeker,
	};

	return memfd_find(&search);
}

/* Whether the owner's descriptor is SEGMENT_FILE_MIN or above: see choose_descriptor in segment_owner.c. */
static bool has_room_above(pid_t pid)
{
	struct rlimit limit;

	return prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur > SEGMENT_FILE_USUAL;
}

/* --- mapping it ----------------------------------------------------------------------------------------- */

/* Takes over `file`: it is the segment's or closed. */
static enum segment_state map_found(struct segment *segment, int file, struct error *error)
{
	enum segment_state state = SEGMENT_NOT_READY;

	if (!segment_is_file(file)) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "its segment is not one that this version knows");
		close(file);
		return state;
	}
	*segment = segment_map(file);
	if (!segment->memory) {
		error_set_errno(error, "its segment cannot be mapped");
		state = SEGMENT_FAILED;
	} else if (atomic_load_explicit(&segment->memory->magic, memory_order_acquire) != SEGMENT_MAGIC) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "its segment is not one that this version knows");
	} else if (segment->memory->version != SEGMENT_VERSION || segment->memory->size != sizeof *segment->memory) {
		error_set_code(error, NVTASKSET_ERROR_DAMAGED,
		               "its segment has another version: use the nvtaskset that started it");
		state = SEGMENT_FAILED;
	} else {
		state = SEGMENT_FOUND;
	}
	if (state != SEGMENT_FOUND)
		segment_close(segment);
	return state;
}

/* The first of this kind. */
static bool open_kind(struct segment *segment, pid_t pid, enum kind kind, int *number)
{
	struct seeker seeker = {.pid = pid, .kind = kind, .number = -1};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = directory >= 0 ? find_descriptor(directory, 0, &seeker) : -1;

	*segment = segment_closed;
	*number = seeker.number;
	if (directory >= 0)
		close(directory);
	return file >= 0 && map_found(segment, file, NULL) == SEGMENT_FOUND;
}

bool segment_open_own(struct segment *segment, int *number)
{
	return open_kind(segment, getpid(), KIND_OWN, number);
}

bool segment_open_inherited(struct segment *segment, pid_t pid, int *number)
{
	return open_kind(segment, pid, KIND_INHERITED, number);
}

void segment_close(struct segment *segment)
{
	if (segment->memory)
		munmap(segment->memory, sizeof *segment->memory);
	/* The program may have closed it, and have a file of its own there. */
	if (segment_is_file(segment->file))
		close(segment->file);
	*segment = segment_closed;
}

/* --- in memory alone --------------------------------------------------------------------------------------- */

/* Copies what the process has at this address, if that is its segment. */
static bool copy_memory(struct segment_memory *copy, int memory, uint64_t address, struct seeker *seeker)
{
	return pread(memory, copy, sizeof *copy, (off_t)address) == sizeof *copy && copy->magic == SEGMENT_MAGIC &&
	       copy->version == SEGMENT_VERSION && copy->size == sizeof *copy && owns(seeker, copy->owner);
}

enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision)
{
	struct segment_memory copy;
	struct seeker seeker = {.pid = pid};
	struct segment segment = segment_in(&copy);
	enum segment_state state = SEGMENT_NOT_OURS;
	char path[64], line[512];
	uint64_t address, number;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "re");

	if (!maps && (errno == EACCES || errno == EPERM))
		state = SEGMENT_NOT_PERMITTED;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);

	while (maps && state != SEGMENT_FOUND && fgets(line, sizeof line, maps)) {
		if (!strstr(line, SEGMENT_LINK) || sscanf(line, "%" SCNx64, &address) != 1)
			continue;
		state = SEGMENT_NOT_PERMITTED;
		if (memory >= 0 && copy_memory(&copy, memory, address, &seeker) &&
		    segment_read(&segment, revision, &number))
			state = SEGMENT_FOUND;
	}
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return state;
}

/* --- why there is none ---------------------------------------------------------------------------------- */

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
	else if (file_contains(pid, "maps", '\n', SEGMENT_LINK))
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

bool segment_is_at_work(const struct segment *segment, pid_t pid)
{
	uint64_t execution = atomic_load(&segment->memory->execution);

	return execution != 0 && execution == execution_of(pid);
}

const char *segment_obstacle(const struct segment *segment, pid_t pid)
{
	const char *obstacle = NULL;

	if (atomic_load_explicit(&segment->memory->out_of_force, memory_order_relaxed))
		obstacle = "its partition is not in force until another tool (a profiler or debugger) gives up the driver's "
		           "callback slot";
	else if (!segment_is_at_work(segment, pid) && uses_cuda(pid))
		obstacle = segment_absence_text(SEGMENT_NOT_IN_FORCE);
	return obstacle;
}

static enum segment_state explain_absence(pid_t pid, struct error *error)
{
	enum segment_state state = segment_absence(pid);

	error_set(error, "pid %d: %s", (int)pid, segment_absence_text(state));
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

/* Takes over `file`, an ancestor's segment. */
static enum segment_state explain_shared(pid_t pid, int file, struct error *error)
{
	struct header header = read_header(file);
	const char *advice = "change that one, or give this one its own with --attach";

	close(file);
	if (kill((pid_t)header.owner, 0) < 0 && errno == ESRCH)
		advice = "which has ended: give this one its own with --attach";
	error_set(error, "pid %d: shares the partition of pid %" PRIu64 " until it loads CUDA; %s", (int)pid, header.owner,
	          advice);
	return SEGMENT_SHARED;
}

/* --- all together ----------------------------------------------------------------------------------------- */

static enum segment_state open_found(struct segment *segment, pid_t pid, int file, struct error *error)
{
	enum segment_state state = map_found(segment, file, error);

	if (state != SEGMENT_FOUND && error)
		error_reword(error, "pid %d: %.200s", (int)pid, error->reason);
	return state;
}

/* Whether it may be there all the same. */
static bool could_not_look(int failure)
{
	return failure == EACCES || failure == EPERM || failure == EWOULDBLOCK || failure == EMFILE || failure == ENFILE ||
	       failure == ENOMEM;
}

/* Where it has none of its own. */
static enum segment_state explain(pid_t pid, int directory, struct error *error)
{
	struct seeker inherited = {.pid = pid, .kind = KIND_INHERITED};
	int file = find_descriptor(directory, 0, &inherited);

	return file >= 0 ? explain_shared(pid, file, error) : explain_absence(pid, error);
}

static enum segment_state open_in(struct segment *segment, pid_t pid, int directory, struct error *error)
{
	struct seeker own = {.pid = pid, .kind = KIND_OWN}, unready = {.pid = pid, .kind = KIND_NOT_READY};
	int first = !error && has_room_above(pid) ? SEGMENT_FILE_MIN : 0;
	int file = find_descriptor(directory, first, &own);

	if (file < 0 && could_not_look(errno))
		return explain_closed(pid, error);
	if (file < 0 && error)
		file = find_descriptor(directory, 0, &unready);
	if (file >= 0)
		return open_found(segment, pid, file, error);
	return error ? explain(pid, directory, error) : SEGMENT_NOT_OURS;
}

enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error)
{
	char path[64];

	*segment = segment_closed;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return explain_closed(pid, error);
	enum segment_state state = open_in(segment, pid, directory, error);

	close(directory);
	return state;
}
