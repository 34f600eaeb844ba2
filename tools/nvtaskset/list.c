#include "actions.h"

#include "segment.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COMMAND_MAX 80

/* A process with a partition, as it was when we looked. */
struct row {
	pid_t pid;
	struct segment_revision revision;
	struct segment_counters counters;
};

struct rows {
	size_t count;
	struct row *rows;
};

/* --- collecting -------------------------------------------------------------------------------------------- */

static bool look(struct row *row, pid_t pid)
{
	struct segment segment;
	uint64_t number;
	bool whole = false;

	if (segment_open(&segment, pid, NULL) == SEGMENT_FOUND) {
		row->pid = pid;
		whole = segment_read(&segment, &row->revision, &number);
		segment_read_counters(&segment, &row->counters);
		segment_close(&segment);
	}
	return whole;
}

static int add(struct rows *rows, const struct row *row, struct error *error)
{
	struct row *more = realloc(rows->rows, (rows->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	rows->rows = more;
	rows->rows[rows->count++] = *row;
	return 0;
}

static int collect(struct rows *rows, struct error *error)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	if (!processes)
		return error_set_errno(error, "/proc");
	while (result == 0 && (entry = readdir(processes))) {
		struct row row;
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;

		if (pid > 0 && look(&row, pid))
			result = add(rows, &row, error);
	}
	closedir(processes);
	return result;
}

static int compare_pids(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* --- showing ------------------------------------------------------------------------------------------------ */

static const char *user_of(pid_t pid, char text[16])
{
	char path[64];
	struct stat status;
	struct passwd *user = NULL;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &status) == 0)
		user = getpwuid(status.st_uid);
	if (user)
		snprintf(text, 16, "%.15s", user->pw_name);
	else
		snprintf(text, 16, "?");
	return text;
}

/* The command line on one line, without what would move the cursor; "?" where it is gone. */
static const char *command_of(pid_t pid, char text[COMMAND_MAX])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(text, 1, COMMAND_MAX - 1, file) : 0;

	if (file)
		fclose(file);
	while (length > 0 && text[length - 1] == '\0')
		length--;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\0')
			text[i] = ' ';
		else if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	}
	text[length] = '\0';
	return length > 0 ? text : strcpy(text, "?");
}

static void show_row(const struct row *row)
{
	const struct segment_counters *counters = &row->counters;
	char user[16], command[COMMAND_MAX], pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];

	printf("%7d %-8s %12" PRIu64 " %12" PRIu64 "  %s\n", (int)row->pid, user_of(row->pid, user),
	       counters->restricted + counters->unrestricted, counters->restricted,
	       command_of(row->pid, command));
	for (uint32_t i = 0; i < row->revision.count; i++)
		printf("        GPU %s: TPCs %s\n", pci_address_format(row->revision.partitions[i].pci, pci),
		       tpcset_format_list(&row->revision.partitions[i].set, list));
	if (row->revision.count == 0)
		printf("        not restricted\n");
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (counters->reasons[reason] > 0)
			printf("        %" PRIu64 " times: %s\n", counters->reasons[reason],
			       segment_reason_text((enum segment_reason)reason));
	}
}

/* What two processes have in common on a GPU: a mistake more often than not. */
static void show_overlap(const struct row *a, const struct row *b)
{
	char pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];

	for (uint32_t i = 0; i < a->revision.count; i++) {
		const struct segment_partition *mine = &a->revision.partitions[i];
		const struct segment_partition *theirs = segment_find(&b->revision, mine->pci);
		struct tpcset both = theirs ? tpcset_and(&mine->set, &theirs->set) : (struct tpcset){{0}};

		if (!tpcset_is_empty(&both))
			printf("%d and %d share TPCs %s of GPU %s\n", (int)a->pid, (int)b->pid,
			       tpcset_format_list(&both, list), pci_address_format(mine->pci, pci));
	}
}

int action_list(const struct options *options, struct error *error)
{
	(void)options;
	struct rows rows = {.count = 0};
	int result = collect(&rows, error);

	if (result == 0 && rows.count > 0) {
		qsort(rows.rows, rows.count, sizeof rows.rows[0], compare_pids);
		printf("    PID USER         LAUNCHES       INSIDE  COMMAND\n");
	}
	for (size_t i = 0; result == 0 && i < rows.count; i++)
		show_row(&rows.rows[i]);
	for (size_t i = 0; result == 0 && i < rows.count; i++) {
		for (size_t other = i + 1; other < rows.count; other++)
			show_overlap(&rows.rows[i], &rows.rows[other]);
	}
	free(rows.rows);
	return result;
}
