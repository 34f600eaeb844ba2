/*
 * Usage: refuse CALL COMMAND [ARGUMENT]...
 *
 * Runs COMMAND in a sandbox that answers EPERM to a system call: statx, memfd_create, or sched_setscheduler.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned int number_of(const char *call)
{
	return strcmp(call, "statx") == 0          ? SYS_statx
	       : strcmp(call, "memfd_create") == 0 ? SYS_memfd_create
	                                           : SYS_sched_setscheduler;
}

int main(int count, char **arguments)
{
	if (count < 3)
		return EXIT_FAILURE;
	unsigned int call = number_of(arguments[1]);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		execvp(arguments[2], &arguments[2]);
	perror("refuse");
	return EXIT_FAILURE;
}
