/* The identity of a process, the same from every PID namespace, and of a program's execution. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
	uint64_t pid;       /* in the innermost namespace of the process */
	uint64_t namespace; /* the number of the innermost namespace; 0: unknown */
};

struct identity identity_own(void);

/* The identity of the process with the number `pid` in /proc. The namespace is unknown if the process may not be
 * inspected. */
struct identity identity_of(pid_t pid);

/* Only the number: of a process or a thread, in the innermost namespace; `pid` itself if the number is not known. */
uint64_t identity_inner(pid_t pid);

/* Whether both may be the same process: an unknown namespace may be any. */
bool identity_matches(struct identity a, struct identity b);

/* Whether this process has more privileges than the starting user (set-user-ID, for example). */
bool identity_is_privileged(void);

/* A number for a process's current execution of a program, different after each exec. Made of the addresses of the
 * program's parts, which the kernel chooses anew at each exec. If the kernel may not choose (setarch -R), an exec of
 * the same program with the same arguments has the same number. This process's number is never 0, and needs no /proc.
 * Another process's number is 0 if the process has ended or may not be inspected. */
uint64_t identity_own_execution(void);
uint64_t identity_execution_of(pid_t pid);
