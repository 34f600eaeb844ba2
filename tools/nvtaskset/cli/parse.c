#include "parse.h"

#include "actions.h"
#include "gpu/tpcset.h"
#include "gpus.h"
#include "options.h"
#include "state/group/group.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* --- arguments that are no options: words of an action; or SET, and COMMAND or PID -------------------------------- */

/* Whether any -G has a SET. gpus_choose checks that all have one or none. */
static bool gpus_have_sets(const struct gpus_given *gpus)
{
	bool any = false;

	for (unsigned int i = 0; i < gpus->count; i++)
		any = any || gpus_set_of(gpus->texts[i]);
	return any;
}

static int too_many(const struct options *options, const char *argument, struct error *error)
{
	bool has_words = options->word && options->action != ACTION_TOP && options->action != ACTION_CURVE &&
	                 options->action != ACTION_PLAN;
	char quoted[44];

	snprintf(quoted, sizeof quoted, "'%.40s'", argument);
	return help_refer(options, error, quoted, has_words ? "not one of its words" : "one argument too many");
}

static bool is_option(const char *argument)
{
	return argument[0] == '-' && (argument[1] == '-' || (argument[1] >= 'A' && argument[1] <= 'Z') ||
	                              (argument[1] >= 'a' && argument[1] <= 'z'));
}

/* At most one argument: top [PID], plan FILE */
static int take_one(struct options *options, const char **place, char **arguments, int count, struct error *error)
{
	char quoted[44];
	int result = 0;

	if (count > 1 && is_option(arguments[1])) {
		snprintf(quoted, sizeof quoted, "'%.40s'", arguments[1]);
		result = help_refer(options, error, quoted,
		                    place == &options->file ? "options come before FILE" : "options come before PID");
	} else if (count > 1) {
		result = too_many(options, arguments[1], error);
	}
	*place = arguments[0];
	return result;
}

/* curve PID, curve COMMAND [ARG…]. No command's name is a number. */
static int take_program(struct options *options, char **arguments, int count, struct error *error)
{
	bool is_pid = count > 0 && arguments[0][strspn(arguments[0], "0123456789")] == '\0';

	if (!is_pid)
		options->command = arguments;
	return count == 0 ? help_refer(options, error, "curve", "no PID and no COMMAND")
	       : is_pid ? take_one(options, &options->pid, arguments, count, error) : 0;
}

static bool is_set(const struct set_given *set)
{
	return set->notation != NOTATION_MASK || !set->text || strcmp(set->text, "all") == 0 ||
	       tpcset_looks_like_mask(set->text);
}

/* A whole command line, as far as there is room. */
#define LINE_TEXT 128

/* Writes the command line with a SET in front of the argument at `place`, the COMMAND. */
static void put_set(char **arguments, int place, char text[LINE_TEXT])
{
	size_t length = 0;

	for (int i = 1; length < LINE_TEXT && (i <= place || arguments[i]); i++)
		length += (size_t)snprintf(text + length, LINE_TEXT - length, "%s%s%s", i > 1 ? " " : "",
		                           i == place ? "all " : "", arguments[i]);
}

/* Instead of a mask there may be anything: often COMMAND. */
static int no_command(const struct set_given *set, const char *with_set, struct error *error)
{
	return is_set(set)
	               ? error_set(error, "no COMMAND; try 'nvtaskset --help'")
	               : error_set(error, "'%.40s': neither a mask of TPCs nor a word (top, trace, curve, plan, "
	                                  "metrics, mps, system, cdi, measure); a COMMAND needs a SET: "
	                                  "'nvtaskset %s'", set->text, with_set);
}

static bool has_digit_first(const char *text)
{
	return text[0] >= '0' && text[0] <= '9';
}

/* --dry-run starts nothing and needs no COMMAND. A COMMAND that begins with a dash stands behind a "--", which has
 * ended the options. A SET in a wrong notation begins with a digit, and is refused later. */
static int take_command(struct options *options, char **arguments, bool own_sets, const char *with_set,
                        struct error *error)
{
	if (!own_sets) {
		options->set.text = *arguments;
		if (!options->set.text)
			return error_set(error, "no SET and no COMMAND: try 'nvtaskset -t 0-7 COMMAND', 'nvtaskset -T' "
			                        "to see the GPU, or 'nvtaskset --help'");
		arguments++;
	}
	options->command = arguments;
	bool is_command = !is_set(&options->set) && options->set.text[0] != '\0' &&
	                  !has_digit_first(options->set.text);

