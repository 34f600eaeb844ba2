#include "measure_child.h"

#include "cli/gpus.h"
#include "launcher.h"
#include "mps/client.h"
#include "state/revision_text.h"
#include "state/segment/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which SMs get blocks depends on chance. An SM that got none in this many launches is taken for disabled, */
#define ATTEMPTS_MIN 3
/* but if the SMs without blocks are more than one TPC's, only after this many. */
#define ATTEMPTS_MAX 30

/* Clusters of an odd number of TPCs are needed to fill a virtual GPC of an odd number of TPCs. */
static const unsigned int cluster_sizes[] = {2, 3, 4, 5, 6, 7, 8, 12, 16};
#define CLUSTER_ROUNDS 16

#define SUBSETS 40

/* --- the environment ------------------------------------------------------------------------------------------ */

/* CUDA must see all GPUs, in the order of their PCI addresses, and must not use MPS, which renumbers SMs. Afterwards
 * the user's variables are restored: they decide which GPUs the user sees. */
static int start(const struct options *options, const char *library, struct topology_list *gpus,
                 struct error *error)
{
	const struct mps_request none = {.mode = MPS_OFF};
	struct mps_status status;
	const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
	char *shown = visible ? strdup(visible) : NULL, *ordered = order ? strdup(order) : NULL;
	int result = mps_prepare(&none, &status, error);

	unsetenv(SEGMENT_ENVIRONMENT);
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("NVTASKSET_LOG", options->verbose ? "on" : "off", 1);
	if (result == 0)
		result = launcher_start(library, gpus, error);
	unsetenv("CUDA_DEVICE_ORDER");
	if (ordered)
		setenv("CUDA_DEVICE_ORDER", ordered, 1);
	if (shown)
		setenv("CUDA_VISIBLE_DEVICES", shown, 1);
	free(shown);
	free(ordered);
	return result;
}

static int choose(const struct options *options, const struct topology_list *gpus, struct gpu_choices *chosen,
                  struct error *error)
{
	int result = options->gpu_count > 0
	                     ? gpus_choose(chosen, gpus, options->gpus, options->gpu_count, error)
	                     : gpus_visible(chosen, gpus, error);

	if (result == 0 && chosen->choices[0].set)
		result = error_set(error, "-G: 'measure' takes no SET");
	return result;
}

/* --- one GPU --------------------------------------------------------------------------------------------------- */

/* The GPU that is being measured. */
struct subject {
	struct launcher launcher;
	struct measured measured;
	struct measure_report *report;
};

static struct tpcset all_bits(const struct subject *subject)
{
	return topology_all(subject->launcher.gpu);
}

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

/* Launches with all bits, for TPCSET_MAX, or with all but one. */
static int observe_without(struct subject *subject, unsigned int bit, struct error *error)
{
	struct tpcset bits = all_bits(subject);
	bool is_all = bit == TPCSET_MAX, *ran = is_all ? subject->measured.ran : subject->measured.ran_without[bit];

	tpcset_remove(&bits, bit);
	int result = launcher_enable(&subject->launcher, &bits, error);

	for (int attempt = 0; result == 0 && (is_all ? attempt < ATTEMPTS_MAX : is_worth_another_launch(subject, bit, attempt)); attempt++)
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

/* Checks that kernels run on all SMs of these TPCs, and on no others. */
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

static int check_singles(struct subject *subject, const struct topology *gpu, struct error *error)
{
	int result = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && result == 0; tpc++) {
		struct tpcset set = {{0}};

		tpcset_add(&set, tpc);
		result = check_set(subject, gpu, &set, error);
	}
	return result;
}

/* Checks random sets of TPCs. A linear congruential generator makes the same ones each time. */
static int check_subsets(struct subject *subject, const struct topology *gpu, struct error *error)
{
	uint32_t random = 20251121;
	int result = 0;

	for (unsigned int i = 0; i < SUBSETS && result == 0; i++) {
		struct tpcset set = {{0}};

		tpcset_add(&set, i % gpu->tpc_count);
		for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
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
	    check_singles(subject, &inferred, error) < 0 || check_subsets(subject, &inferred, error) < 0 ||
	    launcher_check(&subject->launcher, error) < 0)
		return -1;
	*gpu = inferred;
	return 0;
}

static int measure_chosen(const struct gpu_choices *chosen, struct measure_report *report, bool verbose,
                          struct error *error)
{
	static struct subject subject;
	int result = 0;

	for (unsigned int i = 0; i < chosen->count && result == 0; i++) {
		struct topology *gpu = &report->measured.gpus[i];
		struct error why = {.reason = ""};
		char pci[PCI_ADDRESS_TEXT];

		*gpu = *chosen->choices[i].gpu;
		pci_address_format(gpu->pci, pci);
		if (verbose)
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

void measure_child(const struct options *options, const char *library, struct measure_report *report)
{
	static struct topology_list gpus;
	struct gpu_choices chosen;

	if (start(options, library, &gpus, &report->error) == 0 &&
	    choose(options, &gpus, &chosen, &report->error) == 0)
		measure_chosen(&chosen, report, options->verbose, &report->error);
	atomic_store(&report->done, true);
}
