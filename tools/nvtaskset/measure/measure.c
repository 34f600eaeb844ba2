/*
 * 'measure' has two processes. The child launches kernels, and infers the mask bit and the virtual GPC of each TPC from
 * the SMs of the kernels. There CUDA may hang, crash and take half a gigabyte of memory. The parent waits for the
 * child, and ends a child without progress.
 */
#include "cli/actions.h"

#include "base/error.h"
#include "cli/gpus.h"
#include "gpu/topology/cache.h"
#include "gpu/topology/measured.h"
#include "gpu/topology/topology.h"
#include "launcher.h"
#include "mps/client.h"
#include "start/driver.h"
#include "start/front.h"
#include "state/revision_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory that parent and child share. The parent sets the first members before the child begins. */
struct measure_report {
	const struct gpus_given *given;
	char library[PATH_MAX + 16]; /* our library, through which the child works */
	bool is_verbose;
	_Atomic unsigned int progress; /* rises with each launch */
	_Atomic bool done;             /* set last */
	struct error error;            /* an empty reason: success */
	struct topology_list measured; /* in the order of choice */
	enum measured_numbers numbers[TOPOLOGY_GPUS_MAX];
};

/* The SMs with blocks depend on chance. An SM without a block in ATTEMPTS_MIN launches is taken for disabled; if the
 * SMs without blocks are more than one TPC's, only in ATTEMPTS_MAX launches. */
#define ATTEMPTS_MIN 3
#define ATTEMPTS_MAX 30

/* To fill a virtual GPC of an odd number of TPCs, a cluster needs an odd number of TPCs. */
static const unsigned int cluster_sizes[] = {2, 3, 4, 5, 6, 7, 8, 12, 16};
#define CLUSTER_ROUNDS 16

#define SUBSETS 40u

/* --- the environment ------------------------------------------------------------------------------------------ */

/* CUDA must see all GPUs, in the order of their PCI addresses, and must not use MPS, which renumbers SMs. Afterwards
 * the user's variables are restored: they decide which GPUs the user sees. */
static int start_launcher(const struct measure_report *report, struct topology_list *gpus, struct error *error)
{
	const struct mps_request none = {.mode = MPS_OFF};
	struct mps_status status;
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
	char *shown = visible ? strdup(visible) : NULL, *ordered = order ? strdup(order) : NULL;
	int result = mps_prepare(&none, &status, error);

	unsetenv(SEGMENT_ENVIRONMENT);
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("NVTASKSET_LOG", report->is_verbose ? "on" : "off", 1);
	if (result == 0)
		result = launcher_start(report->library, gpus, error);
	unsetenv("CUDA_DEVICE_ORDER");
	if (ordered)
		setenv("CUDA_DEVICE_ORDER", ordered, 1);
	if (shown)
		setenv("CUDA_VISIBLE_DEVICES", shown, 1);
	free(shown);
	free(ordered);
	return result;
}

static int choose(const struct gpus_given *given, const struct topology_list *gpus, struct gpu_choices *chosen,
                  struct error *error)
{
	return given->count > 0 ? gpus_choose(chosen, gpus, given, error) : gpus_visible(chosen, gpus, error);
}

/* --- one GPU --------------------------------------------------------------------------------------------------- */

struct subject {
	struct launcher launcher;
	struct measured measured;
	struct measure_report *report;
};

/* Launches once, and notes in `ran` the SMs on which blocks ran. */
static int observe(struct subject *subject, bool *ran, struct error *error)
{
	uint32_t sms[LAUNCHER_BLOCKS_MAX];
	unsigned int count;

	atomic_fetch_add(&subject->report->progress, 1);
	return launcher_run(&subject->launcher, 0, sms, &count, error) < 0
	               ? -1
	               : measured_see(&subject->measured, ran, sms, count, error);
}

static bool is_worth_another_launch(const struct subject *subject, unsigned int bit, int attempt)
{
	return attempt < ATTEMPTS_MIN ||
	       (attempt < ATTEMPTS_MAX &&
	        measured_missing(&subject->measured, bit) > subject->launcher.gpu->sms_per_tpc);
}

