#include "client.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define CONTROL "PATH=$PATH:/usr/local/nvidia/bin nvidia-cuda-mps-control"

static char mps[32];

/* Its pipe, and where that is while it is lost. */
static struct paths {
	char control[64], lost[64];
} paths(void)
{
	struct paths paths;

	snprintf(paths.control, sizeof paths.control, "%s/control", mps);
	snprintf(paths.lost, sizeof paths.lost, "%s/lost", mps);
	return paths;
}

static pid_t starter; /* on a GPU, of NVIDIA's daemon, for all tests of a program */

static bool is_simulated(void)
{
	return getenv("NVTASKSET_DRIVER") != NULL;
}

static void stop_daemon(void)
{
	char command[256];

	if (getpid() == starter) {
		snprintf(command, sizeof command, "echo quit | " DIRECTORY "=%s " CONTROL " >/dev/null 2>&1; rm -rf %s", mps, mps);
		(void)!system(command);
	}
}

void client_lose_mps(void)
{
	rename(paths().control, paths().lost);
}

int client_find_mps(void)
{
	return rename(paths().lost, paths().control);
}

int client_set_up(void **state)
{
	if (starter == 0) {
		snprintf(mps, sizeof mps, "/tmp/nvtaskset-mps-XXXXXX");
		if (!mkdtemp(mps))
			return -1;
	}
	setenv(DIRECTORY, mps, 1);
	if (is_simulated())
		return close(open(paths().control, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (starter != 0)
		return 0;
	starter = getpid();
	atexit(stop_daemon);
	setenv("CUDA_MPS_LOG_DIRECTORY", mps, 1);
	return system(CONTROL " -d </dev/null >/dev/null 2>&1") == 0 ? 0 : -1;
}

int client_tear_down(void **state)
{
	if (is_simulated()) {
		unlink(paths().control);
		unlink(paths().lost);
		rmdir(mps);
	} else {
		client_find_mps();
	}
	return setenv(DIRECTORY, "/dev/null", 1); /* as nvtaskset --mps off does */
}
