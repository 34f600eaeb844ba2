#include "parse.h"

#include "actions.h"
#include "arguments.h"
#include "option_values.h"
#include "state/group/group.h"
#include "time_change.h"
#include "time_given.h"

#include <getopt.h>
#include <string.h>

enum {
	OPTION_ATTACH = 256,
	OPTION_BUSY,
	OPTION_CONNECTIONS,
	OPTION_DELAY,
	OPTION_DISABLE_SYSTEM,
	OPTION_DRY_RUN,
	OPTION_ENABLE_SYSTEM,
	OPTION_FORCE,
	OPTION_FORMAT,
	OPTION_GROUP,
	OPTION_HIDE,
	OPTION_JSON,
	OPTION_MEASURE,
	OPTION_MEMORY,
	OPTION_MPS,
	OPTION_MPS_STATUS,
	OPTION_MPS_STOP,
	OPTION_ON_MISFIT,
	OPTION_ONCE,
	OPTION_OUTPUT,
	OPTION_BORROW,
	OPTION_LEND,
	OPTION_POLICY,
	OPTION_PRIORITY,
	OPTION_QUOTA,
	OPTION_STRATEGY,
	OPTION_STRICT,
	OPTION_WATCH,
	OPTION_WEIGHT
};

#define DELAY_SECONDS 1.0 /* --delay where it is not given */

/* '+': a row of options ends at the first argument that is no option, or at a "--". ':': we report errors. */
#define SHORT_OPTIONS "+:tgnpalTG:vhV"

/* --- where an option makes sense --------------------------------------------------------------------- */

#define RUN (1u << ACTION_RUN)
#define SHOW (1u << ACTION_SHOW)
#define CHANGE (1u << ACTION_CHANGE)
#define VIEWS (1u << ACTION_LIST | 1u << ACTION_TOPOLOGY)
#define MEASURE (1u << ACTION_MEASURE)
#define MPS (1u << ACTION_MPS_STATUS)
#define STOP (1u << ACTION_MPS_STOP)
#define ENABLE (1u << ACTION_SYSTEM_ENABLE)
#define TOP (1u << ACTION_TOP)
#define METRICS (1u << ACTION_METRICS)

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
	{"borrow", optional_argument, NULL, OPTION_BORROW},
	{"busy", no_argument, NULL, OPTION_BUSY},
	{"dry-run", no_argument, NULL, OPTION_DRY_RUN},
	{"hide", no_argument, NULL, OPTION_HIDE},
	{"json", no_argument, NULL, OPTION_JSON},
	{"lend", optional_argument, NULL, OPTION_LEND},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"mps", required_argument, NULL, OPTION_MPS},
	{"connections", required_argument, NULL, OPTION_CONNECTIONS},
	{"delay", required_argument, NULL, OPTION_DELAY},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"once", no_argument, NULL, OPTION_ONCE},
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"group", required_argument, NULL, OPTION_GROUP},
	{"on-misfit", required_argument, NULL, OPTION_ON_MISFIT},
	{"policy", required_argument, NULL, OPTION_POLICY},
	{"priority", required_argument, NULL, OPTION_PRIORITY},
	{"quota", required_argument, NULL, OPTION_QUOTA},
	{"strategy", required_argument, NULL, OPTION_STRATEGY},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{"watch", optional_argument, NULL, OPTION_WATCH},
	{"weight", required_argument, NULL, OPTION_WEIGHT},
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
	{OPTION_BORROW, "--borrow", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_BUSY, "--busy", 1u << ACTION_LIST | METRICS, "with -l and 'metrics'"},
	{OPTION_DRY_RUN, "--dry-run", RUN | CHANGE | ENABLE, "with a SET and 'system enable'"},
	{OPTION_GROUP, "--group", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_HIDE, "--hide", RUN, "where a COMMAND is started"},
	{OPTION_JSON, "--json", SHOW | CHANGE | VIEWS | TOP, "with -p, -l, -T and 'top'"},
	{OPTION_LEND, "--lend", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_MEMORY, "--memory", RUN, "where a COMMAND is started: a program reads its limit when it starts CUDA"},
	{OPTION_MPS, "--mps", RUN, "where a COMMAND is started"},
	{OPTION_CONNECTIONS, "--connections", RUN | MPS, "where a COMMAND is started, and with 'mps status'"},
	{OPTION_DELAY, "--delay", TOP, "with 'top'"},
	{OPTION_FORCE, "--force", STOP, "with 'mps stop'"},
	{OPTION_FORMAT, "--format", METRICS, "with 'metrics'"},
	{OPTION_ONCE, "--once", TOP, "with 'top'"},
	{OPTION_OUTPUT, "--output", METRICS, "with 'metrics'"},
	{OPTION_ON_MISFIT, "--on-misfit", RUN, "where a COMMAND is started"},
	{OPTION_POLICY, "--policy", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_PRIORITY, "--priority", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_QUOTA, "--quota", RUN | SHOW | CHANGE, "with a SET and with -p"},
	{OPTION_STRATEGY, "--strategy", RUN | CHANGE, "with -n"},
	{OPTION_STRICT, "--strict", RUN, "where a COMMAND is started"},
	{OPTION_WATCH, "--watch", VIEWS, "with -l and -T"},
	{OPTION_WEIGHT, "--weight", RUN | SHOW | CHANGE, "with a SET and with -p"},
};

