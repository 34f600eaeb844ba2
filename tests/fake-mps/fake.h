/* For the unit tests of MPS: the fake control program first on PATH, and a directory of its own for each test. */
#ifndef NVTASKSET_TESTS_FAKE_H
#define NVTASKSET_TESTS_FAKE_H

#include "../cases.h"
#include "mps/client.h"
#include "mps/control.h"
#include "mps/daemon.h"
#include "mps/look.h"

#include <limits.h>

static char fake_work[] = "/tmp/nvtaskset-mps-XXXXXX";

static const char *fake_path(const char *name)
{
	return text_of("%s/%s", fake_work, name);
}

/* Tests run in the root of the repository. */
static int fake_setup(void **state)
{
	static const char *const unwanted[] = {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MPS_LOG_DIRECTORY", "FAKE_MPS",
	                                       "FAKE_MPS_SERVER", "FAKE_MPS_CLIENTS", "FAKE_MPS_GPUS",
	                                       "FAKE_MPS_LINGER"};
	static const char *inherited;
	const char *before = getenv("PATH");
	char here[PATH_MAX];

	(void)state;
	/* A slow daemon must not fail a test. */
	mps_patience_ms = 120000;
	if (!inherited)
		inherited = strdup(before ? before : "/usr/bin:/bin");
	strcpy(fake_work + strlen(fake_work) - 6, "XXXXXX");
	if (!getcwd(here, sizeof here) || !mkdtemp(fake_work))
		return -1;
	for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++)
		unsetenv(unwanted[i]);
	return setenv("PATH", text_of("%s/tests/fake-mps:%s", here, inherited), 1) ||
	       setenv("CUDA_MPS_PIPE_DIRECTORY", fake_path("mps"), 1);
}

/* A test leaves no child, not even a zombie. */
static int fake_teardown(void **state)
{
	bool childless = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;

	(void)state;
	unlink(fake_path("mps/running"));
	unlink(fake_path("mps/control"));
	unlink(fake_path("mps/busy"));
	unlink(fake_path("mps/nvidia-cuda-mps-control"));
	unlink(fake_path("mps/nvidia-cuda-mps-control.pid"));
	rmdir(fake_path("mps/lock"));
	rmdir(fake_path("mps"));
	return rmdir(fake_work) == 0 && childless ? 0 : -1;
}

static int fake_prepare(enum mps_mode mode, struct mps_status *status, struct error *error)
{
	const struct mps_request request = {.mode = mode};

	error->reason[0] = '\0';
	return mps_prepare(&request, status, error);
}

/* Expects a refusal whose reason contains this, in one line without control characters. */
static void fake_refuses(enum mps_mode mode, const char *part)
{
	struct mps_status status;
	struct error error;

	assert_int_equal(fake_prepare(mode, &status, &error), -1);
	assert_memory_equal(error.reason, "MPS: ", 5);
	if (!strstr(error.reason, part))
		fail_msg("'%s' does not say '%s'", error.reason, part);
	for (const char *at = error.reason; *at; at++)
		assert_false((unsigned char)*at < ' ');
}

#endif
