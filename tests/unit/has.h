/* For unit tests: the process's files and mappings. */
#ifndef NVTASKSET_TESTS_HAS_H
#define NVTASKSET_TESTS_HAS_H

#include "../cases.h"

#include <dirent.h>

/* Of all kinds. */
static inline int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Of memory with the name. */
static inline unsigned int count_mappings(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned int count = 0;

	while (fgets(line, sizeof line, maps))
		count += strstr(line, name) != NULL;
	fclose(maps);
	return count;
}

#endif
