/*
 * A part of a libcuda.so.1 that changes the masks of all launches that wait, all the time: between the mask with
 * which the launch was made and the whole GPU. For programs in a partition (tests/hardware/churn.sh).
 */
#include "../toss.h"
#include "launch/queued.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic uint64_t changes;

static void *change_all_the_time(void *unused)
{
	struct toss between = {.state = 1};
	struct error error;

	(void)unused;
	/* The driver is there once a context is. */
	while (!queued_want(true, &error))
		nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
	for (;;)
		changes += queue_walk(true, toss, &between);
	return NULL;
}

static void __attribute__((constructor)) start(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, change_all_the_time, NULL);
}

static void __attribute__((destructor)) end(void)
{
	fprintf(stderr, "churn: %llu changes\n", (unsigned long long)changes);
}