	return (arguments[0] || options->dry_run) && !is_command ? 0 : no_command(&options->set, with_set, error);
}

/* A SET stands in the place of PID where $(pgrep …) is empty, or where PID comes first. */
static int check_order(char **arguments, int count, struct error *error)
{
	const char *last = arguments[count - 1];
	bool is_number = last[strspn(last, "0123456789")] == '\0';
	bool is_list = has_digit_first(last) && last[strspn(last, "0123456789,:%-")] == '\0';
	bool may_be_set = is_list || strcmp(last, "all") == 0 || tpcset_looks_like_mask(last);
	int result = 0;

	if (!is_number && may_be_set && count == 1)
		result = error_set(error, "'%.40s': a SET without a PID, as in 'nvtaskset -tp 0-7 PID'", last);
	else if (!is_number && may_be_set && count == 2)
		result = error_set(error, "'%.40s': SET comes before PID, as in 'nvtaskset -tp 0-7 PID'", last);
	return result;
}

/* -p [SET] PID, or -p --group NAME [SET]. */
static int take_subject(struct options *options, char **arguments, int count, bool own_sets, struct error *error)
{
	int pids = options->group ? 0 : 1, sets = count - pids;
	int result = 0;

	for (int i = 0; i < count && result == 0; i++) {
		if (is_option(arguments[i]))
			result = error_set(error, "'%.40s': options come before PID, as in 'nvtaskset -tp 0-7 PID'",
			                   arguments[i]);
	}
	if (result < 0)
		return -1;
	if (sets < 0)
		return help_refer(options, error, "-p", "no PID");
	if (pids == 1 && check_order(arguments, count, error) < 0)
		return -1;
	if (sets > (own_sets ? 0 : 1))
		return options->group ? error_set(error, "'%.40s': a group has no PID, as in 'nvtaskset -tp --group "
		                                         "%.40s 0-7'", arguments[count - 1], options->group)
		                      : too_many(options, arguments[count - 1], error);
	if (sets == 1)
		options->set.text = arguments[0];
	if (sets == 1 || own_sets)
		options->action = ACTION_CHANGE;
	if (pids == 1)
		options->pid = arguments[count - 1];
	return 0;
}

/* cdi add [SET] NAME, cdi remove NAME. */
static int take_device(struct options *options, char **arguments, int count, bool own_sets, struct error *error)
{
	int sets = options->action == ACTION_CDI_ADD && !own_sets;

	for (int i = 0; i < count; i++) {
		if (is_option(arguments[i]))
			return error_set(error, "'%.40s': options come before NAME, as in 'nvtaskset cdi add -t 0-7 "
			                        "NAME'", arguments[i]);
	}
	if (count < sets + 1)
		return help_refer(options, error, sets ? "cdi add" : "cdi",
		                  sets ? "a SET and a NAME are needed" : "no NAME");
	if (count > sets + 1)
		return too_many(options, arguments[sets + 1], error);
	options->set.text = sets ? arguments[0] : NULL;
	options->group = arguments[sets];
	return 0;
}

/* Takes the `count` arguments behind options and words; NULL ends them, and arguments[-1] exists. `with_set` is the
 * command line with a SET in front of the first argument. -1 with the reason. */
static int arguments_take(struct options *options, char **arguments, int count, const char *with_set,
                          struct error *error)
{
	bool own_sets = gpus_have_sets(&options->gpus);
	int result = 0;

	if (options->action == ACTION_RUN)
		result = take_command(options, arguments, own_sets, with_set, error);
	else if (options->action == ACTION_SHOW)
		result = take_subject(options, arguments, count, own_sets, error);
	else if (options->action == ACTION_TOP)
		result = take_one(options, &options->pid, arguments, count, error);
	else if (options->action == ACTION_CDI_ADD || options->action == ACTION_CDI_REMOVE)
		result = take_device(options, arguments, count, own_sets, error);
	else if (options->action == ACTION_CURVE)
		result = take_program(options, arguments, count, error);
	else if (options->action == ACTION_TRACE)
		options->command = arguments;
	else if (options->action == ACTION_PLAN)
		result = count == 0 ? help_refer(options, error, "plan", "no FILE")
		                    : take_one(options, &options->file, arguments, count, error);
	else if (count > 0)
		result = too_many(options, arguments[0], error);
	return result;
}

