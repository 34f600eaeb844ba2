/*
 * Completion: the possible words in the place of the typed word. The shells' functions (tools/completions) only ask.
 */
#include "cli/actions.h"

#include "cli/gpus.h"
#include "cli/parse.h"
#include "show/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The word that is being typed. Before `end` are the elements of a list, or the name of an option. */
struct typed {
	const char *word, *end;
};

static void offer(const struct typed *typed, const char *text, const char *about)
{
	if (strncmp(text, typed->end, strlen(typed->end)) == 0)
		printf("%.*s%s\t%.*s\n", (int)(typed->end - typed->word), typed->word, text, (int)strcspn(about, ";"),
		       about);
}

static void offer_words(const struct typed *typed, const char *words)
{
	char text[32];

	for (size_t length; *words; words += length + (words[length] == ' ')) {
		length = strcspn(words, " ");
		snprintf(text, sizeof text, "%.*s", (int)length, words);
		offer(typed, text, "");
	}
}

/* --- programs and GPUs of this machine ---------------------------------------------------------------------------- */

static void offer_gpus(const struct typed *typed)
{
	static struct topology_list list;
	char text[PCI_ADDRESS_TEXT];

	offer(typed, "all", "");
	for (unsigned int i = 0; topology_load(&list, NULL) == 0 && i < list.count; i++)
		offer(typed, gpus_label(list.gpus[i].pci, &list, text), list.gpus[i].name);
}

/* The numbers of the GPU's TPCs or GPCs, as the next element of a list. */
static void offer_numbers(const struct typed *typed, const struct options *options)
{
	static struct topology_list list;
	struct typed element = *typed;
	struct gpu_choices chosen;
	struct tpcset numbers = {{0}};
	struct error error;
	char number[16];

	puts(":list");
	if (topology_load(&list, &error) < 0 ||
	    gpus_choose(&chosen, &list, &options->gpus, &error) < 0)
		return;
	const struct topology *gpu = chosen.choices[0].gpu;
	bool is_gpcs = options->set.notation == NOTATION_GPC_LIST;

	for (const char *at = typed->word; (at = strpbrk(at, ",-"));)
		element.end = ++at;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		tpcset_add(&numbers, is_gpcs ? gpu->tpcs[tpc].gpc : tpc);
	for (unsigned int i = tpcset_next(&numbers, 0); i < TPCSET_MAX; i = tpcset_next(&numbers, i + 1)) {
		snprintf(number, sizeof number, "%u", i);
		offer(&element, number, is_gpcs ? "GPC" : "TPC");
	}
}

/* The programs with a partition, or the names of their groups. */
static void offer_programs(const struct typed *typed, bool groups)
{
	struct processes processes;
	char pid[16];

	if (processes_collect(&processes, false, NULL) < 0)
		return;
	for (size_t i = 0; i < processes.count; i++) {
		const struct process *process = &processes.list[i];

		snprintf(pid, sizeof pid, "%d", (int)process->pid);
		if (!groups)
			offer(typed, pid, process->command);
		else if (process->group.name[0])
			offer(typed, process->group.name, "");
	}
	processes_free(&processes);
}

/* --- possible words ----------------------------------------------------------------------------------------------- */

static void offer_value(const struct typed *typed, const struct option_row *row)
{
	const char *values = row->values ? row->values : "";

	if (strcmp(values, VALUES_FILES) == 0)
		puts(":files");
	else if (strcmp(values, VALUES_GPUS) == 0)
		offer_gpus(typed);
	else if (strcmp(values, VALUES_GROUPS) == 0)
		offer_programs(typed, true);
	else
		offer_words(typed, values);
}

/* A bit for each action that the line may still become. */
static unsigned int possible(const struct beginning *beginning)
{
	const struct options *options = &beginning->options;
	unsigned int actions = 1u << options->action;

	if (options->action == ACTION_RUN)
		actions |= 1u << ACTION_LIST | 1u << ACTION_TOPOLOGY;
	if (options->action == ACTION_RUN || options->action == ACTION_SHOW)
		actions |= 1u << ACTION_SHOW | 1u << ACTION_CHANGE;
	for (size_t i = 0; beginning->words == 1 && i < WORD_ROWS; i++)
		actions |= strcmp(tables_words[i].first, options->word) == 0 ? 1u << tables_words[i].action : 0;
	return actions;
}

static void offer_options(const struct typed *typed, const struct beginning *beginning)
{
	const char *equals = strchr(typed->word, '=');
	char name[32];

	for (size_t i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &tables_options[i];
		const char letter[] = {'-', row->letter, '\0'};

		snprintf(name, sizeof name, "--%s", row->name);
		if (!row->about || !(row->actions & possible(beginning)))
			continue;
		if (equals && strncmp(typed->word, name, (size_t)(equals - typed->word)) == 0 &&
		    name[equals - typed->word] == '\0')
			offer_value(&(struct typed){typed->word, equals + 1}, row);
		else if (!equals)
			offer(typed, name, row->about);
		if (!equals && row->letter)
			offer(typed, letter, row->about);
	}
}

static void offer_words_of_actions(const struct typed *typed, const struct beginning *beginning)
{
	for (size_t i = 0; i < WORD_ROWS; i++) {
		const struct word_row *row = &tables_words[i];

		if (beginning->words == 0 && !row->second)
			offer(typed, row->first, row->about);
		else if (beginning->words == 1 && row->second && strcmp(row->first, beginning->options.word) == 0)
			offer(typed, row->second, row->about);
	}
}

static void offer_set(const struct typed *typed, const struct beginning *beginning)
{
	switch (beginning->options.set.notation) {
	case NOTATION_MASK:
		offer(typed, "all", "the whole GPU");
		if (beginning->options.action == ACTION_RUN)
			offer_words_of_actions(typed, beginning);
		break;
	case NOTATION_TPC_LIST:
	case NOTATION_GPC_LIST:
		offer_numbers(typed, &beginning->options);
		break;
	case NOTATION_COUNT:
		offer_words(typed, "10% 25% 50% 75%");
		break;
	}
}

/* `place`: of the typed word. */
static void offer_argument(const struct typed *typed, const struct beginning *beginning, int place)
{
	enum action action = beginning->options.action;
	bool is_next = beginning->next == place;

	if (action == ACTION_RUN && beginning->has_set)
		printf(":command %d\n", beginning->next);
	else if (is_next && !beginning->has_set && (action == ACTION_RUN || action == ACTION_SHOW))
		offer_set(typed, beginning);
	else if (is_next && beginning->words > 0)
		offer_words_of_actions(typed, beginning);
	if (is_next &&
	    ((action == ACTION_SHOW && !beginning->options.group) || action == ACTION_TOP || action == ACTION_CURVE))
		offer_programs(typed, false);
	if (action == ACTION_TRACE && place >= beginning->next)
		offer_programs(typed, false);
	if (is_next && action == ACTION_PLAN)
		puts(":files");
}

int action_complete(int count, char **arguments)
{
	int last = count - 1;
	const struct typed typed = {arguments[last], arguments[last]};
	struct beginning beginning;

	if (last == 0)
		return EXIT_FAILURE;
	arguments[last] = NULL;
	if (parse_beginning(&beginning, last, arguments) < 0)
		return EXIT_SUCCESS;
	if (beginning.wanting)
		offer_value(&typed, beginning.wanting);
	else if (typed.word[0] == '-' && beginning.next == last && !(beginning.has_ended && beginning.has_set))
		offer_options(&typed, &beginning);
	else
		offer_argument(&typed, &beginning, last);
	return EXIT_SUCCESS;
}
