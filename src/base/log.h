/*
 * The shim's messages to the user of somebody else's program: few, on standard error, each a line in one write.
 * NVTASKSET_LOG=off silences them; with NVTASKSET_LOG=on they also come in a program without a partition.
 *
 * If a daemon has closed its standard error, descriptor 2 may be a file of the program's own, even a database. So
 * nothing is written unless descriptor 2 is the same file as when we were loaded, and is no regular file that is open
 * for reading but not for appending, since that file may be older than us. The counters still count (segment.h).
 */
#ifndef NVTASKSET_BASE_LOG_H
#define NVTASKSET_BASE_LOG_H

/* Reads the environment, and remembers what standard error is: before any other thread can change them. */
void log_open(void);

/* log_idle: the program has no partition. Until log_wake, it must not be able to notice us, so no warnings
 * are written. */
void log_idle(void);
void log_wake(void);

/* Writes "nvtaskset: MESSAGE". Not called from the launch path, except for the first launch that goes wrong. Preserves
 * errno. */
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, also if the user wants silence: for the program's last line. */
void log_last_words(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