/* Whether `argument` is a SET, or the PID where there is no SET. Options may follow. */
static bool arguments_may_be_set(const struct options *options, const char *argument)
{
	bool can_have = options->action == ACTION_RUN || options->action == ACTION_SHOW ||
	                options->action == ACTION_CDI_ADD;

	return argument && can_have && !gpus_have_sets(&options->gpus);
}

/* After the options behind `set`; a wrong option may have set its reason in `error`. A COMMAND without a SET has
 * options that are not ours: this is the better reason. -1 with the reason. */
static int arguments_check_set(const struct options *options, const char *set, bool has_wrong_option,
                               const char *with_set, struct error *error)
{
	struct set_given taken = options->set;
	int result = has_wrong_option ? -1 : 0;

	taken.text = set;
	if (has_wrong_option && !is_set(&taken))
		no_command(&taken, with_set, error);
	else if (!has_wrong_option && gpus_have_sets(&options->gpus))
		result = error_set(error, "'%.40s' and -G GPU:SET: give one SET for all GPUs, or one for each", set);
	return result;
}

/* Takes `argument` if it is the next word of an action, after `taken` words. The first word stands in the place of a
 * SET, the second behind the first. */
static bool arguments_take_word(struct options *options, unsigned int taken, const char *argument)
{
	bool may_be_first = options->action == ACTION_RUN && options->set.notation == NOTATION_MASK &&
	                    !gpus_have_sets(&options->gpus);
	const struct word_row *found = NULL;

	for (size_t i = 0; argument && i < WORD_ROWS && !found; i++) {
		const struct word_row *word = &tables_words[i];
		bool is_next = word->second ? taken == 1 && strcmp(options->word, word->first) == 0
		                            : taken == 0 && may_be_first;

		if (is_next && strcmp(argument, word->second ? word->second : word->first) == 0)
			found = word;
	}
	if (found) {
		options->action = found->action;
		options->word = found->first;
	}
	return found != NULL;
}

#define DELAY_SECONDS 1.0 /* the default of --delay */
#define NUMBERS 256       /* getopt's value of an option without a letter: NUMBERS + the place in the table */

_Static_assert(OPTION_ROWS <= 64, "a bit for each option");

/* --- the table, as getopt reads it -------------------------------------------------------------------------------- */

static struct option long_options[OPTION_ROWS + 1];

/* '+': a row of options ends at the first argument that is no option, or at a "--". ':': we report errors. */
static char short_options[2 * OPTION_ROWS + 3] = "+:";

static void fill_tables(void)
{
	char *end = short_options + 2;

	for (int i = 0; i < OPTION_ROWS; i++) {
		const struct option_row *row = &tables_options[i];
		int takes = !row->value ? no_argument : row->value[0] == '[' ? optional_argument : required_argument;

		long_options[i] = (struct option){row->name, takes, NULL, row->letter ? row->letter : NUMBERS + i};
		if (row->letter)
			*end++ = row->letter;
		if (row->letter && takes == required_argument)
			*end++ = ':';
	}
	*end = '\0';
}

