#include "client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"

static char mps[32];

static void control_path(char path[64])
{
	snprintf(path, 64, "%s/control", mps);
}

int client_find_mps(void)
{
	char path[64];

	control_path(path);
	int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	return file < 0 ? -1 : close(file);
}

int client_set_up(void **state)
{
	(void)state;
	snprintf(mps, sizeof mps, "/tmp/nvtaskset-mps-XXXXXX");
	if (!mkdtemp(mps))
		return -1;
	setenv(DIRECTORY, mps, 1);
	return client_find_mps();
}

void client_lose_mps(void)
{
	char path[64];

	control_path(path);
	unlink(path);
}

int client_tear_down(void **state)
{
	(void)state;
	client_lose_mps();
	rmdir(mps);
	return unsetenv(DIRECTORY);
}
