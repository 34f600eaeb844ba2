#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_MPS = 256,
	OPTION_CONNECTIONS
};

static const struct option long_options[] = {
	{"tpc-list", no_argument, NULL, 't'},
	{"gpc-list", no_argument, NULL, 'g'},
	{"pid", no_argument, NULL, 'p'},
	{"list", no_argument, NULL, 'l'},
	{"gpu", required_argument, NULL, 'G'},
	{"mps", required_argument, NULL, OPTION_MPS},
	{"connections", required_argument, NULL, OPTION_CONNECTIONS},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/* '+': the first word that is no option ends ours; what follows are COMMAND's. ':': we report errors. */
#define SHORT_OPTIONS "+:tgplG:vhV"

static int parse_mps(enum mps_mode *mode, const char *text, struct error *error)
{
	static const struct {
		const char *name;
		enum mps_mode mode;
	} modes[] = {{"auto", MPS_AUTO}, {"on", MPS_ON}, {"off", MPS_OFF}};
	bool found = false;

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(text, modes[i].name) == 0) {
			*mode = modes[i].mode;
			found = true;
		}
	}
	return found ? 0 : error_set(error, "--mps %.40s: must be auto, on or off", text);
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

static int set_notation(struct options *options, enum notation notation, struct error *error)
{
	if (options->notation != NOTATION_MASK && options->notation != notation)
		return error_set(error, "-t and -g: SET is a list of TPCs or of GPCs, not both");
	options->notation = notation;
	return 0;
}

static int add_gpu(struct options *options, const char *text, struct error *error)
{
	if (options->gpu_count == TOPOLOGY_GPUS_MAX)
		return error_set(error, "-G %.40s: more than %d GPUs", text, TOPOLOGY_GPUS_MAX);
	options->gpus[options->gpu_count++] = text;
	return 0;
}

/* `word` is the argument that getopt is at. */
static int unknown_option(int option, const char *word, struct error *error)
{
	if (option == ':' && optopt >= OPTION_MPS)
		return error_set(error, "%.40s: needs a value; try 'nvtaskset --help'", word);
	if (option == ':')
		return error_set(error, "-%c: needs a value; try 'nvtaskset --help'", optopt);
	if (optopt > 0 && optopt < 256)
		return error_set(error, "-%c: unknown option; try 'nvtaskset --help'", optopt);
	return error_set(error, "%.40s: unknown option; try 'nvtaskset --help'", word);
}

static int take_option(struct options *options, int option, const char *word, struct error *error)
{
	int result = 0;

	switch (option) {
	case 't':
		result = set_notation(options, NOTATION_TPC_LIST, error);
		break;
	case 'g':
		result = set_notation(options, NOTATION_GPC_LIST, error);
		break;
	case 'p':
		options->action = ACTION_SHOW;
		break;
	case 'l':
		options->action = ACTION_LIST;
		break;
	case 'G':
		result = add_gpu(options, optarg, error);
		break;
	case 'v':
		options->verbose = true;
		break;
	case OPTION_MPS:
		result = parse_mps(&options->mps.mode, optarg, error);
		break;
	case OPTION_CONNECTIONS:
		result = parse_connections(&options->mps.connections, optarg, error);
		break;
	default:
		result = unknown_option(option, word, error);
	}
	return result;
}

/* --- positional arguments --------------------------------------------------------------------------- */

/* Whether a -G has its own SET; gpus_choose finds out whether all have. */
static bool gpus_have_sets(const struct options *options)
{
	bool any = false;

	for (unsigned int i = 0; i < options->gpu_count; i++) {
		const char *colon = strrchr(options->gpus[i], ':');

		/* What follows the last colon of a bus id has a dot; sets have none. */
		any = any || (colon && !strchr(colon, '.'));
	}
	return any;
}

static int take_command(struct options *options, char **arguments, bool own_sets, struct error *error)
{
	if (!own_sets) {
		options->set = *arguments;
		if (!options->set)
			return error_set(error, "no SET and no COMMAND; try 'nvtaskset --help'");
		arguments++;
	}
	options->command = arguments;
	if (!arguments[0])
		return error_set(error, "no COMMAND; try 'nvtaskset --help'");
	return 0;
}

static int take_pid(struct options *options, char **arguments, int count, bool own_sets, struct error *error)
{
	int result = 0;

	if (count == 0)
		result = error_set(error, "-p: no PID; try 'nvtaskset --help'");
	else if (count > (own_sets ? 1 : 2))
		result = error_set(error, "'%.40s': one argument too many; try 'nvtaskset --help'",
		                   arguments[count - 1]);
	if (count == 2)
		options->set = arguments[0];
	if (count == 2 || own_sets)
		options->action = ACTION_CHANGE;
	if (count > 0)
		options->pid = arguments[count - 1];
	return result;
}

static int take_nothing(char **arguments, int count, struct error *error)
{
	return count == 0 ? 0 : error_set(error, "'%.40s': one argument too many; try 'nvtaskset --help'", arguments[0]);
}

int options_parse(struct options *options, int count, char **arguments, struct error *error)
{
	int option, result = 0;
	int word = 1;

	*options = (struct options){
		.action = ACTION_RUN,
		.mps = {.mode = MPS_AUTO},
	};
	opterr = 0;
	while (result == 0 &&
	       (option = getopt_long(count, arguments, SHORT_OPTIONS, long_options, NULL)) != -1) {
		/* Like everybody: these two act at once, whatever else is wrong. */
		if (option == 'h' || option == 'V') {
			options->action = option == 'h' ? ACTION_HELP : ACTION_VERSION;
			return 0;
		}
		result = take_option(options, option, arguments[word], error);
		word = optind;
	}
	if (result == 0) {
		bool own_sets = gpus_have_sets(options);

		if (options->action == ACTION_LIST)
			result = take_nothing(arguments + optind, count - optind, error);
		else if (options->action == ACTION_RUN)
			result = take_command(options, arguments + optind, own_sets, error);
		else
			result = take_pid(options, arguments + optind, count - optind, own_sets, error);
	}
	return result;
}
