#include "mps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[32], pipe_path[64];

void mps_pretend(void)
{
	snprintf(directory, sizeof directory, "/tmp/nvtaskset-mps-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(pipe_path, sizeof pipe_path, "%s/control", directory);
	int file = open(pipe_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	close(file);
	assert_int_equal(setenv("CUDA_MPS_PIPE_DIRECTORY", directory, 1), 0);
}

void mps_pretend_no_more(void)
{
	unlink(pipe_path);
	rmdir(directory);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}
