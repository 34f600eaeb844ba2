#include "client.h"

#include "../../cases.h"
#include "child.h"
#include "gpu.h"

#define DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define CONTROL "PATH=$PATH:/usr/local/nvidia/bin nvidia-cuda-mps-control"

static char mps[32];

/* Its pipe is `control`, or `lost` while it is lost. */
static const char *path_of(const char *name)
{
	return text_of("%s/%s", mps, name);
}

static pid_t starter; /* on a GPU, of NVIDIA's daemon, for all tests of a program */

static bool is_simulated(void)
{
	return getenv("NVTASKSET_DRIVER") != NULL;
}

static void stop_daemon(void)
{
	if (getpid() == starter)
		(void)!system(text_of("echo quit | " DIRECTORY "=%s " CONTROL " >/dev/null 2>&1; rm -rf %s", mps, mps));
}

void client_lose_mps(void)
{
	rename(path_of("control"), path_of("lost"));
}

int client_find_mps(void)
{
	return rename(path_of("lost"), path_of("control"));
}

static void make_context(void)
{
	CUcontext context;

	gpu_initialise();
	cuCtxCreate_v2(&context, 0, 0);
}

/* The client before may have ended with work in flight. Then MPS refuses the next client (hardware.md, "Holding back"), which is
 * this one and not the test. */
static int take_the_refusal(void)
{
	child_run(make_context);
	return 0;
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
		return close(open(path_of("control"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	if (starter != 0)
		return take_the_refusal();
	starter = getpid();
	atexit(stop_daemon);
	setenv("CUDA_MPS_LOG_DIRECTORY", mps, 1);
	return system(CONTROL " -d </dev/null >/dev/null 2>&1") == 0 ? 0 : -1;
}

int client_tear_down(void **state)
{
	if (is_simulated()) {
		unlink(path_of("control"));
		unlink(path_of("lost"));
		rmdir(mps);
	} else {
		client_find_mps();
	}
	return setenv(DIRECTORY, "/dev/null", 1); /* as nvtaskset --mps off does */
}
