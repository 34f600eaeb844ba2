/*
 * How the programs of the experiments talk, as support/conversation.py's do: the only way in which one waits until it is to work.
 *
 * "ready SMS" comes first, with the number of SMs that the driver reports. Then a program rests: the GPU has nothing to do.
 * SIGUSR1 makes it work, again and again, once at least where it rested, and discards the samples so far. SIGUSR2 makes it print
 * its samples, one a line in µs, and "rest", and wait. SIGTERM and SIGINT end it. All of them wait for the end of a repetition:
 * an MPS server would be disturbed by a program that ends in the middle of a kernel.
 *
 * For one thread.
 */
#ifndef CONVERSATION_H
#define CONVERSATION_H

#include <stdbool.h>

struct conversation {
	void (*step)(void);      /* one repetition; gives conversation_keep its samples, or prints lines of its own */
	void (*rest)(void);      /* waits until the GPU has nothing to do; may print lines of its own. NULL: it has nothing to do */
	bool is_once;            /* makes one step each time that it is made to work */
	bool is_awake;           /* works from the beginning */
	double seconds, samples; /* it ends after so many; 0: never */
};

/* Blocks the signals. Before the driver is there: its threads inherit that. */
void conversation_listen(void);

/* All of it. */
void conversation_hold(const struct conversation *conversation, unsigned int sms);

/* A sample, in µs. Those beyond 100 000 are not kept. */
void conversation_keep(double us);

#endif
