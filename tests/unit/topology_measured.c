/*
 * Inferring a topology from where kernels ran. The GPUs are those of share/topologies and some that are made up.
 * Observations are made from a GPU's description; the inferred topology must be that description again.
 */
#include "../cases.h"
#include "gpu/topology/measured.h"
#include "share.h"

static struct topology_list list;
static const struct topology *h200;
static struct measured seen;
static struct error error;

FIXTURE(begin)
{
	h200 = share_read(&list, "h200");
}

/* --- a GPU at work ------------------------------------------------------------------------------------------------ */

static void run_without(const struct topology *gpu, bool *ran, unsigned int bit)
{
	for (uint32_t sm = 0; sm < seen.sm_count; sm++) {
		if (gpu->tpcs[sm / gpu->sms_per_tpc].mask_bit != bit)
			assert_int_equal(measured_see(&seen, ran, &sm, 1, &error), 0);
	}
}

/* Clusters of `size` on random SMs of each virtual GPC, as often as it has SMs and more. */
static void run_clusters(const struct topology *gpu, unsigned int size)
{
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		struct tpcset group = topology_virtual_gpc(gpu, gpu->tpcs[tpc].virtual_gpc);
		uint32_t sms[MEASURED_SMS_MAX], count = 0;

		for (unsigned int sm = 0; sm < seen.sm_count; sm++) {
			if (tpcset_has(&group, sm / gpu->sms_per_tpc))
				sms[count++] = sm;
		}
		for (uint32_t i = count; i-- > 1;) {
			uint32_t other = (uint32_t)random() % (i + 1), sm = sms[i];

			sms[i] = sms[other];
			sms[other] = sm;
		}
		assert_int_equal(measured_see_clusters(&seen, size, sms, count / size * size, &error), 0);
	}
}

static void run_everything(const struct topology *gpu)
{
	unsigned int bits = gpu->compute_major < 9 ? 64 : 128;

	assert_done(measured_start(&seen, gpu, gpu->tpc_count * gpu->sms_per_tpc, bits, &error));
	run_without(gpu, seen.ran, UINT32_MAX);
	for (unsigned int bit = 0; bit < bits; bit++)
		run_without(gpu, seen.ran_without[bit], bit);
	for (unsigned int size = 2; size <= 8 && gpu->compute_major >= 9; size++)
		run_clusters(gpu, size);
}

static void forget_clusters(void)
{
	for (unsigned int sm = 0; sm < seen.sm_count; sm++)
		seen.cluster[sm] = (uint16_t)sm;
}

/* The GPU with all that must be inferred removed. */
static struct topology stranger(const struct topology *gpu)
{
	return (struct topology){.pci = gpu->pci, .compute_major = gpu->compute_major, .compute_minor = gpu->compute_minor};
}

static enum measured_numbers assert_inferred(const struct topology *gpu)
{
	struct topology inferred = stranger(gpu);
	enum measured_numbers numbers;

	assert_done(measured_infer(&seen, &inferred, &numbers, &error));
	assert_done(measured_compare(&inferred, "here", gpu, "there", &error));
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		assert_int_equal(inferred.tpcs[tpc].gpc, TOPOLOGY_UNKNOWN);
	if (numbers != MEASURED_NO_NUMBERS)
		assert_each(inferred.gpc_limit, gpu->gpc_limit, inferred.tpc_limit, gpu->tpc_limit);
	return numbers;
}

static void assert_refused(const struct topology *gpu, const char *reason)
{
	struct topology inferred = stranger(gpu);
	enum measured_numbers numbers;

	assert_error(measured_infer(&seen, &inferred, &numbers, &error), reason);
}

/* --- what is inferred ----------------------------------------------------------------------------------------------- */

