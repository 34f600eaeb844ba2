/*
 * --strict: ends the program, with the reason, before something runs outside the partition. We end a program nowhere
 * else, and here its user has asked for it.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_STRICT_H
#define NVTASKSET_LAUNCH_ACCOUNT_STRICT_H

/* Reads the environment. Call it before another thread can change that. */
void strict_open(void);

/* Something is about to run unrestricted. With --strict, prints the reason and ends the process; otherwise does
 * nothing. */
void strict_refuse(const char *reason);

#endif
