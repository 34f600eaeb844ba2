#include "find.h"

#include "base/memfd_find.h"
#include "base/proc.h"
#include "base/purse.h"
#include "layout.h"
#include "state/handle.h"
#include "state/revision_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- among the descriptors of other processes --------------------------------------------------------------------- */

struct seeker {
	pid_t pid;
	struct identity who; /* pid 0: unknown yet */
	enum segment_kind kind;
	bool explains;         /* also find the shared segment */
	bool is_making;        /* a segment is not ready */
	bool shares;           /* passes on a segment of another process */
	struct identity owner; /* of the shared segment */
	int number;            /* of the found descriptor */
	unsigned int files;    /* opened so far */
};

static struct identity who(struct seeker *seeker)
{
	if (seeker->who.pid == 0)
		seeker->who = identity_of(seeker->pid);
	return seeker->who;
}

/* Whether the process's user has made the file. A program with more privileges may hold a segment made before by the
 * program's user, not the program's own. If root made the file for a process that then became another user, root may
 * edit until the process makes a new segment. */
static bool may_be_own(int file, pid_t pid)
{
	struct stat status;

	return fstat(file, &status) == 0 &&
	       ((status.st_uid == 0 && geteuid() == 0) || status.st_uid == proc_status(pid, "Uid:", 0));
}

/* Whether exec keeps the descriptor: the handle of a partition is passed on. Editors open foreign segments
 * close-on-exec. */
static bool is_passed_on(pid_t pid, int number)
{
	char name[32], text[32];
	unsigned int flags = O_CLOEXEC;

	snprintf(name, sizeof name, "fdinfo/%d", number);
	proc_find(pid, name, NULL, "flags:", text, sizeof text);
	sscanf(text, "%o", &flags);
	return !(flags & O_CLOEXEC);
}

static enum segment_kind kind_of(int file, const struct segment_header *header, struct seeker *seeker)
{
	enum segment_kind kind = segment_kind_for(header, who(seeker));

	return kind == KIND_LEFT || (kind == KIND_OWN && !may_be_own(file, seeker->pid)) ? KIND_INHERITED : kind;
}

static bool is_sought(int file, int number, void *context)
{
	struct seeker *seeker = context;
	int saved = errno;
	struct segment_header header = segment_read_header(file);
	enum segment_kind kind = kind_of(file, &header, seeker);
	bool may_share = kind == KIND_INHERITED && !seeker->shares && (seeker->explains || seeker->kind == kind);

	if (may_share && is_passed_on(seeker->pid, number)) {
		seeker->shares = true;
		seeker->owner = header.owner;
	}
	seeker->is_making = seeker->is_making || kind == KIND_NOT_READY;
	seeker->number = number;
	seeker->files++;
	errno = saved;
	return kind == seeker->kind && (kind != KIND_INHERITED || seeker->shares);
}

static struct memfd_search search_for(struct seeker *seeker)
{
	return (struct memfd_search){.link = SEGMENT_LINK, .is_sought = is_sought, .context = seeker};
}

bool segment_open_inherited(struct segment *segment, pid_t pid, int *number, enum group_use use, struct purse *purse)
{
	struct seeker seeker = {.pid = pid, .kind = KIND_INHERITED};
	const struct memfd_search search = search_for(&seeker);
	int file = memfd_find_of(pid, &search, purse);

	*segment = segment_closed;
	*number = file >= 0 ? seeker.number : -1;
	if (file < 0 || segment_map_found(segment, file, NULL) != SEGMENT_FOUND)
		return false;
	segment->purse = purse;
	int result = segment_open_group(segment, pid, use);

	if (result < 0)
		segment_close(segment);
	return result == 0;
}

/* --- without a file ---------------------------------------------------------------------------------------- */

static bool copy_memory(struct segment_memory *copy, int memory, uint64_t address, struct seeker *seeker)
{
	return pread(memory, copy, sizeof *copy, (off_t)address) == sizeof *copy && copy->magic == SEGMENT_MAGIC &&
	       copy->version == SEGMENT_VERSION && copy->size == sizeof *copy &&
	       identity_matches(copy->owner, who(seeker));
}

static enum segment_state read_mapped(pid_t pid, struct segment_revision *revision)
{
	struct segment_memory copy;
	struct seeker seeker = {.pid = pid};
	struct segment segment = segment_in(&copy);
	enum segment_state state = SEGMENT_NOT_OURS;
	char line[512];
	struct mapping mapping;
	uint64_t number;
	FILE *maps = proc_stream(pid, "maps");

	if (!maps && (errno == EACCES || errno == EPERM))
		state = SEGMENT_NOT_PERMITTED;
	int memory = proc_open(pid, "mem", O_RDONLY);

	while (maps && state != SEGMENT_FOUND && fgets(line, sizeof line, maps)) {
		if (!strstr(line, SEGMENT_LINK) || !proc_mapping_parse(&mapping, line))
			continue;
		state = SEGMENT_NOT_PERMITTED;
		if (memory >= 0 && copy_memory(&copy, memory, mapping.start, &seeker) &&
		    segment_read(&segment, revision, &number))
			state = SEGMENT_FOUND;
	}
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return state;
}

