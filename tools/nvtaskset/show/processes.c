#include "processes.h"

#include "base/extremes.h"
#include "base/pids.h"
#include "base/proc.h"
#include "base/purse.h"
#include "state/segment/find.h"
#include "terminal/text.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_MEMORY 23 /* the field of /proc/PID/stat: the size of the address space */

/* --- one process ------------------------------------------------------------------------------------------------ */

static char *read_command(pid_t pid)
{
	char bytes[PROCESS_COMMAND_MAX];
	ssize_t length = proc_read(bytes, sizeof bytes, "/proc/%d/cmdline", (int)proc_thread(pid));

	while (length > 0 && bytes[length - 1] == '\0')
		length--;
	if (length <= 0)
		return strdup("?");
	char *clean = malloc(TEXT_ROOM((size_t)length));

	if (clean)
		text_clean(clean, bytes, (size_t)length);
	return clean;
}

static char *name_user(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);
	char number[16], *name;

	snprintf(number, sizeof number, "%u", (unsigned int)uid);
	const char *text = user && user->pw_name[0] != '\0' ? user->pw_name : number;

	name = malloc(TEXT_ROOM(strlen(text)));
	if (name)
		text_clean(name, text, strlen(text));
	return name;
}

/* Each user is looked up once: users may come from a slow network service. */
static char *find_user(const struct processes *known, uid_t uid)
{
	for (size_t i = 0; i < known->count; i++) {
		if (known->list[i].uid == uid)
			return strdup(known->list[i].user);
	}
	return name_user(uid);
}

static struct process_memory *find_memory(struct process *process, struct pci_address pci)
{
	struct process_memory *found = NULL;

	for (unsigned int i = 0; i < process->memory_count && !found; i++)
		found = pci_address_equal(process->memory[i].pci, pci) ? &process->memory[i] : NULL;
	return found;
}

static void add_memory(struct process *process, const struct segment *segment, struct pci_address pci)
{
	if (!find_memory(process, pci) && process->memory_count < SEGMENT_GPUS) {
		struct process_memory *memory = &process->memory[process->memory_count++];

		*memory = (struct process_memory){.pci = pci, .use = segment_read_memory_use(segment, pci)};
		memory->is_to_ask = process->is_at_work;
	}
}

static enum segment_state read_segment(struct process *process, pid_t pid, struct purse *purse)
{
	struct segment segment;
	uint64_t number;
	enum segment_state state = segment_open(&segment, pid, purse, NULL);

	*process = (struct process){.pid = pid};
	if (state == SEGMENT_FOUND) {
		if (!segment_read(&segment, &process->revision, &number)) {
			process->revision = (struct segment_revision){.count = 0};
			state = SEGMENT_NOT_READY;
		}
		segment_read_counters(&segment, &process->counters);
		segment_read_time(&segment, &process->time);
		process->borrowed = segment_read_borrowed(&segment);
		process->streams = segment_streams(&segment);
		process->not_in_force = segment_obstacle(&segment, pid);
		process->identity = segment_owner(&segment);
		process->is_at_work = segment_is_at_work(&segment, pid);
		process->group = (struct process_group){.identity = segment.group.identity,
		                                        .is_file = segment.group.is_file};
		group_name(&segment.group, process->group.name);
		if (counts_read(&segment, pid, &process->counts, NULL) < 0)
			state = SEGMENT_FAILED;
		for (uint32_t i = 0; i < process->revision.count; i++)
			add_memory(process, &segment, process->revision.partitions[i].pci);
		for (unsigned int i = 0; i < process->counts.count; i++)
			add_memory(process, &segment, process->counts.gpus[i].pci);
		segment_close(&segment);
	}
	return state;
}

/* Whether a process without a readable segment should have one. */
static bool is_not_in_force(struct process *process, pid_t pid, struct purse *purse, enum segment_state state)
{
	if (state != SEGMENT_OTHER_VERSION)
		state = segment_is_expected(pid, purse) ? segment_absence(pid, purse) : SEGMENT_NO_CUDA;
	bool not_in_force = state == SEGMENT_NOT_IN_FORCE || state == SEGMENT_CLOSED || state == SEGMENT_OTHER_VERSION;

	process->not_in_force = not_in_force ? segment_absence_text(state) : NULL;
	return not_in_force;
}

/* --- the partition of a process ---------------------------------------------------------------------------------- */

const struct tpcset *process_set(const struct process *process, struct pci_address gpu)
{
	const struct segment_partition *partition =
		process->yields_to_descendants ? NULL : revision_find_partition(&process->revision, gpu);

	return partition ? &partition->set : NULL;
}

/* --- all processes ----------------------------------------------------------------------------------------------- */

static void free_texts(struct process *process)
{
	free(process->user);
	free(process->command);
}

