#include "set.h"

#include "base/pids.h"
#include "base/proc.h"
#include "base/purse.h"
#include "gpu/topology/topology.h"
#include "show/processes.h"
#include "state/revision_text.h"
#include "state/segment/find.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first buffer for a file in /proc; doubled until the file fits. A process itself says where its environment lies:
 * a text longer than the kernel's limit for a new program is no environment. */
#define ROOM 65536
#define ROOM_MOST (8U << 20)

/* How long to wait for processes in the middle of an exec, in total. */
#define EXEC_WAIT_MS 1000

/* How often an environment is read anew that has just come. */
#define READS 4

/* --- programs without a segment of their own ---------------------------------------------------------------------- */

struct claims {
	size_t count;
	struct claim {
		pid_t pid;
		pid_t root;  /* an ancestor with a segment, up to this one, overrides the claim; 0: no */
		struct identity owner; /* of the segment shared with an ancestor; 0: none */
		struct group_identity group; /* of the shared segment */
		struct segment_revision revision;
	} *list;
};

/* Returns a file of /proc/PID as a string that the caller frees, or NULL if the file cannot be read. A single system
 * call reads all: between two calls, an exec of the process could remove the rest. */
static char *read_at_once(pid_t pid, const char *name, struct purse *purse, size_t *length)
{
	char *text = NULL;
	ssize_t got = 0;
	bool is_whole = false;

	for (size_t room = ROOM; !is_whole && room <= ROOM_MOST && purse_pay_bytes(purse, (size_t)got); room *= 2) {
		free(text);
		text = malloc(room);
		got = text ? proc_read_text(text, room, "/proc/%d/%s", (int)proc_thread(pid), name) : -1;
		is_whole = got < (ssize_t)room - 1;
	}
	if (got < 0 || !is_whole) {
		free(text);
		return NULL;
	}
	*length = (size_t)got;
	return text;
}

enum {
	STAT_CODE = 26, /* where the code starts; set together with the environment (fs/binfmt_elf.c) */
	STAT_ENVIRONMENT = 50,
	STAT_ENVIRONMENT_END = 51
};

/* Why an environment was read as empty. */
enum emptiness {
	HAS_NONE, /* also kernel threads and zombies, which have no program */
	IN_EXEC,  /* the new environment is not there yet */
	HAS_ONE   /* there by now; or the process has unmapped its environment */
};

static enum emptiness why_empty(pid_t pid)
{
	char program[8], stat[PROC_STAT_TEXT];
	enum emptiness why = HAS_NONE;

	proc_stat_read(pid, stat);
	if (stat[0] != '\0' && proc_stat_field(stat, STAT_CODE) == 0)
		why = IN_EXEC;
	else if (stat[0] != '\0' &&
	         proc_stat_field(stat, STAT_ENVIRONMENT_END) > proc_stat_field(stat, STAT_ENVIRONMENT))
		why = HAS_ONE;
	return why != HAS_NONE && proc_read_link(program, sizeof program, "/proc/%d/exe", (int)proc_thread(pid))
	               ? why : HAS_NONE;
}

/* Whether the environment names a partition. `is_empty`: the environment can be read, and has no variable at all. */
static bool read_environment(struct claim *claim, struct purse *purse, bool *is_empty)
{
	size_t length = 0;
	char *environment = read_at_once(claim->pid, "environ", purse, &length);
	const char *partition = environment ? proc_variable(environment, length, SEGMENT_ENVIRONMENT) : NULL;
	const char *root = environment ? proc_variable(environment, length, SEGMENT_ROOT_ENVIRONMENT) : NULL;
	bool found = partition && revision_parse(&claim->revision, partition, NULL) == 0;

	*is_empty = environment && length == 0;
	claim->root = root ? (pid_t)strtol(root, NULL, 10) : claim->pid;
	free(environment);
	return found;
}

static bool read_with_patience(struct claim *claim, struct purse *purse)
{
	bool is_empty, found = read_environment(claim, purse, &is_empty);
	enum emptiness why = is_empty ? why_empty(claim->pid) : HAS_NONE;
	unsigned int patience = EXEC_WAIT_MS;

	for (int reads = 1; why != HAS_NONE && ((why == HAS_ONE && reads < READS) ||
	                                        (why == IN_EXEC && purse_wait(purse, &patience)));
	     reads += why == HAS_ONE) {
		found = read_environment(claim, purse, &is_empty);
		why = is_empty ? why_empty(claim->pid) : HAS_NONE;
	}
	return found;
}

/* Reads the segment that the process shares with an ancestor, which may have ended. False without a shared segment. */
static bool read_shared(struct claim *claim, struct purse *purse)
{
	struct segment segment;
	uint64_t number;
	int file;
	bool found = segment_open_inherited(&segment, claim->pid, &file, GROUP_TO_OBEY, purse) &&
	             segment_read(&segment, &claim->revision, &number);

	claim->root = 0;
	if (found) {
		claim->owner = segment_owner(&segment);
		claim->group = segment.group.identity;
	}
	segment_close(&segment);
	return found;
}

