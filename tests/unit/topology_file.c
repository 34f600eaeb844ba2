/* The text format: reading, refusals with their reasons, and writing what reading accepts. */
#include "../cases.h"
#include "gpu/topology/topology.h"

static struct error error;

static struct topology_list list, before;

static int read_text(const char *text, size_t length)
{
	FILE *file = fmemopen((void *)text, length, "r");

	memset(&list, 0xa5, sizeof list);

	assert_non_null(file);
	int result = topology_read(&list, file, "test", &error);

	fclose(file);
	return result;
}

#define GPU_HEAD "nvtaskset-topology 1\ngpu 0000:3b:00.0\n"
#define GPU_REST "compute 9.0\nsms-per-tpc 2\nlimits 8 9\ntpc 0 1 0 0\n"

/* Text, and the reason for its refusal. */
static const struct {
	const char *text;
	const char *reason;
} refused[] = {
	{"\n", "test:1: the first line must be 'nvtaskset-topology 1'"},
	{" nvtaskset-topology 1\n", "test:1: the first line must be 'nvtaskset-topology 1'"},
	{"nvtaskset-topology 2\n", "test:1: the first line must be 'nvtaskset-topology 1'"},
	{"nvtaskset-topology 1", "test:1: the line has no end: is the file cut off?"},
	{"nvtaskset-topology 1\n", "test:2: the file has no GPU"},
	{"nvtaskset-topology 1\n# gpu 0000:3b:00.0\n", "test:3: the file has no GPU"},
	{"nvtaskset-topology 1\ncompute 9.0\n", "test:2: compute: no gpu line comes before it"},
	{"nvtaskset-topology 1\ngpu here\n", "test:2: gpu: a bus id such as 0000:3b:00.0 was expected"},
	{"nvtaskset-topology 1\ngpu 3b:00.0 x\n", "test:2: gpu: a bus id such as 0000:3b:00.0 was expected"},

	/* Missing lines */
	{GPU_HEAD, "test:2: this GPU has no compute line"},
	{GPU_HEAD "compute 9.0\nlimits 8 9\ntpc 0 1 0 0\n", "test:2: this GPU has no sms-per-tpc line"},
	{GPU_HEAD "compute 9.0\nsms-per-tpc 2\ntpc 0 1 0 0\n", "test:2: this GPU has no limits line"},
	{GPU_HEAD "compute 9.0\nsms-per-tpc 2\nlimits 8 9\n", "test:2: this GPU: TPCs: 0, must be 1-256"},

	/* Repeated lines */
	{GPU_HEAD GPU_REST "compute 9.0\n", "test:7: compute: appears twice for one GPU"},
	{GPU_HEAD "name X\nname X\n", "test:4: name: appears twice for one GPU"},
	{GPU_HEAD GPU_REST "tpc 0 1 0 1\n", "test:7: tpc 0: TPC 1 was expected"},
	{GPU_HEAD GPU_REST "gpu 0000:3b:00.0\n", "test:7: gpu 0000:3b:00.0: the bus ids must rise"},
	{GPU_HEAD GPU_REST "gpu 0000:3a:1f.0\n", "test:7: gpu 0000:3a:1f.0: the bus ids must rise"},
	{GPU_HEAD GPU_REST "gpu 3c:00.0\n", "test:7: this GPU has no compute line"},

	/* TPCs */
	{GPU_HEAD GPU_REST "tpc 2 1 0 1\n", "test:7: tpc 2: TPC 1 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 0\n", "test:2: this GPU: TPC 1: mask bit 0 stands for another TPC already"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 256\n", "test:7: '256': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 256 1 0 1\n", "test:7: '256': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 32 0 1\n", "test:2: this GPU: TPC 1: GPC 32 is beyond 31"},
	{GPU_HEAD GPU_REST "tpc 1 1 264 1\n", "test:2: this GPU: TPC 1: virtual GPC 264 is beyond 263"},
	{GPU_HEAD GPU_REST "tpc 1 1 8 72\ntpc 2 1 8 73\n",
	 "test:2: this GPU: TPC 2: virtual GPC 8 is a singleton's, and has another TPC already"},
	{GPU_HEAD GPU_REST "tpc 1 1 0\n", "test:7: tpc: its number, GPC, virtual GPC and mask bit were expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 1 7\n", "test:7: tpc: its number, GPC, virtual GPC and mask bit were expected"},

	/* The number of TPCs, if it is given */
	{GPU_HEAD "tpcs 2\n" GPU_REST, "test:2: this GPU has 2 TPCs, but 1 are listed: is the file cut off?"},
	{GPU_HEAD "tpcs 0\n" GPU_REST, "test:2: this GPU has 0 TPCs, but 1 are listed: is the file cut off?"},
	{GPU_HEAD "tpcs 2\n" GPU_REST "gpu 3c:00.0\n", "test:2: this GPU has 2 TPCs, but 1 are listed: is the file cut off?"},
	{GPU_HEAD "tpcs 257\n", "test:3: '257': a number of at most 256 was expected"},
	{GPU_HEAD "tpcs\n", "test:3: tpcs: a number was expected"},

	/* Numbers */
	{GPU_HEAD GPU_REST "tpc 1 -1 0 1\n", "test:7: '-1': a number of at most 65534 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 -\n", "test:7: '-': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 1x\n", "test:7: '1x': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 +1\n", "test:7: '+1': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 0x1\n", "test:7: '0x1': a number of at most 255 was expected"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 18446744073709551617\n",
	 "test:7: '18446744073709551617': a number of at most 255 was expected"},
	{GPU_HEAD "compute 9\n", "test:3: compute: a compute capability such as 9.0 was expected"},
	{GPU_HEAD "compute 9.\n", "test:3: '': a number of at most 9 was expected"},
	{GPU_HEAD "compute 9.0.1\n", "test:3: '0.1': a number of at most 9 was expected"},
	{GPU_HEAD "compute 100.0\n", "test:3: '100': a number of at most 99 was expected"},
	{GPU_HEAD "compute 0.9\nsms-per-tpc 2\nlimits 8 9\ntpc 0 0 0 0\n",
	 "test:2: this GPU: compute capability, before the point: 0, must be 1-99"},
	{GPU_HEAD "sms-per-tpc 3\n", "test:3: '3': a number of at most 2 was expected"},
	{GPU_HEAD "compute 9.0\nsms-per-tpc 0\nlimits 8 9\ntpc 0 0 0 0\n", "test:2: this GPU: SMs in a TPC: 0, must be 1-2"},
	{GPU_HEAD "limits 8\n", "test:3: limits: two numbers were expected, of GPCs and of TPCs in each"},
	{GPU_HEAD "limits 33 9\n", "test:3: '33': a number of at most 32 was expected"},
	{GPU_HEAD "limits 8 257\n", "test:3: '257': a number of at most 256 was expected"},
	{GPU_HEAD "compute 9.0\nsms-per-tpc 2\nlimits 0 9\ntpc 0 0 0 0\n", "test:2: this GPU: room for GPCs: 0, must be 1-32"},

	/* Words */
	{GPU_HEAD GPU_REST "nonsense\n", "test:7: 'nonsense': not understood"},
	{GPU_HEAD GPU_REST "TPC 1 1 0 1\n", "test:7: 'TPC': not understood"},
	{GPU_HEAD "uuid a b\n", "test:3: uuid: one word of less than 48 characters was expected"},
	{GPU_HEAD "uuid 0123456789abcdef0123456789abcdef0123456789abcdef\n",
	 "test:3: uuid: one word of less than 48 characters was expected"},
	{GPU_HEAD "name\n", "test:3: name: 1 to 63 characters were expected"},
	{GPU_HEAD "name  \t \n", "test:3: name: 1 to 63 characters were expected"},
	{GPU_HEAD "name 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
	 "test:3: name: 1 to 63 characters were expected"},
	{GPU_HEAD "name A\tB\n" GPU_REST, "test:2: this GPU: name: a control character"},
	{GPU_HEAD "name \x1b[2Jx\n", "test:3: a control character"},
	{"nvtaskset-topology 1\r\n", "test:1: a control character"},
	{GPU_HEAD GPU_REST "tpc 1 1 0 1", "test:7: the line has no end: is the file cut off?"},
};

TEST(refused_with_a_reason)
{
	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		assert_error(read_text(refused[i].text, strlen(refused[i].text)), refused[i].reason);
		assert_int_equal(list.count, 0);
	}
}