/* Launches with all bits, for TPCSET_MAX, or with all but `bit`. */
static int observe_without(struct subject *subject, unsigned int bit, struct error *error)
{
	struct tpcset bits = topology_all(subject->launcher.gpu);
	bool is_all = bit == TPCSET_MAX, *ran = is_all ? subject->measured.ran : subject->measured.ran_without[bit];

	tpcset_remove(&bits, bit);
	int result = launcher_enable(&subject->launcher, &bits, error);

	for (int attempt = 0; result == 0 && (is_all ? attempt < ATTEMPTS_MAX
	                                             : is_worth_another_launch(subject, bit, attempt)); attempt++)
		result = observe(subject, ran, error);
	return result;
}

/* The whole GPU must be enabled: in a partition that cannot hold a cluster, our library would widen the partition. */
static int observe_clusters(struct subject *subject, unsigned int size, struct error *error)
{
	uint32_t sms[LAUNCHER_BLOCKS_MAX];
	unsigned int count = size;
	int result = 0;

	for (int round = 0; round < CLUSTER_ROUNDS && result == 0 && count > 0; round++) {
		atomic_fetch_add(&subject->report->progress, 1);
		result = launcher_run(&subject->launcher, size, sms, &count, error);
		if (result == 0)
			result = measured_see_clusters(&subject->measured, size, sms, count, error);
	}
	return result;
}

static int observe_everything(struct subject *subject, struct error *error)
{
	const struct topology *gpu = subject->launcher.gpu;
	const size_t sizes = gpu->compute_major >= 9 ? sizeof cluster_sizes / sizeof cluster_sizes[0] : 0;
	int result = observe_without(subject, TPCSET_MAX, error);

	for (size_t i = 0; i < sizes && result == 0; i++)
		result = observe_clusters(subject, cluster_sizes[i], error);
	for (unsigned int bit = 0; bit < gpu->tpc_count && result == 0; bit++)
		result = observe_without(subject, bit, error);
	return result < 0 ? -1 : launcher_check(&subject->launcher, error);
}

/* --- verification ---------------------------------------------------------------------------------------------- */

/* Checks that kernels run on all SMs of the TPCs, and nowhere else. */
static int check_set(struct subject *subject, const struct topology *gpu, const struct tpcset *set,
                     struct error *error)
{
	bool ran[MEASURED_SMS_MAX] = {false};
	struct tpcset bits = {{0}};
	int result;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		tpcset_add(&bits, tpcset_has(set, tpc) ? gpu->tpcs[tpc].mask_bit : TPCSET_MAX);
	result = launcher_enable(&subject->launcher, &bits, error);
	for (int attempt = 0; attempt < ATTEMPTS_MIN && result == 0; attempt++)
		result = observe(subject, ran, error);
	for (unsigned int sm = 0; sm < subject->launcher.sm_count && result == 0; sm++) {
		unsigned int tpc = sm / gpu->sms_per_tpc;

		if (ran[sm] != tpcset_has(set, tpc))
			result = error_set(error, "the result is wrong: TPC %u was %s, but kernels %s on it", tpc,
			                   ran[sm] ? "disabled" : "enabled", ran[sm] ? "ran" : "did not run");
	}
	return result;
}

/* Checks each TPC by itself, and then random sets. A linear congruential generator makes the same sets each time. */
static int check_sets(struct subject *subject, const struct topology *gpu, struct error *error)
{
	uint32_t random = 20251121;
	int result = 0;

	for (unsigned int i = 0; i < gpu->tpc_count + SUBSETS && result == 0; i++) {
		struct tpcset set = {{0}};

		tpcset_add(&set, i % gpu->tpc_count);
		for (unsigned int tpc = 0; i >= gpu->tpc_count && tpc < gpu->tpc_count; tpc++) {
			random = random * 1664525 + 1013904223;
			tpcset_add(&set, random >> 16 & 1 ? tpc : TPCSET_MAX);
		}
		result = check_set(subject, gpu, &set, error);
	}
	return result;
}

/* --- together --------------------------------------------------------------------------------------------------- */

static int measure(struct subject *subject, struct topology *gpu, enum measured_numbers *numbers,
                   struct error *error)
{
	if (launcher_open(&subject->launcher, gpu, error) < 0 ||
	    measured_start(&subject->measured, gpu, subject->launcher.sm_count, gpu->tpc_count, error) < 0 ||
	    observe_everything(subject, error) < 0)
		return -1;
	struct topology inferred = *gpu;

