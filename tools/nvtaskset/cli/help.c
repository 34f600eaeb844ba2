/* The text of --help: the needs of a newcomer, in 40 lines of 80 columns. All options are in the man page. */
#include "actions.h"
#include "tables.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 80
#define NAMES 22 /* the width of the column of names, which begins in column 1 */

static const char beginning[] =
	"Usage: nvtaskset [options] SET COMMAND [ARG...]   run COMMAND inside SET\n"
	"       nvtaskset [options] -p [SET] PID           show or change a program's SET\n"
	"       nvtaskset -l | -T                          which program has which TPCs\n"
	"       nvtaskset top|trace|curve|plan|metrics|mps|system|cdi|measure\n"
	"\n"
	"Keep the kernels of unmodified CUDA programs on the TPCs (pairs of SMs) that you\n"
	"name. SET: a hexadecimal mask, 'all', or as -t, -g, -n say. Options may follow.\n"
	"\n";

static const char end[] =
	"\n"
	"Examples:\n"
	" nvtaskset -t 0-7 ./infer             run ./infer on TPCs 0 to 7\n"
	" nvtaskset -tp 8-15 1234              move process 1234 to TPCs 8 to 15, live\n"
	"\n"
	"All options, with what they promise: man nvtaskset\n";

static const struct {
	const char *word, *beginning, *end;
} words[] = {
	{"top",
	 "Usage: nvtaskset top [--delay SECONDS] [--once] [--json] [PID]\n"
	 "\n"
	 "Show again and again which programs use the GPUs, how much, and how many kernels\n"
	 "they run; with PID, this program and its kernels. A - is not known, and not 0.\n"
	 "\n",
	 "\n"
	 "Keys: q or F10 quit, h help, P and T sort by BUSY% and TIME, < > F6 by others,\n"
	 "u one user's programs, / search, n the next one, Z pause, arrows scroll\n"},
	{"curve",
	 "Usage: nvtaskset curve [options] PID\n"
	 "       nvtaskset curve [options] COMMAND [ARG...]\n"
	 "\n"
	 "Measure how long a job of the program takes with some ten numbers of TPCs, while\n"
	 "it does its usual work. Its partition is then as before, also if this is killed.\n"
	 "\n", ""},
	{"plan",
	 "Usage: nvtaskset plan [--apply] [--check SECONDS] [--json] FILE\n"
	 "\n"
	 "Find sizes of partitions with which the tasks in FILE meet their deadlines, and\n"
	 "which share one. FILE is JSON; curves come from 'nvtaskset curve --json'.\n"
	 "\n", ""},
	{"trace",
	 "Usage: nvtaskset trace [-o FILE | --terminal] [options] [PID...]\n"
	 "\n"
	 "Record one timeline of the programs on the GPUs: kernels, graphs, partitions and\n"
	 "their changes. ui.perfetto.dev and chrome://tracing open the file.\n"
	 "\n", ""},
	{"metrics",
	 "Usage: nvtaskset metrics [--format FORMAT] [--output FILE]\n"
	 "       nvtaskset metrics --output FILE --watch[=SECONDS] [--busy]\n"
	 "\n"
	 "Write what programs have done on the GPUs, for Prometheus: to standard output,\n"
	 "or to a file that node_exporter reads, once or again and again.\n"
	 "\n",
	 "\n"
	 "As a service: systemctl start nvtaskset-metrics\n"},
	{"mps",
	 "Usage: nvtaskset mps [status] [--connections N]\n"
	 "       nvtaskset mps stop [--force]\n"
	 "\n"
	 "NVIDIA MPS lets several programs run on a GPU at the same time. nvtaskset starts\n"
	 "it with the first COMMAND (--mps auto), and leaves it running.\n"
	 "\n", ""},
	{"system",
	 "Usage: nvtaskset system [status]\n"
	 "       nvtaskset system enable [--dry-run]\n"
	 "       nvtaskset system disable\n"
	 "\n"
	 "Have every program of this machine carry the library, so that -p can give it a\n"
	 "partition although it was started without nvtaskset.\n"
	 "\n", ""},
	{"cdi",
	 "Usage: nvtaskset cdi [list]\n"
	 "       nvtaskset cdi add [options] SET NAME\n"
	 "       nvtaskset cdi remove NAME\n"
	 "\n"
	 "Write a specification of CDI, by which docker, podman and Kubernetes give their\n"
	 "containers a partition, as the device nvtaskset/group=NAME.\n"
	 "\n", ""},
	{"measure",
	 "Usage: nvtaskset measure [-G GPU]\n"
	 "\n"
	 "Find out by launching kernels which mask bit and virtual GPC each TPC has, and\n"
	 "keep the answer for -n and -T. Needed only where -T says that it does not know.\n"
	 "\n", ""},
};

