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

/* Leaves the formatted reason in `error`, which may be NULL; control characters become '?'. Always -1, for `return
 * error_set(…)`, which the compiler knows: what a failure leaves uninitialised is not used. Preserves errno. */
#define error_set(error, ...) (error_fill(error, __VA_ARGS__), error_is_set())

/* The same, with ": " and the text of errno behind it. */
#define error_set_errno(error, ...) (error_fill_errno(error, __VA_ARGS__), error_is_set())

/* What they are made of. */
void error_fill(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void error_fill_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int error_is_set(void)
{
	return -1;
}

#endif
