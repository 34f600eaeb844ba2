/* nvdebug's files, as published, in a directory of our own: what is read from them, and what is refused. */
#include "gpu/topology/nvdebug.h"
#include "root.h"
#include "share.h"

#include <unistd.h>

#define TABLE "nvdebug: its table (CWD_GPC_TPC_IDn) has "

static struct topology_list list;

/* --- a machine with nvdebug ---------------------------------------------------------------------------------------- */

static void write_text(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof path, "%s/proc/gpu0/%s", root, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_number(const char *name, uint32_t number)
{
	char text[32];

	snprintf(text, sizeof text, "0x%08x\n", number);
	write_text(name, text);
}

static void write_fuses(const struct topology *gpu)
{
	uint32_t gpcs = 0;

	for (unsigned int gpc = 0; gpc < gpu->gpc_limit; gpc++) {
		struct tpcset members = topology_gpc(gpu, gpc);
		unsigned int count = tpcset_count(&members);
		char name[32];

		gpcs |= (count == 0 ? 1u : 0u) << gpc;
		snprintf(name, sizeof name, "gpc%u_tpc_mask", gpc);
		/* Which ones are off does not matter. */
		write_number(name, ((1u << gpu->tpc_limit) - 1) & ~((1u << count) - 1));
	}
	write_number("gpc_mask", gpcs);
}

/* The hardware's table numbers only the GPCs that are present. */
static void write_table(const struct topology *gpu)
{
	unsigned int numbers[16] = {0};
	uint32_t content = 0;

	for (unsigned int tpc = 0; tpc < 64; tpc++) {
		if (tpc < gpu->tpc_count) {
			unsigned int gpc = gpu->tpcs[tpc].gpc;

			content |= (gpc << 4 | numbers[gpc]++) << tpc % 4 * 8;
		}
		if (tpc % 4 == 3) {
			char name[32];

			snprintf(name, sizeof name, "CWD_GPC_TPC_ID%u", tpc / 4);
			write_number(name, content);
			content = 0;
		}
	}
}

static void load_nvdebug(const struct topology *gpu)
{
	write_number("num_gpcs", gpu->gpc_limit);
	write_number("num_tpc_per_gpc", gpu->tpc_limit);
	write_fuses(gpu);
	write_table(gpu);
}

static int set_up(void **state)
{
	int result = root_make(state);

	if (result == 0)
		root_run("mkdir -p proc/gpu0");
	return result;
}

static void assert_refused(const char *reason)
{
	struct error error = {.reason = "old"};
	struct nvdebug nvdebug;

	assert_int_equal(nvdebug_read(root, &nvdebug, &error), -1);
	assert_string_equal(error.reason, reason);
}

static void assert_read(struct nvdebug *nvdebug)
{
	struct error error = {.reason = ""};

	if (nvdebug_read(root, nvdebug, &error) < 0)
		fail_msg("%s", error.reason);
}

/* --- what is read ---------------------------------------------------------------------------------------------------- */

static void test_gpcs_before_hopper(void **state)
{
	static const struct {
		const char *name;
		uint16_t device_id;
	} gpus[] = {{"turing", 0x1e04}, {"ada", 0x2684}};
	struct topology described;
	struct nvdebug nvdebug;
	struct error error;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct topology gpu = *share_read(&list, gpus[i].name);
		struct procfs_gpu installed = {.pci = gpu.pci, .device_id = gpus[i].device_id};

		strcpy(installed.name, gpu.name);
		load_nvdebug(&gpu);
		assert_read(&nvdebug);
		assert_int_equal(nvdebug_describe(&nvdebug, &installed, &described, &error), 0);
		assert_memory_equal(&described, &gpu, sizeof gpu);
	}
}

static void test_hopper_needs_a_measurement(void **state)
{
	const struct topology *gpu = share_read(&list, "hopper-synthetic");
	struct procfs_gpu installed = {.pci = gpu->pci, .device_id = 0x2330};
	struct topology measured = *gpu, described;
	struct nvdebug nvdebug;
	struct error error;

	(void)state;
	load_nvdebug(gpu);
	assert_read(&nvdebug);
	assert_int_equal(nvdebug_describe(&nvdebug, &installed, &described, &error), -1);
	assert_string_equal(error.reason,
	                    "nvdebug: does not say which mask bits its TPCs have (PCI device id 2330)");
	for (unsigned int tpc = 0; tpc < measured.tpc_count; tpc++)
		measured.tpcs[tpc].gpc = TOPOLOGY_UNKNOWN;
	assert_int_equal(nvdebug_add_gpcs(&nvdebug, &measured, &error), 0);
	assert_memory_equal(&measured, gpu, sizeof measured);
}

