#include "procfs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 64 /* of a file; the module writes some ten */

/* The value of a line "Key: value"; NULL if the line has another key. */
static char *value_of(char *line, const char *key)
{
	size_t length = strlen(key);
	char *value = NULL;

	if (strncmp(line, key, length) == 0 && line[length] == ':') {
		value = line + length + 1;
		value += strspn(value, " \t");
		value[strcspn(value, "\n")] = '\0';
	}
	return value;
}

/* Until a GPU is used for the first time, its UUID consists of question marks. */
static void copy_uuid(char uuid[TOPOLOGY_UUID_MAX], const char *value)
{
	if (!strchr(value, '?') && strlen(value) < TOPOLOGY_UUID_MAX)
		strcpy(uuid, value);
}

/* Returns the number of the GPU's device file, or -1. */
static int read_information(FILE *file, struct procfs_gpu *gpu)
{
	char line[256];
	int minor = -1;

	for (unsigned int i = 0; i < LINES_MAX && fgets(line, sizeof line, file); i++) {
		char *value;

		if ((value = value_of(line, "Model")))
			snprintf(gpu->name, sizeof gpu->name, "%s", value);
		else if ((value = value_of(line, "GPU UUID")))
			copy_uuid(gpu->uuid, value);
		else if ((value = value_of(line, "Device Minor")))
			minor = *value >= '0' && *value <= '9' ? atoi(value) : -1;
	}
	return minor;
}

/* Reads a GPU. False if the process may not use it. */
static bool read_gpu(const char *root, const char *bus_id, struct procfs_gpu *gpu)
{
	char path[PATH_MAX];
	int minor = -1;

	*gpu = (struct procfs_gpu){.uuid = ""};
	if (pci_address_parse(&gpu->pci, bus_id, NULL) < 0)
		return false;
	snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, bus_id);
	FILE *file = fopen(path, "re");

	if (file) {
		minor = read_information(file, gpu);
		fclose(file);
	}
	snprintf(path, sizeof path, "%s/dev/nvidia%d", root, minor);
	return minor >= 0 && access(path, R_OK | W_OK) == 0;
}

unsigned int procfs_read(const char *root, struct procfs_gpu *gpus)
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned int count = 0;

	snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
	DIR *directory = opendir(path);

	while (directory && count < TOPOLOGY_GPUS_MAX && (entry = readdir(directory)))
		count += read_gpu(root, entry->d_name, &gpus[count]);
	if (directory)
		closedir(directory);
	return count;
}
