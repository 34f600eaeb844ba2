/*
 * The reason of a failure, as one line for the user.
 *
 * Library code returns 0 or -1 and leaves the reason here; it never prints and never exits. Only the
 * command prints, as `nvtaskset: REASON`. A reason reads "what: why", says what to do where something
 * can be done, starts in lower case unless with a name, and has neither newline nor full stop.
 */
#ifndef NVTASKSET_ERROR_H
#define NVTASKSET_ERROR_H

#define ERROR_MAX 320

struct error {
	char reason[ERROR_MAX]; /* NUL-terminated, cut where too long; "" where nothing failed */
};

/* Leaves the formatted reason in `error`, which may be NULL; control characters become '?'. Always returns -1, for `return error_set(…)`.
 * Preserves errno. */
int error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, with ": " and the text of errno behind it. */
int error_set_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