/* Makes a random GH100: some GPCs are whole, some lack TPCs, some are partly singletons, some are missing. */
static void make_gh100(struct topology *gpu)
{
	unsigned int singletons = 0, numbers[8] = {0};

	*gpu = (struct topology){.compute_major = 9, .sms_per_tpc = 2, .gpc_limit = 8, .tpc_limit = 9};
	for (unsigned int gpc = 0; gpc < 8; gpc++)
		numbers[gpc] = random() % 8 ? 1 + (unsigned int)random() % 9 : 0;
	numbers[0] += numbers[0] < 2 ? 2 : 0; /* otherwise no cluster would span TPCs */
	for (unsigned int number = 0; number < 9; number++) {
		for (unsigned int gpc = 0; gpc < 8; gpc++) {
			bool single = number > 2 && number == numbers[gpc] && singletons < 56;
			unsigned int group = single ? 8 + singletons : gpc;

			if (number >= numbers[gpc] && !single)
				continue;
			/* Some bits of singletons stand for nothing. */
			singletons += single ? 1 + (unsigned int)random() % 3 : 0;
			unsigned int bit = topology_mask_bit(gpu, gpu->tpc_count, group, number);

			gpu->tpcs[gpu->tpc_count++] = (struct topology_tpc){TOPOLOGY_UNKNOWN, (uint16_t)group, (uint16_t)bit};
		}
	}
}

TEST(floorswept_chips)
{
	struct topology gpu;

	srandom(20251121);
	for (int i = 0; i < 200; i++) {
		make_gh100(&gpu);
		run_everything(&gpu);
		assert_int_equal(assert_inferred(&gpu), MEASURED_PUBLISHED);
	}
}

/* One SM a TPC: Pascal's consumer chips. */
TEST(one_sm_a_tpc)
{
	struct topology gpu = {.compute_major = 6, .compute_minor = 1, .sms_per_tpc = 1, .tpc_count = 5};

	for (uint16_t tpc = 0; tpc < gpu.tpc_count; tpc++)
		gpu.tpcs[tpc] = (struct topology_tpc){TOPOLOGY_UNKNOWN, TOPOLOGY_UNKNOWN, tpc};
	run_everything(&gpu);
	assert_int_equal(assert_inferred(&gpu), MEASURED_NO_NUMBERS);
}

/* No cluster linked the two halves of a virtual GPC; the published rule says that they belong together. */
TEST(too_few_clusters)
{
	const uint32_t pair[] = {2, 18}; /* TPCs 1 and 9, virtual GPC 1 */

	run_everything(h200);
	forget_clusters();
	assert_refused(h200, "no cluster of blocks ran, without which its virtual GPCs stay unknown");
	assert_int_equal(measured_see_clusters(&seen, 2, pair, 2, &error), 0);
	assert_int_equal(assert_inferred(h200), MEASURED_PUBLISHED);
}

/* For a chip without published limits, observations can have several explanations. */
TEST(numbers_that_are_not_the_only_ones)
{
	struct topology gpu = {.compute_major = 10, .tpc_count = 4};
	static const uint32_t clusters[] = {0, 2, 4, 6}; /* TPCs 0 and 1, 2 and 3 */
	enum measured_numbers numbers;

	for (uint16_t tpc = 0; tpc < 4; tpc++)
		gpu.tpcs[tpc].mask_bit = (uint16_t)(tpc < 2 ? tpc : 8 + tpc);
	gpu.sms_per_tpc = 2;
	run_everything(&gpu);
	forget_clusters();
	assert_int_equal(measured_see_clusters(&seen, 2, clusters, 4, &error), 0);
	struct topology inferred = stranger(&gpu);

	assert_int_equal(measured_infer(&seen, &inferred, &numbers, &error), 0);
	assert_each(numbers, MEASURED_CHOSEN, inferred.tpcs[0].virtual_gpc, inferred.tpcs[1].virtual_gpc);
	assert_int_equal(inferred.tpcs[2].virtual_gpc, inferred.tpcs[3].virtual_gpc);
	assert_int_not_equal(inferred.tpcs[0].virtual_gpc, inferred.tpcs[2].virtual_gpc);
}

/* --- what is refused ------------------------------------------------------------------------------------------------ */

#define NOT_A_TPC ": the SMs that stop are not a TPC of 2 SMs"