#define RULES (sizeof rules / sizeof rules[0])

/* --- one option ------------------------------------------------------------------------------------------ */

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
		result = help_refer(options, error, is_letter ? letter : argument, "needs a value");
	else if (has_value && (optopt == '=' || is_known(optopt)))
		result = help_refer(options, error, argument, "the option takes no value; SET comes behind the options, as in '-t 0-7'");
	else if (is_letter && optopt >= '0' && optopt <= '9')
		result = help_refer(options, error, argument, "SET is an argument of its own, as in '-t 0-7'");
	else
		result = help_refer(options, error, is_letter ? letter : argument, "unknown option");
	return result;
}

static int take_option(struct options *options, int option, const char *argument, struct error *error)
{
	int result = 0;

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
	case OPTION_BUSY:
		options->busy = true;
		break;
	case OPTION_DRY_RUN:
		options->dry_run = true;
		break;
	case OPTION_DELAY:
		result = option_delay(&options->delay_seconds, optarg, error);
		break;
	case OPTION_FORMAT:
		result = option_format(&options->format, optarg, error);
		break;
	case OPTION_ONCE:
		options->once = true;
		break;
	case OPTION_OUTPUT:
		options->output = optarg;
		break;
	case OPTION_FORCE:
		options->force = true;
		break;
	case OPTION_GROUP:
		result = option_group(&options->group, optarg, error);
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
		result = option_watch(&options->watch_seconds, optarg, error);
		break;
	case OPTION_ON_MISFIT:
		result = option_misfit(&options->misfit, optarg, error);
		break;
	case OPTION_STRATEGY:
		result = option_strategy(&options->strategy, optarg, error);
		break;
	case OPTION_MEMORY:
		result = option_memory(&options->memory, optarg, error);
		break;
	case OPTION_BORROW:
		result = option_borrow(&options->time.lending, optarg, error);
		break;
	case OPTION_LEND:
		result = option_lend(&options->time.lending, optarg, error);
		break;
	case OPTION_POLICY:
		result = option_policy(&options->time.rank, optarg, error);
		break;
	case OPTION_PRIORITY:
		result = option_priority(&options->time.rank, optarg, error);
		break;
	case OPTION_QUOTA:
		result = quota_parse(&options->time.quota, optarg, error);
		break;
	case OPTION_WEIGHT:
		result = option_weight(&options->time.rank, optarg, error);
		break;
	case OPTION_MPS:
		options->mps_given = true;
		result = option_mps(&options->mps.mode, optarg, error);
		break;
	case OPTION_CONNECTIONS:
		result = option_connections(&options->mps.connections, optarg, error);
		break;
	default:
		result = unknown_option(options, option, argument, error);
	}
	return result;
}

/* A view's letter can stand in one argument with another option, as in -tl. */
static int refuse(const struct options *options, const struct rule *rule, struct error *error)
{
	bool is_list = options->action == ACTION_LIST, is_view = is_list || options->action == ACTION_TOPOLOGY;

	return error_set(error, "%s: %s%sonly %s", rule->name, is_view ? "not with " : "",
	                 is_list ? "-l; " : is_view ? "-T; " : "", rule->where);
}

