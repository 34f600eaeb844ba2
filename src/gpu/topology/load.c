#include "load.h"

#include "cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MAX 64 /* of a file; the module writes some ten */

/* --- from the file or the driver ---------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a pipe must not wait. Only a regular file can be read again, in COMMAND. */
static FILE *open_file(const char *path, struct error *error)
{
	struct stat status;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool opened = descriptor >= 0 && fstat(descriptor, &status) == 0;
	FILE *file = NULL;

	if (opened && !S_ISREG(status.st_mode))
		error_set(error, "NVTASKSET_TOPOLOGY=%.200s: not a regular file", path);
	else if (!opened || !(file = fdopen(descriptor, "r")))
		error_set_errno(error, "NVTASKSET_TOPOLOGY=%.200s", path);
	if (descriptor >= 0 && !file)
		close(descriptor);
	return file;
}

static int load_file(struct topology_list *list, const char *path, struct error *error)
{
	FILE *file = open_file(path, error);
	int result = file ? topology_read(list, file, path, error) : -1;

	if (file)
		fclose(file);
	return result;
}

const char *topology_named_file(void)
{
	const char *path = secure_getenv("NVTASKSET_TOPOLOGY");

	return path && *path ? path : NULL;
}

int topology_load_file_or_driver(const struct topology_wanted *wanted, struct topology_list *list, struct error *error)
{
	const char *path = topology_named_file();

	return path ? load_file(list, path, error) : topology_load_rm(wanted, list, error);
}

/* --- listed by the kernel module ---------------------------------------------------------------------------------- */

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

unsigned int topology_read_procfs(const char *root, struct procfs_gpu *gpus)
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

/* --- from the cache ------------------------------------------------------------------------------------------- */

static int find_by_pci(const char *root, struct pci_address pci, struct topology *gpu, struct error *error)
{
	struct topology_list *all = malloc(sizeof *all);
	const struct topology *found = NULL;

	if (!all)
		return error_set_errno(error, "GPUs that were measured");
	if (cache_find_all(root, all, error) == 0)
		found = topology_find(all, pci);
	if (found)
		*gpu = *found;
	free(all);
	return found ? 0 : -1;
}

/* Finds a GPU listed by the kernel module, also if the GPU was measured in another slot: by the UUID; by the PCI
 * address only if the module does not know the UUID. */
static int find_installed(const char *root, const struct procfs_gpu *installed, struct topology *gpu,
                          struct error *error)
{
	int result = installed->uuid[0] ? cache_find(root, installed->uuid, gpu, error)
	                                : find_by_pci(root, installed->pci, gpu, error);

	if (result == 0)
		gpu->pci = installed->pci;
	return result;
}

/* All or none: a missing GPU would shift CUDA's numbers. */
static int load_all_installed(const char *root, const struct procfs_gpu *installed, unsigned int count,
                              struct topology_list *list, struct error *error)
{
	const struct procfs_gpu *missing = NULL;
	struct error why = {.reason = ""};
	char pci[PCI_ADDRESS_TEXT];

	for (unsigned int i = 0; i < count && why.reason[0] == '\0'; i++) {
		if (find_installed(root, &installed[i], &list->gpus[list->count], &why) == 0)
			list->count++;
		else
			missing = &installed[i];
	}
	if (missing && list->count > 0 && why.reason[0] == '\0')
		error_set(&why, "was not measured, as others were");
	if (missing && why.reason[0])
		error_set(error, "GPU %s: %.200s", pci_address_format(missing->pci, pci), why.reason);
	if (missing)
		list->count = 0;
	topology_sort(list);
	return missing ? -1 : 0;
}

int load_cache(const char *root, struct topology_list *list, struct error *error)
{
	struct procfs_gpu installed[TOPOLOGY_GPUS_MAX];
	unsigned int count = topology_read_procfs(root, installed);

	memset(list, 0, sizeof *list);
	error_set(error, "%s", "");
	return count > 0 ? load_all_installed(root, installed, count, list, error) : cache_find_all(root, list, error);
}

/* Whether CUDA can reach a GPU: on servers, under WSL, on Jetson. Otherwise a measurement would fail, too. */
static bool has_device(const char *root)
{
	static const char *const devices[] = {"nvidiactl", "dxg", "nvhost-ctrl-gpu", "nvgpu"};
	char path[PATH_MAX];
	bool found = false;

	for (size_t i = 0; i < sizeof devices / sizeof devices[0] && !found; i++) {
		snprintf(path, sizeof path, "%s/dev/%s", root, devices[i]);
		found = access(path, F_OK) == 0;
	}
	return found;
}

int load_fallback(const char *root, int failure, struct topology_list *list, struct error *error)
{
	struct error why = {.reason = ""}, reason = *error;
	int result = failure == TOPOLOGY_REFUSED ? -1 : load_cache(root, list, &why);

	if (result < 0 && why.reason[0])
		error_set(error, "%.250s; try 'nvtaskset measure'", why.reason);
	else if (result < 0 && failure != TOPOLOGY_REFUSED && has_device(root))
		error_set(error, "%.250s; try 'nvtaskset measure'", reason.reason);
	return result;
}

int topology_load_wanted(const struct topology_wanted *wanted, struct topology_list *list, struct error *error)
{
	struct error why = {.reason = ""};
	int result = topology_load_file_or_driver(wanted, list, &why);

	if (result < 0 && !topology_named_file())
		result = load_fallback("", result, list, &why);
	if (result < 0)
		error_set(error, "%s", why.reason);
	return result;
}

int topology_load(struct topology_list *list, struct error *error)
{
	return topology_load_wanted(NULL, list, error);
}