	if (measured_infer(&subject->measured, &inferred, numbers, error) < 0 ||
	    check_sets(subject, &inferred, error) < 0 || launcher_check(&subject->launcher, error) < 0)
		return -1;
	*gpu = inferred;
	return 0;
}

static int measure_chosen(const struct gpu_choices *chosen, struct measure_report *report, struct error *error)
{
	static struct subject subject;
	int result = 0;

	for (unsigned int i = 0; i < chosen->count && result == 0; i++) {
		struct topology *gpu = &report->measured.gpus[i];
		struct error why = {.reason = ""};
		char pci[PCI_ADDRESS_TEXT];

		*gpu = *chosen->choices[i].gpu;
		pci_address_format(gpu->pci, pci);
		if (report->is_verbose)
			fprintf(stderr, "nvtaskset: GPU %s (%s): measuring, by mask bits 0-%u\n", pci, gpu->name,
			        gpu->tpc_count - 1u);
		subject.report = report;
		result = measure(&subject, gpu, &report->numbers[i], &why);
		if (result < 0)
			error_set(error, "GPU %s: %.200s", pci, why.reason);
	}
	report->measured.count = chosen->count;
	return result;
}

/* Measures the given GPUs, or all visible GPUs. Changes the environment of this process. */
static void measure_child(struct measure_report *report)
{
	static struct topology_list gpus;
	struct gpu_choices chosen;

	if (start_launcher(report, &gpus, &report->error) == 0 && choose(report->given, &gpus, &chosen,
	                                                                 &report->error) == 0)
		measure_chosen(&chosen, report, &report->error);
	atomic_store(&report->done, true);
}

/* The longest time without a launch: waking up eight GPUs can take half a minute. */
#define SECONDS_DEFAULT 60
#define SECONDS_MAX 3600
#define SECONDS_TO_DIE 10

/* --- the child -------------------------------------------------------------------------------------------------- */

struct child {
	pid_t pid;
	int alive; /* a pipe: end of file when the child has ended */
};

static int read_time_limit(int *seconds, struct error *error)
{
	const char *text = getenv("NVTASKSET_MEASURE_SECONDS");
	char *end = NULL;
	long number = text && *text ? strtol(text, &end, 10) : SECONDS_DEFAULT;

	if (text && *text && (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > SECONDS_MAX))
		return error_set(error, "NVTASKSET_MEASURE_SECONDS=%.40s: must be 1-%d", text, SECONDS_MAX);
	*seconds = (int)number;
	return 0;
}

static int start_child(struct child *child, struct measure_report *report, struct error *error)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "no pipe");
	child->pid = fork();
	if (child->pid == 0) {
		/* When the parent is killed, the work on the GPU must end too. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		measure_child(report);
		_exit(EXIT_SUCCESS);
	}
	close(ends[1]);
	child->alive = ends[0];
	if (child->pid > 0)
		return 0;
	close(ends[0]);
	return error_set_errno(error, "no process");
}

static bool ended_within(const struct child *child, int seconds)
{
	struct pollfd end = {.fd = child->alive, .events = POLLIN};

	return TEMP_FAILURE_RETRY(poll(&end, 1, seconds * 1000)) > 0;
}

/* Waits for the child. Kills the child after `seconds` without a launch. -1 with the reason, unless the child
 * finished. */
static int wait_for_child(const struct child *child, struct measure_report *report, int seconds,
                          struct error *error)
{
	unsigned int before, now = atomic_load(&report->progress);
	bool ended, patient;
	int status = 0, result = 0;

	do {
		before = now;
		ended = ended_within(child, seconds);
		now = atomic_load(&report->progress);
		patient = !ended && now != before;
	} while (patient);
	if (!ended) {
		kill(child->pid, SIGKILL);
		/* A process that hangs in the kernel driver does not end even when killed: the wait is limited. */
		ended = ended_within(child, SECONDS_TO_DIE);
		result = error_set(error, "the GPU has not answered for %d s, after %u launches", seconds, now);
	}
	if (ended)
		waitpid(child->pid, &status, 0);
	if (result == 0 && !atomic_load(&report->done))
		result = WIFSIGNALED(status)
		                 ? error_set(error, "the process that launches kernels was ended by signal %d (%s)",
		                             WTERMSIG(status), strsignal(WTERMSIG(status)))
		                 : error_set(error, "the process that launches kernels ended early");
	return result;
}

static int run_child(struct measure_report *report, struct error *error)
{
	struct child child = {.alive = -1};
	int seconds = 0;

	if (read_time_limit(&seconds, error) < 0 || start_child(&child, report, error) < 0)
		return -1;
	int result = wait_for_child(&child, report, seconds, error);

	close(child.alive);
	if (result == 0 && report->error.reason[0])
		result = error_set(error, "%s", report->error.reason);
	return result;
}

/* --- the results -------------------------------------------------------------------------------------------------- */

static const char *other_source(void)
{
	return topology_named_file() ? "as NVTASKSET_TOPOLOGY's file says" : "as the kernel driver says";
}

/* Compares a GPU with a second source (`other` NULL: no source), which must agree in TPCs, mask bits and virtual
 * GPCs. */
static int compare_with_second(const struct topology *gpu, const struct topology *other, struct error *error)
{
	struct error why;
	char pci[PCI_ADDRESS_TEXT];
	int result = other ? measured_compare(gpu, "as measured", other, other_source(), &why) : 0;

	if (result < 0)
		error_set(error, "GPU %s: %.200s; nothing was kept", pci_address_format(gpu->pci, pci), why.reason);
	return result;
}

static unsigned int count_groups(const struct topology *gpu, unsigned int *singletons)
{
	unsigned int groups = 0;

	*singletons = 0;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		struct tpcset group = topology_virtual_gpc(gpu, gpu->tpcs[tpc].virtual_gpc);

		if (gpu->tpcs[tpc].virtual_gpc >= gpu->gpc_limit)
			++*singletons;
		else if (tpcset_next(&group, 0) == tpc)
			groups++;
	}
	return groups;
}

