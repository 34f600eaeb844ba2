#include "nvdebug.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPCS_MAX 16 /* their numbers have four bits */
#define TPCS_MAX 16 /* in a GPC; their numbers have four bits, too */
#define TPCS_PER_REGISTER 4

/* --- files -------------------------------------------------------------------------------------------------- */

/* Reads the number in a file of /proc/gpu0. -1: with errno if it cannot be opened, with errno 0 if it has no number. */
static int __attribute__((format(printf, 3, 4)))
read_register(const char *root, uint32_t *value, const char *format, ...)
{
	char name[64], path[PATH_MAX], text[32], *end = text;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name, sizeof name, format, arguments);
	va_end(arguments);
	snprintf(path, sizeof path, "%s/proc/gpu0/%s", root, name);
	errno = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return -1;
	unsigned long number = fgets(text, sizeof text, file) ? strtoul(text, &end, 16) : 0;

	fclose(file);
	errno = 0;
	*value = (uint32_t)number;
	return end > text && (*end == '\n' || *end == '\0') && number <= UINT32_MAX ? 0 : -1;
}

static int fail(const char *name, struct error *error)
{
	return errno ? error_set_errno(error, "nvdebug: /proc/gpu0/%s", name)
	             : error_set(error, "nvdebug: /proc/gpu0/%s: not a hexadecimal number", name);
}

/* --- fuses -------------------------------------------------------------------------------------------------- */

/* How many TPCs each GPC has; 0 for those that are fused off. */
struct fuses {
	unsigned int gpcs;
	unsigned int tpcs[GPCS_MAX];
};

static int read_limits(const char *root, struct nvdebug *nvdebug, struct error *error)
{
	uint32_t gpcs, tpcs;

	if (read_register(root, &gpcs, "num_gpcs") < 0)
		return fail("num_gpcs", error);
	if (read_register(root, &tpcs, "num_tpc_per_gpc") < 0)
		return fail("num_tpc_per_gpc", error);
	if (gpcs < 1 || gpcs > GPCS_MAX || tpcs < 1 || tpcs > TPCS_MAX)
		return error_set(error, "nvdebug: room for %u GPCs and %u TPCs in each, must be 1-%d and 1-%d", gpcs,
		                 tpcs, GPCS_MAX, TPCS_MAX);
	nvdebug->gpc_limit = (uint16_t)gpcs;
	nvdebug->tpc_limit = (uint16_t)tpcs;
	return 0;
}

static int read_fuses(const char *root, struct nvdebug *nvdebug, struct fuses *fuses, struct error *error)
{
	uint32_t gpcs_off, tpcs_off;

	memset(fuses, 0, sizeof *fuses);
	nvdebug->tpc_count = 0;
	if (read_register(root, &gpcs_off, "gpc_mask") < 0)
		return fail("gpc_mask", error);
	for (unsigned int gpc = 0; gpc < nvdebug->gpc_limit; gpc++) {
		uint32_t room = (UINT32_C(1) << nvdebug->tpc_limit) - 1;

		if (gpcs_off >> gpc & 1)
			continue;
		if (read_register(root, &tpcs_off, "gpc%u_tpc_mask", gpc) < 0)
			return fail("gpcN_tpc_mask", error);
		fuses->tpcs[gpc] = (unsigned int)__builtin_popcount(~tpcs_off & room);
		fuses->gpcs += fuses->tpcs[gpc] > 0;
		nvdebug->tpc_count = (uint16_t)(nvdebug->tpc_count + fuses->tpcs[gpc]);
	}
	return nvdebug->tpc_count > 0 ? 0 : error_set(error, "nvdebug: all TPCs are fused off");
}

/* --- the work distributor's table ----------------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b)
{
	const unsigned int *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

/* The table numbers only the GPCs that are present, and the fuses all GPCs of the chip. So only the sizes of the GPCs
 * can be compared. */
static int check_fuses(const struct nvdebug *nvdebug, struct fuses *fuses, struct error *error)
{
	unsigned int counts[GPCS_MAX] = {0}, gpcs = 0;

	for (unsigned int tpc = 0; tpc < nvdebug->tpc_count; tpc++)
		gpcs += counts[nvdebug->gpcs[tpc]]++ == 0;
	qsort(counts, GPCS_MAX, sizeof counts[0], compare_counts);
	qsort(fuses->tpcs, GPCS_MAX, sizeof fuses->tpcs[0], compare_counts);
	if (gpcs != fuses->gpcs || memcmp(counts, fuses->tpcs, sizeof counts) != 0)
		return error_set(error, "nvdebug: its table of TPCs and its fuses contradict each other");
	return 0;
}

/* The state of reading the table. */
struct table {
	bool taken[GPCS_MAX][TPCS_MAX];
	uint32_t content; /* of the register that was read last */
};

/* Reads a place of the table, in rising order. True, with the GPC, if it has a possible TPC that no earlier
 * place has. */
static bool read_place(const char *root, const struct nvdebug *nvdebug, struct table *table, unsigned int place,
                       uint8_t *gpc)
{
	unsigned int in_register = place % TPCS_PER_REGISTER;

	if (in_register == 0 &&
	    read_register(root, &table->content, "CWD_GPC_TPC_ID%u", place / TPCS_PER_REGISTER) < 0)
		return false;
	unsigned int number = table->content >> in_register * 8 & 0xf;
	bool good;

	*gpc = (uint8_t)(table->content >> (in_register * 8 + 4) & 0xf);
	good = *gpc < nvdebug->gpc_limit && number < nvdebug->tpc_limit && !table->taken[*gpc][number];
	table->taken[*gpc][number] = true;
	return good;
}

