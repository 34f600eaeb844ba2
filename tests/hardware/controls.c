/*
 * Usage: controls sms|clocks|switches|realtime
 *
 * Tries controls of NVIDIA's kernel driver that nvtaskset does not use, and prints statuses and answers:
 *
 *   sms        the table of SMs with all of its fields, ugpuId, physicalCpcId and virtualTpcId included
 *   clocks     samples of the GPU's and the CPU's time, taken together
 *   switches   a buffer of events for the GPU's changes between contexts: of the own user, of all users
 *   realtime   makes the own groups of channels real-time, and restarts the runlist at each launch; before
 * and after, the time from a launch of a short kernel to its end. Only without MPS, and beside another
 * program
 *
 * The numbers are published in open-gpu-kernel-modules (595.45.04), src/common/sdk/nvidia/inc; comments name
 * the header. Statuses are in nvstatuscodes.h: 0 done, 0x1b not permitted, 0x56 not supported.
 */
#include "bench.h"
#include "driver/channels/kernel_client.h"
#include "gpu/kernels.h"
#include "gpu/topology/rm_abi.h"
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* --- a client of our own
 * ---------------------------------------------------------------------------------------- */

enum { HANDLE_DEVICE = 0x6e760001, HANDLE_SUBDEVICE, HANDLE_HEADER, HANDLE_RECORDS, HANDLE_BUFFER };

static int control_file;
static uint32_t client;

static uint32_t make(uint32_t parent, uint32_t object, uint32_t class, void *parameters, uint32_t size)
{
	struct rm_alloc call = {
	    .client = client,
	    .parent = parent,
	    .object = object,
	    .class = class,
	    .parameters = (uintptr_t)parameters,
	    .size = size,
	};

	if (ioctl(control_file, IOCTL_ALLOC, &call) < 0)
		bench_fail("class %#x: %s", class, strerror(errno));
	if (class == CLASS_CLIENT)
		client = call.object;
	return call.status;
}

static uint32_t control(uint32_t object, uint32_t command, void *parameters, uint32_t size)
{
	struct rm_control call = {
	    .client = client,
	    .object = object,
	    .command = command,
	    .parameters = (uintptr_t)parameters,
	    .size = size,
	};

	return ioctl(control_file, IOCTL_CONTROL, &call) < 0 ? STATUS_NOT_PERMITTED : call.status;
}

/* The first GPU. Its file stays open: without it, the kernel driver describes nothing. */
static void connect_gpu(void)
{
	struct device_parameters device = {.device_instance = 0};
	struct subdevice_parameters subdevice = {.subdevice_instance = 0};

	control_file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (control_file < 0 || open("/dev/nvidia0", O_RDWR | O_CLOEXEC) < 0)
		bench_fail("/dev/nvidiactl or /dev/nvidia0: %s", strerror(errno));
	make(0, 0, CLASS_CLIENT, NULL, 0);
	printf("device: status %#x\n", make(client, HANDLE_DEVICE, CLASS_DEVICE, &device, sizeof device));
	printf("subdevice: status %#x\n",
	       make(HANDLE_DEVICE, HANDLE_SUBDEVICE, CLASS_SUBDEVICE, &subdevice, sizeof subdevice));
}

/* --- sms
 * ----------------------------------------------------------------------------------------------------------
 */

/* The fields of ctrl2080gr.h; the last three from driver 580 on. */
static void show_sms(void)
{
	static struct sm_order order;
	size_t route = ((size_t)SM_ROWS * SM_FIELDS_MAX * 2 + 4 + 7) / 8 * 8;

	connect_gpu();
	printf("table of SMs with %d fields: status %#x\n", SM_FIELDS_MAX,
	       control(HANDLE_SUBDEVICE, SM_ORDER, &order, (uint32_t)(route + sizeof(struct route))));
	printf("sm gpc local_tpc local_sm tpc virtual_gpc migratable_tpc ugpu cpc virtual_tpc\n");
	for (unsigned int sm = 0; sm < order.words[SM_ROWS * SM_FIELDS_MAX] && sm < SM_ROWS; sm++) {
		printf("%u", sm);
		for (unsigned int field = 0; field < SM_FIELDS_MAX; field++)
			printf(" %u", order.words[sm * SM_FIELDS_MAX + field]);
		printf("\n");
	}
}

/* --- clocks
 * ---------------------------------------------------------------------------------------------------------
 */

#define TIME_CORRELATION 0x20800406
#define SAMPLES 16
struct time_correlation { /* ctrl2080tmr.h */
	uint8_t clock;
	uint8_t count;
	struct {
		uint64_t cpu, gpu;
	} samples[SAMPLES];
};

