#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_ATTACH = 256,
	OPTION_CONNECTIONS,
	OPTION_DISABLE_SYSTEM,
	OPTION_DRY_RUN,
	OPTION_ENABLE_SYSTEM,
	OPTION_FORCE,
	OPTION_HIDE,
	OPTION_JSON,
	OPTION_MEASURE,
	OPTION_MPS,
	OPTION_MPS_STATUS,
	OPTION_MPS_STOP,
	OPTION_ON_MISFIT,
	OPTION_STRATEGY,
	OPTION_STRICT,
	OPTION_WATCH
};

/* '+': our options end at the first argument that is no option; those behind it are COMMAND's. ':': we report
 * errors. */
#define SHORT_OPTIONS "+:tgnpalTG:vhV"

#define WATCH_SECONDS 1.0
#define WATCH_SECONDS_MIN 0.1
#define WATCH_SECONDS_MAX 86400.0

/* --- where an option makes sense --------------------------------------------------------------------- */

#define RUN (1u << ACTION_RUN)
#define SHOW (1u << ACTION_SHOW)
#define CHANGE (1u << ACTION_CHANGE)
#define VIEWS (1u << ACTION_LIST | 1u << ACTION_TOPOLOGY)
#define MEASURE (1u << ACTION_MEASURE)
#define MPS (1u << ACTION_MPS_STATUS)
#define STOP (1u << ACTION_MPS_STOP)
#define ENABLE (1u << ACTION_SYSTEM_ENABLE)

static const struct option long_options[] = {
	{"tpc-list", no_argument, NULL, 't'},
	{"gpc-list", no_argument, NULL, 'g'},
	{"count", no_argument, NULL, 'n'},
	{"pid", no_argument, NULL, 'p'},
	{"all-tasks", no_argument, NULL, 'a'},
	{"list", no_argument, NULL, 'l'},
	{"topology", no_argument, NULL, 'T'},
	{"gpu", required_argument, NULL, 'G'},
	{"attach", no_argument, NULL, OPTION_ATTACH},
	{"dry-run", no_argument, NULL, OPTION_DRY_RUN},
	{"hide", no_argument, NULL, OPTION_HIDE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"mps", required_argument, NULL, OPTION_MPS},
	{"connections", required_argument, NULL, OPTION_CONNECTIONS},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"on-misfit", required_argument, NULL, OPTION_ON_MISFIT},
	{"strategy", required_argument, NULL, OPTION_STRATEGY},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{"watch", optional_argument, NULL, OPTION_WATCH},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	/* Words were options once; scripts may still use these. */
	{"measure", no_argument, NULL, OPTION_MEASURE},
	{"mps-status", no_argument, NULL, OPTION_MPS_STATUS},
	{"mps-stop", no_argument, NULL, OPTION_MPS_STOP},
	{"enable-system", no_argument, NULL, OPTION_ENABLE_SYSTEM},
	{"disable-system", no_argument, NULL, OPTION_DISABLE_SYSTEM},
	{NULL, 0, NULL, 0},
};

/* The actions that are words. No first word can be read as a mask: each has a letter that is no hexadecimal digit. */
static const struct action_word {
	const char *first, *second; /* NULL: the first alone */
	enum action action;
} action_words[] = {
	{"measure", NULL, ACTION_MEASURE},
	{"mps", NULL, ACTION_MPS_STATUS},
	{"mps", "status", ACTION_MPS_STATUS},
	{"mps", "stop", ACTION_MPS_STOP},
	{"system", NULL, ACTION_SYSTEM_STATUS},
	{"system", "status", ACTION_SYSTEM_STATUS},
	{"system", "enable", ACTION_SYSTEM_ENABLE},
	{"system", "disable", ACTION_SYSTEM_DISABLE},
};

