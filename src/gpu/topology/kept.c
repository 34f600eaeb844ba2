#include "kept.h"

#include "base/proc.h"
#include "cache.h"
#include "load.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "answer"
#define BOOT_MAX 48 /* "fd0f2a1e-…", with a line's end */

/* A file's text: the boot, a line's end, and the line of topology_environment_write. */
struct kept {
	char boot[BOOT_MAX];
	struct procfs_gpu listed[TOPOLOGY_GPUS_MAX];
	unsigned int count; /* of the listed GPUs */
	char text[BOOT_MAX + TOPOLOGY_ENVIRONMENT_MAX];
};

static const struct procfs_gpu *find_listed(const struct kept *kept, struct pci_address pci)
{
	return pci_address_find(pci, kept->listed, kept->count, sizeof kept->listed[0]);
}

/* Whether the list has the listed GPUs, and no other. */
static bool is_of_listed(const struct kept *kept, const struct topology_list *list)
{
	bool same = list->count > 0 && list->count == kept->count;

	for (unsigned int i = 0; i < list->count && same; i++) {
		const struct procfs_gpu *gpu = find_listed(kept, list->gpus[i].pci);

		same = gpu && gpu->uuid[0] && strcmp(gpu->uuid, list->gpus[i].uuid) == 0;
	}
	return same;
}

/* The line has no names. */
static void put_names(const struct kept *kept, struct topology_list *list)
{
	for (unsigned int i = 0; i < list->count; i++)
		strcpy(list->gpus[i].name, find_listed(kept, list->gpus[i].pci)->name);
}

static bool holds(struct kept *kept, const char *root, struct topology_list *list)
{
	size_t length = strlen(kept->boot);

	cache_read_text(root, NAME, kept->text, sizeof kept->text);
	bool holds = strncmp(kept->text, kept->boot, length) == 0 &&
	             topology_environment_read(root, kept->text + length, list) == 0 && is_of_listed(kept, list);

	if (holds)
		put_names(kept, list);
	return holds;
}

/* Fails without a word: the next command asks again. */
static void keep(struct kept *kept, const char *root, const struct topology_list *list)
{
	size_t length = strlen(kept->boot);

	strcpy(kept->text, kept->boot);
	topology_environment_write(root, list, kept->text + length);
	cache_write_text(root, NAME, kept->text, NULL);
}

/* Since the answer, somebody may have switched MIG on and made instances (NVIDIA's MIG user guide names the files). */
static bool has_mig_instances(const char *root)
{
	char pattern[PATH_MAX];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/proc/driver/nvidia/capabilities/gpu*/mig/gi*", root);
	bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;

	if (has)
		globfree(&found);
	return has;
}

int kept_load(const char *root, int (*ask)(struct topology_list *list, struct error *error), struct topology_list *list,
              struct error *error)
{
	struct kept *kept = calloc(1, sizeof *kept); /* large */
	int result = 0;

	if (kept)
		kept->count = topology_read_procfs(root, kept->listed);
	bool can_keep = kept && kept->count > 0 && !has_mig_instances(root) &&
	                proc_read_text(kept->boot, sizeof kept->boot, "%s/proc/sys/kernel/random/boot_id", root) > 0;

	if (!can_keep || !holds(kept, root, list)) {
		result = ask(list, error);
		if (result == 0 && can_keep && is_of_listed(kept, list))
			keep(kept, root, list);
	}
	free(kept);
	return result;
}

static int ask_driver(struct topology_list *list, struct error *error)
{
	return topology_load_rm(NULL, list, error);
}

int topology_load_kept(struct topology_list *list, struct error *error)
{
	if (topology_named_file())
		return topology_load(list, error);
	int result = kept_load("", ask_driver, list, error);

	return result < 0 ? load_fallback("", result, list, error) : result;
}