/* With a word, an option of several actions has a text for the word. */
static const struct {
	const char *word, *option, *about;
} own_texts[] = {
	{"top", "json", "a JSON document on a line for each look; with --once, on several lines"},
	{"curve", "json", "the curve as a JSON document, which 'plan' reads"},
	{"plan", "json", "the plan as a JSON document"},
	{"curve", "gpu", "the GPU to measure on: its number, bus id or UUID"},
	{"plan", "gpu", "the GPU to divide: its number, bus id or UUID"},
	{"measure", "gpu", "which GPUs; default: all that CUDA sees"},
	{"curve", "mps", "how COMMAND is started: auto (default) or on: by MPS; off: without"},
	{"plan", "mps", "how tasks are started: auto (default) or on: by MPS; off: without, and no task lends"},
	{"cdi", "mps", "auto (default): by the MPS that runs, if one does; on: only so; off: in turns"},
	{"mps", "connections", "how many clients fit with N hardware queues each, 1-32; default 8"},
	{"cdi", "connections", "with N hardware queues for each program, 1-32; default 8"},
	{"system", "dry-run", "print what would be done, and do nothing"},
	{"cdi", "dry-run", "print the TPCs of SET, and do nothing"},
	{"metrics", "output",
	 "replace FILE as a whole; for node_exporter's textfile collector: FILE.prom, with --format prometheus"},
	{"trace", "gpu", "only this GPU: its number, bus id or UUID; default: all"},
	{"trace", "output", "the file to write; default: standard output"},
	{"cdi", "output", "the specification, FILE.json; default: /run/cdi/nvtaskset.json"},
	{"cdi", "quota", "present for 30% of the time, or so; max: all of it"},
	{"cdi", "priority", "go first, of 0-99"},
	{"cdi", "hide", "containers see a GPU of their partition's size"},
	{"cdi", "strict", "a container that cannot be kept inside SET does not start"},
};

static void print_entry(const char *name, const char *about)
{
	int column = printf(" %-*s", NAMES, name);

	while (*about) {
		int length = (int)strcspn(about, " ");

		if (column + 1 + length > WIDTH)
			column = printf("\n%*s", NAMES + 1, "") - 1;
		column += printf(" %.*s", length, about);
		about += length + (about[length] == ' ');
	}
	putchar('\n');
}

static const char *about_with(const char *word, const struct option_row *row)
{
	const char *about = row->about;

	for (size_t i = 0; i < sizeof own_texts / sizeof own_texts[0]; i++) {
		if (strcmp(own_texts[i].word, word) == 0 && strcmp(own_texts[i].option, row->name) == 0)
			about = own_texts[i].about;
	}
	return about;
}

/* Behind a word, a GPU has no SET, but for "cdi add". */
static const char *value_with(const char *word, const struct option_row *row)
{
	return row->letter == 'G' && strcmp(word, "cdi") != 0 ? "GPU" : row->value;
}

static void print_option(const struct option_row *row, const char *value, const char *about)
{
	char letter[8] = "", name[64];

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c,", row->letter);
	snprintf(name, sizeof name, "%-3s --%s%s%s", letter, row->name, value && value[0] != '[' ? " " : "",
	         value ? value : "");
	print_entry(name, about);
}

static unsigned int actions_of(const char *word)
{
	unsigned int actions = 0;

	for (size_t i = 0; i < WORD_ROWS; i++)
		actions |= strcmp(word, tables_words[i].first) == 0 ? 1u << tables_words[i].action : 0;
	return actions;
}

static void show_word(const char *word)
{
	size_t i = 0;

	while (strcmp(words[i].word, word) != 0)
		i++;
	fputs(words[i].beginning, stdout);
	for (size_t row = 0; row < WORD_ROWS; row++) {
		if (tables_words[row].second && strcmp(tables_words[row].first, word) == 0)
			print_entry(tables_words[row].second, tables_words[row].about);
	}
	for (size_t row = 0; row < OPTION_ROWS; row++) {
		const struct option_row *option = &tables_options[row];

		if (option->about && (option->actions & actions_of(word)) && ~option->actions != 0)
			print_option(option, value_with(word, option), about_with(word, option));
	}
	fputs(words[i].end, stdout);
}

static void show_all(void)
{
	char name[NAMES];

	fputs(beginning, stdout);
	for (size_t row = 0; row < OPTION_ROWS; row++) {
		if (tables_options[row].is_in_help)
			print_option(&tables_options[row], tables_options[row].value, tables_options[row].about);
	}
	puts("\nWords, each with its own --help:");
	for (size_t row = 0; row < WORD_ROWS; row++) {
		snprintf(name, sizeof name, "%s%s", tables_words[row].first, tables_words[row].value);
		if (!tables_words[row].second)
			print_entry(name, tables_words[row].about);
	}
	fputs(end, stdout);
}

int action_help(const struct options *options, struct error *error)
{
	(void)error;
	if (options->word)
		show_word(options->word);
	else
		show_all();
	return 0;
}

int help_refer(const struct options *options, struct error *error, const char *what, const char *why)
{
	const char *word = options->word ? options->word : "";

	return error_set(error, "%.42s: %s; try 'nvtaskset %s%s--help'", what, why, word, options->word ? " " : "");
}