static int add_found(struct processes *processes, const struct process *found, struct error *error)
{
	struct process *more = realloc(processes->list, (processes->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	struct process *process = &more[processes->count];

	processes->list = more;
	*process = *found;
	process->started = proc_started(found->pid);
	process->user = find_user(processes, found->uid);
	process->command = read_command(found->pid);
	workload_of(&process->workload, found->pid);
	processes->count++;
	return process->user && process->command ? 0 : error_set(error, "no memory");
}

struct process *processes_find(const struct processes *processes, pid_t pid)
{
	struct process *found = NULL;

	for (size_t i = 0; i < processes->count && !found; i++)
		found = processes->list[i].pid == pid ? &processes->list[i] : NULL;
	return found;
}

/* Ancestors of a process with a partition yield, unless they use CUDA: shells, for example. */
static void mark_ancestors(struct processes *processes, pid_t pid)
{
	for (int generation = 0; generation < PARENT_GENERATIONS && pid > 1; generation++) {
		pid = proc_parent(pid);
		struct process *ancestor = processes_find(processes, pid);

		if (ancestor)
			ancestor->yields_to_descendants = !ancestor->is_at_work;
	}
}

static void find_yielding(struct processes *processes)
{
	bool some_may_yield = false;

	for (size_t i = 0; i < processes->count; i++)
		some_may_yield = some_may_yield || !processes->list[i].is_at_work;
	for (size_t i = 0; some_may_yield && i < processes->count; i++)
		mark_ancestors(processes, processes->list[i].pid);
}

static bool is_on(const struct process *process, struct pci_address gpu)
{
	bool is = revision_find_partition(&process->revision, gpu) != NULL;

	for (unsigned int i = 0; i < process->counts.count && !is; i++)
		is = pci_address_equal(process->counts.gpus[i].pci, gpu);
	return is;
}

/* A borrower tells its borrowed TPCs on all of its GPUs together. */
static void find_lent(struct process *lender, const struct processes *processes)
{
	const struct segment_revision *revision = &lender->revision;

	for (size_t i = 0; i < processes->count && segment_lends_us(&revision->lending) > 0; i++) {
		const struct process *borrower = &processes->list[i];

		for (uint32_t place = 0; place < revision->count; place++) {
			struct tpcset used = tpcset_and(&revision->partitions[place].set, &borrower->borrowed.tpcs);

			if (is_on(borrower, revision->partitions[place].pci))
				lender->lent = tpcset_or(&lender->lent, &used);
		}
	}
}

/* A lender in a further container is a group: here the group's first process stands for all. 0 without a process. */
static uint64_t find_lender(uint64_t lender, const struct processes *processes)
{
	uint64_t group = lender & ~SEGMENT_LENDER_GROUP, found = 0;

	for (size_t i = 0; i < processes->count && found == 0; i++) {
		if (group != 0 && processes->list[i].group.identity.inode == group)
			found = (uint64_t)processes->list[i].pid;
	}
	return lender & SEGMENT_LENDER_GROUP ? found : lender;
}

/* Each lender once. */
static void name_lenders(struct segment_borrowed *borrowed, const struct processes *processes)
{
	const struct segment_borrowed told = *borrowed;

	memset(borrowed->loans, 0, sizeof borrowed->loans);
	for (unsigned int i = 0; i < SEGMENT_LOANS; i++) {
		uint64_t lender = find_lender(told.loans[i].lender, processes);
		struct segment_loan *loan = borrowed->loans;

		while (loan->lender != 0 && loan->lender != lender)
			loan++;
		if (lender != 0)
			*loan = (struct segment_loan){lender, sum_u64(loan->tpc_us, told.loans[i].tpc_us)};
	}
}

/* With too few open files or too little memory, the list would lack processes: an error. */
static int check_limits(enum segment_state state, struct error *error)
{
	return state == SEGMENT_FAILED && proc_is_limit(errno) ? error_set_errno(error, "/proc") : 0;
}

/* Linux lets nobody but root examine an ended process or a kernel thread. Both have no command line. */
static bool is_program(pid_t pid)
{
	char byte;

	return proc_read(&byte, 1, "/proc/%d/cmdline", (int)proc_thread(pid)) == 1;
}

/* An ending process gives up its memory first, and then its files. A process behind our own limits has not ended. */
static bool has_ended(pid_t pid)
{
	char text[PROC_STAT_TEXT];
	uid_t owner;

	proc_stat_read(pid, text);
	return !proc_owner(pid, &owner) || (text[0] != '\0' && proc_stat_field(text, STAT_MEMORY) == 0);
}

/* The last process may have ended during the reading, and then has neither a command nor counts. */
static void drop_last_if_ended(struct processes *processes)
{
	struct process *last = &processes->list[processes->count - 1];

	if (has_ended(last->pid)) {
		free_texts(last);
		processes->count--;
	}
}

static int collect_one(struct processes *processes, pid_t pid, struct purse *purse, bool not_in_force_too,
                       struct error *error)
{
	struct process process;
	enum segment_state state = read_segment(&process, pid, purse);
	int result = check_limits(state, error);

	if (state == SEGMENT_NOT_PERMITTED && !processes->some_are_hidden)
		processes->some_are_hidden = is_program(pid);
	if (result == 0 &&
	    (state == SEGMENT_FOUND || (not_in_force_too && is_not_in_force(&process, pid, purse, state))) &&
	    proc_owner(pid, &process.uid)) {
		result = add_found(processes, &process, error);
		if (result == 0)
			drop_last_if_ended(processes);
	}
	return result;
}

int processes_collect(struct processes *processes, bool not_in_force_too, struct error *error)
{
	struct purse purse = {.wait_ms = 0};
	struct pids pids;
	int result = pids_all(&pids, error);

	*processes = (struct processes){.count = 0};
	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < pids.count; i++) {
		if (purse_begin(&purse, pids.list[i]))
			result = collect_one(processes, pids.list[i], &purse, not_in_force_too, error);
	}
	processes->some_are_left_out = purse.is_short;
	free(pids.list);
	find_yielding(processes);
	for (size_t i = 0; i < processes->count; i++) {
		name_lenders(&processes->list[i].borrowed, processes);
		find_lent(&processes->list[i], processes);
	}
	if (result < 0)
		processes_free(processes);
	return result;
}

/* One question tells of many processes. */
static void ask_about_memory(struct processes *processes, struct pci_address pci)
{
	struct segment_memory_user users[TOPOLOGY_USERS_MAX];
	unsigned int count = 0;

	for (size_t i = 0; i < processes->count && count < TOPOLOGY_USERS_MAX; i++) {
		struct process_memory *memory = find_memory(&processes->list[i], pci);

		if (memory && memory->is_to_ask) {
			users[count++] = (struct segment_memory_user){processes->list[i].pid, &memory->use};
			memory->is_to_ask = false;
		}
	}
	segment_ask_memory_use(pci, users, count);
}

void processes_ask_memory(struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->list[i];

		for (unsigned int place = 0; place < process->memory_count; place++) {
			if (process->memory[place].is_to_ask)
				ask_about_memory(processes, process->memory[place].pci);
		}
	}
}

