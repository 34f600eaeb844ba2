/*
 * What the shim has to say to the user of somebody else's program: little, on standard error, a line in
 * one write. NVTASKSET_LOG=off silences it; NVTASKSET_LOG=on lets it speak in a program without a partition, too.
 *
 * Descriptor 2 may be a file of the program's own, a database's even, where a daemon has closed its standard error. Nothing
 * is said unless it is what it was when we came, and no regular file that is open for reading but not for appending: we may
 * have come after that file. The counters still tell (segment.h).
 */
#ifndef NVTASKSET_BASE_LOG_H
#define NVTASKSET_BASE_LOG_H

/* Reads the environment, and looks what standard error is: before any other thread can change them. */
void log_open(void);

/* Nobody has asked for a partition: until somebody does, the program must not be able to tell that we are there, and hears
 * no warning. */
void log_idle(void);
void log_wake(void);

/* "nvtaskset: MESSAGE". Never from the launch path, but for the first launch that goes wrong. Preserves
 * errno. */
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, said even where the user wants silence: the program's last line. */
void log_last_words(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