static uint64_t clock_of(clockid_t which)
{
	struct timespec time;

	clock_gettime(which, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void show_clocks(void)
{
	static const char *const names[] = {"", "the system's time, us", "the CPU's time stamp counter",
					    "the platform's", "GSP's"};

	connect_gpu();
	for (uint8_t which = 1; which <= 4; which++) {
		struct time_correlation answer = {.clock = which, .count = SAMPLES};
		uint64_t began = clock_of(CLOCK_MONOTONIC_RAW);
		uint32_t status = control(HANDLE_SUBDEVICE, TIME_CORRELATION, &answer, sizeof answer);
		uint64_t ended = clock_of(CLOCK_MONOTONIC_RAW);

		printf("clock %u (%s): status %#x, %.1f us for %d samples\n", which, names[which], status,
		       (double)(ended - began) / 1e3, SAMPLES);
		for (int i = 0; status == STATUS_OK && i < SAMPLES; i++)
			printf("  cpu %" PRIu64 " gpu %" PRIu64 "\n", answer.samples[i].cpu,
			       answer.samples[i].gpu);
		printf("  realtime %" PRIu64 " raw %" PRIu64 " to %" PRIu64 "\n", clock_of(CLOCK_REALTIME),
		       began, ended);
	}
}

/* --- switches
 * ------------------------------------------------------------------------------------------------------- */

#define CLASS_SYSTEM_MEMORY 0x3e /* cl003e.h */
struct memory_parameters {       /* nvos.h, NV_MEMORY_ALLOCATION_PARAMS */
	uint32_t owner, type, flags, width, height, pitch, attributes, attributes2, format, compression,
	    zcull;
	uint64_t low, high, size, alignment, offset, limit, address;
	uint32_t tag_offset, address_space, internal, tag, node;
};

#define ATTRIBUTES                                                                                           \
	(UINT32_C(1) << 25 | UINT32_C(1) << 27 |                                                             \
	 UINT32_C(1) << 29)             /* in the host's memory, scattered, cached */
#define ATTRIBUTES2 (UINT32_C(1) << 22) /* users only read */

#define CLASS_EVENT_BUFFER 0x90cd
struct event_buffer_parameters { /* cl90cd.h */
	uint64_t header_at, records_at;
	uint32_t record_size, record_count;
	uint64_t data_at;
	uint32_t data_size, records_threshold;
	uint64_t notification;
	uint32_t data_threshold, subdevice, flags, header, records, data;
};

#define BIND_SWITCHES 0x20801238
struct bind_switches { /* ctrl2080gr.h, FECS_BIND_EVTBUF_FOR_UID_V2 */
	uint32_t buffer, record_size, detail, filter;
	uint8_t all_users;
	uint32_t reason; /* 3 not enabled, 4 needs root, 5 needs a capability */
};

#define RECORD_SIZE 32
#define RECORD_COUNT 1024

static void make_memory(const char *what, uint32_t handle, uint64_t size)
{
	struct memory_parameters memory = {
	    .owner = client, .attributes = ATTRIBUTES, .attributes2 = ATTRIBUTES2, .size = size};

	printf("%s: status %#x\n", what,
	       make(HANDLE_DEVICE, handle, CLASS_SYSTEM_MEMORY, &memory, sizeof memory));
}

#define IOCTL_MAP _IOWR('F', 0x4e, struct rm_map)
struct rm_map { /* nvos.h, NVOS33_PARAMETERS, and a file of its own for the mapping */
	uint32_t client, device, memory;
	uint64_t offset, length, address;
	uint32_t status, flags;
	int32_t file;
};

/* NULL, with a line, if the memory cannot be mapped. */
static const volatile void *map(uint32_t handle, uint64_t size)
{
	struct rm_map call = {.client = client, .device = HANDLE_DEVICE, .memory = handle, .length = size,
			      .file = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC)};
	int failed = ioctl(control_file, IOCTL_MAP, &call);
	void *memory = failed || call.status ? MAP_FAILED
					     : mmap(NULL, size, PROT_READ, MAP_SHARED, call.file, 0);

	if (memory == MAP_FAILED)
		printf("a mapping: status %#x, %s\n", call.status, strerror(errno));
	return memory == MAP_FAILED ? NULL : memory;
}

#define ENABLE_EVENTS 0x90cd0101 /* ctrl90cd.h */
#define FLUSH_EVENTS  0x90cd0104
struct enable_events {
	uint8_t on;
	uint32_t policy; /* 2: keep the newest */
};

struct events_header { /* cl90cd.h */
	uint32_t get, put;
	uint64_t count, dropped, data_dropped;
};

/* What arrives in two seconds. */
static void show_events(void)
{
	struct enable_events enable = {1, 2};
	const volatile struct events_header *header = map(HANDLE_HEADER, 4096);
	const volatile uint32_t *words = map(HANDLE_RECORDS, RECORD_SIZE * RECORD_COUNT);

	printf("events on: status %#x\n", control(HANDLE_BUFFER, ENABLE_EVENTS, &enable, sizeof enable));
	sleep(2);
	printf("events flushed: status %#x\n", control(HANDLE_BUFFER, FLUSH_EVENTS, NULL, 0));
	if (!header || !words)
		return;
	printf("events: %" PRIu64 ", put %u, dropped %" PRIu64 "\n", header->count, header->put, header->dropped);
	for (unsigned int i = 0; i < header->put && i < 24; i++) {
		for (size_t word = 0; word < RECORD_SIZE / sizeof *words; word++)
			printf(" %08x", words[i * RECORD_SIZE / sizeof *words + word]);
		printf("\n");
	}
}

static void show_switches(void)
{
	struct event_buffer_parameters buffer = {
	    .record_size = RECORD_SIZE,
	    .record_count = RECORD_COUNT,
	    .subdevice = HANDLE_SUBDEVICE,
	    .header = HANDLE_HEADER,
	    .records = HANDLE_RECORDS,
	};

	connect_gpu();
	make_memory("memory for the header", HANDLE_HEADER, 4096);
	make_memory("memory for records", HANDLE_RECORDS, RECORD_SIZE * RECORD_COUNT);
	printf("buffer of events: status %#x\n",
	       make(client, HANDLE_BUFFER, CLASS_EVENT_BUFFER, &buffer, sizeof buffer));
	for (uint8_t all_users = 0; all_users < 2; all_users++) {
		struct bind_switches bind = {
		    .buffer = HANDLE_BUFFER, .record_size = RECORD_SIZE, .all_users = all_users};
		uint32_t status = control(HANDLE_SUBDEVICE, BIND_SWITCHES, &bind, sizeof bind);

		printf("changes of %s: status %#x, reason %u\n", all_users ? "all users" : "this user",
		       status, bind.reason);
	}
	show_events();
}

/* --- realtime
 * ------------------------------------------------------------------------------------------------------- */

#define MAKE_REALTIME 0xa06c0110   /* ctrla06c.h: one byte */
#define RESTART_RUNLIST 0xa06f0111 /* ctrla06fgpfifo.h: two bytes: also if the channel runs; do not wait */
#define LAUNCHES 500
#define PAUSE_NS 2000000

static struct kernel_client cuda;

static void restart_runlists(bool says)
{
	for (unsigned int i = 0; i < channels_list.count; i++) {
		uint8_t how[2] = {1, 1};
		uint32_t status = kernel_client_control(&cuda, channels_list.channels[i].handle,
							RESTART_RUNLIST, how, sizeof how);

		if (says)
			printf("restart by channel %#x: status %#x\n", channels_list.channels[i].handle,
			       status);
	}
}

static int compare(const void *a, const void *b)
{
	return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

static void show_latency(const char *when, const struct bench_gpu *gpu, const struct bench_launch *launch,
			 bool restarts)
{
	static int64_t took[LAUNCHES];

	for (int i = 0; i < LAUNCHES; i++) {
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		int64_t began = bench_now();

		bench_start(gpu, launch);
		if (restarts)
			restart_runlists(false);
		bench_wait(gpu);
		took[i] = bench_now() - began;
	}
	qsort(took, LAUNCHES, sizeof took[0], compare);
	const int64_t median = took[LAUNCHES / 2], most = took[LAUNCHES * 99 / 100],
		      longest = took[LAUNCHES - 1];

	printf("%s: %d launches: median %.1f us, 99 %% %.1f us, longest %.1f us\n", when, LAUNCHES,
	       (double)median / 1e3, (double)most / 1e3, (double)longest / 1e3);
}

static void make_realtime(uint8_t on)
{
	for (unsigned int i = 0; i < channels_list.group_count; i++)
		printf("group %#x real-time %u: status %#x\n", channels_list.groups[i].handle, on,
		       kernel_client_control(&cuda, channels_list.groups[i].handle, MAKE_REALTIME, &on,
					     sizeof on));
}

static void show_realtime(void)
{
	struct bench_gpu gpu;
	struct error error;

	inside_watch_channels();
	bench_open(&gpu);
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	if (channels_find(&error) != CHANNELS_DONE || kernel_client_reach(&cuda, &error) < 0)
		bench_fail("%s", error.reason);
	printf("%u groups, %u channels\n", channels_list.group_count, channels_list.count);
	show_latency("as it is", &gpu, &launch, false);
	restart_runlists(true);
	make_realtime(1);
	show_latency("real-time", &gpu, &launch, false);
	show_latency("real-time, with restarts", &gpu, &launch, true);
	make_realtime(0);
	show_latency("as it was", &gpu, &launch, false);
	bench_close(&gpu);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*show)(void);
	} parts[] = {{"sms", show_sms},
		     {"clocks", show_clocks},
		     {"switches", show_switches},
		     {"realtime", show_realtime}};

	setlinebuf(stdout); /* whatever becomes of us */
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (count == 2 && strcmp(arguments[1], parts[i].name) == 0) {
			parts[i].show();
			return EXIT_SUCCESS;
		}
	}
	bench_fail("Usage: controls sms|clocks|switches|realtime");
}
