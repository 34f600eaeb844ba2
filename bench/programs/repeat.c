/*
 * Usage: repeat COUNT COMMAND…
 *
 * Runs COMMAND COUNT times without its output, and prints for each run how many µs it took. Ends at the first run that
 * fails.
 */
#include "bench.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static double run(char **command, const posix_spawn_file_actions_t *actions)
{
	int64_t start = bench_now();
	pid_t child;
	int status, error = posix_spawnp(&child, command[0], actions, NULL, command, environ);

	if (error != 0)
		bench_fail("%s: %s", command[0], strerror(error));
	if (waitpid(child, &status, 0) != child || status != 0)
		bench_fail("%s: failed", command[0]);
	return (double)(bench_now() - start) / 1e3;
}

int main(int count, char **arguments)
{
	posix_spawn_file_actions_t actions;
	int runs = count > 2 ? (int)bench_number(arguments[1], "COUNT") : 0;

	if (runs <= 0)
		bench_fail("Usage: repeat COUNT COMMAND…");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	while (runs-- > 0)
		printf("%.1f\n", run(arguments + 2, &actions));
	posix_spawn_file_actions_destroy(&actions);
	return EXIT_SUCCESS;
}
