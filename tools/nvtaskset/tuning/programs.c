#include "programs.h"

#include "base/clock.h"
#include "cli/actions.h"
#include "cli/parse.h"
#include "select/set.h"
#include "select/targets.h"
#include "terminal/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 20
#define FIRST_EDIT 2 /* the number of a segment's first one: of a new one too, to which a program has moved */

static struct {
	pid_t child; /* 0: there is none */
	int pipe;
	struct keeper_memory { /* shared with it */
		_Atomic size_t count;
		struct kept {
			pid_t pid;
			bool is_new; /* it is ended. Otherwise: */
			bool was_changed;
			struct segment_undo first, last; /* of our edits; each is written just before it is in force */
		} list[PROGRAMS_MAX];
	} *memory;
} keeper;

/* --- one GPU ------------------------------------------------------------------------------------------------------------------ */

int room_open(struct room *room, const struct segment_revision *partition, const struct pids *ours, struct error *error)
{
	struct gpu_choices chosen;

	if (topology_load(&room->list, error) < 0 || target_gpus(&chosen, room->options, &room->list, partition, error) < 0)
		return -1;
	room->gpu = chosen.choices[0].gpu;
	gpus_label(room->gpu->pci, &room->list, room->name);
	if (chosen.count != 1)
		return error_set(error, "one GPU at a time (-G)");
	return set_find_taken(&room->taken, room->gpu, &room->list, ours, error);
}

unsigned int room_count(const struct room *room)
{
	struct tpcset all = topology_all(room->gpu), left = tpcset_without(&all, &room->taken);

	return tpcset_count(&left);
}

int room_choose(const struct room *room, unsigned int tpcs, struct segment_partition *place, struct error *error)
{
	place->pci = room->gpu->pci;
	return select_tpcs(&place->set, room->gpu, &room->taken, tpcs, room->options->strategy, error);
}

/* --- the keeper --------------------------------------------------------------------------------------------------------------- */

/* Where one of our edits is the last one, or a program has moved since, and nobody has edited the new segment. */
static bool give_back(const struct kept *kept)
{
	const uint64_t edits[] = {kept->last.edit, kept->last.edit - 1, kept->first.edit, kept->was_changed ? FIRST_EDIT - 1 : 0};
	struct editor editor;
	bool is_back = true;

	if (editor_open(&editor, kept->pid, NULL) != SEGMENT_FOUND)
		return true;
	for (size_t i = 0; i < sizeof edits / sizeof edits[0] && is_back; i++)
		is_back = segment_take_back(&editor.segment, &(struct segment_undo){edits[i], kept->first.before}, NULL) == 0;
	return is_back || editor_has_ended(&editor);
}

/* Nothing of ours stays open here: a reader of our output would wait for its end. */
static _Noreturn void keep(int pipe)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool all = true;
	char byte;

	setsid();
	prctl(PR_SET_NAME, "keeps-partition", 0, 0, 0); /* who kills all that are named nvtaskset does not mean this */
	signal(SIGTERM, SIG_IGN);
	for (int file = 0; file < 3; file++)
		dup2(nothing, file);
	close(keeper.pipe);
	bool gives_back = TEMP_FAILURE_RETRY(read(pipe, &byte, 1)) <= 0;

	for (struct kept *kept = keeper.memory->list; kept < keeper.memory->list + keeper.memory->count && gives_back; kept++)
		all = (kept->is_new ? kill(kept->pid, SIGTERM) == 0 || errno == ESRCH : give_back(kept)) && all;
	_exit(all ? EXIT_SUCCESS : EXIT_FAILURE);
}

