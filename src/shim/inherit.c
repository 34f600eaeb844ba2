#include "inherit.h"

#include "log.h"
#include "parent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool read_and_close(struct segment *segment, bool is_open, struct segment_revision *revision)
{
	uint64_t number;
	bool found = is_open && segment_read(segment, revision, &number);

	segment_close(segment);
	return found;
}

/* By the descriptor that came through an exec, whoever of the ancestors still lives. */
static bool read_inherited(struct segment_revision *revision)
{
	struct segment segment;
	int file;

	return read_and_close(&segment, segment_open_inherited(&segment, getpid(), &file), revision);
}

static void tell_out_of_reach(pid_t pid)
{
	log_warning("the partition of pid %d, which started this program, is out of reach: this program starts with the one "
	            "that nvtaskset was given", (int)pid);
}

/* `is_out_of_reach`: it has one, or may have, and lets nobody look. */
static bool read_segment_of(pid_t pid, struct segment_revision *revision, bool *is_out_of_reach)
{
	struct segment segment;
	bool found = read_and_close(&segment, segment_open(&segment, pid, NULL) == SEGMENT_FOUND, revision);

	if (!found) {
		enum segment_state state = segment_read_mapped(pid, revision);

		found = state == SEGMENT_FOUND;
		*is_out_of_reach = state == SEGMENT_NOT_PERMITTED;
	}
	return found;
}

/* Up to `root`, the process that the environment speaks of. */
static bool read_ancestor(pid_t root, struct segment_revision *revision)
{
	pid_t pid = getpid();
	bool found = false, is_out_of_reach = false;

	for (int generation = 0; generation < PARENT_GENERATIONS && !found && !is_out_of_reach && pid > 1 && pid != root;
	     generation++) {
		pid = parent_of(pid);
		found = pid > 1 && read_segment_of(pid, revision, &is_out_of_reach);
	}
	if (is_out_of_reach)
		tell_out_of_reach(pid);
	return found;
}

int inherit_partition(struct segment_revision *revision, struct error *error)
{
	const char *partition = secure_getenv(SEGMENT_ENVIRONMENT), *number = secure_getenv(SEGMENT_ROOT_ENVIRONMENT);
	pid_t root = number ? (pid_t)strtol(number, NULL, 10) : 0;
	struct segment_revision now;
	int result = segment_revision_parse(revision, partition ? partition : "", error);

	if (result == 0 && (read_inherited(&now) || (partition && root > 0 && read_ancestor(root, &now))))
		*revision = now;
	return result;
}
