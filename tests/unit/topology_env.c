/*
 * The topology that a command passes to the programs that it starts: all of it arrives, or nothing, and only with the
 * same driver.
 */
#include "../cases.h"
#include "gpu/topology/environment.h"
#include "root.h"
#include "share.h"

static struct topology_list list, arrived;
static char text[TOPOLOGY_ENVIRONMENT_MAX];

static void install_driver(const char *version)
{
	root_run("mkdir -p sys/module/nvidia && echo '%s' >sys/module/nvidia/version", version);
}

/* A shipped topology, whose GPUs get UUIDs. They get no names, as names are not passed. */
static void describe(const char *name)
{
	share_read(&list, name);
	for (unsigned int i = 0; i < list.count; i++) {
		snprintf(list.gpus[i].uuid, sizeof list.gpus[i].uuid, "GPU-01234567-89ab-cdef-0123-%u", i);
		memset(list.gpus[i].name, 0, sizeof list.gpus[i].name);
	}
}

static void assert_arrives(void)
{
	assert_int_equal(topology_environment_read(root, text, &arrived), 0);
	assert_memory_equal(&arrived, &list, sizeof list);
}

static void assert_refused(const char *line)
{
	assert_int_equal(topology_environment_read(root, line, &arrived), -1);
	assert_int_equal(arrived.count, 0);
}

TEST(all_arrives)
{
	static const char *const names[] = {"h200", "h200-x2", "blackwell", "ada", "turing", "hopper-synthetic"};

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		describe(names[i]);
		topology_environment_write(root, &list, text);
		assert_null(strchr(text, '\n'));
		assert_arrives();
	}
}

TEST(unknown_gpcs_stay_unknown)
{
	describe("h200");
	for (unsigned int tpc = 0; tpc < list.gpus[0].tpc_count; tpc++)
		list.gpus[0].tpcs[tpc].gpc = TOPOLOGY_UNKNOWN;
	topology_environment_write(root, &list, text);
	assert_arrives();
}

TEST(gpus_without_uuid_stay_behind)
{
	describe("h200-x2");
	memset(list.gpus[0].uuid, 0, sizeof list.gpus[0].uuid);
	topology_environment_write(root, &list, text);
	assert_int_equal(topology_environment_read(root, text, &arrived), 0);
	assert_int_equal(arrived.count, 1);
	assert_memory_equal(&arrived.gpus[0], &list.gpus[1], sizeof arrived.gpus[0]);
	strcpy(list.gpus[1].uuid, "GPU-;");
	assert_string_equal(topology_environment_write(root, &list, text), "");
	list.count = 0;
	assert_string_equal(topology_environment_write(root, &list, text), "");
}

/* Another version may number virtual GPCs in another way. */
TEST(another_driver)
{
	describe("h200");
	install_driver("580.159.04");
	topology_environment_write(root, &list, text);
	assert_arrives();
	install_driver("580.159.0");
	assert_refused(text);
	install_driver("595.10");
	assert_refused(text);
	root_run("rm sys/module/nvidia/version");
	assert_refused(text);
	topology_environment_write(root, &list, text);
	install_driver("580.159.04");
	assert_refused(text);
	root_run("rm sys/module/nvidia/version");
}

TEST(garbage)
{
	static const char *const lines[] = {
		"nonsense", ";", ";;", ";0000:01:00.0 GPU-1 9.0 2 8 9 ;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0,;", ";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0 ;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.-;", ";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0,0.0.0;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.256;", ";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.65535;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.99999999999999999999;",
		";0000:01:00.0 GPU-1 9.0 3 8 9 0.0.0;", ";0000:01:00.0 GPU-1 9 2 8 9 0.0.0;",
		";01:00 GPU-1 9.0 2 8 9 0.0.0;", ";0000:01:00.0  9.0 2 8 9 0.0.0;",
		";0000:01:00.0 GPU-0123456789012345678901234567890123456789012345678 9.0 2 8 9 0.0.0;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0;0000:01:00.0 GPU-2 9.0 2 8 9 0.0.0;",
	};

	assert_int_equal(topology_environment_read(root, ";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0;", &arrived), 0);
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		assert_refused(lines[i]);
}

int main(void)
{
	return run_tests_in(root_make, root_remove, NULL, NULL);
}