static void test_a_measurement_that_it_contradicts(void **state)
{
	const struct topology *gpu = share_read(&list, "h200");
	struct topology other = *gpu;
	struct nvdebug nvdebug;
	struct error error;

	(void)state;
	load_nvdebug(&other);
	write_number("CWD_GPC_TPC_ID16", 0x0808); /* beyond the published sixteen: TPCs 64 and 65 */
	assert_refused(TABLE "fewer TPCs than its fuses allow, 66");
	other.tpc_count = 62; /* without the singletons */
	load_nvdebug(&other);
	assert_read(&nvdebug);
	assert_int_equal(nvdebug_add_gpcs(&nvdebug, &other, &error), 0);
	struct topology whole = *gpu;

	assert_int_equal(nvdebug_add_gpcs(&nvdebug, &whole, &error), -1);
	assert_string_equal(error.reason, "nvdebug: reports 62 TPCs, but the GPU has 66");
	other.tpcs[0].virtual_gpc = 1;
	assert_int_equal(nvdebug_add_gpcs(&nvdebug, &other, &error), -1);
	assert_string_equal(error.reason, "nvdebug: its GPCs divide a virtual GPC");
}

/* --- what is refused ----------------------------------------------------------------------------------------------- */

static void test_not_loaded(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof path, "%s/proc/gpu0", root);
	assert_int_equal(rmdir(path), 0);
	assert_refused("");
	assert_int_equal(mkdir(path, 0755), 0);
}

static void test_several_gpus(void **state)
{
	char path[256];

	(void)state;
	load_nvdebug(share_read(&list, "turing"));
	snprintf(path, sizeof path, "%s/proc/gpu1", root);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_refused("nvdebug: does not say which of its GPUs is which");
	assert_int_equal(rmdir(path), 0);
}

static void test_files_that_are_missing(void **state)
{
	static const struct {
		const char *file;
		const char *reason;
	} cases[] = {
		{"num_gpcs", "nvdebug: /proc/gpu0/num_gpcs: No such file or directory"},
		{"num_tpc_per_gpc", "nvdebug: /proc/gpu0/num_tpc_per_gpc: No such file or directory"},
		{"gpc_mask", "nvdebug: /proc/gpu0/gpc_mask: No such file or directory"},
		{"gpc5_tpc_mask", "nvdebug: /proc/gpu0/gpcN_tpc_mask: No such file or directory"},
		{"CWD_GPC_TPC_ID8", TABLE "fewer TPCs than its fuses allow, 34"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[256];

		load_nvdebug(share_read(&list, "turing"));
		snprintf(path, sizeof path, "%s/proc/gpu0/%s", root, cases[i].file);
		assert_int_equal(unlink(path), 0);
		assert_refused(cases[i].reason);
	}
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {"", "\n", "nonsense\n", "0x\n", "0x10000000000000000\n", "6 GPCs\n", "-\n"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		load_nvdebug(share_read(&list, "turing"));
		write_text("num_gpcs", texts[i]);
		assert_refused("nvdebug: /proc/gpu0/num_gpcs: not a hexadecimal number");
	}
	write_number("num_gpcs", 17);
	assert_refused("nvdebug: room for 17 GPCs and 6 TPCs in each, must be 1-16 and 1-16");
	write_number("num_gpcs", 0);
	assert_refused("nvdebug: room for 0 GPCs and 6 TPCs in each, must be 1-16 and 1-16");
}

/* Fuses whose bits mean the opposite of what was published, and tables that contradict the fuses. */
static void test_contradictions(void **state)
{
	(void)state;
	load_nvdebug(share_read(&list, "turing"));
	write_number("gpc_mask", 0x3f);
	assert_refused("nvdebug: all TPCs are fused off");
	write_number("gpc_mask", 0);
	for (unsigned int gpc = 0; gpc < 6; gpc++) {
		char name[32];

		snprintf(name, sizeof name, "gpc%u_tpc_mask", gpc);
		write_number(name, gpc < 4 ? 0x3f : 0x1f);
	}
	assert_refused(TABLE "more TPCs than its fuses allow, 2");
	load_nvdebug(share_read(&list, "turing"));
	write_number("CWD_GPC_TPC_ID0", 0);
	assert_refused(TABLE "fewer TPCs than its fuses allow, 34");
	write_number("CWD_GPC_TPC_ID0", 0x30206000); /* GPC 6 of 0-5 */
	assert_refused(TABLE "fewer TPCs than its fuses allow, 34");
	load_nvdebug(share_read(&list, "turing"));
	write_number("gpc0_tpc_mask", 0x30); /* 4, where the table has 6, */
	assert_refused(TABLE "more TPCs than its fuses allow, 32");
	write_number("gpc0_tpc_mask", 0);
	write_number("gpc1_tpc_mask", 0); /* the right number of TPCs, in other GPCs than the table's */
	write_number("gpc2_tpc_mask", 0);
	write_number("gpc3_tpc_mask", 0);
	write_number("gpc4_tpc_mask", 0);
	write_number("gpc5_tpc_mask", 0x30);
	assert_refused("nvdebug: its table of TPCs and its fuses contradict each other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gpcs_before_hopper, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_hopper_needs_a_measurement, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_a_measurement_that_it_contradicts, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_not_loaded, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_several_gpus, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_files_that_are_missing, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_garbage, set_up, root_remove),
		cmocka_unit_test_setup_teardown(test_contradictions, set_up, root_remove),
	};

	return cmocka_run_group_tests_name("topology_nvdebug", tests, NULL, NULL);
}
