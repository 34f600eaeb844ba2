/* What --help prints: what a newcomer needs, in 40 lines of 80 columns. All options are in the man page. */
#include "actions.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: nvtaskset [options] SET COMMAND [ARG...]   run COMMAND inside SET\n"
	"       nvtaskset [options] -p [SET] PID           show or change a program's SET\n"
	"       nvtaskset -l | -T                          who has which TPCs; a picture\n"
	"       nvtaskset top | metrics | mps | system | measure   see below\n"
	"\n"
	"Keep the kernels of unmodified CUDA programs on the TPCs (pairs of SMs) that you\n"
	"name. SET: a hexadecimal mask, 'all', or as -t, -g, -n say. Options may follow.\n"
	"\n"
	" -t, --tpc-list         SET is a list of TPCs, such as 0-9,12,20-30:2\n"
	" -g, --gpc-list         SET is a list of GPCs, such as 0,2\n"
	" -n, --count            SET is a number of TPCs, such as 20, that nobody has\n"
	" -p, --pid              show or change a running process; -a: descendants, too\n"
	"     --attach           with -p: a program that was started without nvtaskset\n"
	" -l, --list             list programs, their TPCs and how much they launch\n"
	" -T, --topology         draw each GPU: its GPCs and TPCs, and who has which\n"
	"     --watch[=SECONDS]  with -l or -T: again and again; --json: for programs\n"
	" -G, --gpu GPU[:SET]    which GPU: its number, bus id or UUID, or 'all'\n"
	"     --group NAME       join a group, all in one SET; with -p: change it\n"
	"     --memory SIZE      at most so much GPU memory, such as 2G, by MPS\n"
	"     --mps MODE         auto (default): side by side, by MPS; off: in turns\n"
	"     --quota 30%        present for 30% of the time; --lend, --borrow idle TPCs\n"
	"     --priority 80      go first, of 0-99; --weight 200: twice as much as others\n"
	"     --hide             COMMAND sees a GPU of its partition's size\n"
	"     --strict           start nothing that cannot be kept inside SET\n"
	"     --dry-run          print the TPCs of SET, and start nothing\n"
	" -v, --verbose          say what is done; -h, --help: this; -V, --version\n"
	"\n"
	"Words, each with its own --help:\n"
	" top [PID]              what programs do on the GPUs, live; the kernels of one\n"
	" metrics                the same for Prometheus\n"
	" mps                    whether MPS runs, and for whom; stop it\n"
	" system                 have every program of this machine carry the library\n"
	" measure                find out by launching kernels which TPC is where\n"
	"\n"
	"Examples:\n"
	" nvtaskset -t 0-7 ./infer             run ./infer on TPCs 0 to 7\n"
	" nvtaskset -n 57% ./infer             run it on 57% of the TPCs, that nobody has\n"
	" nvtaskset -tp 8-15 1234              move process 1234 to TPCs 8 to 15, live\n"
	"\n"
	"All options, with what they promise: man nvtaskset\n";

static const struct {
	const char *word, *text;
} words[] = {
	{"top",
	 "Usage: nvtaskset top [--delay SECONDS] [--once] [--json] [PID]\n"
	 "\n"
	 "Show again and again which programs use the GPUs, how much, and how many kernels\n"
	 "they run; with PID, this program and its kernels. A - is not known, and not 0.\n"
	 "\n"
	 "     --delay SECONDS    between two looks, 0.1-86400; default 1\n"
	 "     --once             look for this long, print one page, and end; so it is\n"
	 "                        where the output is no terminal\n"
	 "     --json             for programs: a document on a line for each look\n"
	 "\n"
	 "Keys: q quit, ? help, P and T sort by BUSY% and TIME, < > F6 by other columns,\n"
	 "u one user's programs, / search, n the next one, Z pause, arrows scroll\n"},
	{"metrics",
	 "Usage: nvtaskset metrics [--format FORMAT] [--output FILE | --busy]\n"
	 "\n"
	 "Write what programs have done on the GPUs, for Prometheus: to standard output,\n"
	 "or to who connects to a socket of systemd's.\n"
	 "\n"
	 "     --format FORMAT    openmetrics (default); prometheus: the classic format;\n"
	 "                        on a socket, the default is what the client asks for\n"
	 "     --output FILE      replace FILE as a whole, for node_exporter's textfile\n"
	 "                        collector: with --format prometheus, FILE.prom\n"
	 "     --busy             on a socket: measure all the time how long GPUs are busy\n"
	 "\n"
	 "The socket: systemctl start nvtaskset-metrics.socket\n"},
	{"mps",
	 "Usage: nvtaskset mps [status] [--connections N]\n"
	 "       nvtaskset mps stop [--force]\n"
	 "\n"
	 "NVIDIA MPS lets several programs run on a GPU at the same time. nvtaskset starts\n"
	 "it with the first COMMAND (--mps auto), and leaves it running.\n"
	 "\n"
	 " status                 whether it runs, whose it is, how many more clients fit;\n"
	 "                        this is what 'mps' alone does\n"
	 "     --connections N    with N hardware queues for each client, 1-32; default 8\n"
	 " stop                   end the MPS that nvtaskset started, if nobody uses it\n"
	 "     --force            end it whoever started it, and whoever uses it\n"},
	{"system",
	 "Usage: nvtaskset system [status]\n"
	 "       nvtaskset system enable [--dry-run]\n"
	 "       nvtaskset system disable\n"
	 "\n"
	 "Have every program of this machine carry the library, so that -p can give it a\n"
	 "partition although it was started without nvtaskset.\n"
	 "\n"
	 " status                 whether they do; this is what 'system' alone does\n"
	 " enable                 every program that starts from now on does; needs root\n"
	 "     --dry-run          print what would be written, and change nothing\n"
	 " disable                undo it; needs root\n"},
	{"measure",
	 "Usage: nvtaskset measure [-G GPU]\n"
	 "\n"
	 "Find out by launching kernels which TPC is in which GPC, and keep the answer for\n"
	 "-g, -n and -T. This is needed only where -T says that it does not know.\n"
	 "\n"
	 " -G, --gpu GPU          which GPU: its number, bus id or UUID, or 'all'\n"},
};

void help_show(const char *word)
{
	const char *text = help;

	for (size_t i = 0; word && i < sizeof words / sizeof words[0]; i++) {
		if (strcmp(word, words[i].word) == 0)
			text = words[i].text;
	}
	fputs(text, stdout);
}

int help_refer(const struct options *options, struct error *error, const char *what, const char *why)
{
	const char *word = options->word ? options->word : "";

	return error_set(error, "%.42s: %s; try 'nvtaskset %s%s--help'", what, why, word, options->word ? " " : "");
}