/* `given` has a bit for each rule whose option was given. */
static int check_rules(const struct options *options, unsigned int given, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < RULES; i++) {
		if ((given & 1u << i) && !(rules[i].actions & 1u << options->action))
			result = refuse(options, &rules[i], error);
		else if ((given & 1u << i) && rules[i].option == OPTION_STRATEGY && options->notation != NOTATION_COUNT)
			result = error_set(error, "--strategy: only with -n, where nvtaskset chooses the TPCs");
	}
	if (result == 0 && options->group && options->action != ACTION_RUN && (options->all_tasks || options->attach))
		result = error_set(error, "%s: not with --group: name a process instead", options->attach ? "--attach" : "-a");
	if (result == 0 && options->group && options->action == ACTION_RUN && !group_name_is_valid(options->group))
		result = error_set(error, "--group %.40s: a name has letters, digits and ._:@+-, at most %d, and is no number alone",
		                   options->group, GROUP_NAME_MAX - 1);
	if (result == 0 && options->memory > 0 && options->mps.mode == MPS_OFF)
		result = error_set(error, "--memory: only MPS sees to it, and --mps off runs without: choose one");
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

/* --- all of them --------------------------------------------------------------------------------------- */

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

/* Options stand between SET and COMMAND, too: no COMMAND begins with a dash. SET is moved next to COMMAND. */
static int take_options_behind_set(struct options *options, int count, char **arguments, unsigned int *given,
                                   struct error *error)
{
	char *set = arguments[optind++];
	int result = take_options(options, count, arguments, given, error);

	arguments[--optind] = set;
	return asks_for_text(options) ? result : arguments_check_set(options, set, result < 0, error);
}

/* Programs that run side by side take no turns. */
static int check_with_mps(const struct options *options, struct error *error)
{
	return options->time.rank.weight > 0
	               ? error_set(error, "--weight: clients of MPS take no turns that could be shared; use it with --mps off, or "
	                                  "give it a partition's size")
	               : 0;
}

static int take_turns(struct options *options, struct error *error)
{
	char names[TIME_LINE];

	if (options->memory > 0)
		return error_set(error, "--memory: only MPS sees to it, and %s runs without: choose one",
		                 time_options(&options->time, names));
	options->mps.mode = MPS_OFF;
	return 0;
}

/* Where --mps was not given, what a program is given of the time decides: only clients of MPS are held back by a policy, lend and
 * borrow, and all else has programs take turns. */
static int settle_mps(struct options *options, struct error *error)
{
	static const struct segment_revision nothing;
	bool has_policy = segment_policy_is_given(options->time.rank), shares = segment_shares(&options->time);
	int result;

	if (options->action != ACTION_RUN || !(segment_time_limits(&options->time) || has_policy))
		result = 0;
	else if (has_policy && options->mps.mode == MPS_OFF)
		result = error_set(error, "--policy: launches are held back under MPS only; leave it out, or use --mps on");
	else if (shares && options->mps.mode == MPS_OFF)
		result = error_set(error, "%s: TPCs are lent under MPS only; leave it out, or use --mps on",
		                   options->time.lending.borrows > 0 ? "--borrow" : "--lend");
	else if (has_policy && time_check_policy(&nothing, &options->time, error) < 0)
		result = -1;
	else if (has_policy || shares || (options->mps_given && options->mps.mode != MPS_OFF))
		result = check_with_mps(options, error);
	else
		result = take_turns(options, error);
	return result;
}

int parse_options(struct options *options, int count, char **arguments, struct error *error)
{
	unsigned int given = 0;

	*options = (struct options){
		.action = ACTION_RUN,
		.mps = {.mode = MPS_AUTO},
		.delay_seconds = DELAY_SECONDS,
	};
	opterr = 0;
	int result = take_options(options, count, arguments, &given, error);

	for (unsigned int words = 0; result == 0 && !asks_for_text(options) && arguments_take_word(options, words, arguments[optind]);
	     words++) {
		optind++;
		result = take_options(options, count, arguments, &given, error);
	}
	if (result == 0 && !asks_for_text(options) && arguments_may_be_set(options, arguments[optind]))
		result = take_options_behind_set(options, count, arguments, &given, error);
	if (result < 0 || asks_for_text(options))
		return result;
	/* Views take no arguments. If an option is wrong there, it is the reason why there are some. */
	if (options->action == ACTION_LIST || options->action == ACTION_TOPOLOGY)
		result = check_rules(options, given, error);
	if (result == 0)
		result = arguments_take(options, arguments + optind, count - optind, error);
	if (result == 0)
		result = check_rules(options, given, error);
	return result == 0 ? settle_mps(options, error) : -1;
}
