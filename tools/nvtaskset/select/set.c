#include "set.h"

#include "base/error.h"
#include "base/pids.h"
#include "base/proc.h"
#include "base/purse.h"
#include "gpu/topology/topology.h"
#include "show/processes.h"
#include "state/group/file.h"
#include "state/revision_text.h"
#include "state/segment/find.h"
#include "state/segment/segment.h"
#include "turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first buffer for a file in /proc. It is doubled until the file fits. A process says of itself where its environment lies:
 * one that is longer than any with which the kernel begins a program is none. */
#define ROOM 65536
#define ROOM_MOST (8U << 20)

/* How long to wait for processes that are in the middle of an exec, all together. */
#define EXEC_WAIT_MS 1000

/* How often an environment is read anew that has just been put there. */
#define READS 4

/* --- which TPCs are in use, so that others can be selected ------------------------------------------------------------
 * Most programs have a segment: nvtaskset makes it before it executes them, and their children share it or have their
 * own. A program that has closed all its descriptors before it uses CUDA has none. It will get the partition of the
 * nearest ancestor with a segment, or the one in its environment. These TPCs are claimed too. */

/* --- programs that have no segment of their own --------------------------------------------------------------- */

struct claims {
	size_t count;
	struct claim {
		pid_t pid;
		pid_t root;  /* an ancestor up to this one that has a segment overrides this claim; 0: none does */
		struct identity owner; /* of the segment that it shares with an ancestor; 0: it shares none */
		struct group_identity group; /* of that segment */
		struct segment_revision revision;
	} *list;
};

/* Returns a file of /proc/PID as a string that the caller frees, or NULL if it cannot be read. One system call reads it
 * all: between two, the process could execute another program, and the rest would be missing. */
static char *read_at_once(pid_t pid, const char *name, size_t *length)
{
	char *text = NULL;
	ssize_t got = 0;
	bool is_whole = false;

	for (size_t room = ROOM; !is_whole && room <= ROOM_MOST && purse_pay_bytes((size_t)got); room *= 2) {
		free(text);
		text = malloc(room);
		got = text ? proc_read_text(text, room, "/proc/%d/%s", (int)pid, name) : -1;
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
	STAT_CODE = 26, /* where the code starts; the kernel sets it together with the environment (fs/binfmt_elf.c) */
	STAT_ENVIRONMENT = 50,
	STAT_ENVIRONMENT_END = 51
};

/* A process whose environment was empty when it was read. */
enum emptiness {
	HAS_NONE, /* also kernel threads and zombies, which have no program */
	IN_EXEC,  /* the new one is not there yet */
	HAS_ONE   /* it is there by now; or the process has unmapped it */
};

static enum emptiness why_empty(pid_t pid)
{
	char program[8], stat[PROC_STAT_TEXT];
	enum emptiness why = HAS_NONE;

	proc_stat_read(pid, stat);
	if (stat[0] != '\0' && proc_stat_field(stat, STAT_CODE) == 0)
		why = IN_EXEC;
	else if (stat[0] != '\0' && proc_stat_field(stat, STAT_ENVIRONMENT_END) > proc_stat_field(stat, STAT_ENVIRONMENT))
		why = HAS_ONE;
	return why != HAS_NONE && proc_read_link(program, sizeof program, "/proc/%d/exe", (int)pid) ? why : HAS_NONE;
}

/* Returns the value of a variable in an environment of `length` bytes, or NULL. */
static const char *find_variable(const char *environment, size_t length, const char *name)
{
	size_t size = strlen(name);
	const char *value = NULL;

	for (const char *at = environment; at < environment + length && !value; at += strlen(at) + 1)
		value = strncmp(at, name, size) == 0 && at[size] == '=' ? at + size + 1 : NULL;
	return value;
}

/* Whether the environment names a partition. `is_empty`: the environment can be read, and has no variable at all. */
static bool read_environment(struct claim *claim, bool *is_empty)
{
	size_t length = 0;
	char *environment = read_at_once(claim->pid, "environ", &length);
	const char *partition = environment ? find_variable(environment, length, SEGMENT_ENVIRONMENT) : NULL;
	const char *root = environment ? find_variable(environment, length, SEGMENT_ROOT_ENVIRONMENT) : NULL;
	bool found = partition && segment_revision_parse(&claim->revision, partition, NULL) == 0;

	*is_empty = environment && length == 0;
	claim->root = root ? (pid_t)strtol(root, NULL, 10) : claim->pid;
	free(environment);
	return found;
}

static bool read_with_patience(struct claim *claim)
{
	bool is_empty, found = read_environment(claim, &is_empty);
	enum emptiness why = is_empty ? why_empty(claim->pid) : HAS_NONE;
	unsigned int patience = EXEC_WAIT_MS;

	for (int reads = 1; why != HAS_NONE && ((why == HAS_ONE && reads < READS) || (why == IN_EXEC && purse_wait(&patience)));
	     reads += why == HAS_ONE) {
		found = read_environment(claim, &is_empty);
		why = is_empty ? why_empty(claim->pid) : HAS_NONE;
	}
	return found;
}

/* Reads the segment that the process shares with an ancestor, which may have ended. False if there is none. */
static bool read_shared(struct claim *claim)
{
	struct segment segment;
	uint64_t number;
	int file;
	bool found = segment_open_inherited(&segment, claim->pid, &file, GROUP_TO_OBEY) &&
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
	struct purses purses = {.wait_ms = EXEC_WAIT_MS};
	struct pids all;
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		struct claim claim = {.pid = all.list[i]};

		if (all.list[i] == getpid() || !purses_open(&purses, all.list[i]))
			continue;
		if (read_shared(&claim) || read_with_patience(&claim))
			result = add_claim(claims, &claim, error);
		purses_close(&purses, all.list[i]);
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

		for (uint32_t place = 0; gpu && !tpcset_is_subset(&all, &partition->set) && place < occupied->count; place++) {
			struct segment_partition *taken = &occupied->partitions[place];

			if (pci_address_equal(taken->pci, partition->pci))
				taken->set = tpcset_or(&taken->set, &partition->set);
		}
	}
}

