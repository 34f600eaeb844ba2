/*
 * Usage: nvml GPU MS
 *
 * What NVML says of how busy each process kept this GPU (its number in the order of the PCI bus) in the last MS: lines
 * PID,PERCENT, the latest sample of each, or why it says nothing, with exit status 1.
 */
#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES_MAX 1024
#define NVML_ERROR_NOT_FOUND 6

/* Of nvml.h. */
struct sample {
	unsigned int pid;
	unsigned long long us; /* CPU's time since 1970 */
	unsigned int sm, memory, encoder, decoder;
};

static void *library;

static void *function(const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		bench_fail("NVML has no %s", name);
	return found;
}

static void check(int result, const char *name)
{
	const char *(*text)(int) = (const char *(*)(int))function("nvmlErrorString");

	if (result != 0)
		bench_fail("%s: %s (%d)", name, text(result), result);
}

static void *find_gpu(unsigned int number)
{
	int (*by_index)(unsigned int, void **) = (int (*)(unsigned int, void **))function("nvmlDeviceGetHandleByIndex_v2");
	void *device;

	check(by_index(number, &device), "nvmlDeviceGetHandleByIndex_v2");
	return device;
}

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* Where there is none since then, that is no failure. */
static unsigned int read_samples(void *device, unsigned long long since, struct sample *samples)
{
	int (*read)(void *, struct sample *, unsigned int *, unsigned long long) =
		(int (*)(void *, struct sample *, unsigned int *, unsigned long long))function("nvmlDeviceGetProcessUtilization");
	unsigned int count = SAMPLES_MAX;
	int result = read(device, samples, &count, since);

	if (result == NVML_ERROR_NOT_FOUND)
		count = 0;
	else
		check(result, "nvmlDeviceGetProcessUtilization");
	return count;
}

static bool is_latest(const struct sample *samples, unsigned int count, unsigned int which)
{
	bool is_latest = true;

	for (unsigned int i = 0; i < count; i++) {
		bool is_later = samples[i].us > samples[which].us || (samples[i].us == samples[which].us && i > which);

		is_latest = is_latest && !(samples[i].pid == samples[which].pid && is_later);
	}
	return is_latest;
}

int main(int count, char **arguments)
{
	static struct sample samples[SAMPLES_MAX];

	if (count != 3)
		bench_fail("Usage: nvml GPU MS");
	unsigned long long since = now_us() - (unsigned long long)(bench_number(arguments[2], "MS") * 1e3);

	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library)
		bench_fail("%s", dlerror());
	check(((int (*)(void))function("nvmlInit_v2"))(), "nvmlInit_v2");
	unsigned int found = read_samples(find_gpu((unsigned int)bench_number(arguments[1], "GPU")), since, samples);

	for (unsigned int i = 0; i < found; i++) {
		if (samples[i].pid != 0 && is_latest(samples, found, i))
			printf("%u,%u\n", samples[i].pid, samples[i].sm);
	}
	return EXIT_SUCCESS;
}
