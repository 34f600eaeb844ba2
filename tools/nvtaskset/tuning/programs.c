#include "programs.h"

#include "base/clock.h"
#include "cli/actions.h"
#include "select/set.h"
#include "select/targets.h"
#include "terminal/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	pid_t child; /* 0: no child */
	int pipe;
	struct restorer_memory { /* shared with the child */
		_Atomic size_t count;
		_Atomic enum restorer_way way;
		struct kept {
			pid_t pid;
			bool is_new;                         /* started by us */
			_Atomic bool is_changed;             /* has been edited: `before` is known */
			struct segment_revision before;      /* the partition to give back */
			struct segment_revision given, next; /* our last edit, and the edit in the making */
		} list[PROGRAMS_MAX];
	} *memory;
} restorer;

/* --- one GPU ------------------------------------------------------------------------------------------------------ */

int programs_space_open(struct space *space, const struct segment_revision *partition, const struct pids *ours,
                        struct error *error)
{
	struct gpu_choices chosen;

	if (topology_load(&space->list, error) < 0 ||
	    target_gpus(&chosen, space->given, &space->list, partition, error) < 0)
		return -1;
	space->gpu = chosen.choices[0].gpu;
	gpus_label(space->gpu->pci, &space->list, space->name);
	if (chosen.count != 1)
		return error_set(error, "one GPU at a time (-G)");
	return set_find_taken(&space->taken, space->gpu, &space->list, ours, error);
}

unsigned int programs_space_count(const struct space *space)
{
	struct tpcset all = topology_all(space->gpu), left = tpcset_without(&all, &space->taken);

	return tpcset_count(&left);
}

int programs_space_choose(const struct space *space, unsigned int tpcs, struct segment_partition *place,
                          struct error *error)
{
	place->pci = space->gpu->pci;
	return select_tpcs(&place->set, space->gpu, &space->taken, tpcs, STRATEGY_DISTRIBUTED, error);
}

/* --- the restorer ------------------------------------------------------------------------------------------------- */

static bool give_back(struct kept *kept)
{
	struct editor editor;
	enum segment_state state = editor_open(&editor, kept->pid, NULL, NULL);

	if (state != SEGMENT_FOUND)
		return state == SEGMENT_NO_PROCESS;
	bool is_back = (editor_take_back(&editor, &kept->next, &kept->before) == 0 &&
	                editor_take_back(&editor, &kept->given, &kept->before) == 0) || editor_has_ended(&editor);

	editor_close(&editor);
	return is_back;
}

/* -1 with the command that gives the partition back. */
static int explain_kept(const struct kept *kept, struct error *error)
{
	struct pci_address pci = kept->next.partitions[0].pci;
	const struct segment_partition *before = revision_find_partition(&kept->before, pci);
	char gpu[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];

	pci_address_format(pci, gpu);
	return error_set(error, "pid %d: its partition could not be given back; do so by nvtaskset -G %s -tp %s %d",
	                 (int)kept->pid, gpu, before ? tpcset_format_list(&before->set, list) : "all", (int)kept->pid);
}

/* A program's own programs, too: COMMAND may be a shell. program_start has made the group. */
static void end_process_group(pid_t pid, int signal)
{
	kill(-pid, signal);
}

static int give_all_back(enum restorer_way way, struct error *error)
{
	struct kept *end = restorer.memory->list + (way != RESTORER_LEAVES ? restorer.memory->count : 0);
	int result = 0;

	for (struct kept *kept = restorer.memory->list; kept < end; kept++) {
		if (kept->is_new && way == RESTORER_ENDS)
			end_process_group(kept->pid, SIGTERM);
		else if (kept->is_changed && !give_back(kept))
			result = explain_kept(kept, error);
	}
	return result;
}

