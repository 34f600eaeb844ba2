#include "actions.h"

#include <stdio.h>

/* The examples at the end are what most people look for. */
static const char help[] =
	"Usage: nvtaskset [options] SET COMMAND [ARG...]    run COMMAND inside SET\n"
	"       nvtaskset [options] -p PID                  show the partition of PID\n"
	"       nvtaskset [options] -p SET PID              change it, live\n"
	"       nvtaskset -l | -T                           who has which partition\n"
	"\n"
	"Keep the kernels of unmodified CUDA programs on the TPCs (pairs of SMs) that you\n"
	"name. SET is a hexadecimal mask of TPCs, unless an option says otherwise, or 'all'.\n"
	"\n"
	"Options:\n"
	" -t, --tpc-list         SET is a list of TPCs, such as 0-9,12,20-30:2\n"
	" -g, --gpc-list         SET is a list of GPCs, such as 0,2\n"
	" -n, --count            SET is a number of TPCs, such as 20 or 57%, that nobody has\n"
	"     --strategy WORD    with -n: packed (whole GPCs first, default) or distributed\n"
	"     --dry-run          print the TPCs of SET as a list, and do nothing else\n"
	" -p, --pid              show or change the partition of a running process\n"
	" -a, --all-tasks        with -p: the process and its descendants\n"
	" -l, --list             every program with a partition, its launches, and what was\n"
	"                        let through and why\n"
	" -T, --topology         a picture of each GPU: its GPCs and TPCs, and who has which\n"
	"     --watch[=SECONDS]  -l or -T again and again, each second by default\n"
	"     --json             for programs: -l, -T or -p as a JSON document\n"
	" -G, --gpu GPU[:SET]    which GPU: its number, bus id or UUID, or 'all'; may be\n"
	"                        repeated, each with its own SET; default: the first visible\n"
	"     --measure          find out by launching kernels which TPC is where, and keep it\n"
	"     --mps MODE         auto: use MPS's control daemon, or start it (default);\n"
	"                        on: only one that runs; off: no MPS, programs take turns\n"
	"     --connections N    hardware queues of COMMAND under MPS, 1-32; default 8\n"
	"     --mps-status       whether MPS runs, whose it is, and how many more clients fit\n"
	"     --mps-stop         end the MPS that nvtaskset started, if nobody uses it\n"
	"     --force            with --mps-stop: whoever started it, and whoever uses it\n"
	"     --hide             COMMAND is told of a GPU of its partition's size\n"
	"     --on-misfit WORD   a cluster or cooperative launch that SET cannot hold:\n"
	"                        widen (default) its partition, or fail\n"
	"     --strict           start nothing that cannot be kept inside SET, and end what\n"
	"                        would leave it\n"
	" -v, --verbose          say what is done\n"
	" -h, --help             display this help\n"
	" -V, --version          display the version\n"
	"\n"
	"Examples:\n"
	" nvtaskset -t 0-7 ./infer             run ./infer on TPCs 0 to 7\n"
	" nvtaskset -g 2 python3 train.py      run a program on the whole of GPC 2\n"
	" nvtaskset -n 57% ./infer             run it on 57% of the TPCs, that nobody has\n"
	" nvtaskset -tp 8-15 1234              move process 1234 to TPCs 8 to 15, live\n"
	" nvtaskset -tp 1234                   which TPCs may process 1234 use?\n"
	"\n"
	"For more, see nvtaskset(1).\n";

void action_help(void)
{
	fputs(help, stdout);
}
