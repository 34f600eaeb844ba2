/*
 * How the programs of the experiments talk, as support/conversation.py's do.
 *
 * "ready SMS" comes first, with the number of SMs that the driver reports. Then a program works, again and again, and
 * prints at its end how many µs each repetition took, one a line. SIGUSR1 makes it work, once at least where it rested, and
 * discards the samples so far. SIGUSR2 makes it print its samples and "rest", and wait; the GPU has nothing to do then.
 * SIGTERM and SIGINT end it. All of them wait for the end of a repetition: an MPS server would be disturbed by a program
 * that ends in the middle of a kernel.
 *
 * For one thread.
 */
#ifndef CONVERSATION_H
#define CONVERSATION_H

#include <stdbool.h>

struct conversation {
	double seconds, samples; /* it ends after so many; HUGE_VAL: never */
	bool is_at_rest;         /* waits for the first SIGUSR1 */
	void (*step)(void);      /* one repetition; gives conversation_keep its samples */
	void (*rest)(void);      /* waits until the GPU has nothing to do */
};

/* Blocks the signals. Before the driver is there: its threads inherit that. */
void conversation_listen(void);

/* All of it. */
void conversation_hold(const struct conversation *conversation, unsigned int sms);

/* A sample, in µs. Those beyond 100 000 are not kept. */
void conversation_keep(double us);

#endif
