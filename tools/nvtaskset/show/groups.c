#include "groups.h"

#include "cells.h"

#include <stdlib.h>

/* Any user may say that his process is in a group of root's. So each user's processes have sums of their own. */
static bool are_together(const struct process *a, const struct process *b)
{
	return group_is_same(a->group.identity, b->group.identity) && a->uid == b->uid;
}

bool group_has(const struct group_sum *group, const struct process *process)
{
	return are_together(group->first, process);
}

static struct group_sum *find_sum(const struct groups *groups, const struct process *process)
{
	struct group_sum *found = NULL;

	for (size_t i = 0; i < groups->count && !found; i++)
		found = group_has(&groups->list[i], process) ? &groups->list[i] : NULL;
	return found;
}

static struct group_sum *add_sum(struct groups *groups, const struct process *process)
{
	struct group_sum *more = realloc(groups->list, (groups->count + 1) * sizeof *more);

	if (!more)
		return NULL;
	groups->list = more;
	more += groups->count++;
	*more = (struct group_sum){.first = process};
	for (enum number number = 0; number < NUMBER_COUNT; number++)
		more->numbers[number].is_known = true;
	return more;
}

/* Numbers of the whole program count once. */
static void add_row(struct group_sum *sum, const struct row *row)
{
	enum number end = row->place == 0 ? NUMBER_COUNT : NUMBER_OF_PROGRAM;

	sum->members += row->place == 0;
	for (enum number number = 0; number < end; number++) {
		sum->numbers[number].is_known &= row->numbers[number].is_known;
		sum->numbers[number].value += row->numbers[number].value;
	}
}

int groups_sum(struct groups *groups, const struct activities *activities, struct error *error)
{
	int result = 0;

	*groups = (struct groups){.count = 0};
	for (size_t i = 0; result == 0 && i < activities->count; i++) {
		const struct row *row = &activities->list[i];
		struct group_sum *sum = find_sum(groups, row->process);

		if (!sum && row->process->group.identity.inode != 0) {
			sum = add_sum(groups, row->process);
			result = sum ? 0 : error_set(error, "no memory");
		}
		if (sum)
			add_row(sum, row);
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

static bool has_other_users(const struct groups *groups, const struct group_sum *sum)
{
	bool has = false;

	for (size_t i = 0; i < groups->count && !has; i++)
		has = &groups->list[i] != sum &&
		      group_is_same(groups->list[i].first->group.identity, sum->first->group.identity);
	return has;
}

static void print_one(const struct groups *groups, const struct group_sum *sum, FILE *page)
{
	static const struct {
		enum number number;
		const char *what;
	} shown[] = {{NUMBER_LAUNCHES, "launches"},
	             {NUMBER_ENDED, "ended"},
	             {NUMBER_IN_FLIGHT, "in flight"},
	             {NUMBER_OUTSIDE, "outside"}};
	char text[CELL_MAX];

	if (sum->first->group.name[0] != '\0')
		fprintf(page, "group %s", sum->first->group.name);
	else
		fprintf(page, "group of %d", (int)sum->first->pid);
	if (has_other_users(groups, sum))
		fprintf(page, " (%s's)", sum->first->user);
	fprintf(page, ": %zu %s", sum->members, sum->members == 1 ? "process" : "processes");
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
		fprintf(page, ", %s %s", cell_whole(sum->numbers[shown[i].number], text), shown[i].what);
	putc('\n', page);
}

void groups_print(const struct groups *groups, FILE *page)
{
	for (size_t i = 0; i < groups->count; i++) {
		if (groups->list[i].members > 1 || groups->list[i].first->group.name[0] != '\0')
			print_one(groups, &groups->list[i], page);
	}
}