/* Places behind the last TPC are unused, and repeat others. */
static int read_table(const char *root, struct nvdebug *nvdebug, struct error *error)
{
	struct table table = {.content = 0};
	unsigned int count = 0;
	uint8_t gpc;

	while (count <= nvdebug->tpc_count && count < TPCSET_MAX &&
	       read_place(root, nvdebug, &table, count, &gpc))
		nvdebug->gpcs[count++] = gpc;
	if (count == nvdebug->tpc_count)
		return 0;
	return error_set(error, "nvdebug: its table (CWD_GPC_TPC_IDn) has %s TPCs than its fuses allow, %u",
	                 count > nvdebug->tpc_count ? "more" : "fewer", nvdebug->tpc_count);
}

static bool exists(const char *root, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/proc/%s", root, name);
	return access(path, F_OK) == 0;
}

int nvdebug_read(const char *root, struct nvdebug *nvdebug, struct error *error)
{
	struct fuses fuses;

	memset(nvdebug, 0, sizeof *nvdebug);
	if (!exists(root, "gpu0"))
		return error_set(error, "%s", "");
	if (exists(root, "gpu1"))
		return error_set(error, "nvdebug: does not say which of its GPUs is which");
	if (read_limits(root, nvdebug, error) < 0 || read_fuses(root, nvdebug, &fuses, error) < 0 ||
	    read_table(root, nvdebug, error) < 0)
		return -1;
	return check_fuses(nvdebug, &fuses, error);
}

/* --- topologies ----------------------------------------------------------------------------------------------- */

/* PCI device ids come in blocks for each chip (pci.ids). */
static const struct chips {
	uint16_t first;
	uint16_t last;
	uint16_t compute_major;
	uint16_t compute_minor;
} chips[] = {
	{0x15f0, 0x15ff, 6, 0}, {0x1b00, 0x1d7f, 6, 1}, {0x1d80, 0x1dff, 7, 0}, /* GP100, GP10x, GV100 */
	{0x1e00, 0x1fff, 7, 5}, {0x2180, 0x21ff, 7, 5},                         /* TU10x, TU11x */
	{0x2080, 0x20ff, 8, 0}, {0x2200, 0x227f, 8, 6}, {0x2400, 0x25ff, 8, 6}, /* GA100, GA10x */
	{0x2680, 0x28ff, 8, 9},                                                 /* AD10x */
};

static bool find_compute(uint16_t device_id, struct topology *gpu)
{
	bool found = false;

	for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
		if (device_id >= chips[i].first && device_id <= chips[i].last) {
			gpu->compute_major = chips[i].compute_major;
			gpu->compute_minor = chips[i].compute_minor;
			found = true;
		}
	}
	return found;
}

int nvdebug_describe(const struct nvdebug *nvdebug, const struct procfs_gpu *installed, struct topology *gpu,
                     struct error *error)
{
	memset(gpu, 0, sizeof *gpu);
	if (!find_compute(installed->device_id, gpu))
		return error_set(error, "nvdebug: does not say which mask bits its TPCs have (PCI device id %04x)",
		                 installed->device_id);
	gpu->pci = installed->pci;
	strcpy(gpu->name, installed->name);
	strcpy(gpu->uuid, installed->uuid);
	gpu->sms_per_tpc = (uint16_t)topology_sms_per_tpc(gpu->compute_major, gpu->compute_minor);
	gpu->gpc_limit = nvdebug->gpc_limit;
	gpu->tpc_limit = nvdebug->tpc_limit;
	gpu->tpc_count = nvdebug->tpc_count;
	for (unsigned int tpc = 0; tpc < nvdebug->tpc_count; tpc++) {
		gpu->tpcs[tpc].gpc = nvdebug->gpcs[tpc];
		gpu->tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
		gpu->tpcs[tpc].mask_bit = (uint16_t)topology_mask_bit(gpu, tpc, 0, 0);
	}
	return topology_validate(gpu, error);
}

/* Whether all TPCs of each virtual GPC are in one GPC of the chip. */
static bool keeps_groups(const struct nvdebug *nvdebug, const struct topology *gpu)
{
	bool keeps = true;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		struct tpcset group = topology_virtual_gpc(gpu, gpu->tpcs[tpc].virtual_gpc);
		unsigned int first = tpcset_next(&group, 0);

		keeps = keeps && (first == TPCSET_MAX || nvdebug->gpcs[first] == nvdebug->gpcs[tpc]);
	}
	return keeps;
}

int nvdebug_add_gpcs(const struct nvdebug *nvdebug, struct topology *gpu, struct error *error)
{
	if (gpu->tpc_count != nvdebug->tpc_count)
		return error_set(error, "nvdebug: reports %u TPCs, but the GPU has %u", nvdebug->tpc_count,
		                 gpu->tpc_count);
	if (!keeps_groups(nvdebug, gpu))
		return error_set(error, "nvdebug: its GPCs divide a virtual GPC");
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		gpu->tpcs[tpc].gpc = nvdebug->gpcs[tpc];
	if (gpu->compute_major < 9) {
		gpu->gpc_limit = nvdebug->gpc_limit;
		gpu->tpc_limit = nvdebug->tpc_limit;
	}
	return 0;
}