/* A mapped file of another user may be on any file system, and reading may take for ever. */
enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision)
{
	enum segment_state state = SEGMENT_NOT_OURS;
	uid_t owner;

	if (proc_owner(pid, &owner))
		state = owner == geteuid() ? read_mapped(pid, revision) : SEGMENT_NOT_PERMITTED;
	return state;
}

/* --- why there is no segment -------------------------------------------------------------------------------------- */

/* Limits of reading: a process has any number of mappings, and can declare all of its memory to be the environment. The
 * kernel lets no program begin with more environment, and no program has 40 000 mappings. */
#define ENVIRONMENT_MOST (6U << 20)
#define MAPS_MOST (4U << 20)

static bool uses_cuda(pid_t pid, struct purse *purse)
{
	return purse_find(purse, pid, "maps", MAPS_MOST, "/libcuda.so.");
}

bool segment_is_expected(pid_t pid, struct purse *purse)
{
	return purse_find(purse, pid, "environ", ENVIRONMENT_MOST, SEGMENT_ENVIRONMENT "=") ||
	       purse_find(purse, pid, "environ", ENVIRONMENT_MOST, GROUP_FILE_ENVIRONMENT "=/");
}

enum segment_state segment_absence(pid_t pid, struct purse *purse)
{
	enum segment_state state = SEGMENT_NOT_OURS;

	/* A process without CUDA may have mapped the segments of other processes, as an editor: so CUDA is checked
	 * first. */
	if (!uses_cuda(pid, purse))
		state = SEGMENT_NO_CUDA;
	else if (purse_find(purse, pid, "maps", MAPS_MOST, SEGMENT_LINK))
		state = SEGMENT_CLOSED;
	else if (segment_is_expected(pid, purse))
		state = SEGMENT_NOT_IN_FORCE;
	return state;
}

const char *segment_absence_text(enum segment_state state)
{
	const char *text = "was started without nvtaskset: --attach gives it a partition all the same";

	if (state == SEGMENT_CLOSED)
		text = "has closed the file of its partition, which is out of reach until the program makes its next "
		       "CUDA context";
	else if (state == SEGMENT_NO_CUDA)
		text = "has not loaded CUDA";
	else if (state == SEGMENT_NOT_IN_FORCE)
		text = "its partition is not in force: the driver was loaded without our library, is being loaded just "
		       "now, or our library said on standard error why not";
	else if (state == SEGMENT_OTHER_VERSION)
		text = SEGMENT_ANOTHERS;
	return text;
}

bool segment_is_at_work(const struct segment *segment, pid_t pid)
{
	uint64_t execution = atomic_load(&segment->memory->execution);

	return execution != 0 && execution == identity_execution_of(pid);
}

const char *segment_obstacle(const struct segment *segment, pid_t pid)
{
	const char *obstacle = NULL;

	if (atomic_load_explicit(&segment->memory->out_of_force, memory_order_relaxed))
		obstacle = "its partition is not in force until another tool (a profiler or debugger) gives up the "
		           "driver's callback slot";
	else if (!segment_is_at_work(segment, pid) && uses_cuda(pid, segment->purse))
		obstacle = segment_absence_text(SEGMENT_NOT_IN_FORCE);
	return obstacle;
}

static enum segment_state explain_absence(pid_t pid, struct purse *purse, struct error *error)
{
	enum segment_state state = segment_absence(pid, purse);
	const char *why = segment_absence_text(state);

	if (state == SEGMENT_CLOSED && !memfd_are_known())
		why = "which files of it are in memory cannot be seen without the system call statx";
	error_set(error, "pid %d: %s", (int)pid, why);
	return state;
}

static enum segment_state explain_closed(pid_t pid, struct error *error)
{
	enum segment_state state = SEGMENT_FAILED;

	if (errno == EACCES || errno == EPERM) {
		state = SEGMENT_NOT_PERMITTED;
		error_set(error, "pid %d: belongs to another user, or does not let itself be inspected", (int)pid);
	} else if (access("/proc/self", F_OK) < 0) {
		error_set(error, "/proc is not mounted: processes cannot be found");
	} else if (errno == ENOENT || errno == ESRCH) {
		state = SEGMENT_NO_PROCESS;
		error_set(error, "pid %d: no such process", (int)pid);
	} else {
		error_set_errno(error, "pid %d: its descriptors cannot be read", (int)pid);
	}
	return state;
}

/* The pid under which /proc shows an ancestor of a process, or 0. An ancestor of unknown namespace counts where no
 * ancestor matches exactly. A search of all processes, for each descendant of a tree, would take minutes. */
static pid_t find_ancestor(pid_t pid, struct identity wanted)
{
	pid_t found = 0, possible = 0;

	for (int generation = 0; generation < PARENT_GENERATIONS && pid > 0 && found == 0; generation++) {
		pid = proc_parent(pid);
		struct identity identity = pid > 0 ? identity_of(pid) : (struct identity){.pid = 0};
		bool matches = pid > 0 && identity_matches(identity, wanted);

		if (matches && identity.namespace != 0 && wanted.namespace != 0)
			found = pid;
		else if (matches && possible == 0)
			possible = pid;
	}
	return found != 0 ? found : possible;
}

