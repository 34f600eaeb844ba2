#include "arguments.h"

#include "actions.h"
#include "gpu/tpcset.h"
#include "gpus.h"
#include "tables.h"

#include <stdio.h>
#include <string.h>

/* Whether any -G has its own SET. gpus_choose checks that all have one or none. */
static bool gpus_have_sets(const struct options *options)
{
	bool any = false;

	for (unsigned int i = 0; i < options->gpu_count; i++)
		any = any || gpus_set_of(options->gpus[i]);
	return any;
}

static int too_many(const struct options *options, const char *argument, struct error *error)
{
	bool has_words = options->word && options->action != ACTION_TOP;
	char quoted[44];

	snprintf(quoted, sizeof quoted, "'%.40s'", argument);
	return help_refer(options, error, quoted, has_words ? "not one of its words" : "one argument too many");
}

static bool is_option(const char *argument)
{
	return argument[0] == '-' && (argument[1] == '-' || (argument[1] >= 'A' && argument[1] <= 'Z') ||
	                              (argument[1] >= 'a' && argument[1] <= 'z'));
}

/* top [PID] */
static int take_optional_pid(struct options *options, char **arguments, int count, struct error *error)
{
	char quoted[44];
	int result = 0;

	if (count > 1 && is_option(arguments[1])) {
		snprintf(quoted, sizeof quoted, "'%.40s'", arguments[1]);
		result = help_refer(options, error, quoted, "options come before PID");
	} else if (count > 1) {
		result = too_many(options, arguments[1], error);
	}
	options->pid = arguments[0];
	return result;
}

static bool is_set(const struct options *options)
{
	return options->notation != NOTATION_MASK || !options->set || strcmp(options->set, "all") == 0 ||
	       tpcset_looks_like_mask(options->set);
}

/* Where a mask is expected, there may be something else. */
static int no_command(const struct options *options, struct error *error)
{
	return is_set(options) ? error_set(error, "no COMMAND; try 'nvtaskset --help'")
	              : error_set(error, "'%.40s': neither a mask of TPCs nor a word (top, metrics, mps, system, measure); try 'nvtaskset --help'",
	                          options->set);
}

/* --dry-run starts nothing and needs no COMMAND. Options have ended: a COMMAND that begins with a dash stands behind a "--". */
static int take_command(struct options *options, char **arguments, bool own_sets, struct error *error)
{
	if (!own_sets) {
		options->set = *arguments;
		if (!options->set)
			return error_set(error, "no SET and no COMMAND: try 'nvtaskset -t 0-7 COMMAND', 'nvtaskset -T' to see the GPU, "
			                        "or 'nvtaskset --help'");
		arguments++;
	}
	options->command = arguments;
	return arguments[0] || options->dry_run ? 0 : no_command(options, error);
}

/* -p [SET] PID, or -p --group NAME [SET]. */
static int take_subject(struct options *options, char **arguments, int count, bool own_sets, struct error *error)
{
	int pids = options->group ? 0 : 1, sets = count - pids;
	int result = 0;

	for (int i = 0; i < count && result == 0; i++) {
		if (is_option(arguments[i]))
			result = error_set(error, "'%.40s': options come before PID, as in 'nvtaskset -tp 0-7 PID'", arguments[i]);
	}
	if (result < 0)
		return -1;
	if (sets < 0)
		return help_refer(options, error, "-p", "no PID");
	if (sets > (own_sets ? 0 : 1))
		return options->group ? error_set(error, "'%.40s': a group has no PID, as in 'nvtaskset -tp --group %.40s 0-7'",
		                                  arguments[count - 1], options->group)
		                      : too_many(options, arguments[count - 1], error);
	if (sets == 1)
		options->set = arguments[0];
	if (sets == 1 || own_sets)
		options->action = ACTION_CHANGE;
	if (pids == 1)
		options->pid = arguments[count - 1];
	return 0;
}

int arguments_take(struct options *options, char **arguments, int count, struct error *error)
{
	bool own_sets = gpus_have_sets(options);
	int result = 0;

	if (options->action == ACTION_RUN)
		result = take_command(options, arguments, own_sets, error);
	else if (options->action == ACTION_SHOW)
		result = take_subject(options, arguments, count, own_sets, error);
	else if (options->action == ACTION_TOP)
		result = take_optional_pid(options, arguments, count, error);
	else if (count > 0)
		result = too_many(options, arguments[0], error);
	return result;
}

bool arguments_may_be_set(const struct options *options, const char *argument)
{
	bool can_have = options->action == ACTION_RUN || options->action == ACTION_SHOW;

	return argument && can_have && !gpus_have_sets(options);
}

int arguments_check_set(const struct options *options, const char *set, bool has_wrong_option, struct error *error)
{
	struct options with_set = *options;
	int result = has_wrong_option ? -1 : 0;

	with_set.set = set;
	if (has_wrong_option && !is_set(&with_set))
		no_command(&with_set, error);
	else if (!has_wrong_option && gpus_have_sets(options))
		result = error_set(error, "'%.40s' and -G GPU:SET: give one SET for all GPUs, or one for each", set);
	return result;
}

bool arguments_take_word(struct options *options, unsigned int taken, const char *argument)
{
	bool may_be_first = options->action == ACTION_RUN && options->notation == NOTATION_MASK && !gpus_have_sets(options);
	const struct word_row *found = NULL;

	for (size_t i = 0; argument && i < WORD_ROWS && !found; i++) {
		const struct word_row *word = &word_rows[i];
		bool is_next = word->second ? taken == 1 && strcmp(options->word, word->first) == 0 : taken == 0 && may_be_first;

		if (is_next && strcmp(argument, word->second ? word->second : word->first) == 0)
			found = word;
	}
	if (found) {
		options->action = found->action;
		options->word = found->first;
	}
	return found != NULL;
}