static const struct option_row *find_row(int value)
{
	const struct option_row *found = NULL;

	for (int i = 0; i < OPTION_ROWS && !found; i++)
		found = long_options[i].val == value ? &tables_options[i] : NULL;
	return found;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* "-p, -l and -T" */
static const char *name_actions(unsigned int actions, char *text, size_t room)
{
	static const char *const names[] = {
#define ACTION_NAME(identifier, function, name) name,
		ACTIONS(ACTION_NAME)
#undef ACTION_NAME
	};
	size_t length = 0;

	if (actions & 1u << ACTION_SHOW)
		actions &= ~(1u << ACTION_CHANGE);
	for (unsigned int i = 0, left = actions; left != 0; i++, left = actions >> i << i) {
		bool is_last = (left & ~(1u << i)) == 0;

		if (left & 1u << i)
			length += (size_t)snprintf(text + length, room - length, "%s%s",
			                           length == 0 ? "" : is_last ? " and " : ", ", names[i]);
	}
	return text;
}

/* A view's letter can stand in one argument with another option, as in -tl. */
static int refuse(const struct options *options, const struct option_row *row, struct error *error)
{
	bool is_list = options->action == ACTION_LIST, is_view = is_list || options->action == ACTION_TOPOLOGY;
	const char letter[] = {'-', row->letter, '\0'};
	char where[128];

	return error_set(error, "%s%s: %s%sonly with %s", row->letter ? letter : "--", row->letter ? "" : row->name,
	                 is_view ? "not with " : "", is_list ? "-l; " : is_view ? "-T; " : "",
	                 name_actions(row->actions, where, sizeof where));
}

/* The actions in which a GPU of -G can have a SET. */
#define WITH_SETS (1u << ACTION_RUN | 1u << ACTION_SHOW | 1u << ACTION_CHANGE | 1u << ACTION_CDI_ADD)

/* An option that would be ignored is refused. `given` has a bit for each given option. */
static int check_rules(const struct options *options, uint64_t given, struct error *error)
{
	char name[32];
	int result = 0;

	for (unsigned int i = 0; result == 0 && i < OPTION_ROWS; i++) {
		if ((given >> i & 1) && !(tables_options[i].actions & 1u << options->action))
			result = refuse(options, &tables_options[i], error);
	}
	if (result == 0 && gpus_have_sets(&options->gpus) && !(WITH_SETS & 1u << options->action))
		result = error_set(error, "-G: %s takes no SET",
		                   name_actions(1u << options->action, name, sizeof name));
	if (result == 0 && options->strategy_given && options->set.notation != NOTATION_COUNT)
		result = error_set(error, "--strategy: only with -n, where nvtaskset chooses the TPCs");
	if (result == 0 && options->group && options->action != ACTION_RUN && (options->all_tasks || options->attach))
		result = error_set(error, "%s: not with --group: name a process instead",
		                   options->attach ? "--attach" : "-a");
	if (result == 0 && options->group && options->action == ACTION_RUN && !group_name_is_valid(options->group))
		result = error_set(error, "--group %.40s: a name has letters, digits and ._:@+-, at most %d, and is no "
		                          "number alone", options->group, GROUP_NAME_MAX - 1);
	if (result == 0 && options->terminal && options->output)
		result = error_set(error, "--terminal and -o: one draws, one writes: choose one");
	if (result == 0 && options->json && options->dry_run)
		result = error_set(error, "--json and --dry-run, which prints a list that can be pasted: choose one");
	return result;
}

/* Programs side by side take no turns. */
static int check_with_mps(const struct options *options, struct error *error)
{
	return options->settings.rank.weight > 0
	               ? error_set(error, "--weight: clients of MPS take no turns that could be shared; use it with "
	                                  "--mps off, or give it a partition's size")
	               : 0;
}

static int check_connections(const struct options *options, struct error *error)
{
	return options->mps.mode == MPS_OFF && options->mps.connections > 0
	               ? error_set(error, "--connections: only clients of MPS have them; leave it out, or use --mps on")
	               : 0;
}

/* Without --mps, the given time decides. Only clients of MPS lend or borrow; else programs take turns. */
static int settle_mps(struct options *options, struct error *error)
{
	bool shares = segment_shares(&options->settings);
	bool starts = options->action == ACTION_RUN || options->action == ACTION_CDI_ADD;
	int result = 0;

	if (!starts || !segment_time_limits(&options->settings))
		result = 0;
	else if (shares && options->mps.mode == MPS_OFF)
		result = error_set(error, "%s: TPCs are lent under MPS only; leave it out, or use --mps on",
		                   options->settings.lending.borrows > 0 ? "--borrow" : "--lend");
	else if (shares || (options->mps_given && options->mps.mode != MPS_OFF))
		result = check_with_mps(options, error);
	else
		options->mps.mode = MPS_OFF;
	return result == 0 && starts ? check_connections(options, error) : result;
}

/* --- taking arguments --------------------------------------------------------------------------------------------- */

struct line {
	int count;
	char **arguments; /* NULL behind the last */
	uint64_t given;   /* a bit for each option */
	struct beginning *beginning;
	char with_set[LINE_TEXT];
};

static bool asks_for_text(const struct options *options)
{
	return options->action == ACTION_HELP || options->action == ACTION_VERSION;
}

/* `argument` is where getopt has stopped. SET is often taken for the value of -t. */
static int unknown_option(const struct options *options, int option, const char *argument, struct error *error)
{
	const char letter[] = {'-', (char)optopt, '\0'};
	bool is_letter = optopt > 0 && optopt < NUMBERS, has_value = argument[0] == '-' && strchr(argument, '=');
	int result;

	if (option == ':')
		result = help_refer(options, error, is_letter ? letter : argument, "needs a value");
	else if (has_value && (optopt == '=' || find_row(optopt)))
		result = help_refer(options, error, argument, "the option takes no value; SET comes behind the "
		                                              "options, as in '-t 0-7'");
	else if (is_letter && optopt >= '0' && optopt <= '9')
		result = help_refer(options, error, argument, "SET is an argument of its own, as in '-t 0-7'");
	else
		result = help_refer(options, error, is_letter ? letter : argument, "unknown option");
	return result;
}

/* Takes options up to the next argument that is not an option. */
static int take_options(struct line *line, struct error *error)
{
	struct options *options = &line->beginning->options;
	int option, result = 0, place = optind;

	while (result == 0 && !asks_for_text(options) &&
	       (option = getopt_long(line->count, line->arguments, short_options, long_options, NULL)) != -1) {
		const struct option_row *row = option == '?' || option == ':' ? NULL : find_row(option);

		if (option == ':')
			line->beginning->wanting = find_row(optopt);
		if (row)
			line->given |= UINT64_C(1) << (row - tables_options);
		result = row ? row->take(&(struct taking){options, row, optarg, error})
		             : unknown_option(options, option, line->arguments[place], error);
		place = optind;
	}
	line->beginning->has_ended = optind > 1 && strcmp(line->arguments[optind - 1], "--") == 0;
	return result;
}

/* Options also stand between SET and COMMAND: no COMMAND begins with a dash. SET is moved next to COMMAND. */
static int take_options_behind_set(struct line *line, struct error *error)
{
	struct options *options = &line->beginning->options;
	char *set = line->arguments[optind];

	put_set(line->arguments, optind++, line->with_set);
	int result = take_options(line, error);

	line->arguments[--optind] = set;
	return asks_for_text(options) ? result : arguments_check_set(options, set, result < 0, line->with_set, error);
}

static int take_beginning(struct line *line, struct error *error)
{
	struct beginning *beginning = line->beginning;
	struct options *options = &beginning->options;
	char **arguments = line->arguments;

	*options = (struct options){
		.mps = {.mode = MPS_AUTO},
		.delay_seconds = DELAY_SECONDS,
	};
	fill_tables();
	opterr = 0;
	int result = take_options(line, error);

	while (result == 0 && !asks_for_text(options) &&
	       arguments_take_word(options, beginning->words, arguments[optind])) {
		beginning->words++;
		optind++;
		result = take_options(line, error);
	}
	beginning->has_set = result == 0 && !asks_for_text(options) && arguments_may_be_set(options, arguments[optind]);
	if (beginning->has_set)
		result = take_options_behind_set(line, error);
	beginning->next = optind + beginning->has_set;
	return result;
}

int parse_beginning(struct beginning *beginning, int count, char **arguments)
{
	struct line line = {.count = count, .arguments = arguments, .beginning = beginning};
	struct error error;

	*beginning = (struct beginning){.wanting = NULL};
	int result = take_beginning(&line, &error);

	beginning->has_set |= !arguments_may_be_set(&beginning->options, "");
	return beginning->wanting ? 0 : result;
}

int parse_options(struct options *options, int count, char **arguments, struct error *error)
{
	struct beginning beginning = {.wanting = NULL};
	struct line line = {.count = count, .arguments = arguments, .beginning = &beginning};
	int result = take_beginning(&line, error);

	*options = beginning.options;
	if (result < 0 || asks_for_text(options))
		return result;
	/* Views take no arguments. A wrong option there is the reason for arguments. */
	if (options->action == ACTION_LIST || options->action == ACTION_TOPOLOGY)
		result = check_rules(options, line.given, error);
	if (result == 0)
		result = arguments_take(options, arguments + optind, count - optind, line.with_set, error);
	if (result == 0)
		result = check_rules(options, line.given, error);
	return result == 0 ? settle_mps(options, error) : -1;
}

#define LINE_WORDS 18 /* more than any line has */

/* The parser sees a word in the place of COMMAND, and must not examine COMMAND. */
int parse_line(struct options *options, char *line, char **command, struct error *error)
{
	static char *words[LINE_WORDS + 2];
	char *word = strtok(line, " ");
	int count = 0;

	for (; word && count < LINE_WORDS; word = strtok(NULL, " "))
		words[count++] = word;
	/* A word of the user's stands in the line: -G. */
	if (word)
		return error_set(error, "'%.60s': too many words", word);
	if (command)
		words[count++] = "COMMAND";
	words[count] = NULL;
	optind = 0;
	int result = parse_options(options, count, words, error);

	options->command = command;
	return result;
}

int parse_line_settings(struct segment_revision *settings, char *line, struct error *error)
{
	struct options options;
	int result = parse_line(&options, line, NULL, error);

	*settings = options.settings;
	return result;
}