int keeper_start(struct error *error)
{
	int ends[2];

	keeper.memory = mmap(NULL, sizeof *keeper.memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	keeper.child = keeper.memory != MAP_FAILED && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (keeper.child < 0)
		return error_set_errno(error, "a child that gives partitions back");
	keeper.pipe = ends[1];
	if (keeper.child == 0)
		keep(ends[0]);
	close(ends[0]);
	return 0;
}

/* Somebody else's edit is put in force again. */
int keeper_change(struct editor *editor, const struct segment_revision *wanted, struct error *error)
{
	struct kept *kept = keeper.memory->list, *end = kept + keeper.memory->count;

	while (kept < end && kept->pid != editor->pid)
		kept++;
	struct segment_undo *undo = kept->was_changed ? &kept->last : &kept->first;
	uint64_t expected = (kept->last.edit > 0 ? kept->last.edit : kept->first.edit) + 1;

	kept->pid = editor->pid;
	if (kept == end)
		keeper.memory->count++;
	if (editor_change_one(editor, wanted, undo, error) < 0)
		return -1;
	if (kept->was_changed && undo->edit != expected && undo->edit != FIRST_EDIT) {
		segment_take_back(&editor->segment, undo, NULL);
		return error_set(error, "pid %d: somebody else has changed its partition meanwhile", (int)editor->pid);
	}
	kept->was_changed = true;
	return 0;
}

int keeper_end(bool gives_back)
{
	int status = 0;

	if (keeper.child <= 0)
		return 0;
	bool is_told = gives_back || write(keeper.pipe, "", 1) == 1;

	close(keeper.pipe);
	TEMP_FAILURE_RETRY(waitpid(keeper.child, &status, 0));
	keeper.child = 0;
	return is_told && status == 0 ? 0 : -1;
}

/* --- starting ----------------------------------------------------------------------------------------------------------------- */

/* The parser sees a word in the place of COMMAND: it is not to look at that. */
int program_parse(struct options *options, char *line, char *command[], struct error *error)
{
	static char *words[WORDS_MAX];
	int count = 0;

	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		words[count++] = word;
	if (command)
		words[count++] = "COMMAND";
	words[count] = NULL;
	optind = 0;
	int result = parse_options(options, count, words, error);

	options->command = command;
	return result;
}

const char *program_mps(const struct options *options)
{
	return options->mps.mode == MPS_OFF ? "off" : options->mps.mode == MPS_ON ? "on" : "auto";
}

/* The pipe is closed by the exec of COMMAND, or has the reason. */
int program_start(pid_t *pid, char *line, char *command[], bool is_kept, struct error *error)
{
	struct error why = {.reason = ""};
	struct options options;
	int ends[2];

	if (program_parse(&options, line, command, error) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0 || (*pid = fork()) < 0)
		return error_set_errno(error, "no process can be started");
	if (*pid == 0) {
		setsid();
		if (is_kept) {
			keeper.memory->list[keeper.memory->count] = (struct kept){.pid = getpid(), .is_new = true};
			keeper.memory->count++;
		}
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		action_run(&options, &why);
		_exit(write(ends[1], &why, sizeof why) == sizeof why ? EXIT_FAILURE : EXIT_NOT_FOUND);
	}
	close(ends[1]);
	bool is_started = TEMP_FAILURE_RETRY(read(ends[0], &why, sizeof why)) == 0;

	close(ends[0]);
	*pid = is_started ? *pid : 0;
	return is_started ? 0 : error_pass(error, &why);
}

static bool await_end(pid_t pid, int options)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | options) < 0 || info.si_pid != 0;
}

int program_open(struct editor *editor, pid_t pid, bool is_new, struct error *error)
{
	double end = clock_ms() + PROGRAM_SECONDS * 1000;
	struct counts counts;
	const char *obstacle;
	bool is_open, is_early;

	do {
		is_open = editor_open(editor, pid, error) == SEGMENT_FOUND;
		is_early = is_open && is_new && counts_read(&editor->segment, pid, &counts, NULL) == 0 && counts.count == 0;
		obstacle = is_early ? "it has made no context on a GPU" : is_open ? target_obstacle(editor) : NULL;
		if (obstacle) {
			editor_close(editor);
			error_set(error, "pid %d: %s", (int)pid, obstacle);
		}
		progress_tick();
		clock_pause_us(20000);
	} while ((!is_open || is_early) && is_new && !await_end(pid, WNOHANG) && clock_ms() < end);
	return is_open && !obstacle ? 0 : -1;
}

void program_end(pid_t pid, int signal)
{
	if (pid > 0) {
		kill(pid, signal);
		await_end(pid, 0);
	}
}