TEST(nul_bytes_and_long_lines)
{
	static const char with_nul[] = "nvtaskset-topology 1\ngpu\0 0000:3b:00.0\n";
	char line[5000];

	assert_error(read_text(with_nul, sizeof with_nul - 1), "test:2: a NUL byte");
	memset(line, 'x', sizeof line);
	assert_error(read_text(line, sizeof line), "test:1: the line is too long");
}

/* The longest line is one of 255 characters. */
TEST(longest_line)
{
	char text[sizeof GPU_HEAD GPU_REST + 256];

	for (unsigned int length = 255; length <= 256; length++) {
		snprintf(text, sizeof text, "%s%s#%*s", GPU_HEAD, GPU_REST, (int)length, "\n");
		assert_int_equal(read_text(text, strlen(text)), length == 255 ? 0 : -1);
	}
	assert_string_equal(error.reason, "test:7: the line is too long");
}

TEST(blanks_and_comments)
{
	static const char text[] =
	    "nvtaskset-topology 1\n#\n\n \t\n  # tpc 7\n\tgpu\t 3B:00.0\t\n\tname \t X  Y\n"
	    "limits\t8\t9\t\n  tpc  0\t- -   0\ncompute 9.0\nsms-per-tpc 1\n"
	    "uuid \tGPU-\xc3\xa9\n";

	assert_done(read_text(text, sizeof text - 1));
	assert_string_equal(list.gpus[0].name, "X  Y");
	assert_string_equal(list.gpus[0].uuid, "GPU-\xc3\xa9");
	assert_each(list.gpus[0].tpcs[0].gpc, TOPOLOGY_UNKNOWN, list.gpus[0].tpcs[0].virtual_gpc, TOPOLOGY_UNKNOWN);
}

