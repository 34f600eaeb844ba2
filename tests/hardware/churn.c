/*
 * A part of a libcuda.so.1 that changes the masks of all waiting launches, all the time: each launch keeps the TPCs of
 * the partition and gets further TPCs by chance. For programs whose launches fit into the partition
 * (tests/hardware/churn.sh). The file CHURN_COUNT has two numbers of 64 bits, for all processes with the same file: of
 * changed masks, and of walks over the queues with a change.
 */
#include "driver/pushbuffer/queue.h"
#include "launch/queued.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct count {
	_Atomic uint64_t changes, walks;
};

static enum queue_answer add_tpcs(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	uint64_t *chance = data;

	for (size_t i = 0; i < sizeof disable->words / sizeof disable->words[0]; i++) {
		*chance ^= *chance << 13;
		*chance ^= *chance >> 7;
		*chance ^= *chance << 17;
		disable->words[i] = launch->noted.words[i] & *chance;
	}
	return QUEUE_CHANGE;
}

static void *change_all_the_time(void *data)
{
	struct count *count = data;
	uint64_t chance = 1;
	struct error error;

	/* The driver is there once a context is. */
	while (!queued_want(true, &error))
		nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
	for (;;) {
		int changes = queue_walk(true, add_tpcs, &chance);

		if (changes > 0) {
			count->changes += (unsigned int)changes;
			count->walks++;
		}
	}
	return NULL;
}

static void __attribute__((constructor)) start(void)
{
	const char *name = getenv("CHURN_COUNT");
	int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *count = mmap(NULL, sizeof(struct count), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	pthread_t thread;

	if (file >= 0)
		close(file);
	if (count != MAP_FAILED)
		pthread_create(&thread, NULL, change_all_the_time, count);
}
