/* The text format: what is read, what is refused and why, and that writing and reading agree. */
#include "topology/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct topology_list list, again;

static int read_text(const char *text, size_t length, struct error *error)
{
	FILE *file = fmemopen((void *)text, length, "r");

	assert_non_null(file);
	int result = topology_read(&list, file, "test", error);

	fclose(file);
	return result;
}

#define GPU_HEAD "nvtaskset-topology 1\ngpu 0000:3b:00.0\n"
#define GPU_REST "compute 9.0\nsms-per-tpc 2\nlimits 8 9\ntpc 0 1 0 0\n"

static void test_smallest_file(void **state)
{
	static const char text[] = GPU_HEAD "  name A GPU with spaces\n" GPU_REST;
	struct error error = {.reason = ""};

	(void)state;
	assert_int_equal(read_text(text, sizeof text - 1, &error), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.gpus[0].tpc_count, 1);
	assert_string_equal(list.gpus[0].name, "A GPU with spaces");
	assert_int_equal(list.gpus[0].pci.bus, 0x3b);
}

/* Text, and what the reason must be. */
static const struct {
	const char *text;
	const char *reason;
} refused[] = {
	{"x", "test:1: the first line must be 'nvtaskset-topology 1'"},
	{"nvtaskset-topology 2\n", "test:1: the first line must be 'nvtaskset-topology 1'"},
	{"nvtaskset-topology 1\n", "test:1: no GPU stands here"},
	{"nvtaskset-topology 1\ncompute 9.0\n", "test:2: 'compute': no gpu line stands before it"},
	{"nvtaskset-topology 1\ngpu here\n", "test:2: gpu: a bus id such as 0000:3b:00.0 was expected"},
	{GPU_HEAD, "test:2: the GPU that ends here has 0 TPCs: must be 1-256"},
	{GPU_HEAD GPU_REST "tpc 0 1 0 1\n", "test:7: tpc 0: TPC 1 was expected"},
	{GPU_HEAD GPU_REST "tpc 2 1 0 1\n", "test:7: tpc 2: TPC 1 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 0\n",
         "test:7: the GPU that ends here has TPC 1: mask bit 0 stands for another TPC already"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 256\n", "test:7: '256': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 40 0 1\n",
         "test:7: the GPU that ends here has TPC 1: GPC 40 is beyond 31"},
	{GPU_HEAD GPU_REST "tpc 1 1 0\n", "test:7: tpc: its number, GPC, virtual GPC and mask bit were expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 1 7\n",
         "test:7: tpc: its number, GPC, virtual GPC and mask bit were expected"},
	{GPU_HEAD GPU_REST "tpc 1 -1 0 1\n", "test:7: '-1': a number of at most 65534 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 1x\n", "test:7: '1x': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "nonsense\n", "test:7: 'nonsense': not understood"},
	{GPU_HEAD GPU_REST "gpu 0000:3b:00.0\n", "test:7: gpu 0000:3b:00.0: stands here twice"},
	{GPU_HEAD "compute nine\n", "test:3: compute: a compute capability such as 9.0 was expected"},
	{GPU_HEAD "sms-per-tpc 3\n", "test:3: '3': a number of at most 2 was expected"},
	{GPU_HEAD "limits 8\n", "test:3: limits: two numbers were expected, of GPCs and of TPCs in each"},
	{GPU_HEAD "limits 99 9\n", "test:3: '99': a number of at most 32 was expected"},
	{GPU_HEAD "uuid a b\n", "test:3: uuid: one word of less than 48 characters was expected"},
	{GPU_HEAD "name \x1b[2Jx\n", "test:3: name: a control character"},
};

static void test_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct error error = {.reason = ""};

		assert_int_equal(read_text(refused[i].text, strlen(refused[i].text), &error), -1);
		assert_string_equal(error.reason, refused[i].reason);
		assert_int_equal(list.count, 0);
	}
}

static void test_nul_bytes_and_long_lines(void **state)
{
	static const char with_nul[] = "nvtaskset-topology 1\ngpu\0 0000:3b:00.0\n";
	struct error error = {.reason = ""};
	char *line = malloc(5000);

	(void)state;
	assert_int_equal(read_text(with_nul, sizeof with_nul - 1, &error), -1);
	assert_string_equal(error.reason, "test:2: a NUL byte");
	assert_non_null(line);
	memset(line, 'x', 5000);
	assert_int_equal(read_text(line, 5000, &error), -1);
	assert_string_equal(error.reason, "test:1: the line is too long");
	free(line);
}

/* Cut anywhere, a file is refused or is a file of its own; never read half. */
static void test_truncated_anywhere(void **state)
{
	static const char text[] = GPU_HEAD GPU_REST "tpc 1 1 0 1\n";
	struct error error;

	(void)state;
	for (size_t length = 1; length < sizeof text - 1; length++) {
		if (read_text(text, length, &error) == 0)
			assert_int_equal(topology_validate(&list.gpus[0], &error), 0);
		else
			assert_int_equal(list.count, 0);
	}
}

static void check_round_trip(const char *path)
{
	struct error error = {.reason = ""};
	char *text = NULL;
	size_t size = 0;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	if (topology_read(&list, file, path, &error) < 0)
		fail_msg("%s", error.reason);
	fclose(file);
	file = open_memstream(&text, &size);
	assert_non_null(file);
	assert_int_equal(topology_write(&list, file), 0);
	fclose(file);
	file = fmemopen(text, size, "r");
	assert_int_equal(topology_read(&again, file, "again", &error), 0);
	fclose(file);
	free(text);
	assert_memory_equal(&list, &again, sizeof list);
}

static void test_shipped_files_round_trip(void **state)
{
	DIR *directory = opendir("share/topologies");
	struct dirent *entry;
	unsigned int count = 0;

	(void)state;
	if (!directory)
		fail_msg("run this from the top of the source");
	while ((entry = readdir(directory))) {
		char path[512];

		snprintf(path, sizeof path, "share/topologies/%s", entry->d_name);
		if (strstr(entry->d_name, ".txt")) {
			check_round_trip(path);
			count++;
		}
	}
	closedir(directory);
	assert_true(count >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_smallest_file),       cmocka_unit_test(test_refused_with_a_reason),
		cmocka_unit_test(test_nul_bytes_and_long_lines), cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_shipped_files_round_trip),
	};

	return cmocka_run_group_tests_name("topology_file", tests, NULL, NULL);
}