/* Whether the owner of the shared segment still has a segment, even if it has moved to a new one: then that one
 * counts. */
static bool has_owner(const struct claim *claim, const struct processes *processes)
{
	bool has = false;

	for (size_t i = 0; claim->owner.pid != 0 && i < processes->count && !has; i++)
		has = identity_matches(processes->list[i].identity, claim->owner);
	return has;
}

/* Whether a claim counts. It does not if a segment counts in its place: the process's own, the one that it shares, or
 * the one of the ancestor whose partition it would get. */
static bool counts(const struct claim *claim, const struct processes *processes)
{
	pid_t pid = claim->pid;
	bool does = !processes_find(processes, pid) && !has_owner(claim, processes);

	for (int generation = 0; does && claim->root != 0 && pid > 1 && pid != claim->root && generation < PARENT_GENERATIONS;
	     generation++) {
		pid = parent_of(pid);
		does = !processes_find(processes, pid);
	}
	return does;
}

static void make_empty(struct segment_revision *occupied, const struct topology_list *list)
{
	*occupied = (struct segment_revision){.count = list->count};
	for (unsigned int i = 0; i < list->count; i++)
		occupied->partitions[i].pci = list->gpus[i].pci;
}

/* Whether a process has just what its group has: then a part of that may be chosen for another member. */
static bool has_all_of_group(const struct set_limits *limits, struct group_identity group,
                             const struct segment_revision *revision)
{
	bool is_same = limits->group && group_is_same(limits->group->identity, group);

	for (uint32_t i = 0; is_same && limits->room && i < limits->room->count; i++) {
		const struct segment_partition *partition = segment_find(revision, limits->room->partitions[i].pci);

		is_same = partition && tpcset_equal(&partition->set, &limits->room->partitions[i].set);
	}
	return is_same;
}

