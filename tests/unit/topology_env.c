/*
 * The topology that a command passes to the programs that it starts: all of it arrives, or nothing, and only with the
 * same driver.
 */
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

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void test_all_arrives(void **state)
{
	static const char *const names[] = {"h200", "h200-x2", "blackwell", "ada", "turing", "hopper-synthetic"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		describe(names[i]);
		topology_environment_write(root, &list, text);
		assert_null(strchr(text, '\n'));
		assert_arrives();
	}
}

static void test_unknown_gpcs_stay_unknown(void **state)
{
	(void)state;
	describe("h200");
	for (unsigned int tpc = 0; tpc < list.gpus[0].tpc_count; tpc++)
		list.gpus[0].tpcs[tpc].gpc = TOPOLOGY_UNKNOWN;
	topology_environment_write(root, &list, text);
	assert_arrives();
}

static void test_gpus_without_uuid_stay_behind(void **state)
{
	(void)state;
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
static void test_another_driver(void **state)
{
	(void)state;
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

static void test_truncated_text(void **state)
{
	(void)state;
	describe("h200");
	topology_environment_write(root, &list, text);
	for (size_t length = strlen(text); length-- > 0;) {
		text[length] = '\0';
		assert_refused(text);
	}
}

static void test_garbage(void **state)
{
	static const char *const lines[] = {
		"nonsense",
		";",
		";;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 ;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0,;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0 ;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.-;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0,0.0.0;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.256;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.65535;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.99999999999999999999;",
		";0000:01:00.0 GPU-1 9.0 3 8 9 0.0.0;",
		";0000:01:00.0 GPU-1 9 2 8 9 0.0.0;",
		";01:00 GPU-1 9.0 2 8 9 0.0.0;",
		";0000:01:00.0  9.0 2 8 9 0.0.0;",
		";0000:01:00.0 GPU-0123456789012345678901234567890123456789012345678 9.0 2 8 9 0.0.0;",
		";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0;0000:01:00.0 GPU-2 9.0 2 8 9 0.0.0;",
	};

	(void)state;
	assert_int_equal(topology_environment_read(root, ";0000:01:00.0 GPU-1 9.0 2 8 9 0.0.0;", &arrived), 0);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_refused(lines[i]);
}

/* The largest numbers of TPCs and GPUs, and one more. */
static void test_too_much(void **state)
{
	static char line[2 * TOPOLOGY_ENVIRONMENT_MAX];
	char *to = line;

	(void)state;
	to += sprintf(to, ";0000:01:00.0 GPU-1 7.5 2 8 9 0.-.0");
	for (unsigned int tpc = 1; tpc <= TPCSET_MAX; tpc++)
		to += sprintf(to, ",0.-.%u", tpc);
	strcpy(to, ";");
	assert_refused(line);
	to = stpcpy(line, ";");
	for (unsigned int gpu = 0; gpu < TOPOLOGY_GPUS_MAX; gpu++)
		to += sprintf(to, "0000:%02x:00.0 GPU-%u 7.5 2 8 9 0.-.0;", gpu + 1, gpu);
	assert_int_equal(topology_environment_read(root, line, &arrived), 0);
	assert_int_equal(arrived.count, TOPOLOGY_GPUS_MAX);
	strcpy(to, "0000:ff:00.0 GPU-x 7.5 2 8 9 0.-.0;");
	assert_refused(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_arrives),
		cmocka_unit_test(test_unknown_gpcs_stay_unknown),
		cmocka_unit_test(test_gpus_without_uuid_stay_behind),
		cmocka_unit_test(test_another_driver),
		cmocka_unit_test(test_truncated_text),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests_name("topology_env", tests, root_make, root_remove);
}
