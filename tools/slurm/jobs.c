#include "jobs.h"

#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP "job-"
#define NOTE ".note-"
#define LIVE ".live-"
#define LOOKED ".looked"

/* --- names -------------------------------------------------------------------------------------------------------- */

static const char *path_in(const struct job *job, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.3800s/%.255s", job->directory, name);
	return path;
}

static const char *own_path(const struct job *job, const char *prefix, char path[PATH_MAX])
{
	char name[32];

	snprintf(name, sizeof name, "%s%u", prefix, job->id);
	return path_in(job, name, path);
}

const char *jobs_path(const struct job *job, char path[PATH_MAX])
{
	return own_path(job, GROUP, path);
}

uint32_t jobs_of_name(const char *name)
{
	static const char *const prefixes[] = {GROUP, NOTE, LIVE};
	unsigned int id = 0;

	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			number_parse(&id, name + strlen(prefixes[i]), 1, UINT32_MAX);
	return id;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

int jobs_make_directory(const char *directory, struct nvtaskset_error *error)
{
	struct stat status;

	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return reason_set_errno(error, "%.200s", directory);
	/* For any umask. The library checks whether other users can change the directory. */
	if (lstat(directory, &status) == 0 && S_ISDIR(status.st_mode) && (status.st_mode & 0755) != 0755)
		chmod(directory, 0755);
	return 0;
}

/* Calls `each` with every job that has a file; `each` may remove files. -1 with the reason. */
static int for_each(const struct job *job,
                    int (*each)(const struct job *, const char *, uint32_t, struct nvtaskset_error *),
                    struct nvtaskset_error *error)
{
	DIR *directory = opendir(job->directory);
	const struct dirent *entry;
	int result = 0;

	if (!directory)
		return errno == ENOENT ? 0
		                       : reason_set_errno(error, "%.200s", job->directory);
	while (result == 0 && (entry = readdir(directory))) {
		uint32_t id = jobs_of_name(entry->d_name);

		if (id != 0)
			result = each(job, entry->d_name, id, error);
	}
	closedir(directory);
	return result;
}

/* --- small files -------------------------------------------------------------------------------------------------- */

/* The longest note: 64 GPUs. */
#define TEXT_MAX 2048

static bool read_small(const char *path, char text[TEXT_MAX])
{
	int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, TEXT_MAX - 1) : -1;

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Writes the whole file, or none. */
static void write_small(const struct job *job, const char *path, const char *text)
{
	char new[PATH_MAX], name[32];
	size_t length = strlen(text);

	snprintf(name, sizeof name, ".new-%d", (int)getpid());
	path_in(job, name, new);
	unlink(new);
	int file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (file < 0)
		return;
	bool is_whole = write(file, text, length) == (ssize_t)length;

	close(file);
	if (!is_whole || rename(new, path) < 0)
		unlink(new);
}

/* Reads the numbers of a GPU, and returns the rest; NULL without numbers. */
static const char *read_gpu(const char *text, struct jobs_gpu *gpu)
{
	int length = 0;

	return sscanf(text, " %u %u %u%n", &gpu->number, &gpu->shards, &gpu->tpcs, &length) == 3 ? text + length : NULL;
}

static bool parse_note(struct jobs_note *note, const char *text)
{
	const char *rest;
	int length = 0;

	*note = (struct jobs_note){.start = 0};
	if (sscanf(text, "%lld %u %u %u%n", &note->start, &note->restarts, &note->user, &note->is_claimed,
	           &length) != 4)
		return false;
	text += length;
	while (note->count < ALLOCATION_GPUS_MAX && (rest = read_gpu(text, &note->gpus[note->count]))) {
		text = rest;
		note->count++;
	}
	if (sscanf(text, " memory %" SCNu64 "%n", &note->memory, &length) == 1)
		text += length;
	return strcmp(text, "\n") == 0;
}

static bool read_any_note(const struct job *job, struct jobs_note *note)
{
	char path[PATH_MAX], text[TEXT_MAX];

	return read_small(own_path(job, NOTE, path), text) && parse_note(note, text);
}

bool jobs_read_note(const struct job *job, struct jobs_note *note)
{
	char path[PATH_MAX];

	return access(job->directory, W_OK) == 0 && read_any_note(job, note) &&
	       (note->count == 0 || !note->is_claimed || access(jobs_path(job, path), R_OK) == 0);
}

void jobs_write_note(const struct job *job, const struct jobs_note *note)
{
	char path[PATH_MAX], text[TEXT_MAX];
	int length = snprintf(text, sizeof text, "%lld %u %u %u", note->start, note->restarts, note->user,
	                      note->is_claimed);

	for (unsigned int i = 0; i < note->count && length < TEXT_MAX - 40; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, " %u %u %u", note->gpus[i].number,
		                   note->gpus[i].shards, note->gpus[i].tpcs);
	if (note->memory > 0)
		length += snprintf(text + length, sizeof text - (size_t)length, " memory %" PRIu64, note->memory);
	snprintf(text + length, sizeof text - (size_t)length, "\n");
	write_small(job, own_path(job, NOTE, path), text);
}

bool jobs_has_shards(const struct jobs_note *note)
{
	bool has = false;

	for (unsigned int i = 0; i < note->count; i++)
		has |= note->gpus[i].shards > 0;
	return has;
}

/* --- locks -------------------------------------------------------------------------------------------------------- */

/* The lock ends with this process, which keeps the descriptor open. */
void jobs_hold(const struct job *job)
{
	char path[PATH_MAX];
	int file = open(own_path(job, LIVE, path), O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (file >= 0)
		flock(file, LOCK_SH);
}

bool jobs_is_held(const struct job *job)
{
	char path[PATH_MAX];
	int file = open(own_path(job, LIVE, path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool held = file >= 0 && flock(file, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (file >= 0)
		close(file);
	return held;
}

int jobs_lock(const struct job *job, const char *name, struct nvtaskset_error *error)
{
	char path[PATH_MAX];
	int file = open(path_in(job, name, path), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (file >= 0 && flock(file, LOCK_EX) == 0)
		return file;
	reason_set_errno(error, "%.200s", path);
	if (file >= 0)
		close(file);
	return -1;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

static int remove_file(const struct job *job, const char *name, struct nvtaskset_error *error)
{
	char path[PATH_MAX];

	path_in(job, name, path);
	if (name[0] != '.')
		return nvtaskset_group_remove(path, error);
	return unlink(path) == 0 || errno == ENOENT ? 0
	                                            : reason_set_errno(error, "%.200s", path);
}

static int remove_its(const struct job *job, const char *name, uint32_t id, struct nvtaskset_error *error)
{
	return id == job->id ? remove_file(job, name, error) : 0;
}

int jobs_remove(const struct job *job, struct nvtaskset_error *error)
{
	return for_each(job, remove_its, error);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* Programs of a forgotten job run until the controller hears of them. */
static int remove_dead(const struct job *job, const char *name, uint32_t id, struct nvtaskset_error *error)
{
	const struct job other = {job->directory, job->node, id};
	struct allocation allocation;

	if (id == job->id || jobs_is_held(&other))
		return 0;
	if (allocation_ask(&allocation, id, job->node, error) < 0)
		return error->code == NVTASKSET_ERROR_SYSTEM ? -1 : 0;
	return allocation.is_here ? 0 : remove_file(job, name, error);
}

int jobs_reconcile(const struct job *job, struct nvtaskset_error *error)
{
	return for_each(job, remove_dead, error);
}

int jobs_reconcile_once(const struct job *job, const char *life, struct nvtaskset_error *error)
{
	char path[PATH_MAX], said[TEXT_MAX];

	path_in(job, LOOKED, path);
	if (!life || (read_small(path, said) && strcmp(said, life) == 0))
		return 0;
	int result = jobs_reconcile(job, error);

	if (result == 0)
		write_small(job, path, life);
	return result;
}

/* --- a job -------------------------------------------------------------------------------------------------------- */

static int ask(const struct job *job, unsigned int user, struct jobs_note *note, struct nvtaskset_error *error)
{
	struct allocation allocation;

	if (allocation_ask(&allocation, job->id, job->node, error) < 0)
		return -1;
	/* A controller that was killed may have forgotten the job. Without a known allocation, the job must not run. */
	if (!allocation.is_here)
		return reason_set(error, NVTASKSET_ERROR_OTHER,
		                  "Slurm's controller does not know that job %u is on this node", job->id);
	/* The epilog may have been here already: nobody would remove new files. */
	if (allocation.is_ending)
		return reason_set(error, NVTASKSET_ERROR_OTHER, "job %u is ending", job->id);
	*note = (struct jobs_note){
		.start = allocation.start, .restarts = allocation.restarts, .user = user, .count = allocation.count};
	for (unsigned int i = 0; i < allocation.count; i++)
		note->gpus[i] = (struct jobs_gpu){.number = allocation.gpus[i].number,
		                                  .shards = allocation.gpus[i].shards};
	return 0;
}

/* Steps that begin at the same time take turns: the second step finds the note of the first. */
int jobs_begin(const struct job *job, unsigned int user, struct jobs_note *note, struct nvtaskset_error *error)
{
	struct jobs_note there;

	if (ask(job, user, note, error) < 0)
		return -1;
	int lock = jobs_lock(job, JOBS_LOCK, error), result = lock < 0 ? -1 : 0;

	if (result == 0 && jobs_read_note(job, &there) && there.start == note->start &&
	    there.restarts == note->restarts) {
		*note = there;
	} else if (result == 0) {
		result = jobs_remove(job, error);
		if (result == 0)
			jobs_write_note(job, note);
	}
	if (lock >= 0)
		close(lock);
	return result;
}

unsigned int jobs_of_user(const struct job *job, unsigned int user)
{
	DIR *directory = opendir(job->directory);
	const struct dirent *entry;
	unsigned int count = 0;

	while (directory && (entry = readdir(directory))) {
		const struct job other = {job->directory, job->node, jobs_of_name(entry->d_name)};
		struct jobs_note note;

		count += entry->d_name[0] == '.' && other.id != 0 && read_any_note(&other, &note) &&
		         note.user == user && jobs_has_shards(&note);
	}
	if (directory)
		closedir(directory);
	return count;
}