/* This process's own TPCs are free: it will execute COMMAND, in a new partition. */
static bool is_free(const struct set_limits *limits, pid_t pid, struct group_identity group,
                    const struct segment_revision *revision)
{
	return pid == getpid() || (limits->except && pids_have(limits->except, pid)) ||
	       has_all_of_group(limits, group, revision);
}

/* Finds the TPCs of all processes that this user may examine, except of those that `limits` names: a set for each GPU of
 * `list`. A partition that is the whole GPU claims nothing. -1 with the reason. */
static int claims_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                struct error *error)
{
	struct claims claims = {.count = 0};
	struct processes processes = {.count = 0};
	/* Claims first: meanwhile a claim can become a segment, but a segment cannot become a claim. */
	int result = collect_claims(&claims, error);

	if (result == 0)
		result = processes_collect(&processes, false, error);
	make_empty(occupied, list);
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
	processes_free(&processes);
	free(claims.list);
	return result;
}

/* --- what the user wrote -------------------------------------------------------------------------------------------- */

static unsigned int gpc_limit(const struct topology *gpu)
{
	unsigned int limit = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (gpu->tpcs[tpc].gpc != TOPOLOGY_UNKNOWN && gpu->tpcs[tpc].gpc >= limit)
			limit = gpu->tpcs[tpc].gpc + 1u;
	}
	return limit;
}

static int parse_gpcs(struct tpcset *set, const char *text, const struct topology *gpu, struct error *error)
{
	struct tpcset gpcs;
	struct tpcset chosen = {{0}};
	unsigned int limit = gpc_limit(gpu);

	if (limit == 0)
		return error_set(error, "GPCs: this GPU's are unknown; name TPCs instead (-t)");
	if (tpcset_parse_list(&gpcs, text, limit, "GPC", error) < 0)
		return -1;
	for (unsigned int gpc = tpcset_next(&gpcs, 0); gpc < TPCSET_MAX; gpc = tpcset_next(&gpcs, gpc + 1)) {
		struct tpcset members = topology_gpc(gpu, gpc);

		if (tpcset_is_empty(&members))
			return error_set(error, "GPC %u: this GPU lacks it", gpc);
		chosen = tpcset_or(&chosen, &members);
	}
	*set = chosen;
	return 0;
}

static int parse_mask(struct tpcset *set, const char *text, const struct topology *gpu, struct error *error)
{
	int result = tpcset_parse_mask(set, text, gpu->tpc_count, "TPC", error);

	/* Such as a list without -t, or a COMMAND without SET. */
	if (result < 0 && !tpcset_looks_like_mask(text))
		error_reword(error, "%.200s; -t takes a list of TPCs, -g of GPCs, -n a number of TPCs", error->reason);
	return result;
}

static int select_free(struct tpcset *set, const char *text, const struct options *options, const struct topology *gpu,
                       const struct segment_revision *occupied, struct error *error)
{
	const struct segment_partition *used = segment_find(occupied, gpu->pci);
	const struct tpcset none = {{0}};
	unsigned int count = 0;

	if (select_parse_count(&count, text, gpu, error) < 0)
		return -1;
	return select_tpcs(set, gpu, used ? &used->set : &none, count, options->strategy, error);
}

/* The TPCs that there are. */
static struct tpcset room_on(const struct set_limits *limits, const struct topology *gpu)
{
	const struct segment_partition *room = limits->room ? segment_find(limits->room, gpu->pci) : NULL;
	struct tpcset all = topology_all(gpu);

	return room ? tpcset_and(&all, &room->set) : all;
}

static int parse(struct tpcset *set, const char *text, const struct options *options, const struct topology *gpu,
                 const struct set_limits *limits, const struct segment_revision *occupied, struct error *error)
{
	int result = -1;

	if (strcmp(text, "all") == 0) {
		*set = room_on(limits, gpu);
		return 0;
	}
	switch (options->notation) {
	case NOTATION_MASK:
		result = parse_mask(set, text, gpu, error);
		break;
	case NOTATION_TPC_LIST:
		result = tpcset_parse_list(set, text, gpu->tpc_count, "TPC", error);
		break;
	case NOTATION_GPC_LIST:
		result = parse_gpcs(set, text, gpu, error);
		break;
	case NOTATION_COUNT:
		result = select_free(set, text, options, gpu, occupied, error);
		break;
	}
	if (result == 0 && tpcset_is_empty(set))
		result = error_set(error, "an empty set: a program without TPCs would never run");
	return result;
}

