#include "tables.h"

#include "base/proc.h"
#include "state/setting_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_SECONDS 1.0
#define SECONDS_MIN 0.1
#define SECONDS_MAX 86400.0

/* --- kinds of values ---------------------------------------------------------------------------------------------- */

static void *member_of(const struct taking *it)
{
	return (char *)it->options + it->row->detail;
}

static int take_flag(const struct taking *it)
{
	*(bool *)member_of(it) = true;
	return 0;
}

static int take_text(const struct taking *it)
{
	*(const char **)member_of(it) = it->value;
	return 0;
}

static int take_name(const struct taking *it)
{
	return it->value[0] == '\0' ? error_set(it->error, "--%s: an empty name", it->row->name) : take_text(it);
}

/* A word of a list; the first is 0. */
static int take_word(const struct taking *it)
{
	const char *word = it->row->values;
	size_t length = strlen(it->value);
	int number = 0;

	for (; word && !(strncmp(word, it->value, length) == 0 && length == strcspn(word, " ")); number++)
		word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL;
	if (!word)
		return error_set(it->error, "--%s %.40s: must be one of: %s", it->row->name, it->value,
		                 it->row->values);
	*(int *)member_of(it) = number;
	return 0;
}

static int parse_number(unsigned int *number, const struct taking *it, unsigned int max)
{
	char *end;
	unsigned long parsed = strtoul(it->value, &end, 10);

	if (it->value[0] < '0' || it->value[0] > '9' || *end != '\0' || parsed < 1 || parsed > max)
		return error_set(it->error, "--%s %.40s: must be 1-%u", it->row->name, it->value, max);
	*number = (unsigned int)parsed;
	return 0;
}

static int take_seconds(const struct taking *it)
{
	char *end = NULL;
	double seconds = it->value ? strtod(it->value, &end) : WATCH_SECONDS;

	if (it->value && (end == it->value || *end != '\0' || !(seconds >= SECONDS_MIN && seconds <= SECONDS_MAX)))
		return error_set(it->error, "--%s%c%.40s: must be 0.1-86400 seconds", it->row->name,
		                 it->row->value[0] == '[' ? '=' : ' ', it->value);
	*(double *)member_of(it) = seconds;
	return 0;
}

int tables_parse_pid(pid_t *pid, const char *text, struct error *error)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > INT_MAX)
		return error_set(error, "pid '%.40s': not a process id", text);
	*pid = (pid_t)proc_status((pid_t)number, "Tgid:", (uint64_t)number);
	return 0;
}

/* --- single options ----------------------------------------------------------------------------------------------- */

static int take_notation(const struct taking *it)
{
	enum notation notation = (enum notation)it->row->detail;

	if (it->options->set.notation != NOTATION_MASK && it->options->set.notation != notation)
		return error_set(it->error,
		                 "-t, -g and -n: SET is a list of TPCs, a list of GPCs or a number: choose one");
	it->options->set.notation = notation;
	return 0;
}

static int take_action(const struct taking *it)
{
	enum action action = (enum action)it->row->detail;

	/* As in other programs, --help and --version hold even if other arguments are wrong. */
	if (it->options->action != ACTION_RUN && it->options->action != action && action != ACTION_HELP &&
	    action != ACTION_VERSION)
		return error_set(it->error, "-p, -l, -T and words such as 'mps': choose one");
	it->options->action = action;
	return 0;
}

static int take_strategy(const struct taking *it)
{
	it->options->strategy_given = true;
	return take_word(it);
}

static int take_mps(const struct taking *it)
{
	it->options->mps_given = true;
	return take_word(it);
}

static int take_connections(const struct taking *it)
{
	return parse_number(&it->options->mps.connections, it, MPS_CONNECTIONS_MAX);
}

static int take_kernels(const struct taking *it)
{
	return parse_number(&it->options->kernels, it, 1000000);
}

static int take_beside(const struct taking *it)
{
	bool is_one = strcmp(it->value, "memory") == 0 || strcmp(it->value, "compute") == 0;

	it->options->beside = it->value;
	return is_one ? 0 : error_set(it->error, "--beside %.40s: must be one of: memory compute", it->value);
}

static int take_gpu(const struct taking *it)
{
	if (it->options->gpus.count == TOPOLOGY_GPUS_MAX)
		return error_set(it->error, "-G %.40s: more than %d GPUs", it->value, TOPOLOGY_GPUS_MAX);
	it->options->gpus.texts[it->options->gpus.count++] = it->value;
	return 0;
}

static int take_group(const struct taking *it)
{
	if (it->options->group && strcmp(it->options->group, it->value) != 0)
		return error_set(it->error, "--group: a program is in one group at a time: choose one");
	return take_name(it);
}

static int take_setting(const struct taking *it)
{
	int result = setting_parse(&it->options->settings, (enum setting)it->row->detail, it->value, SETTING_FOR_PEOPLE,
	                           it->error);

	if (result < 0)
		error_reword(it->error, "--%s%c%.40s: %.200s", it->row->name, it->row->value[0] == '[' ? '=' : ' ',
		             it->value, it->error->reason);
	return result;
}