const char *processes_note(const struct processes *processes, bool matter)
{
	const char *note = "";

	if (processes->some_are_left_out)
		note = "Not all programs are shown: those of a user have more open than can be looked at.\n";
	else if (processes->some_are_hidden && matter)
		note = "Programs that you may not look at, those of other users, are not shown.\n";
	return note;
}

void processes_free(struct processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		free_texts(&processes->list[i]);
	free(processes->list);
	free(processes->shared);
	*processes = (struct processes){.count = 0};
}

/* --- shared TPCs ------------------------------------------------------------------------------------------------- */

bool process_shares(const struct process *process, const struct shared *shared)
{
	const struct tpcset *set = process_set(process, shared->gpu);

	return set && tpcset_is_subset(&shared->tpcs, set);
}

/* Finds the TPCs of `left` with the same processes as `tpc`, and the number of these processes. */
static struct tpcset group_of(const struct processes *processes, struct pci_address gpu, const struct tpcset *left,
                              unsigned int tpc, unsigned int *holders)
{
	struct tpcset group = *left;

	*holders = 0;
	for (size_t i = 0; i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], gpu);

		if (set && tpcset_has(set, tpc)) {
			group = tpcset_and(&group, set);
			++*holders;
		} else if (set) {
			group = tpcset_without(&group, set);
		}
	}
	return group;
}

static int add_shared(struct processes *processes, struct pci_address gpu, const struct tpcset *tpcs,
                      struct error *error)
{
	struct shared *more = realloc(processes->shared, (processes->shared_count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	processes->shared = more;
	processes->shared[processes->shared_count++] = (struct shared){.gpu = gpu, .tpcs = *tpcs};
	return 0;
}

static int find_shared_of(struct processes *processes, struct pci_address gpu, struct error *error)
{
	struct tpcset left = {{0}};
	int result = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], gpu);

		left = set ? tpcset_or(&left, set) : left;
	}
	while (result == 0 && !tpcset_is_empty(&left)) {
		unsigned int holders;
		struct tpcset group = group_of(processes, gpu, &left, tpcset_next(&left, 0), &holders);

		if (holders > 1)
			result = add_shared(processes, gpu, &group, error);
		left = tpcset_without(&left, &group);
	}
	return result;
}

static bool is_named_before(const struct processes *processes, size_t number, struct pci_address gpu)
{
	bool is = false;

	for (size_t i = 0; i < number && !is; i++)
		is = revision_find_partition(&processes->list[i].revision, gpu) != NULL;
	return is;
}

int processes_find_shared(struct processes *processes, struct error *error)
{
	int result = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct segment_revision *revision = &processes->list[i].revision;

		for (uint32_t place = 0; place < revision->count && result == 0; place++) {
			struct pci_address gpu = revision->partitions[place].pci;

			if (!is_named_before(processes, i, gpu))
				result = find_shared_of(processes, gpu, error);
		}
	}
	return result;
}
