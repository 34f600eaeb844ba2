#include "groups.h"

#include "shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Any user may say that his process is in a group of root's, so that is believed for the sum of that user's only. */
static bool are_together(const struct process *a, const struct process *b)
{
	return group_is_same(a->group.identity, b->group.identity) && a->uid == b->uid;
}

bool group_has(const struct group_sum *group, const struct process *process)
{
	return are_together(group->first, process);
}

static struct group_sum *find(const struct groups *groups, const struct process *process)
{
	struct group_sum *found = NULL;

	for (size_t i = 0; i < groups->count && !found; i++)
		found = group_has(&groups->list[i], process) ? &groups->list[i] : NULL;
	return found;
}

static struct group_sum *add(struct groups *groups, const struct process *process)
{
	struct group_sum *more = realloc(groups->list, (groups->count + 1) * sizeof *more);

	if (!more)
		return NULL;
	groups->list = more;
	more[groups->count] = (struct group_sum){.first = process, .launched_are_known = true, .ended_are_known = true};
	return &more[groups->count++];
}

static void add_knowledge(struct group_sum *sum, const struct kernels *kernels)
{
	sum->launched_are_known = sum->launched_are_known && kernels->launched_are_known;
	sum->ended_are_known = sum->ended_are_known && kernels->ended_are_known;
}

static void add_kernels(struct group_sum *sum, const struct process *process)
{
	/* Of a GPU on which it has launched nothing: what is not known on all GPUs is not known there. */
	struct kernels kernels = process_kernels(process, (struct pci_address){.bus = 0});

	add_knowledge(sum, &kernels);
	for (unsigned int i = 0; i < process->counts.count; i++) {
		kernels = process_kernels(process, process->counts.gpus[i].pci);
		add_knowledge(sum, &kernels);
		sum->launched = segment_sum(sum->launched, kernels.count.launched);
		sum->ended = segment_sum(sum->ended, kernels.count.ended);
		sum->in_flight = segment_sum(sum->in_flight, kernels.count.in_flight);
	}
}

static void add_process(struct group_sum *sum, const struct process *process)
{
	sum->members++;
	sum->uploads = segment_sum(sum->uploads, process_uploads(process));
	sum->restricted = segment_sum(sum->restricted, process->counters.restricted);
	sum->outside = segment_sum(sum->outside, process_outside(process));
	add_kernels(sum, process);
}

int groups_sum(struct groups *groups, const struct processes *processes, struct error *error)
{
	int result = 0;

	*groups = (struct groups){.count = 0};
	for (size_t i = 0; result == 0 && i < processes->count; i++) {
		const struct process *process = &processes->list[i];
		struct group_sum *sum = find(groups, process);

		if (!sum && process->group.identity.inode != 0) {
			sum = add(groups, process);
			result = sum ? 0 : error_set(error, "no memory");
		}
		if (sum)
			add_process(sum, process);
	}
	if (result < 0) {
		free(groups->list);
		*groups = (struct groups){.count = 0};
	}
	return result;
}

bool groups_explain(const struct processes *processes, const struct shared *shared)
{
	const struct process *first = NULL;
	bool is_one = true;

	for (size_t i = 0; i < processes->count && is_one; i++) {
		const struct process *process = &processes->list[i];

		if (!process_shares(process, shared))
			continue;
		first = first ? first : process;
		is_one = are_together(first, process);
	}
	return first && is_one;
}

static void print_number(FILE *page, bool is_known, uint64_t number, const char *what)
{
	if (is_known)
		fprintf(page, ", %" PRIu64 " %s", number, what);
	else
		fprintf(page, ", - %s", what);
}

static bool has_other_users(const struct groups *groups, const struct group_sum *sum)
{
	bool has = false;

	for (size_t i = 0; i < groups->count && !has; i++)
		has = &groups->list[i] != sum && group_is_same(groups->list[i].first->group.identity, sum->first->group.identity);
	return has;
}

static void print_one(const struct groups *groups, const struct group_sum *sum, FILE *page)
{
	if (sum->first->group.name[0] != '\0')
		fprintf(page, "group %s", sum->first->group.name);
	else
		fprintf(page, "group of %d", (int)sum->first->pid);
	if (has_other_users(groups, sum))
		fprintf(page, " (%s's)", sum->first->user);
	fprintf(page, ": %zu %s", sum->members, sum->members == 1 ? "process" : "processes");
	print_number(page, sum->launched_are_known, sum->launched, "launches");
	print_number(page, sum->ended_are_known, sum->ended, "ended");
	print_number(page, sum->ended_are_known, sum->in_flight, "in flight");
	print_number(page, true, sum->outside, "outside");
	putc('\n', page);
}

void groups_print(const struct groups *groups, FILE *page)
{
	for (size_t i = 0; i < groups->count; i++) {
		if (groups->list[i].members > 1 || groups->list[i].first->group.name[0] != '\0')
			print_one(groups, &groups->list[i], page);
	}
}
