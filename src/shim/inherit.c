#include "inherit.h"

#include "parent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* A tree of processes is not deeper, and numbers of another PID namespace may lead in a circle. */
#define GENERATIONS 64

static bool read_segment_of(pid_t pid, struct segment_revision *revision)
{
	struct segment segment;
	uint64_t number;
	bool found = false;

	if (segment_open(&segment, pid, NULL) == SEGMENT_FOUND) {
		found = segment_read(&segment, revision, &number);
		segment_close(&segment);
	}
	return found;
}

/* Below `root`, the process that the environment speaks of. */
static bool read_ancestor(pid_t root, struct segment_revision *revision)
{
	pid_t pid = getpid();
	bool found = false;

	for (int generation = 0; generation < GENERATIONS && !found && pid > 1 && pid != root; generation++) {
		pid = parent_of(pid);
		found = pid > 1 && read_segment_of(pid, revision);
	}
	return found;
}

int inherit_partition(struct segment_revision *revision, struct error *error)
{
	const char *partition = secure_getenv(SEGMENT_ENVIRONMENT), *number = secure_getenv(INHERIT_ENVIRONMENT);
	pid_t root = number ? (pid_t)strtol(number, NULL, 10) : 0;
	struct segment_revision now;
	int result = segment_revision_parse(revision, partition ? partition : "", error);

	if (result == 0 && partition && root > 0 && read_ancestor(root, &now))
		*revision = now;
	return result;
}
