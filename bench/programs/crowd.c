/*
 * Usage: crowd COUNT [LIBRARY]
 *
 * Starts COUNT idle processes with some open files, which have loaded the library: a full machine for `nvtaskset -l`.
 * They end with the process that started this program.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FILES 16

static _Noreturn void stay(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void start_child(void)
{
	pid_t child = fork();

	if (child < 0)
		perror("crowd: fork");
	if (child == 0)
		stay();
}

int main(int count, char **arguments)
{
	int processes = count > 1 ? atoi(arguments[1]) : 0;

	if (processes < 1 || count > 3) {
		fputs("Usage: crowd COUNT [LIBRARY]\n", stderr);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < FILES; i++) {
		if (open("/dev/null", O_RDONLY) < 0)
			perror("crowd: /dev/null");
	}
	if (count == 3 && !dlopen(arguments[2], RTLD_NOW)) {
		fprintf(stderr, "crowd: %s\n", dlerror());
		return EXIT_FAILURE;
	}
	for (int i = 1; i < processes; i++)
		start_child();
	stay();
}
