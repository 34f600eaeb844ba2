/*
 * Usage: crowd WITH ALL
 *
 * ALL processes with some open files, of which WITH have loaded CUDA and do nothing: a machine for `nvtaskset -l` to
 * look at. Says "ready", and ends them all when its standard input does.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FILES 16

static void multiply(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0) {
			perror("crowd: fork");
			exit(EXIT_FAILURE);
		}
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
}

int main(int count, char **arguments)
{
	int with = count == 3 ? atoi(arguments[1]) : 0, all = count == 3 ? atoi(arguments[2]) : 0;

	if (with < 1 || all < with) {
		fputs("Usage: crowd WITH ALL\n", stderr);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < FILES; i++) {
		if (open("/dev/null", O_RDONLY) < 0)
			perror("crowd: /dev/null");
	}
	multiply(all - with);
	if (!dlopen("libcuda.so.1", RTLD_NOW)) {
		fprintf(stderr, "crowd: %s\n", dlerror());
		return EXIT_FAILURE;
	}
	multiply(with - 1);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF) {
	}
	return EXIT_SUCCESS;
}