static enum segment_state explain_shared(const struct seeker *seeker, struct error *error)
{
	int pid = seeker->pid;
	bool is_anothers = identity_matches(seeker->owner, seeker->who); /* made by another user for the process */
	pid_t ancestor = is_anothers ? 0 : find_ancestor(pid, seeker->owner);

	if (is_anothers)
		error_set(error, "pid %d: has another user's partition until it loads CUDA; give it its own with "
		                 "--attach", pid);
	else if (ancestor != 0)
		error_set(error, "pid %d: shares the partition of pid %d until it loads CUDA; change that one, or give "
		                 "this one its own with --attach", pid, (int)ancestor);
	else
		error_set(error, "pid %d: shares an ancestor's partition until it loads CUDA; give this one its own "
		                 "with --attach", pid);
	return SEGMENT_SHARED;
}

/* --- opening ---------------------------------------------------------------------------------------------- */

/* Without the group, an edit would be of the process alone. Preserves errno. */
static enum segment_state fail_by_limit(struct segment *segment, pid_t pid, struct error *error)
{
	int saved = errno;

	error_set_errno(error, "pid %d: its group cannot be read", (int)pid);
	segment_close(segment);
	errno = saved;
	return SEGMENT_FAILED;
}

static enum segment_state open_found(struct segment *segment, pid_t pid, int file, struct purse *purse,
                                     struct error *error)
{
	enum segment_state state = segment_map_found(segment, file, error);

	if (state != SEGMENT_FOUND && error)
		error_reword(error, "pid %d: %.200s", (int)pid, error->reason);
	if (state == SEGMENT_FOUND) {
		segment->purse = purse;
		if (segment_open_group(segment, pid, GROUP_TO_CHANGE) < 0)
			state = fail_by_limit(segment, pid, error);
	}
	return state;
}

/* Listing the descriptors needs fewer rights than reading the links of the descriptors. */
static bool may_be_inspected(pid_t pid)
{
	char program[2];

	return proc_read_link(program, sizeof program, "/proc/%d/exe", (int)proc_thread(pid)) ||
	       (errno != EACCES && errno != EPERM);
}

/* A program that has very many foreign segments open has the own segment at the usual number. The search from the front
 * comes first: a program with more privileges than the user also has the user's segment at the usual number. */
static int find_own(int directory, int first, struct seeker *own, struct purse *purse)
{
	const struct memfd_search search = search_for(own);
	int file = memfd_find_in(directory, first, &search, purse);

	return file < 0 && own->files >= MEMFD_FILES ? memfd_find_in(directory, HANDLE_USUAL, &search, purse) : file;
}

static enum segment_state open_in(struct segment *segment, pid_t pid, int directory, struct purse *purse,
                                  struct error *error)
{
	struct seeker own = {.pid = pid, .kind = KIND_OWN, .explains = error};
	struct seeker unready = {.pid = pid, .kind = KIND_NOT_READY};
	const struct memfd_search for_unready = search_for(&unready);
	int file = find_own(directory, error ? 0 : handle_lowest_of(pid), &own, purse);
	enum segment_state state = own.is_making ? SEGMENT_NOT_READY : SEGMENT_NOT_OURS;

	if (file < 0 && (errno == EWOULDBLOCK || proc_is_limit(errno) || (error && !may_be_inspected(pid))))
		return explain_closed(pid, error);
	if (file < 0 && error && own.is_making)
		file = memfd_find_in(directory, 0, &for_unready, purse);
	if (file < 0 && error)
		state = own.shares ? explain_shared(&own, error) : explain_absence(pid, purse, error);
	/* The process may have made a segment during the search for the reason. */
	if (file < 0 && state == SEGMENT_CLOSED)
		file = find_own(directory, 0, &own, purse);
	return file >= 0 ? open_found(segment, pid, file, purse, error) : state;
}

enum segment_state segment_open(struct segment *segment, pid_t pid, struct purse *purse, struct error *error)
{
	int directory = proc_open(pid, "fd", O_RDONLY | O_DIRECTORY);

	*segment = segment_closed;
	if (directory < 0)
		return explain_closed(pid, error);
	enum segment_state state = open_in(segment, pid, directory, purse, error);

	close(directory);
	return state;
}

bool segment_exists(pid_t pid)
{
	struct segment segment;
	bool exists = segment_open(&segment, pid, NULL, NULL) == SEGMENT_FOUND;

	segment_close(&segment);
	return exists;
}

bool segment_open_group_of(pid_t pid, struct group *group)
{
	struct segment segment;
	struct stat status;
	int number;

	*group = group_closed;
	if ((segment_open(&segment, pid, NULL, NULL) == SEGMENT_FOUND ||
	     segment_open_inherited(&segment, pid, &number, GROUP_TO_CHANGE, NULL)) &&
	    fstat(segment.file, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == segment.group.owner)) {
		*group = segment.group;
		segment.group = group_closed;
	}
	segment_close(&segment);
	return group->memory != NULL;
}