/* Options that do not go with every action. An option that would be ignored is refused. */
static const struct rule {
	int option;
	const char *name;
	unsigned int actions;
	const char *where;
} rules[] = {
	{'t', "-t", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{'g', "-g", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{'n', "-n", RUN | CHANGE, "with a SET"},
	{'a', "-a", SHOW | CHANGE, "with -p"},
	{'G', "-G", RUN | SHOW | CHANGE | 1u << ACTION_TOPOLOGY | MEASURE, "with a SET, -p, -T and 'measure'"},
	{OPTION_ATTACH, "--attach", SHOW | CHANGE, "with -p"},
	{OPTION_DRY_RUN, "--dry-run", RUN | CHANGE | ENABLE, "with a SET and 'system enable'"},
	{OPTION_HIDE, "--hide", RUN, "where a COMMAND is started"},
	{OPTION_JSON, "--json", SHOW | CHANGE | VIEWS, "with -p, -l and -T"},
	{OPTION_MPS, "--mps", RUN, "where a COMMAND is started"},
	{OPTION_CONNECTIONS, "--connections", RUN | MPS, "where a COMMAND is started, and with 'mps status'"},
	{OPTION_FORCE, "--force", STOP, "with 'mps stop'"},
	{OPTION_ON_MISFIT, "--on-misfit", RUN, "where a COMMAND is started"},
	{OPTION_STRATEGY, "--strategy", RUN | CHANGE, "with -n"},
	{OPTION_STRICT, "--strict", RUN, "where a COMMAND is started"},
	{OPTION_WATCH, "--watch", VIEWS, "with -l and -T"},
};

#define RULES (sizeof rules / sizeof rules[0])

/* --- values ------------------------------------------------------------------------------------------ */

/* An option whose value is one of several words. */
struct word {
	const char *name;
	int value;
};

struct words {
	const char *option;
	const char *all; /* for error messages */
	struct word list[4]; /* the last one has no name */
};

static const struct words mps_words = {"--mps", "auto, on or off", {{"auto", MPS_AUTO}, {"on", MPS_ON}, {"off", MPS_OFF}}};
static const struct words strategy_words = {
	"--strategy", "packed or distributed", {{"packed", STRATEGY_PACKED}, {"distributed", STRATEGY_DISTRIBUTED}}};
static const struct words misfit_words = {
	"--on-misfit", "widen or fail", {{"widen", MISFIT_WIDEN}, {"fail", MISFIT_FAIL}}};

static int parse_word(int *value, const struct words *words, const char *text, struct error *error)
{
	const struct word *word = words->list;

	while (word->name && strcmp(text, word->name) != 0)
		word++;
	if (!word->name)
		return error_set(error, "%s %.40s: must be %s", words->option, text, words->all);
	*value = word->value;
	return 0;
}

static int parse_connections(unsigned int *connections, const char *text, struct error *error)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > MPS_CONNECTIONS_MAX)
		return error_set(error, "--connections %.40s: must be 1-%d", text, MPS_CONNECTIONS_MAX);
	*connections = (unsigned int)number;
	return 0;
}

static int parse_watch(double *seconds, const char *text, struct error *error)
{
	char *end;

	*seconds = WATCH_SECONDS;
	if (text) {
		*seconds = strtod(text, &end);
		if (end == text || *end != '\0' || !(*seconds >= WATCH_SECONDS_MIN && *seconds <= WATCH_SECONDS_MAX))
			return error_set(error, "--watch=%.40s: must be 0.1-86400 seconds", text);
	}
	return 0;
}

static int set_notation(struct options *options, enum notation notation, struct error *error)
{
	if (options->notation != NOTATION_MASK && options->notation != notation)
		return error_set(error, "-t, -g and -n: SET is a list of TPCs, a list of GPCs or a number: choose one");
	options->notation = notation;
	return 0;
}

static int set_action(struct options *options, enum action action, struct error *error)
{
	if (options->action != ACTION_RUN && options->action != action)
		return error_set(error, "-p, -l, -T and words such as 'mps': choose one");
	options->action = action;
	return 0;
}

static int add_gpu(struct options *options, const char *text, struct error *error)
{
	if (options->gpu_count == TOPOLOGY_GPUS_MAX)
		return error_set(error, "-G %.40s: more than %d GPUs", text, TOPOLOGY_GPUS_MAX);
	options->gpus[options->gpu_count++] = text;
	return 0;
}

/* Adds to the reason where help is. */
static int refuse(const struct options *options, struct error *error, const char *what, const char *why)
{
	const char *word = options->word ? options->word : "";

	return error_set(error, "%.42s: %s; try 'nvtaskset %s%s--help'", what, why, word, options->word ? " " : "");
}

static bool is_known(int option)
{
	const struct option *known = long_options;

	while (known->name && known->val != option)
		known++;
	return known->name != NULL;
}

/* `argument` is the one that getopt has stopped at. SET is often taken for the value of -t. */
static int unknown_option(const struct options *options, int option, const char *argument, struct error *error)
{
	const char letter[] = {'-', (char)optopt, '\0'};
	bool is_letter = optopt > 0 && optopt < OPTION_ATTACH, has_value = argument[0] == '-' && strchr(argument, '=');
	int result;

	if (option == ':')
		result = refuse(options, error, is_letter ? letter : argument, "needs a value");
	else if (has_value && (optopt == '=' || is_known(optopt)))
		result = refuse(options, error, argument, "the option takes no value; SET comes behind the options, as in '-t 0-7'");
	else if (is_letter && optopt >= '0' && optopt <= '9')
		result = refuse(options, error, argument, "SET is an argument of its own, as in '-t 0-7'");
	else
		result = refuse(options, error, is_letter ? letter : argument, "unknown option");
	return result;
}

