#include "environment.h"

#include "common.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_FILE "NVTASKSET_GROUP_FILE"
#define SEARCH_PATH "LD_LIBRARY_PATH"
#define SEARCH_PATH_MAX (128 * 1024) /* no variable of the kernel's is longer */

static int set(spank_t spank, const char *variable, const char *value, struct nvtaskset_error *error)
{
	return spank_setenv(spank, variable, value, 1) == ESPANK_SUCCESS
	               ? 0
	               : reason_set(error, NVTASKSET_ERROR_OTHER, "%s: Slurm cannot set it", variable);
}

static int check_library(const char *library, struct nvtaskset_error *error)
{
	static const char *const names[] = {"libcuda.so.1", "libnvtaskset-driver.so.1"};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%.4000s/%s", library, names[i]);
		if (access(path, R_OK) < 0)
			return reason_set(error, NVTASKSET_ERROR_OTHER, "%.200s: is not there or cannot be read: 'make install' on this node "
			                                                "puts it there", path);
	}
	return 0;
}

/* Once, and in front, whatever the step's environment has from the job's script. */
static int put_library_first(spank_t spank, const char *library, struct nvtaskset_error *error)
{
	char *path = malloc(SEARCH_PATH_MAX + PATH_MAX);
	size_t length = strlen(library);
	int result = -1;

	if (!path)
		return reason_set(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	char *rest = path + length + 1;

	memcpy(path, library, length);
	path[length] = ':';
	*rest = '\0';
	spank_err_t found = spank_getenv(spank, SEARCH_PATH, rest, SEARCH_PATH_MAX);

	if (found != ESPANK_SUCCESS && found != ESPANK_ENV_NOEXIST) {
		reason_set(error, NVTASKSET_ERROR_OTHER, SEARCH_PATH ": %s", spank_strerror(found));
	} else if (found == ESPANK_SUCCESS && strncmp(rest, library, length) == 0 && (rest[length] == ':' || !rest[length])) {
		result = 0;
	} else {
		/* An empty entry would be the current directory. */
		if (found != ESPANK_SUCCESS || !*rest)
			path[length] = '\0';
		result = set(spank, SEARCH_PATH, path, error);
	}
	free(path);
	return result;
}

static void leave_others(spank_t spank, const char *directory)
{
	char path[PATH_MAX];
	size_t length = strlen(directory);

	if (spank_getenv(spank, GROUP_FILE, path, sizeof path) == ESPANK_SUCCESS && strncmp(path, directory, length) == 0 &&
	    path[length] == '/')
		spank_unsetenv(spank, GROUP_FILE);
}

int environment_set(spank_t spank, const char *directory, const char *group, const char *library, const char *pipes,
                    struct nvtaskset_error *error)
{
	if (!*group) {
		leave_others(spank, directory);
		return 0;
	}
	/* Of an nvtaskset that has started srun, on another machine perhaps. */
	spank_unsetenv(spank, "NVTASKSET_PARTITION");
	spank_unsetenv(spank, "NVTASKSET_PID");
	if (*pipes)
		spank_setenv(spank, "CUDA_MPS_PIPE_DIRECTORY", pipes, 0);
	if (set(spank, GROUP_FILE, group, error) < 0)
		return -1;
	return *library && (check_library(library, error) < 0 || put_library_first(spank, library, error) < 0) ? -1 : 0;
}
