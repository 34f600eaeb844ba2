#include "measured.h"

#include <string.h>

/* --- observations ---------------------------------------------------------------------------------------- */

int measured_start(struct measured *measured, const struct topology *gpu, unsigned int sm_count,
                   unsigned int bit_count, struct error *error)
{
	unsigned int sms_per_tpc = topology_sms_per_tpc(gpu->compute_major, gpu->compute_minor);

	if (sm_count > MEASURED_SMS_MAX || bit_count > TOPOLOGY_MASK_BITS)
		return error_set(error, "%u SMs and %u mask bits: more than nvtaskset knows", sm_count, bit_count);
	if (sm_count <= sms_per_tpc)
		return error_set(error, "%u SMs: with a single TPC there is nothing to partition", sm_count);
	if (sm_count % sms_per_tpc != 0)
		return error_set(error, "%u SMs, with %u in a TPC: not a whole number of TPCs", sm_count, sms_per_tpc);
	memset(measured, 0, sizeof *measured);
	measured->sm_count = sm_count;
	measured->bit_count = bit_count;
	for (unsigned int sm = 0; sm < MEASURED_SMS_MAX; sm++)
		measured->cluster[sm] = (uint16_t)sm;
	return 0;
}

int measured_see(const struct measured *measured, bool *ran, const uint32_t *sms, unsigned int count,
                 struct error *error)
{
	int result = 0;

	for (unsigned int i = 0; i < count && result == 0; i++) {
		if (sms[i] < measured->sm_count)
			ran[sms[i]] = true;
		else if (sms[i] == UINT32_MAX)
			result = error_set(error, "a block never ran");
		else
			result = error_set(error, "a block ran on SM %u of %u: are SMs renumbered here?", sms[i],
			                   measured->sm_count);
	}
	return result;
}

/* The root of an SM's tree: one SM represents all SMs with a known common virtual GPC. */
static unsigned int root_of(const uint16_t *forest, unsigned int sm)
{
	while (forest[sm] != sm)
		sm = forest[sm];
	return sm;
}

/* The lower root stays a root: the trees do not depend on the order of observations. */
static void join(uint16_t *forest, unsigned int a, unsigned int b)
{
	unsigned int first = root_of(forest, a), second = root_of(forest, b);

	if (first < second)
		forest[second] = (uint16_t)first;
	else
		forest[first] = (uint16_t)second;
}

int measured_see_clusters(struct measured *measured, unsigned int size, const uint32_t *sms, unsigned int count,
                          struct error *error)
{
	int result = measured_see(measured, measured->ran, sms, count, error);

	for (unsigned int i = 0; i < count && result == 0; i++)
		join(measured->cluster, sms[i], sms[i - i % size]);
	return result;
}

unsigned int measured_missing(const struct measured *measured, unsigned int bit)
{
	unsigned int count = 0;

	for (unsigned int sm = 0; sm < measured->sm_count; sm++)
		count += measured->ran[sm] && !measured->ran_without[bit][sm];
	return count;
}

/* --- mask bits -------------------------------------------------------------------------------------------- */

static int check_all_ran(const struct measured *measured, struct error *error)
{
	int result = 0;

	for (unsigned int sm = 0; sm < measured->sm_count && result == 0; sm++) {
		if (!measured->ran[sm])
			result = error_set(error, "SM %u: no block ever ran there", sm);
	}
	return result;
}

/* Finds the TPC on which no block ran while the bit was set. Returns the TPC's number; TOPOLOGY_UNKNOWN if blocks ran
 * on all TPCs; -1 with the reason. */
static int tpc_of_bit(const struct measured *measured, const struct topology *gpu, unsigned int bit,
                      struct error *error)
{
	int tpc = TOPOLOGY_UNKNOWN;

	for (unsigned int sm = 0; sm < measured->sm_count; sm++) {
		bool ran = measured->ran_without[bit][sm];
		bool expected = sm / gpu->sms_per_tpc != (unsigned int)tpc;

		if (!ran && tpc == TOPOLOGY_UNKNOWN && sm % gpu->sms_per_tpc == 0)
			tpc = (int)(sm / gpu->sms_per_tpc);
		else if (ran != expected)
			return error_set(error, "mask bit %u: SM %u %s: the SMs that stop are not a TPC of %u SMs", bit,
			                 sm, ran ? "runs on" : "stops too", gpu->sms_per_tpc);
	}
	return tpc;
}

