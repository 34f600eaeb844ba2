/* The editor's side: finding a process's segment. The process may be hostile, and so may be what it has open. */
#include "segment_handle.h"
#include "segment_kind.h"

#include "memfd_find.h"
#include "pids.h"

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

/* --- among the descriptors of others ------------------------------------------------------------------ */

/* What is looked for, of which process. */
struct seeker {
	pid_t pid;
	struct identity who; /* its pid is 0: not asked yet */
	enum segment_kind kind;
	int number; /* of the descriptor, once one is found */
};

static struct identity who(struct seeker *seeker)
{
	if (seeker->who.pid == 0)
		seeker->who = identity_of(seeker->pid);
	return seeker->who;
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

/* Whoever looks for an inherited one has a use for one that was left, too. */
static bool is_sought(int file, int number, void *context)
{
	struct seeker *seeker = context;
	int saved = errno;
	struct segment_header header = segment_read_header(file);
	enum segment_kind kind = segment_kind_for(&header, who(seeker));
	bool sought = kind == seeker->kind;

	if (seeker->kind == KIND_INHERITED)
		sought = (kind == KIND_INHERITED || kind == KIND_LEFT) && is_passed_on(seeker->pid, number);
	if (sought)
		seeker->number = number;
	errno = saved;
	return sought;
}

static int find_descriptor(int directory, int first, struct seeker *seeker)
{
	const struct memfd_search search = {
		.directory = directory,
		.first = first,
		.link = SEGMENT_LINK,
		.is_sought = is_sought,
		.context = seeker,
	};

	return memfd_find(&search);
}

/* Whether the handle's number is HANDLE_MIN or above. */
static bool has_room_above(pid_t pid)
{
	struct rlimit limit;

	return prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 && limit.rlim_cur > HANDLE_USUAL;
}

bool segment_open_inherited(struct segment *segment, pid_t pid, int *number)
{
	struct seeker seeker = {.pid = pid, .kind = KIND_INHERITED, .number = -1};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = directory >= 0 ? find_descriptor(directory, 0, &seeker) : -1;

	*segment = segment_closed;
	*number = seeker.number;
	if (directory >= 0)
		close(directory);
	return file >= 0 && segment_map_found(segment, file, NULL) == SEGMENT_FOUND;
}

/* --- in memory alone --------------------------------------------------------------------------------------- */

/* Copies what the process has at this address, if that is its segment. */
static bool copy_memory(struct segment_memory *copy, int memory, uint64_t address, struct seeker *seeker)
{
	return pread(memory, copy, sizeof *copy, (off_t)address) == sizeof *copy && copy->magic == SEGMENT_MAGIC &&
	       copy->version == SEGMENT_VERSION && copy->size == sizeof *copy && identity_matches(copy->owner, who(seeker));
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

/* Under which number /proc shows it; 0: not at all. */
static pid_t find_process(struct identity wanted)
{
	struct pids all;
	pid_t found = 0;

	if (pids_all(&all, NULL) < 0)
		return 0;
	for (size_t i = 0; i < all.count && found == 0; i++)
		found = identity_matches(identity_of(all.list[i]), wanted) ? all.list[i] : 0;
	free(all.list);
	return found;
}

/* Takes over `file`, an ancestor's segment. */
static enum segment_state explain_shared(pid_t pid, int file, struct error *error)
{
	struct segment_header header = segment_read_header(file);
	pid_t owner = header.magic == SEGMENT_MAGIC ? find_process(header.owner) : 0;

	close(file);
	if (owner != 0)
		error_set(error, "pid %d: shares the partition of pid %d until it loads CUDA; change that one, or give this one its "
		                 "own with --attach", (int)pid, (int)owner);
	else
		error_set(error, "pid %d: shares the partition of a process that has ended, until it loads CUDA; give this one its "
		                 "own with --attach", (int)pid);
	return SEGMENT_SHARED;
}

/* --- all together ----------------------------------------------------------------------------------------- */

static enum segment_state open_found(struct segment *segment, pid_t pid, int file, struct error *error)
{
	enum segment_state state = segment_map_found(segment, file, error);

	if (state != SEGMENT_FOUND && error)
		error_reword(error, "pid %d: %.200s", (int)pid, error->reason);
	return state;
}

/* Whether it may be there all the same. Another user's file is not this one's. */
static bool could_not_look(int failure)
{
	return failure == EWOULDBLOCK || failure == EMFILE || failure == ENFILE || failure == ENOMEM;
}

/* Where it has none of its own. `failure`: why one of its descriptors could not be looked at. */
static enum segment_state explain(pid_t pid, int directory, int failure, struct error *error)
{
	struct seeker inherited = {.pid = pid, .kind = KIND_INHERITED};
	int file = find_descriptor(directory, 0, &inherited);
	enum segment_state state = SEGMENT_SHARED;

	if (file >= 0)
		state = explain_shared(pid, file, error);
	else if (failure == EACCES || failure == EPERM)
		error_set(error, "pid %d: shares the partition of another user's process until it loads CUDA", (int)pid);
	else
		state = explain_absence(pid, error);
	return state;
}

static enum segment_state open_in(struct segment *segment, pid_t pid, int directory, struct error *error)
{
	struct seeker own = {.pid = pid, .kind = KIND_OWN}, unready = {.pid = pid, .kind = KIND_NOT_READY};
	int first = !error && has_room_above(pid) ? HANDLE_MIN : 0;
	int file = find_descriptor(directory, first, &own), failure = file < 0 ? errno : 0;

	if (file < 0 && could_not_look(failure))
		return explain_closed(pid, error);
	if (file < 0 && error)
		file = find_descriptor(directory, 0, &unready);
	if (file >= 0)
		return open_found(segment, pid, file, error);
	return error ? explain(pid, directory, failure, error) : SEGMENT_NOT_OURS;
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