static void print(const struct topology *gpu, enum measured_numbers numbers)
{
	unsigned int singletons, groups = count_groups(gpu, &singletons);
	char pci[PCI_ADDRESS_TEXT];

	printf("GPU %s (%s): %u TPCs", pci_address_format(gpu->pci, pci), gpu->name, gpu->tpc_count);
	if (numbers == MEASURED_NO_NUMBERS)
		printf("\n  which of them share a GPC cannot be measured before Hopper\n");
	else
		printf(" in %u virtual GPCs, %u of them single\n", groups + singletons, singletons);
	if (numbers == MEASURED_CHOSEN)
		printf("  several ways to number the virtual GPCs explain what was seen; this is the smallest\n");
}

static int keep_topology(const struct topology *gpu, enum measured_numbers numbers, bool is_confirmed,
                         struct error *error)
{
	char path[PATH_MAX];
	int result = cache_keep("", gpu, path, error);

	if (result == 0) {
		print(gpu, numbers);
		if (is_confirmed)
			printf("  mask bit and virtual GPC of each are %s\n", other_source());
		printf("  kept in %s\n", path);
	}
	return result;
}

/* All GPUs are compared before the first topology is kept. */
static int finish(struct measure_report *report, struct error *error)
{
	static struct topology_list list;
	struct topology_list *measured = &report->measured;
	const struct topology *others[TOPOLOGY_GPUS_MAX] = {NULL};
	int result = 0;

	if (topology_load_file_or_driver(NULL, &list, NULL) < 0)
		list.count = 0;
	for (unsigned int i = 0; i < measured->count && result == 0; i++) {
		others[i] = topology_find(&list, measured->gpus[i].pci);
		result = compare_with_second(&measured->gpus[i], others[i], error);
	}
	for (unsigned int i = 0; i < measured->count && result == 0; i++)
		result = keep_topology(&measured->gpus[i], report->numbers[i], others[i], error);
	return result;
}

int action_measure(const struct options *options, struct error *error)
{
	static char driver[PATH_MAX], directory[PATH_MAX];
	struct measure_report *report =
		mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (report == MAP_FAILED)
		return error_set_errno(error, "no memory");
	if (driver_find(NULL, driver, error) < 0 || front_directory(driver, directory, error) < 0)
		return -1;
	snprintf(report->library, sizeof report->library, "%s/libcuda.so.1", directory);
	report->given = &options->gpus;
	report->is_verbose = options->verbose;
	if (run_child(report, error) < 0)
		return -1;
	return finish(report, error);
}