static int take_option(struct options *options, int option, const char *argument, struct error *error)
{
	int result = 0, value = 0;

	switch (option) {
	case 't':
		result = set_notation(options, NOTATION_TPC_LIST, error);
		break;
	case 'g':
		result = set_notation(options, NOTATION_GPC_LIST, error);
		break;
	case 'n':
		result = set_notation(options, NOTATION_COUNT, error);
		break;
	case 'p':
		result = set_action(options, ACTION_SHOW, error);
		break;
	case 'l':
		result = set_action(options, ACTION_LIST, error);
		break;
	case 'T':
		result = set_action(options, ACTION_TOPOLOGY, error);
		break;
	case OPTION_MEASURE:
		result = set_action(options, ACTION_MEASURE, error);
		break;
	case OPTION_MPS_STATUS:
		result = set_action(options, ACTION_MPS_STATUS, error);
		break;
	case OPTION_MPS_STOP:
		result = set_action(options, ACTION_MPS_STOP, error);
		break;
	case OPTION_ENABLE_SYSTEM:
		result = set_action(options, ACTION_SYSTEM_ENABLE, error);
		break;
	case OPTION_DISABLE_SYSTEM:
		result = set_action(options, ACTION_SYSTEM_DISABLE, error);
		break;
	case 'a':
		options->all_tasks = true;
		break;
	case 'G':
		result = add_gpu(options, optarg, error);
		break;
	case 'v':
		options->verbose = true;
		break;
	case OPTION_ATTACH:
		options->attach = true;
		break;
	case OPTION_DRY_RUN:
		options->dry_run = true;
		break;
	case OPTION_FORCE:
		options->force = true;
		break;
	case OPTION_HIDE:
		options->hide = true;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_STRICT:
		options->strict = true;
		break;
	case OPTION_WATCH:
		result = parse_watch(&options->watch_seconds, optarg, error);
		break;
	case OPTION_ON_MISFIT:
		result = parse_word(&value, &misfit_words, optarg, error);
		options->misfit = (enum misfit)value;
		break;
	case OPTION_STRATEGY:
		result = parse_word(&value, &strategy_words, optarg, error);
		options->strategy = (enum strategy)value;
		break;
	case OPTION_MPS:
		result = parse_word(&value, &mps_words, optarg, error);
		options->mps.mode = (enum mps_mode)value;
		break;
	case OPTION_CONNECTIONS:
		result = parse_connections(&options->mps.connections, optarg, error);
		break;
	default:
		result = unknown_option(options, option, argument, error);
	}
	return result;
}

/* `given` has a bit for each rule whose option was given. */
static int check_rules(const struct options *options, unsigned int given, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < RULES; i++) {
		if ((given & 1u << i) && !(rules[i].actions & 1u << options->action))
			result = error_set(error, "%s: only %s", rules[i].name, rules[i].where);
		else if ((given & 1u << i) && rules[i].option == OPTION_STRATEGY && options->notation != NOTATION_COUNT)
			result = error_set(error, "--strategy: only with -n, where nvtaskset chooses the TPCs");
	}
	if (result == 0 && options->json && options->dry_run)
		result = error_set(error, "--json and --dry-run, which prints a list that can be pasted: choose one");
	return result;
}

static unsigned int rule_of(int option)
{
	unsigned int bit = 0;

	for (size_t i = 0; i < RULES; i++) {
		if (rules[i].option == option)
			bit = 1u << i;
	}
	return bit;
}

/* --- positional arguments --------------------------------------------------------------------------- */

/* Whether any -G has its own SET. gpus_choose checks that all have one or none. */
static bool gpus_have_sets(const struct options *options)
{
	bool any = false;

	for (unsigned int i = 0; i < options->gpu_count; i++) {
		const char *colon = strrchr(options->gpus[i], ':');

		/* Behind the last colon of a bus id there is a dot (00:06.0). No SET has one. */
		any = any || (colon && !strchr(colon, '.'));
	}
	return any;
}

static int refuse_argument(const struct options *options, const char *argument, const char *why, struct error *error)
{
	char quoted[44];

	snprintf(quoted, sizeof quoted, "'%.40s'", argument);
	return refuse(options, error, quoted, why);
}

static int too_many(const struct options *options, const char *argument, struct error *error)
{
	return refuse_argument(options, argument, options->word ? "not one of its words" : "one argument too many", error);
}

static bool is_option(const char *argument)
{
	return argument[0] == '-' && (argument[1] == '-' || (argument[1] >= 'A' && argument[1] <= 'Z') ||
	                              (argument[1] >= 'a' && argument[1] <= 'z'));
}

static int misplaced(const char *argument, struct error *error)
{
	return error_set(error, "'%.40s': options come before SET and PID, as in 'nvtaskset --mps off -t 0-7 COMMAND'", argument);
}

