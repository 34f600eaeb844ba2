/*
 * How far a long work is: a line on standard error, if a terminal is there. The line appears after a second, is renewed each second,
 * and goes at the end. A terminal that takes nothing keeps nobody waiting.
 */
#ifndef NVTASKSET_TERMINAL_PROGRESS_H
#define NVTASKSET_TERMINAL_PROGRESS_H

/* What is being done from here on. The first call begins the work. */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Renews the line if that is due; to be called often. Does nothing outside of such a work. */
void progress_tick(void);

void progress_end(void);

#endif