/* What one bit stopped, or did not stop: the contrary of the truth. */
TEST(noise_and_contradictions)
{
	static const struct {
		unsigned int bit, sms[2];
		const char *reason;
	} rows[] = {
		{9, {80, 80}, "mask bit 9: SM 80 stops too" NOT_A_TPC}, /* by chance: bit 9 is TPC 1's */
		{4, {81, 81}, "mask bit 4: SM 81 stops too" NOT_A_TPC}, /* a bit that stands for nothing */
		{9, {2, 2}, "mask bit 9: SM 3 stops too" NOT_A_TPC},
		{9, {3, 3}, "mask bit 9: SM 3 runs on" NOT_A_TPC},
		{100, {2, 3}, "TPC 1: mask bits 9 and 100 both stop it"},
		{9, {2, 3}, "TPC 1: none of 128 mask bits stops it"},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		bool *ran = seen.ran_without[rows[i].bit];

		ROW("%s", rows[i].reason);
		run_everything(h200);
		ran[rows[i].sms[0]] = ran[rows[i].sms[1]] = !ran[rows[i].sms[0]];
		assert_refused(h200, rows[i].reason);
	}
	run_everything(h200);
	assert_int_equal(measured_missing(&seen, 9), 2);
	seen.ran_without[9][80] = false;
	assert_int_equal(measured_missing(&seen, 9), 3);
	run_everything(h200);
	seen.ran[7] = false;
	assert_refused(h200, "SM 7: no block ever ran there");
}

TEST(clusters_that_cannot_be)
{
	static const uint32_t clusters[][2] = {{0, 2}, {0, 124}}; /* TPCs 0 and 1; 62, which is a singleton */

	for (size_t i = 0; i < COUNT_OF(clusters); i++) {
		run_everything(h200);
		measured_see_clusters(&seen, 2, clusters[i], 2, &error);
		assert_refused(h200, "its clusters and mask bits do not go together");
	}
}

/* 71 TPCs and 64 mask bits: an RTX 6000 Ada. */
TEST(more_tpcs_than_mask_bits)
{
	struct topology gpu = {.compute_major = 8, .compute_minor = 9, .sms_per_tpc = 2, .tpc_count = 71};

	for (uint16_t tpc = 0; tpc < gpu.tpc_count; tpc++)
		gpu.tpcs[tpc].mask_bit = tpc;
	run_everything(&gpu);
	assert_refused(&gpu, "TPC 64: none of 64 mask bits stops it");
}

TEST(sms_that_cannot_be)
{
	const uint32_t renumbered = 132, never = UINT32_MAX;

	assert_int_equal(measured_start(&seen, h200, 132, 128, &error), 0);
	assert_error(measured_see(&seen, seen.ran, &renumbered, 1, &error),
	             "a block ran on SM 132 of 132: are SMs renumbered here?");
	assert_error(measured_see_clusters(&seen, 1, &never, 1, &error), "a block never ran");
}

TEST(gpus_that_cannot_be_measured)
{
	assert_error(measured_start(&seen, h200, 2, 128, &error), "2 SMs: with a single TPC there is nothing to partition");
	assert_int_equal(measured_start(&seen, h200, 0, 128, &error), -1);
	assert_error(measured_start(&seen, h200, 131, 128, &error), "131 SMs, with 2 in a TPC: not a whole number of TPCs");
	assert_int_equal(measured_start(&seen, h200, 514, 128, &error), -1);
	assert_error(measured_start(&seen, h200, 132, 320, &error), "132 SMs and 320 mask bits: more than nvtaskset knows");
}

TEST(first_difference)
{
	struct topology other = *h200;

	other.tpcs[3].gpc = TOPOLOGY_UNKNOWN; /* cannot be measured */
	assert_int_equal(measured_compare(&other, "here", h200, "there", &error), 0);
	other.tpcs[62].virtual_gpc = TOPOLOGY_UNKNOWN;
	assert_error(measured_compare(&other, "here", h200, "there", &error), "TPC 62: its virtual GPC is unknown here, 11 there");
	other.tpcs[5].mask_bit = 46;
	assert_error(measured_compare(&other, "here", h200, "there", &error), "TPC 5: its mask bit is 46 here, 45 there");
	other.tpc_count = 65;
	assert_error(measured_compare(&other, "here", h200, "there", &error), "65 TPCs of 2 SMs here, 66 of 2 there");
}

RUN_TESTS(begin, NULL)