/* What stands in place of a mask, and is none. */
static int no_command(const struct options *options, struct error *error)
{
	bool is_set = options->notation != NOTATION_MASK || !options->set || strcmp(options->set, "all") == 0 ||
	              options->set[strspn(options->set, "0123456789abcdefABCDEFxX,")] == '\0';

	return is_set ? error_set(error, "no COMMAND; try 'nvtaskset --help'")
	              : error_set(error, "'%.40s': neither a mask of TPCs nor a word (mps, system, measure); try 'nvtaskset --help'",
	                          options->set);
}

/* --dry-run starts nothing and needs no COMMAND. */
static int take_command(struct options *options, char **arguments, bool own_sets, struct error *error)
{
	if (!own_sets) {
		options->set = *arguments;
		if (!options->set)
			return error_set(error, "no SET and no COMMAND: try 'nvtaskset -t 0-7 COMMAND', 'nvtaskset -T' to see the GPU, "
			                        "or 'nvtaskset --help'");
		arguments++;
	}
	bool ends_options = arguments[0] && strcmp(arguments[0], "--") == 0;

	/* If every -G has its own SET, getopt has taken it. */
	if (ends_options)
		arguments++;
	else if (arguments[0] && is_option(arguments[0]) && !(own_sets && strcmp(arguments[-1], "--") == 0))
		return misplaced(arguments[0], error);
	options->command = arguments;
	return arguments[0] || options->dry_run ? 0 : no_command(options, error);
}

static int take_pid(struct options *options, char **arguments, int count, bool own_sets, struct error *error)
{
	int result = 0;

	for (int i = 0; i < count && result == 0; i++)
		result = is_option(arguments[i]) ? misplaced(arguments[i], error) : 0;
	if (result < 0)
		return -1;
	if (count == 0)
		result = refuse(options, error, "-p", "no PID");
	else if (count > (own_sets ? 1 : 2))
		result = too_many(options, arguments[count - 1], error);
	if (count == 2)
		options->set = arguments[0];
	if (count == 2 || own_sets)
		options->action = ACTION_CHANGE;
	if (count > 0)
		options->pid = arguments[count - 1];
	return result;
}

static int take_arguments(struct options *options, char **arguments, int count, struct error *error)
{
	bool own_sets = gpus_have_sets(options);
	int result = 0;

	if (options->action == ACTION_RUN)
		result = take_command(options, arguments, own_sets, error);
	else if (options->action == ACTION_SHOW)
		result = take_pid(options, arguments, count, own_sets, error);
	else if (count > 0)
		result = too_many(options, arguments[0], error);
	return result;
}

/* Takes `argument` if it is the next word of an action, `taken` words of which were taken before. The first word stands
 * in place of a SET, the second behind the first. */
static bool take_word(struct options *options, unsigned int taken, const char *argument)
{
	bool may_be_first = options->action == ACTION_RUN && options->notation == NOTATION_MASK && !gpus_have_sets(options);
	const struct action_word *found = NULL;

	for (size_t i = 0; argument && i < sizeof action_words / sizeof action_words[0] && !found; i++) {
		const struct action_word *word = &action_words[i];
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

/* Takes options up to the next argument that is none. Adds to `given` a bit for each rule whose option it takes. */
static int take_options(struct options *options, int count, char **arguments, unsigned int *given, struct error *error)
{
	int option, result = 0, place = optind;

	while (result == 0 && (option = getopt_long(count, arguments, SHORT_OPTIONS, long_options, NULL)) != -1) {
		/* As in other programs, these two act at once, even if other arguments are wrong. */
		if (option == 'h' || option == 'V') {
			options->action = option == 'h' ? ACTION_HELP : ACTION_VERSION;
			break;
		}
		result = take_option(options, option, arguments[place], error);
		*given |= rule_of(option);
		place = optind;
	}
	return result;
}

static bool asks_for_text(const struct options *options)
{
	return options->action == ACTION_HELP || options->action == ACTION_VERSION;
}

int options_parse(struct options *options, int count, char **arguments, struct error *error)
{
	unsigned int given = 0;

	*options = (struct options){
		.action = ACTION_RUN,
		.mps = {.mode = MPS_AUTO},
	};
	opterr = 0;
	int result = take_options(options, count, arguments, &given, error);

	for (unsigned int words = 0; result == 0 && !asks_for_text(options) && take_word(options, words, arguments[optind]);
	     words++) {
		optind++;
		result = take_options(options, count, arguments, &given, error);
	}
	if (result == 0 && !asks_for_text(options))
		result = take_arguments(options, arguments + optind, count - optind, error);
	if (result == 0 && !asks_for_text(options))
		result = check_rules(options, given, error);
	return result;
}
