#include "inherit.h"

#include "base/log.h"
#include "base/parent.h"
#include "strict.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_and_close(struct segment *segment, bool is_open, struct segment_revision *revision)
{
	uint64_t number;
	bool found = is_open && segment_read(segment, revision, &number);

	segment_close(segment);
	return found;
}

/* --- by the inherited descriptor, also if its owner has ended ----------------------------------------------------- */

/* Where the segment is from; SEGMENT_NONE if it cannot be read. */
static enum segment_source read_inherited(struct segment_revision *revision)
{
	struct segment segment;
	int handle;
	enum segment_source source = segment_open_source(&segment, &handle);
	bool is_open = segment.memory != NULL;

	return read_and_close(&segment, is_open, revision) || !is_open ? source : SEGMENT_NONE;
}

/* --- by /proc ------------------------------------------------------------------------------------------------------ */

/* `is_out_of_reach`: the process has a segment, or may have one, but we are not permitted to read it. */
static bool read_segment_of(pid_t pid, struct segment_revision *revision, bool *is_out_of_reach)
{
	struct segment segment;
	struct error error; /* with it, segment_open searches everywhere */
	bool found = read_and_close(&segment, segment_open(&segment, pid, &error) == SEGMENT_FOUND, revision);

	if (!found) {
		enum segment_state state = segment_read_mapped(pid, revision);

		found = state == SEGMENT_FOUND;
		*is_out_of_reach = state == SEGMENT_NOT_PERMITTED;
	}
	return found;
}

/* Searches the ancestors, up to and including `root`. `out_of_reach`: the one whose segment we may not read, which ends
 * the search; otherwise 0. */
static bool read_ancestor(pid_t root, struct segment_revision *revision, pid_t *out_of_reach)
{
	pid_t pid = getpid();
	bool found = false, is_out_of_reach = false;

	for (int generation = 0; generation < PARENT_GENERATIONS && !found && !is_out_of_reach && pid > 1 && pid != root;
	     generation++) {
		pid = parent_of(pid);
		found = pid > 1 && read_segment_of(pid, revision, &is_out_of_reach);
	}
	*out_of_reach = is_out_of_reach ? pid : 0;
	return found;
}

/* --- both, then the environment -------------------------------------------------------------------------------------- */

/* The partition from the environment may be out of date: nvtaskset -p may have changed that of the ancestors. */
static void warn_of_start(bool is_withheld, pid_t out_of_reach)
{
	char reason[256];

	if (out_of_reach == 0 && !is_withheld)
		return;
	if (out_of_reach != 0)
		snprintf(reason, sizeof reason, "the partition of pid %d, which started this program, cannot be read",
		         (int)out_of_reach);
	else
		strcpy(reason, "the partition that this program was started in cannot be read without /proc");
	strict_refuse(reason);
	log_warning("%s: this program starts with the one given to nvtaskset", reason);
}

/* If the owner of the inherited segment has moved to a new one, the ancestors are searched for that. */
static bool find_partition(pid_t root, struct segment_revision *revision)
{
	struct segment_revision inherited;
	enum segment_source source = read_inherited(&inherited);
	pid_t out_of_reach = 0;
	bool found = source <= SEGMENT_LEFT;

	if (source >= SEGMENT_LEFT && root > 0 && read_ancestor(root, revision, &out_of_reach))
		return true;
	if (found)
		*revision = inherited;
	else
		warn_of_start(source == SEGMENT_WITHHELD, out_of_reach);
	return found;
}

int inherit_partition(struct segment_revision *revision, struct error *error)
{
	const char *partition = secure_getenv(SEGMENT_ENVIRONMENT), *number = secure_getenv(SEGMENT_ROOT_ENVIRONMENT);
	pid_t root = partition && number ? (pid_t)strtol(number, NULL, 10) : 0;
	struct segment_revision now;
	int result = segment_revision_parse(revision, partition ? partition : "", error);

	if (result == 0 && find_partition(root, &now))
		*revision = now;
	return result;
}
