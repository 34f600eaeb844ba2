#include "cli/actions.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/proc.h"
#include "cli/gpus.h"
#include "cli/replace.h"
#include "exposition.h"
#include "show/activity.h"
#include "terminal/text.h"
#include "version.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMM_MAX 64

/* The texts of labels: must live as long as the labels. */
struct texts {
	char gpu[12], pci[PCI_ADDRESS_TEXT], uuid[TEXT_ROOM(TOPOLOGY_UUID_MAX)], pid[12];
};

/* --- labels ------------------------------------------------------------------------------------------------------- */

/* A GPU that CUDA does not see here has no number. A GPU without a known topology has a bus id at most. */
static void label_gpu(struct metric_labels *labels, struct texts *texts, struct pci_address pci,
                      const struct topology_list *gpus)
{
	const struct topology *gpu = topology_find(gpus, pci);
	int number = gpu ? gpus_number(gpu, gpus) : -1;
	bool is_known = pci_address_is_known(pci);

	snprintf(texts->gpu, sizeof texts->gpu, "%d", number);
	metric_label(labels, "gpu", number >= 0 ? texts->gpu : NULL);
	metric_label(labels, "UUID", gpu ? text_clean(texts->uuid, gpu->uuid, strlen(gpu->uuid)) : NULL);
	metric_label(labels, "pci_bus_id", is_known ? pci_address_format(pci, texts->pci) : NULL);
}