static int add_claim(struct claims *claims, const struct claim *claim, struct error *error)
{
	struct claim *more = realloc(claims->list, (claims->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	claims->list = more;
	claims->list[claims->count++] = *claim;
	return 0;
}

static int collect_claims(struct claims *claims, struct error *error)
{
	struct purse purse = {.wait_ms = EXEC_WAIT_MS};
	struct pids all;
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		struct claim claim = {.pid = all.list[i]};

		if (all.list[i] == getpid() || !purse_begin(&purse, all.list[i]))
			continue;
		if (read_shared(&claim, &purse) || read_with_patience(&claim, &purse))
			result = add_claim(claims, &claim, error);
	}
	free(all.list);
	return result;
}

/* --- segments and claims together --------------------------------------------------------------------------- */

static void add_to_occupied(struct segment_revision *occupied, const struct topology_list *list,
                            const struct segment_revision *revision)
{
	for (uint32_t i = 0; i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];
		const struct topology *gpu = topology_find(list, partition->pci);
		struct tpcset all = gpu ? topology_all(gpu) : (struct tpcset){{0}};

		for (uint32_t place = 0; gpu && !tpcset_is_subset(&all, &partition->set) && place < occupied->count;
		     place++) {
			struct segment_partition *taken = &occupied->partitions[place];

			if (pci_address_equal(taken->pci, partition->pci))
				taken->set = tpcset_or(&taken->set, &partition->set);
		}
	}
}

/* Whether the owner of the shared segment still has a segment, perhaps a new one: then the owner's segment counts. */
static bool has_owner(const struct claim *claim, const struct processes *processes)
{
	bool has = false;

	for (size_t i = 0; claim->owner.pid != 0 && i < processes->count && !has; i++)
		has = identity_matches(processes->list[i].identity, claim->owner);
	return has;
}

/* Whether a claim counts: not if a segment counts instead, namely the process's own, the shared segment, or the segment
 * of the ancestor that would give its partition. */
static bool counts(const struct claim *claim, const struct processes *processes)
{
	pid_t pid = claim->pid;
	bool does = !processes_find(processes, pid) && !has_owner(claim, processes);

	for (int generation = 0; does && claim->root != 0 && pid > 1 && pid != claim->root &&
	     generation < PARENT_GENERATIONS;
	     generation++) {
		pid = proc_parent(pid);
		does = !processes_find(processes, pid);
	}
	return does;
}

/* Whether a process has exactly its group's partition: then a part may be chosen for a new member. */
static bool has_all_of_group(const struct set_limits *limits, struct group_identity group,
                             const struct segment_revision *revision)
{
	bool is_same = limits->group && group_is_same(limits->group->identity, group);

	for (uint32_t i = 0; is_same && limits->fence && i < limits->fence->count; i++) {
		const struct segment_partition *partition = revision_find_partition(revision,
		                                                                    limits->fence->partitions[i].pci);

		is_same = partition && tpcset_equal(&partition->set, &limits->fence->partitions[i].set);
	}
	return is_same;
}

/* The TPCs of this process are free: COMMAND gets a new partition. */
static bool is_free(const struct set_limits *limits, pid_t pid, struct group_identity group,
                    const struct segment_revision *revision)
{
	return pid == getpid() || (limits->except && pids_have(limits->except, pid)) ||
	       has_all_of_group(limits, group, revision);
}

int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                  bool *some_are_hidden, struct error *error)
{
	struct claims claims = {.count = 0};
	struct processes processes = {.count = 0};
	/* Claims first: meanwhile a claim can become a segment, but a segment cannot become a claim. */
	int result = collect_claims(&claims, error);

	if (result == 0)
		result = processes_collect(&processes, false, error);
	*occupied = (struct segment_revision){.count = list->count};
	for (unsigned int i = 0; i < list->count; i++)
		occupied->partitions[i].pci = list->gpus[i].pci;
	for (size_t i = 0; result == 0 && i < claims.count; i++) {
		const struct claim *claim = &claims.list[i];

		if (counts(claim, &processes) && !is_free(limits, claim->pid, claim->group, &claim->revision))
			add_to_occupied(occupied, list, &claim->revision);
	}
	for (size_t i = 0; result == 0 && i < processes.count; i++) {
		const struct process *process = &processes.list[i];

		if (!is_free(limits, process->pid, process->group.identity, &process->revision))
			add_to_occupied(occupied, list, &process->revision);
	}
	*some_are_hidden = processes.some_are_hidden || processes.some_are_left_out;
	processes_free(&processes);
	free(claims.list);
	return result;
}
