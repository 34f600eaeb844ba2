/*
 * The reason for a failure, as a line for the user and as a code for programs.
 *
 * Library code returns 0 or -1 and leaves the reason here, and never prints or exits. Only the command prints, as
 * `nvtaskset: REASON`. A reason reads "what: why", names a remedy if there is one, starts in lower case unless with a
 * name, and has neither newline nor full stop.
 */
#pragma once

#include "nvtaskset.h"

#define ERROR_MAX 312

/* Programs read the struct as a struct nvtaskset_error of the same layout: hence may_alias. */
struct __attribute__((may_alias)) error {
	char reason[ERROR_MAX]; /* NUL-terminated, cut if too long; "" if nothing failed */
	int code;               /* enum nvtaskset_error_code */
	int system_error;       /* errno if the kernel refused something, else 0 */
};

/* Leaves the formatted reason in `error`, which may be NULL; control characters become '?'. A macro with the constant
 * value -1, for `return error_set(…)`: the compiler knows the value. Preserves errno. */
#define error_set(error, ...) error_set_code(error, NVTASKSET_ERROR_OTHER, __VA_ARGS__)

/* The same with a code, for a failure that programs can handle by themselves. */
#define error_set_code(error, code, ...) (error_fill(error, code, __VA_ARGS__), error_is_set())

/* The same, followed by ": " and the text of errno, with the code for errno. */
#define error_set_errno(error, ...) (error_fill_errno(error, __VA_ARGS__), error_is_set())

/* Replaces the reason; the arguments may contain the old reason. The code stays. */
void error_reword(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Copies the error of a call to the caller's error, which may be NULL. Always -1. */
static inline int error_pass(struct error *error, const struct error *why)
{
	if (error)
		*error = *why;
	return -1;
}

/* For the macros above. */
void error_fill(struct error *error, enum nvtaskset_error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void error_fill_errno(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int error_is_set(void)
{
	return -1;
}
