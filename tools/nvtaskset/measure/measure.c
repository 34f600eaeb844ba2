#include "cli/actions.h"

#include "gpu/topology/cache.h"
#include "measure_child.h"
#include "start/driver.h"
#include "start/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long there may be no launch: waking up eight GPUs can take half a minute. */
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

static int start_child(struct child *child, const struct options *options, const char *library,
                       struct measure_report *report, struct error *error)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "no pipe");
	child->pid = fork();
	if (child->pid == 0) {
		/* When we are killed, the work on the GPU must end too. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		measure_child(options, library, report);
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

/* Waits for the child. Kills it when it has launched nothing for `seconds`. -1 with the reason if it did not finish. */
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
		/* A process that hangs in the kernel driver does not end even when it is killed, so we do not wait for ever. */
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

static int run_child(const struct options *options, const char *library, struct measure_report *report,
                     struct error *error)
{
	struct child child = {.alive = -1};
	int seconds = 0;

	if (read_time_limit(&seconds, error) < 0 || start_child(&child, options, library, report, error) < 0)
		return -1;
	int result = wait_for_child(&child, report, seconds, error);

	close(child.alive);
	if (result == 0 && report->error.reason[0])
		result = error_set(error, "%s", report->error.reason);
	return result;
}

/* --- the results -------------------------------------------------------------------------------------------------- */

/* The other source of topologies, if there is one. */
static const char *other_source(void)
{
	return topology_named_file() ? "as NVTASKSET_TOPOLOGY's file says" : "as the kernel driver says";
}

/* If another source has the GPU's topology (else `other` is NULL), both must agree in every TPC, mask bit and virtual
 * GPC. */
static int compare(const struct topology *gpu, const struct topology *other, struct error *error)
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

static int keep(const struct topology *gpu, enum measured_numbers numbers, bool is_confirmed, struct error *error)
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

	if (topology_load_file_or_driver(&list, NULL) < 0)
		list.count = 0;
	for (unsigned int i = 0; i < measured->count && result == 0; i++) {
		others[i] = topology_find(&list, measured->gpus[i].pci);
		result = compare(&measured->gpus[i], others[i], error);
	}
	for (unsigned int i = 0; i < measured->count && result == 0; i++)
		result = keep(&measured->gpus[i], report->numbers[i], others[i], error);
	return result;
}

int action_measure(const struct options *options, struct error *error)
{
	static char driver[PATH_MAX], directory[PATH_MAX], library[PATH_MAX + 16];
	struct measure_report *report =
		mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (report == MAP_FAILED)
		return error_set_errno(error, "no memory");
	if (driver_find(driver, error) < 0 || front_directory(driver, directory, error) < 0)
		return -1;
	snprintf(library, sizeof library, "%s/libcuda.so.1", directory);
	if (run_child(options, library, report, error) < 0)
		return -1;
	return finish(report, error);
}