static int parse_all(struct segment_revision *revision, const struct options *options,
                     const struct gpu_choices *chosen, const struct set_limits *limits,
                     const struct segment_revision *occupied, struct error *error)
{
	int result = 0;

	memset(revision, 0, sizeof *revision);
	for (unsigned int i = 0; result == 0 && i < chosen->count; i++) {
		const char *text = chosen->choices[i].set ? chosen->choices[i].set : options->set;
		struct segment_partition *partition = &revision->partitions[revision->count++];

		partition->pci = chosen->choices[i].gpu->pci;
		result = parse(&partition->set, text, options, chosen->choices[i].gpu, limits, occupied, error);
	}
	return result;
}

/* `occupied` names every GPU of the list. */
static void add_limits(struct segment_revision *occupied, const struct set_limits *limits, const struct topology_list *list)
{
	for (uint32_t i = 0; i < occupied->count; i++) {
		struct segment_partition *partition = &occupied->partitions[i];
		const struct topology *gpu = topology_find(list, partition->pci);
		const struct segment_partition *taken = limits->taken ? segment_find(limits->taken, partition->pci) : NULL;
		struct tpcset all = topology_all(gpu), room = room_on(limits, gpu), outside = tpcset_without(&all, &room);

		partition->set = tpcset_or(&partition->set, &outside);
		if (taken)
			partition->set = tpcset_or(&partition->set, &taken->set);
	}
}

int set_find(struct segment_revision *revision, const struct options *options, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct set_limits *limits, struct error *error)
{
	struct segment_revision occupied = {.count = 0};

	if (options->notation == NOTATION_COUNT &&
	    ((!options->dry_run && turn_wait("-n", "name them instead (-t)", error) < 0) || claims_find(&occupied, list, limits, error) < 0))
		return -1;
	add_limits(&occupied, limits, list);
	return parse_all(revision, options, chosen, limits, &occupied, error);
}

int set_find_taken(struct tpcset *taken, const struct topology *gpu, const struct topology_list *list, const struct pids *except,
                   struct error *error)
{
	const struct set_limits limits = {.except = except};
	struct segment_revision occupied;
	int result = claims_find(&occupied, list, &limits, error);

	*taken = result == 0 ? segment_find(&occupied, gpu->pci)->set : topology_all(gpu);
	return result;
}

int set_find_in_group(struct segment_revision *revision, const struct options *options, const struct gpu_choices *chosen,
                      const struct topology_list *list, const struct group *group, const char *path, int *lock,
                      struct error *error)
{
	struct segment_revision taken = {.count = 0};
	const struct set_limits limits = {.group = group, .taken = &taken};
	bool claims = options->notation == NOTATION_COUNT && path;

	if (claims && !options->dry_run)
		*lock = group_file_lock_directory(path, error);
	if (claims && ((!options->dry_run && *lock < 0) || group_file_add_taken(&taken, path, group->identity, error) < 0))
		return -1;
	return set_find(revision, options, chosen, list, &limits, error);
}

void set_print(const struct segment_revision *revision)
{
	char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT];

	for (uint32_t i = 0; i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];

		if (revision->count > 1)
			printf("%s-G %s:", i > 0 ? " " : "", pci_address_format(partition->pci, pci));
		fputs(tpcset_format_list(&partition->set, text), stdout);
	}
	puts("");
}

const char *set_noun(enum notation notation)
{
	return notation == NOTATION_MASK ? "TPC mask" : "TPC list";
}

const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT])
{
	return notation == NOTATION_MASK ? tpcset_format_mask(set, text) : tpcset_format_list(set, text);
}