/* --- the tables --------------------------------------------------------------------------------------------------- */

#define RUN (1u << ACTION_RUN)
#define CHANGE (1u << ACTION_CHANGE)
#define PID (1u << ACTION_SHOW | CHANGE)
#define LIST (1u << ACTION_LIST)
#define PICTURE (1u << ACTION_TOPOLOGY)
#define MEASURE (1u << ACTION_MEASURE)
#define MPS (1u << ACTION_MPS_STATUS)
#define STOP (1u << ACTION_MPS_STOP)
#define ENABLE (1u << ACTION_SYSTEM_ENABLE)
#define TOP (1u << ACTION_TOP)
#define TRACE (1u << ACTION_TRACE)
#define METRICS (1u << ACTION_METRICS)
#define ADD (1u << ACTION_CDI_ADD)
#define CDI (1u << ACTION_CDI | ADD | 1u << ACTION_CDI_REMOVE)
#define CURVE (1u << ACTION_CURVE)
#define PLAN (1u << ACTION_PLAN)
#define ALL (~0u)

#define FLAG(member) take_flag, offsetof(struct options, member), NULL
#define TEXT(member) take_text, offsetof(struct options, member)
#define NAME(member) take_name, offsetof(struct options, member)
#define SECONDS(member) take_seconds, offsetof(struct options, member)
#define WORD(member) take_word, offsetof(struct options, member)
#define ACTION(action) take_action, action, NULL
#define NOTATION(notation) take_notation, notation, NULL
#define SETTING_ROW(identifier, name, kind, member, behind, least, most, json, value, is_in_help, values, about) \
	{0, name, value, RUN | PID | ADD, is_in_help, take_setting, SETTING_##identifier, values, about},

const struct option_row tables_options[OPTION_ROWS] = {
	{'t', "tpc-list", NULL, RUN | PID | ADD, true, NOTATION(NOTATION_TPC_LIST),
	 "SET is a list of TPCs, such as 0-9,12,20-30:2"},
	{'g', "gpc-list", NULL, RUN | PID | ADD, true, NOTATION(NOTATION_GPC_LIST),
	 "SET is a list of GPCs, such as 0,2"},
	{'n', "count", NULL, RUN | CHANGE | ADD, true, NOTATION(NOTATION_COUNT),
	 "SET is a number of TPCs, such as 20, that nobody has"},
	{0, "strategy", "STRATEGY", RUN | CHANGE | ADD, false, take_strategy, offsetof(struct options, set.strategy),
	 "distributed packed", "how -n chooses"},
	{'p', "pid", NULL, RUN | PID, true, ACTION(ACTION_SHOW),
	 "show or change a running process; -a: and descendants"},
	{'a', "all-tasks", NULL, PID, false, FLAG(all_tasks), "with -p: a process and its descendants"},
	{0, "attach", NULL, PID, true, FLAG(attach), "with -p: a program that was started without nvtaskset"},
	{'l', "list", NULL, RUN | LIST, true, ACTION(ACTION_LIST),
	 "list programs, their TPCs and how much they launch"},
	{'T', "topology", NULL, RUN | PICTURE, true, ACTION(ACTION_TOPOLOGY),
	 "draw each GPU: its GPCs and TPCs, and their programs"},
	{0, "watch", "[=SECONDS]", LIST | PICTURE | METRICS, false, SECONDS(watch_seconds), NULL,
	 "again and again, with -l, -T or metrics --output"},
	{'G', "gpu", "GPU[:SET]", RUN | PID | PICTURE | MEASURE | ADD | CURVE | PLAN | TRACE, true, take_gpu, 0,
	 VALUES_GPUS, "which GPU: its number, bus id or UUID, or 'all'"},
	{0, "group", "NAME", RUN | PID, true, take_group, offsetof(struct options, group), VALUES_GROUPS,
	 "join a group, all in one SET; with -p: change it"},
	{0, "mps", "MODE", RUN | ADD | CURVE | PLAN, true, take_mps, offsetof(struct options, mps.mode), "auto on off",
	 "auto (default): side by side, by MPS; off: in turns"},
	{0, "connections", "N", RUN | MPS | ADD, false, take_connections, 0, "1 2 4 8 16 32",
	 "with N hardware queues for each client, 1-32; default 8"},
	SETTINGS(SETTING_ROW)
	{0, "on-misfit", "POLICY", RUN | ADD, false, WORD(misfit), "widen fail", "a launch that SET cannot hold"},
	{0, "hide", NULL, RUN | ADD, false, FLAG(hide), "COMMAND sees a GPU of its partition's size"},
	{0, "strict", NULL, RUN | ADD, true, FLAG(strict), "start nothing that cannot be kept inside SET"},
	{0, "dry-run", NULL, RUN | CHANGE | ENABLE | ADD, false, FLAG(dry_run),
	 "print what would be done, such as the TPCs of SET"},
	{0, "json", NULL, PID | LIST | PICTURE | TOP | CURVE | PLAN, false, FLAG(json),
	 "for programs: a JSON document"},
	{0, "busy", NULL, LIST | METRICS, false, FLAG(busy), "look how busy the GPUs are; with metrics --watch: all the time"},
	{'d', "delay", "SECONDS", TOP, false, SECONDS(delay_seconds), "0.5 1 5",
	 "between two looks, 0.1-86400; default 1"},
	{0, "once", NULL, TOP, false, FLAG(once),
	 "look for this long, print one page, and end; so it is where the output is no terminal"},
	{0, "format", "FORMAT", METRICS, false, WORD(format), "openmetrics prometheus",
	 "openmetrics (default), or prometheus: the classic format"},
	{'o', "output", "FILE", METRICS | CDI | TRACE, false, NAME(output), VALUES_FILES,
	 "the file to write"},
	{0, "seconds", "SECONDS", TRACE, false, SECONDS(trace_seconds), "1 10 60",
	 "record for so long, 0.1-86400; default: until Ctrl-C"},
	{0, "terminal", NULL, TRACE, false, FLAG(terminal), "draw instead: a line for each 0.4 s"},
	{0, "pool", "NAME", ADD, false, TEXT(pool), NULL,
	 "lend, borrow and have priorities among the containers of a pool"},
	{0, "beside", "KIND", CURVE, false, take_beside, 0, "memory compute",
	 "and once more beside a neighbour that copies, or computes"},
	{0, "kernels", "N", CURVE, false, take_kernels, 0, "1 10 100",
	 "N kernels are a job; default: those between two idle times"},
	{0, "svg", "FILE", CURVE, false, NAME(svg), VALUES_FILES, "draw the curve into FILE"},
	{0, "apply", NULL, PLAN, false, FLAG(apply), "start and change what the plan says: all or nothing"},
	{0, "check", "SECONDS", PLAN, false, SECONDS(check_seconds), "1 10 60",
	 "watch the programs for so long: missed deadlines, and predicted and measured times"},
	{0, "force", NULL, STOP, false, FLAG(force), "end any MPS, also while programs use it"},
	{'v', "verbose", NULL, ALL, true, FLAG(verbose), "say what is done; -h, --help: this; -V, --version"},
	{'h', "help", NULL, ALL, false, ACTION(ACTION_HELP), "display help"},
	{'V', "version", NULL, RUN, false, ACTION(ACTION_VERSION), "display the version"},
	/* Words were options once, and scripts may still use the options. The first is taskset's. */
	{'c', "cpu-list", NULL, RUN | PID | ADD, false, NOTATION(NOTATION_TPC_LIST), NULL},
	{0, "measure", NULL, ALL, false, ACTION(ACTION_MEASURE), NULL},
	{0, "mps-status", NULL, ALL, false, ACTION(ACTION_MPS_STATUS), NULL},
	{0, "mps-stop", NULL, ALL, false, ACTION(ACTION_MPS_STOP), NULL},
	{0, "enable-system", NULL, ALL, false, ACTION(ACTION_SYSTEM_ENABLE), NULL},
	{0, "disable-system", NULL, ALL, false, ACTION(ACTION_SYSTEM_DISABLE), NULL},
};

const struct word_row tables_words[WORD_ROWS] = {
	{"top", NULL, ACTION_TOP, " [PID]", "what programs do on the GPUs, live; the kernels of one"},
	{"trace", NULL, ACTION_TRACE, " [PID...]", "record what ran when, for ui.perfetto.dev"},
	{"curve", NULL, ACTION_CURVE, " PID|COMMAND", "a program's speed by the number of its TPCs"},
	{"plan", NULL, ACTION_PLAN, " FILE", "how many TPCs each task with a deadline needs"},
	{"metrics", NULL, ACTION_METRICS, "", "what 'top' shows, for Prometheus"},
	{"mps", NULL, ACTION_MPS_STATUS, "", "whether MPS runs, and for whom; stop it"},
	{"mps", "status", ACTION_MPS_STATUS, "",
	 "whether it runs, whose it is, how many more clients fit; this is what 'mps' alone does"},
	{"mps", "stop", ACTION_MPS_STOP, "", "end the MPS that nvtaskset started, if nobody uses it"},
	{"system", NULL, ACTION_SYSTEM_STATUS, "", "have every program of this machine carry the library"},
	{"system", "status", ACTION_SYSTEM_STATUS, "", "whether they do; this is what 'system' alone does"},
	{"system", "enable", ACTION_SYSTEM_ENABLE, "", "every program that starts from now on does; needs root"},
	{"system", "disable", ACTION_SYSTEM_DISABLE, "", "undo it; needs root"},
	{"cdi", NULL, ACTION_CDI, "", "give containers a partition as a device"},
	{"cdi", "list", ACTION_CDI, "", "the devices, and their containers; this is what 'cdi' alone does"},
	{"cdi", "add", ACTION_CDI_ADD, " SET NAME", "make the device NAME, or change it, live"},
	{"cdi", "remove", ACTION_CDI_REMOVE, " NAME", "remove it; its containers keep what they have"},
	{"measure", NULL, ACTION_MEASURE, "", "find out by launching kernels which TPC is where"},
};
