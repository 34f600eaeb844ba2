/*
 * The shim's messages to the user of a foreign program: few, on standard error, each a line in a single write.
 * NVTASKSET_LOG=off silences the messages; with NVTASKSET_LOG=on, messages also come in a program without a partition.
 *
 * If a daemon has closed standard error, descriptor 2 may be a file of the program, even a database. So nothing is
 * written unless descriptor 2 is still the same file as when the library was loaded. A regular file open for reading
 * but not for appending may be older than the library, and is never written. A line is lost where standard error is a
 * full pipe, or a pipe without a reader: the program neither waits nor gets SIGPIPE. A full terminal may keep the
 * program waiting. The counters still count (segment.h).
 */
#pragma once

/* Reads the environment, and remembers standard error: before a second thread can change either. */
void log_open(void);

/* log_idle: the program has no partition. Until log_wake, the program must not be able to notice us: no warnings. */
void log_idle(void);
void log_wake(void);

/* Writes "nvtaskset: MESSAGE". Not for the launch path, except for the first failing launch. Preserves errno. */
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, also against the user's wish for silence: for the program's last line. */
void log_last_words(const char *format, ...) __attribute__((format(printf, 1, 2)));
