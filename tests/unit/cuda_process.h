/* For unit tests of detecting CUDA programs: makes this process look like one. */
#ifndef NVTASKSET_TESTS_CUDA_PROCESS_H
#define NVTASKSET_TESTS_CUDA_PROCESS_H

#include <sys/mman.h>
#include <unistd.h>

/* In /proc/PID/maps, a mapped file is known by its name. It stays mapped. */
static void load_a_driver(void)
{
	int file = memfd_create("/libcuda.so.1", MFD_CLOEXEC);

	if (ftruncate(file, 4096) < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED)
		_exit(1);
	close(file);
}

#endif