static int infer_bits(const struct measured *measured, struct topology *gpu, struct error *error)
{
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		gpu->tpcs[tpc] = (struct topology_tpc){TOPOLOGY_UNKNOWN, TOPOLOGY_UNKNOWN, TOPOLOGY_UNKNOWN};
	for (unsigned int bit = 0; bit < measured->bit_count; bit++) {
		int tpc = tpc_of_bit(measured, gpu, bit, error);

		if (tpc < 0)
			return -1;
		if (tpc == TOPOLOGY_UNKNOWN)
			continue;
		if (gpu->tpcs[tpc].mask_bit != TOPOLOGY_UNKNOWN)
			return error_set(error, "TPC %d: mask bits %u and %u both stop it", tpc,
			                 gpu->tpcs[tpc].mask_bit, bit);
		gpu->tpcs[tpc].mask_bit = (uint16_t)bit;
	}
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (gpu->tpcs[tpc].mask_bit == TOPOLOGY_UNKNOWN)
			return error_set(error, "TPC %u: none of %u mask bits stops it", tpc, measured->bit_count);
	}
	return 0;
}

/* --- virtual GPCs ------------------------------------------------------------------------------------------ */

/* Published limits of chips: the number of GPCs, and of TPCs in each. */
static const struct limits {
	uint16_t compute_major;
	uint16_t compute_minor;
	uint16_t gpcs;
	uint16_t tpcs;
} published[] = {
	{9, 0, 8, 9}, /* GH100; facts.md, "Mask bits" */
};

/* For each TPC, the lowest TPC known to share the virtual GPC. */
struct groups {
	uint16_t first[TPCSET_MAX];
};

/* Returns whether any cluster spanned TPCs: otherwise virtual GPCs are unknown. */
static bool find_groups(const struct measured *measured, const struct topology *gpu, struct groups *groups)
{
	uint16_t forest[MEASURED_SMS_MAX];
	bool any = false;

	memcpy(forest, measured->cluster, sizeof forest);
	for (unsigned int sm = 0; sm < measured->sm_count; sm++)
		join(forest, sm, sm - sm % gpu->sms_per_tpc);
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		groups->first[tpc] = (uint16_t)(root_of(forest, tpc * gpu->sms_per_tpc) / gpu->sms_per_tpc);
		any = any || groups->first[tpc] != tpc;
	}
	return any;
}

/* The inverse of the rule of facts.md, "Mask bits". */
static unsigned int virtual_gpc_of(unsigned int bit, unsigned int gpcs, unsigned int tpcs)
{
	return bit < gpcs * tpcs ? bit / tpcs : gpcs + (bit - gpcs * tpcs);
}

enum verdict {
	CONTRADICTED, /* a cluster spanned two virtual GPCs */
	POSSIBLE,     /* virtual GPCs are larger than the observed groups */
	EXPLAINED     /* virtual GPCs are the observed groups */
};

/* Compares the virtual GPCs by the limits with the observed groups. The numbers themselves were not observed: only
 * whether the TPCs of a group have the same number, and different groups different numbers. */
static enum verdict judge(const struct topology *gpu, const struct groups *groups, unsigned int gpcs,
                          unsigned int tpcs)
{
	bool taken[TOPOLOGY_GPCS_MAX + TOPOLOGY_MASK_BITS] = {false};
	enum verdict verdict = EXPLAINED;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && verdict != CONTRADICTED; tpc++) {
		unsigned int first = groups->first[tpc];
		unsigned int number = virtual_gpc_of(gpu->tpcs[tpc].mask_bit, gpcs, tpcs);

		if (first != tpc && number != virtual_gpc_of(gpu->tpcs[first].mask_bit, gpcs, tpcs))
			verdict = CONTRADICTED;
		else if (first == tpc && taken[number])
			verdict = POSSIBLE;
		taken[number] = true;
	}
	return verdict;
}

static bool find_published(const struct topology *gpu, const struct groups *groups, struct limits *limits)
{
	bool found = false;

	for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
		if (published[i].compute_major == gpu->compute_major &&
		    published[i].compute_minor == gpu->compute_minor &&
		    judge(gpu, groups, published[i].gpcs, published[i].tpcs) != CONTRADICTED) {
			*limits = published[i];
			found = true;
		}
	}
	return found;
}

static unsigned int highest_bit(const struct topology *gpu)
{
	unsigned int highest = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		highest = gpu->tpcs[tpc].mask_bit > highest ? gpu->tpcs[tpc].mask_bit : highest;
	return highest;
}

