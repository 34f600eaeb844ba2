/*
 * The reason of a failure, as one line for the user and as a code for programs.
 *
 * Library code returns 0 or -1 and leaves the reason here; it never prints and never exits. Only the
 * command prints, as `nvtaskset: REASON`. A reason reads "what: why", says what to do where something
 * can be done, starts in lower case unless with a name, and has neither newline nor full stop.
 */
#ifndef NVTASKSET_ERROR_H
#define NVTASKSET_ERROR_H

#include "nvtaskset.h"

#define ERROR_MAX 312

/* The same bytes as struct nvtaskset_error, by which programs see it; the compiler must know that. */
struct __attribute__((may_alias)) error {
	char reason[ERROR_MAX]; /* NUL-terminated, cut where too long; "" where nothing failed */
	int code;               /* enum nvtaskset_error_code */
	int system_error;       /* errno where the kernel refused something, else 0 */
};

/* Leaves the formatted reason in `error`, which may be NULL; control characters become '?'. Always -1, for `return
 * error_set(…)`, and so that the compiler knows. Preserves errno. */
#define error_set(error, ...) error_set_code(error, NVTASKSET_ERROR_OTHER, __VA_ARGS__)

/* The same, where programs can do about it what they would not do about any failure. */
#define error_set_code(error, code, ...) (error_fill(error, code, __VA_ARGS__), error_is_set())

/* The same, with ": " and the text of errno behind it, and errno's code. */
#define error_set_errno(error, ...) (error_fill_errno(error, __VA_ARGS__), error_is_set())

/* Says it in other words, of which the old ones may be a part: the code stays. */
void error_reword(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Passes on what failed within. */
static inline int error_pass(struct error *error, const struct error *why)
{
	if (error)
		*error = *why;
	return -1;
}

/* What the macros are made of. */
void error_fill(struct error *error, enum nvtaskset_error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_fill_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int error_is_set(void)
{
	return -1;
}

#endif