/* No file of ours stays open: a reader of our output would wait for its end. */
static _Noreturn void restorer_main(int pipe)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;

	setsid();
	prctl(PR_SET_NAME, "keeps-partition", 0, 0, 0); /* safe from a kill of all processes named nvtaskset */
	signal(SIGTERM, SIG_IGN);
	for (int file = 0; file < 3; file++)
		dup2(nothing, file);
	close(restorer.pipe);
	(void)TEMP_FAILURE_RETRY(read(pipe, &byte, 1));
	_exit(give_all_back(restorer.memory->way, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

#define ENDING_SIGNALS (sizeof ending_signals / sizeof ending_signals[0])

static struct sigaction inherited[ENDING_SIGNALS];
static volatile sig_atomic_t told; /* the signal to end */

static void note_signal(int signal)
{
	told = signal;
}

/* An ignored signal stays ignored. */
static void note_signals(void)
{
	const struct sigaction noted = {.sa_handler = note_signal};

	for (size_t i = 0; i < ENDING_SIGNALS; i++) {
		sigaction(ending_signals[i], &noted, &inherited[i]);
		if (inherited[i].sa_handler == SIG_IGN)
			sigaction(ending_signals[i], &inherited[i], NULL);
	}
}

static void note_no_signals(void)
{
	for (size_t i = 0; i < ENDING_SIGNALS && restorer.child > 0; i++)
		sigaction(ending_signals[i], &inherited[i], NULL);
}

int programs_restorer_start(struct error *error)
{
	int ends[2];

	restorer.memory =
		mmap(NULL, sizeof *restorer.memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	restorer.child = restorer.memory != MAP_FAILED && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (restorer.child < 0)
		return error_set_errno(error, "a child that gives partitions back");
	restorer.pipe = ends[1];
	if (restorer.child == 0)
		restorer_main(ends[0]);
	close(ends[0]);
	note_signals();
	return 0;
}

bool programs_restorer_must_end(void)
{
	return told != 0;
}

/* Whether both are equal on each GPU of `wanted`. */
static bool have_same(const struct segment_revision *a, const struct segment_revision *b,
                      const struct segment_revision *wanted)
{
	bool have = true;

	for (uint32_t i = 0; i < wanted->count; i++) {
		const struct segment_partition *one = revision_find_partition(a, wanted->partitions[i].pci);
		const struct segment_partition *other = revision_find_partition(b, wanted->partitions[i].pci);

		have = have && (one && other ? tpcset_equal(&one->set, &other->set) : one == other);
	}
	return have;
}

/* An edit by another program is put in force again. */
int programs_restorer_change(struct editor *editor, const struct segment_revision *wanted, struct error *error)
{
	struct kept *kept = restorer.memory->list, *end = kept + restorer.memory->count;
	struct segment_revision seen;

	while (kept < end && kept->pid != editor->pid)
		kept++;
	bool is_first = kept == end || !kept->is_changed;

	kept->pid = editor->pid;
	if (is_first && editor_read(editor, &kept->before, error) < 0)
		return -1;
	kept->next = *wanted;
	kept->is_changed = true;
	if (kept == end)
		restorer.memory->count++;
	if (told != 0)
		return error_set(error, "told to end by a signal");
	if (editor_change_one(editor, wanted, &seen, error) < 0)
		return -1;
	if (!have_same(&seen, is_first ? &kept->before : &kept->given, wanted)) {
		editor_take_back(editor, wanted, &seen);
		return error_set(error, "pid %d: somebody else has changed its partition meanwhile", (int)editor->pid);
	}
	kept->given = *wanted;
	return 0;
}

/* The child may have been killed, and this process not. A signal counts also while the child gives back. */
int programs_restorer_end(enum restorer_way way, struct error *error)
{
	int status = 0, result = 0;

	if (restorer.child <= 0)
		return 0;
	way = told != 0 ? RESTORER_ENDS : way;
	restorer.memory->way = way;
	close(restorer.pipe);
	bool is_done = TEMP_FAILURE_RETRY(waitpid(restorer.child, &status, 0)) == restorer.child && status == 0;

	if (told != 0 && way != RESTORER_ENDS)
		result = give_all_back(RESTORER_ENDS, error);
	else if (!is_done)
		result = give_all_back(way, error);
	note_no_signals();
	restorer.child = 0;
	if (result == 0 && told != 0)
		raise(told);
	return result;
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

const char *program_mps(enum mps_mode mode)
{
	return mode == MPS_OFF ? "off" : mode == MPS_ON ? "on" : "auto";
}

/* The exec of COMMAND closes the pipe; otherwise the pipe has the reason. */
int program_start(pid_t *pid, char *line, char *command[], bool is_kept, struct error *error)
{
	struct error why = {.reason = ""};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || (*pid = fork()) < 0)
		return error_set_errno(error, "no process can be started");
	if (*pid == 0) {
		note_no_signals();
		setsid();
		if (is_kept) {
			restorer.memory->list[restorer.memory->count].pid = getpid();
			restorer.memory->list[restorer.memory->count].is_new = true;
			restorer.memory->count++;
		}
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		action_run_line(line, command, &why);
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
		is_open = editor_open(editor, pid, NULL, error) == SEGMENT_FOUND;
		is_early = is_open && is_new && counts_read(&editor->segment, pid, &counts, NULL) == 0 &&
		           counts.count == 0;
		obstacle = is_early ? "it has made no context on a GPU" : is_open ? target_obstacle(editor) : NULL;
		if (obstacle) {
			editor_close(editor);
			error_set(error, "pid %d: %s", (int)pid, obstacle);
		}
		progress_tick();
		clock_pause_us(20000);
	} while ((!is_open || is_early) && is_new && !programs_restorer_must_end() && !await_end(pid, WNOHANG) &&
	         clock_ms() < end);
	return is_open && !obstacle ? 0 : -1;
}

void program_end(pid_t pid, int signal)
{
	if (pid > 0) {
		end_process_group(pid, signal);
		await_end(pid, 0);
	}
}