/* Returns the number of pairs of limits that explain the observations, and the smallest pair. GPCs beyond the highest
 * bit make no difference, and are not tried. */
static unsigned int find_any(const struct topology *gpu, const struct groups *groups, struct limits *limits)
{
	unsigned int highest = highest_bit(gpu), found = 0;

	for (unsigned int tpcs = 1; tpcs <= highest + 1; tpcs++) {
		for (unsigned int gpcs = 1; gpcs <= TOPOLOGY_GPCS_MAX && (gpcs - 1) * tpcs <= highest; gpcs++) {
			if (judge(gpu, groups, gpcs, tpcs) == EXPLAINED && found++ == 0)
				*limits = (struct limits){.gpcs = (uint16_t)gpcs, .tpcs = (uint16_t)tpcs};
		}
	}
	return found;
}

static int infer_virtual_gpcs(const struct measured *measured, struct topology *gpu,
                              enum measured_numbers *numbers, struct error *error)
{
	struct limits limits;
	struct groups groups;

	if (!find_groups(measured, gpu, &groups))
		return error_set(error, "no cluster of blocks ran, without which its virtual GPCs stay unknown");
	*numbers = MEASURED_PUBLISHED;
	if (!find_published(gpu, &groups, &limits)) {
		unsigned int found = find_any(gpu, &groups, &limits);

		if (found == 0)
			return error_set(error, "its clusters and mask bits do not go together");
		*numbers = found == 1 ? MEASURED_ONLY : MEASURED_CHOSEN;
	}
	gpu->gpc_limit = limits.gpcs;
	gpu->tpc_limit = limits.tpcs;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		gpu->tpcs[tpc].virtual_gpc =
			(uint16_t)virtual_gpc_of(gpu->tpcs[tpc].mask_bit, limits.gpcs, limits.tpcs);
	return 0;
}

/* --- result ------------------------------------------------------------------------------------------------ */

int measured_infer(const struct measured *measured, struct topology *gpu, enum measured_numbers *numbers,
                   struct error *error)
{
	gpu->sms_per_tpc = (uint16_t)topology_sms_per_tpc(gpu->compute_major, gpu->compute_minor);
	gpu->tpc_count = (uint16_t)(measured->sm_count / gpu->sms_per_tpc);
	/* Before Hopper, the limits are unknown: take limits that are large enough. */
	gpu->gpc_limit = TOPOLOGY_GPCS_MAX;
	gpu->tpc_limit = gpu->tpc_count;
	*numbers = MEASURED_NO_NUMBERS;
	if (check_all_ran(measured, error) < 0 || infer_bits(measured, gpu, error) < 0)
		return -1;
	if (gpu->compute_major >= 9 && infer_virtual_gpcs(measured, gpu, numbers, error) < 0)
		return -1;
	return topology_validate(gpu, error);
}

/* --- comparing --------------------------------------------------------------------------------------------- */

static int compare_number(const char *what, unsigned int tpc, uint16_t a, const char *here, uint16_t b,
                          const char *there, struct error *error)
{
	char first[8] = "unknown", second[8] = "unknown";

	if (a == b)
		return 0;
	if (a != TOPOLOGY_UNKNOWN)
		snprintf(first, sizeof first, "%u", a);
	if (b != TOPOLOGY_UNKNOWN)
		snprintf(second, sizeof second, "%u", b);
	return error_set(error, "TPC %u: its %s is %s %s, %s %s", tpc, what, first, here, second, there);
}

int measured_compare(const struct topology *measured, const char *here, const struct topology *other,
                     const char *there, struct error *error)
{
	int result = 0;

	if (measured->tpc_count != other->tpc_count || measured->sms_per_tpc != other->sms_per_tpc)
		return error_set(error, "%u TPCs of %u SMs %s, %u of %u %s", measured->tpc_count,
		                 measured->sms_per_tpc, here, other->tpc_count, other->sms_per_tpc, there);
	for (unsigned int tpc = 0; tpc < other->tpc_count && result == 0; tpc++) {
		const struct topology_tpc *a = &measured->tpcs[tpc], *b = &other->tpcs[tpc];

		result = compare_number("mask bit", tpc, a->mask_bit, here, b->mask_bit, there, error);
		if (result == 0)
			result = compare_number("virtual GPC", tpc, a->virtual_gpc, here, b->virtual_gpc, there,
			                        error);
	}
	return result;
}
