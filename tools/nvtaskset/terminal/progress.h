/*
 * The progress of long work: a line on standard error, if a terminal is there. The line appears after a second, is
 * renewed each second, and goes at the end. A stopped terminal does not stop the work.
 */
#pragma once

/* Names the present step. The first call begins the work. */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Renews the line if a second has passed; to be called often. Does nothing before the work and after its end. */
void progress_tick(void);

void progress_end(void);
