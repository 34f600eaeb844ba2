#include "conversation.h"

#include "bench.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static sigset_t signals;

static double samples[100000];
static size_t sample_count;

/* They are asked for between two repetitions: so none is lost, and none disturbs a repetition. */
void conversation_listen(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

/* The number of a signal that was sent; 0 or less if there is none. */
static int next_signal(bool wait)
{
	const struct timespec none = {0};

	return wait ? sigwaitinfo(&signals, NULL) : sigtimedwait(&signals, NULL, &none);
}

void conversation_keep(double us)
{
	if (sample_count < sizeof samples / sizeof samples[0])
		samples[sample_count++] = us;
}

static void print_samples(void)
{
	for (size_t i = 0; i < sample_count; i++)
		printf("%.2f\n", samples[i]);
}

static void rest(const struct conversation *conversation)
{
	if (conversation->rest)
		conversation->rest();
	print_samples();
}

static bool is_over(const struct conversation *conversation, int64_t start)
{
	return (conversation->seconds > 0 && (double)(bench_now() - start) >= conversation->seconds * 1e9) ||
	       (conversation->samples > 0 && (double)sample_count >= conversation->samples);
}

void conversation_hold(const struct conversation *conversation, unsigned int sms)
{
	bool is_resting = !conversation->is_awake, is_ending = false;
	int64_t start = bench_now();

	printf("ready %u\n", sms);
	fflush(stdout);
	while (!is_ending && !is_over(conversation, start)) {
		int number = next_signal(is_resting || conversation->is_once);

		if (number == SIGUSR1) {
			sample_count = 0;
			if (is_resting) /* a step, whatever was sent since */
				conversation->step();
			is_resting = false;
		} else if (number == SIGUSR2) {
			is_resting = true;
			rest(conversation);
			puts("rest");
			fflush(stdout);
			sample_count = 0;
		} else if (number > 0) {
			is_ending = true;
		} else if (!is_resting) {
			conversation->step();
		}
	}
	rest(conversation);
}