static void label_process(struct metric_labels *labels, struct texts *texts, const struct process *process)
{
	snprintf(texts->pid, sizeof texts->pid, "%d", (int)process->pid);
	metric_label(labels, "pid", texts->pid);
	metric_label(labels, "user", process->user);
	metric_label(labels, "hpc_job", process->workload.hpc_job);
	metric_label(labels, "namespace", process->workload.namespace);
	metric_label(labels, "pod", process->workload.pod);
	metric_label(labels, "pod_uid", process->workload.pod_uid);
	metric_label(labels, "container", process->workload.container);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static void expose_gpu(struct exposition *exposition, const struct topology *gpu, const struct topology_list *gpus)
{
	struct metric_labels labels = {.count = 0};
	struct texts texts = {.gpu = ""};
	char name[TEXT_ROOM(TOPOLOGY_NAME_MAX)];

	label_gpu(&labels, &texts, gpu->pci, gpus);
	exposition_add(exposition, METRIC_GPU_TPCS, &labels, gpu->tpc_count);
	metric_label(&labels, "model", text_clean(name, gpu->name, strlen(gpu->name)));
	exposition_add(exposition, METRIC_GPU, &labels, 1);
}

static void add_known(struct exposition *exposition, enum metric metric, const struct metric_labels *labels,
                      struct reading reading)
{
	if (reading.is_known)
		exposition_add(exposition, metric, labels, reading.value);
}

/* For each lender that the borrower tells apart: so the sum by lender is the lent time. */
static void expose_borrowed(struct exposition *exposition, const struct segment_borrowed *borrowed,
                            const struct metric_labels *common)
{
	uint64_t rest = borrowed->tpc_us;
	unsigned int count = 0;

	for (; count < SEGMENT_LOANS && borrowed->loans[count].lender != 0; count++) {
		const struct segment_loan *loan = &borrowed->loans[count];
		struct metric_labels labels = *common;
		char lender[24];

		snprintf(lender, sizeof lender, "%" PRIu64, loan->lender);
		metric_label(&labels, "lender", lender);
		exposition_add(exposition, METRIC_BORROWED, &labels, (double)loan->tpc_us / 1e6);
		rest -= min_u64(rest, loan->tpc_us);
	}
	if (count == 0 || count == SEGMENT_LOANS)
		exposition_add(exposition, METRIC_BORROWED, common, (double)rest / 1e6);
}

/* Samples of the process, and not of a GPU. */
static void expose_process(struct exposition *exposition, const struct row *row, const struct metric_labels *common)
{
	const struct process *process = row->process;
	struct metric_labels labels = *common;
	char comm[COMM_MAX], name[TEXT_ROOM(COMM_MAX)];
	bool is_in_force = !process->not_in_force;

	exposition_add(exposition, METRIC_IN_FORCE, &labels, is_in_force);
	/* Counts before another process took the launches over, or of another library, are not whole. */
	if (process->identity.pid != 0) {
		add_known(exposition, METRIC_UPLOADS, &labels, row->numbers[NUMBER_UPLOADS]);
		add_known(exposition, METRIC_RESTRICTED, &labels, row->numbers[NUMBER_RESTRICTED]);
		add_known(exposition, METRIC_OUTSIDE, &labels, row->numbers[NUMBER_OUTSIDE]);
	}
	if (segment_borrows(&process->revision.lending)) {
		expose_borrowed(exposition, &process->borrowed, &labels);
		exposition_add(exposition, METRIC_OVERRUNS, &labels, (double)process->borrowed.overruns);
	}
	proc_read_text(comm, sizeof comm, "/proc/%d/comm", (int)process->pid);
	metric_label(&labels, "command", text_clean(name, comm, strcspn(comm, "\n")));
	exposition_add(exposition, METRIC_PROGRAM, &labels, 1);
}

static void expose_activity(struct exposition *exposition, const struct row *row, const struct metric_labels *labels)
{
	const struct reading *numbers = row->numbers;

	if (row->set || row->topology)
		exposition_add(exposition, METRIC_TPCS, labels,
		               row->set ? tpcset_count(row->set) : row->topology->tpc_count);
	add_known(exposition, METRIC_LAUNCHED, labels, numbers[NUMBER_LAUNCHES]);
	add_known(exposition, METRIC_ENDED, labels, numbers[NUMBER_ENDED]);
	add_known(exposition, METRIC_IN_FLIGHT, labels, numbers[NUMBER_IN_FLIGHT]);
	add_known(exposition, METRIC_MEASURED, labels, numbers[NUMBER_MEASURED_TIME]);
	add_known(exposition, row->is_presence ? METRIC_PRESENT : METRIC_BUSY, labels, numbers[NUMBER_BUSY_TIME]);
	add_known(exposition, METRIC_MEMORY, labels, numbers[NUMBER_MEMORY]);
	add_known(exposition, METRIC_MEMORY_LIMIT, labels, numbers[NUMBER_MEMORY_LIMIT]);
	if (!row->is_presence)
		add_known(exposition, METRIC_TPC_TIME, labels, numbers[NUMBER_TPC_TIME]);
}

static void expose_row(struct exposition *exposition, const struct row *row, const struct topology_list *gpus)
{
	struct metric_labels process = {.count = 0}, labels = {.count = 0};
	struct texts texts = {.gpu = ""};

	label_process(&process, &texts, row->process);
	if (row->place == 0)
		expose_process(exposition, row, &process);
	/* A program may name any bus id: a bus id of no GPU of this machine is left out. */
	if (row->has_gpu && (gpus->count == 0 || !pci_address_is_known(row->pci) || topology_find(gpus, row->pci))) {
		label_gpu(&labels, &texts, row->pci, gpus);
		for (unsigned int i = 0; i < process.count; i++)
			metric_label(&labels, process.list[i].name, process.list[i].value);
		expose_activity(exposition, row, &labels);
	}
}

static void programs_expose(struct exposition *exposition, const struct activities *activities,
                     const struct topology_list *gpus)
{
	struct metric_labels labels = {.count = 0}, none = {.count = 0};

	metric_label(&labels, "version", NVTASKSET_VERSION);
	exposition_add(exposition, METRIC_BUILD, &labels, 1);
	exposition_add(exposition, METRIC_HIDDEN, &none, activities->processes.some_are_hidden);
	for (unsigned int i = 0; i < gpus->count; i++)
		expose_gpu(exposition, &gpus->gpus[i], gpus);
	for (size_t i = 0; i < activities->count; i++) {
		if (!activities->list[i].process->yields_to_descendants)
			expose_row(exposition, &activities->list[i], gpus);
	}
}

/* --- pages ------------------------------------------------------------------------------------------------------ */

/* While times are measured: between two looks for new programs, and between two looks at known programs. */
#define FIND_MS 1000
#define MEASURE_MS 50

struct subject {
	bool is_classic; /* Prometheus's classic format */
	struct topology_list gpus;
	struct activities activities;
};

/* Programs can be told without topologies: the bus id names the GPU. The first page may be older than the driver. */
static void find_gpus(struct subject *subject)
{
	struct error why;

	if (subject->gpus.count == 0 && topology_load(&subject->gpus, &why) < 0) {
		subject->gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; metrics are without what is known of the GPUs\n", why.reason);
	}
}

static int look_and_write(struct subject *subject, FILE *page, struct error *error)
{
	struct exposition exposition;

	find_gpus(subject);
	if (activities_look(&subject->activities, &subject->gpus, error) < 0)
		return -1;
	exposition_begin(&exposition, subject->is_classic);
	programs_expose(&exposition, &subject->activities, &subject->gpus);
	return exposition_end(&exposition, page, error);
}

static int write_to_file(struct subject *subject, const char *path, struct error *error)
{
	char *text = NULL;
	size_t length = 0;
	FILE *page = open_memstream(&text, &length);

	if (!page)
		return error_set(error, "no memory");
	int result = look_and_write(subject, page, error);

	if (fclose(page) != 0 && result == 0)
		result = error_set(error, "no memory");
	if (result == 0)
		result = replace_file(path, text, length, error);
	free(text);
	return result;
}

/* Counters of busy time grow between two pages as well. A failed look is tried again. */
static void measure_times(struct subject *subject)
{
	struct error why;

	if (clock_ms() - subject->activities.at_ms < FIND_MS ||
	    activities_look(&subject->activities, &subject->gpus, &why) < 0)
		activities_keep_up(&subject->activities);
}

static void wait_until(struct subject *subject, double at_ms)
{
	bool measures = subject->activities.measures_times;

	for (double left; (left = at_ms - clock_ms()) > 0;) {
		clock_pause_us((long)((measures ? min_double(left, MEASURE_MS) : left) * 1000));
		if (measures)
			measure_times(subject);
	}
}

/* Until a signal ends the process. A disk may be full for a while: only the first page must succeed. */
static int write_again_and_again(struct subject *subject, const char *path, double seconds, struct error *error)
{
	double at_ms = clock_ms();

	if (write_to_file(subject, path, error) < 0)
		return -1;
	for (;;) {
		at_ms = max_double(at_ms + seconds * 1000, clock_ms());
		wait_until(subject, at_ms);
		if (write_to_file(subject, path, error) < 0)
			fprintf(stderr, "nvtaskset: %s\n", error->reason);
	}
}

int action_metrics(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	int result;

	subject.is_classic = options->format == METRICS_PROMETHEUS;
	subject.activities.measures_times = options->busy;
	if (options->watch_seconds > 0 && !options->output)
		result = error_set(error, "--watch: writes a file again and again; add --output FILE");
	else if (options->busy && options->watch_seconds <= 0)
		result = error_set(error, "--busy: measures between two pages; add --output FILE --watch");
	else if (options->watch_seconds > 0)
		result = write_again_and_again(&subject, options->output, options->watch_seconds, error);
	else if (options->output)
		result = write_to_file(&subject, options->output, error);
	else
		result = look_and_write(&subject, stdout, error);
	activities_free(&subject.activities);
	return result;
}
