/*
 * The topology that a command passes to the programs that it starts: all of it arrives, or nothing, and only with the
 * same driver.
 */
#include "../cases.h"
#include "gpu/topology/topology.h"
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
	topology_environment_write(root, &list, text);
	assert_null(strchr(text, '\n'));
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
		assert_arrives();
		for (unsigned int tpc = 0; tpc < list.gpus[0].tpc_count; tpc++)
			list.gpus[0].tpcs[tpc].gpc = TOPOLOGY_UNKNOWN;
		assert_arrives();
	}
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

#define HEADER ";nvtaskset-topology 1;"
#define REST "compute 9.0;sms-per-tpc 2;limits 8 9;tpcs 1;"
#define NO_TPC "gpu 0000:01:00.0;uuid GPU-1;" REST
#define GPU NO_TPC "tpc 0 0 0 0;"

TEST(garbage)
{
	static const char *const lines[] = {
		"nonsense", ";", ";;", HEADER, "nvtaskset-topology 1;" GPU, ";" GPU, HEADER NO_TPC, HEADER NO_TPC "tpc 0 0 0 0",
		HEADER NO_TPC "tpc 0 0 0 -;", HEADER NO_TPC "tpc 0 0 0 256;",
		HEADER "gpu 0000:01:00.0;" REST "tpc 0 0 0 0;", HEADER "gpu 0000:01:00.0;name H;uuid GPU-1;" REST "tpc 0 0 0 0;",
		HEADER "gpu 01:00;uuid GPU-1;" REST "tpc 0 0 0 0;", HEADER GPU GPU, HEADER GPU ";\n;\t;x",
		HEADER "gpu 0000:02:00.0;uuid GPU-2;" REST "tpc 0 0 0 0;" GPU,
	};

	assert_int_equal(topology_environment_read(root, HEADER GPU, &arrived), 0);
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		assert_refused(lines[i]);
}

RUN_TESTS_IN(root_make, root_remove, NULL, NULL)