/* The largest numbers of GPUs and TPCs. All TPCs are singletons. */
static int read_large(unsigned int gpus, unsigned int tpcs)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	fprintf(file, "nvtaskset-topology 1\n");
	for (unsigned int gpu = 0; gpu < gpus; gpu++) {
		fprintf(file, "gpu ffffffff:%02x:1f.0\ncompute 99.9\nsms-per-tpc 2\nlimits 32 256\n", gpu);
		for (unsigned int tpc = 0; tpc < tpcs; tpc++)
			fprintf(file, "tpc %u 31 %u %u\n", tpc, 32 + tpc, 255 - tpc);
	}
	fclose(file);
	int result = read_text(text, size);

	free(text);
	return result;
}

TEST(largest_file)
{
	assert_int_equal(read_large(TOPOLOGY_GPUS_MAX, TPCSET_MAX), 0);
	assert_each(list.count, TOPOLOGY_GPUS_MAX, list.gpus[15].tpc_count, TPCSET_MAX);
	assert_error(read_large(TOPOLOGY_GPUS_MAX + 1, 1), "test:82: more than 16 GPUs");
	assert_error(read_large(1, TPCSET_MAX + 1), "test:262: '256': a number of at most 255 was expected");
}

TEST(file_that_cannot_be_read)
{
	FILE *directory = fopen("/", "r");

	assert_non_null(directory);
	assert_error(topology_read(&list, directory, "/", &error), "/:1: cannot be read: Is a directory");
	fclose(directory);
}

/* A file that we write says how many TPCs must follow. So it is refused if it is cut anywhere, even after a line; and as a whole, it
 * says the same. */
TEST(written_and_truncated_anywhere)
{
	static const char text[] = GPU_HEAD GPU_REST "tpc 1 - - 1\nname X  Y\nuuid GPU-1\n";
	char *written = NULL;
	size_t size = 0;

	assert_int_equal(read_text(text, sizeof text - 1), 0);
	before = list;
	FILE *file = open_memstream(&written, &size);

	assert_int_equal(topology_write(&list, file), 0);
	fclose(file);
	for (size_t length = 1; length <= size; length++)
		assert_int_equal(read_text(written, length), length == size ? 0 : -1);
	assert_memory_equal(&list, &before, sizeof list);
	free(written);
}

RUN_TESTS(NULL, NULL)
