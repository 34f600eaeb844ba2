#include "environment.h"

#include "base/driver_names.h"
#include "driver.h"
#include "gpu/topology/topology.h"
#include "mps/client.h"
#include "state/revision_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUDIT_LIBRARY "libnvtaskset-audit.so"

/* A list of paths, as the dynamic linker reads it. */
struct list {
	const char *variable;
	const char *separators; /* the first is for writing */
	bool (*is_ours)(const char *entry, size_t length);
};

static bool holds_ours(const char *directory, size_t length)
{
	char path[PATH_MAX];

	return length > 0 && length + sizeof DRIVER_NAME < sizeof path &&
	       snprintf(path, sizeof path, "%.*s/" DRIVER_NAME, (int)length,
	                directory) > 0 && start_is_our_library(path);
}

static bool is_audit_library(const char *path, size_t length)
{
	static const char name[] = "/" AUDIT_LIBRARY;
	const size_t size = sizeof name - 1;

	return length >= size && memcmp(path + length - size, name, size) == 0;
}

static const struct list search_path = {"LD_LIBRARY_PATH", ":;", holds_ours};
static const struct list audit_libraries = {"LD_AUDIT", ":", is_audit_library};

static int set_variable(const char *variable, const char *value, struct error *error)
{
	return setenv(variable, value, 1) == 0 ? 0 : error_set(error, "the environment: no memory");
}

/* Copies the entries that are not ours. An empty entry, even at the end, means the current directory and is kept. */
static void copy_others(const struct list *list, char *to, const char *entries)
{
	const char *separator = "", *start = to;
	bool more = *entries != '\0';

	while (more) {
		size_t length = strcspn(entries, list->separators);

		if (!list->is_ours(entries, length)) {
			to = stpcpy(to, separator);
			to = mempcpy(to, entries, length);
			separator = ":";
		}
		more = entries[length] != '\0';
		entries += length + more;
	}
	/* A single empty entry would be read as no entry: write two. */
	if (to == start && *separator)
		*to++ = ':';
	*to = '\0';
}

static int remove_ours(const struct list *list, struct error *error)
{
	const char *entries = getenv(list->variable);
	char *others = entries ? malloc(strlen(entries) + 1) : NULL;
	int result = 0;

	if (entries && !others)
		return error_set(error, "the environment: no memory");
	if (others) {
		copy_others(list, others, entries);
		result = *others ? set_variable(list->variable, others, error) : unsetenv(list->variable);
	}
	free(others);
	return result;
}

static int put_first(const struct list *list, const char *entry, struct error *error)
{
	const char *rest = getenv(list->variable);
	char *entries = NULL;

	/* The dynamic linker would split the entry there, and find the driver without us. */
	if (strpbrk(entry, ":;$"))
		return error_set(error, "%.200s: has one of : ; $ in its name, which the dynamic linker does not take: "
		                        "install nvtaskset elsewhere", entry);
	if (asprintf(&entries, "%s%s%s", entry, rest && *rest ? ":" : "", rest ? rest : "") < 0)
		return error_set(error, "the environment: no memory");
	int result = set_variable(list->variable, entries, error);

	free(entries);
	return result;
}

static int set_strict(const struct environment *environment, struct error *error)
{
	static char directory[PATH_MAX], audit[PATH_MAX], library[PATH_MAX];

	if (start_library_directory(directory, error) < 0)
		return -1;
	/* The paths fit: start_library_directory has found our library there. */
	snprintf(library, sizeof library, "%.*s/" DRIVER_NAME, PATH_MAX - 32, directory);
	snprintf(audit, sizeof audit, "%.*s/" AUDIT_LIBRARY, PATH_MAX - 32, directory);
	if (access(audit, R_OK) < 0)
		return error_set_errno(error, "%.200s: --strict needs it: install nvtaskset again", audit);
	if (put_first(&audit_libraries, audit, error) < 0 || set_variable("NVTASKSET_SHIM", library, error) < 0 ||
	    set_variable("NVTASKSET_DRIVER", environment->driver, error) < 0 || set_variable("NVTASKSET_STRICT", "1",
	                                                                                     error) < 0)
		return -1;
	return 0;
}

/* Whether an nvtaskset around this process has set MPS's priority to the lower value. */
static bool was_lower(void)
{
	struct segment_revision revision;
	const char *text = getenv(SEGMENT_ENVIRONMENT);

	return text && revision_parse(&revision, text, NULL) == 0 &&
	       segment_rank_priority(revision.rank) < SEGMENT_PRIORITY_USUAL;
}

int environment_clean(struct error *error)
{
	if (was_lower())
		unsetenv(MPS_PRIORITY_ENVIRONMENT);
	unsetenv("NVTASKSET_STRICT");
	unsetenv("NVTASKSET_SHIM");
	unsetenv("NVTASKSET_HIDE");
	unsetenv("NVTASKSET_ON_MISFIT");
	if (remove_ours(&search_path, error) < 0 || remove_ours(&audit_libraries, error) < 0)
		return -1;
	return 0;
}

int environment_set(const struct environment *environment, struct error *error)
{
	const char *gpus = environment->gpus;
	char pid[16];

	/* COMMAND keeps this pid through the exec. */
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	if (set_variable(SEGMENT_ENVIRONMENT, environment->partition, error) < 0 ||
	    set_variable(SEGMENT_ROOT_ENVIRONMENT, pid, error) < 0 ||
	    /* An nvtaskset around this process may have set other GPUs. */
	    (*gpus ? set_variable(TOPOLOGY_ENVIRONMENT, gpus, error) : unsetenv(TOPOLOGY_ENVIRONMENT)) < 0 ||
	    put_first(&search_path, environment->directory, error) < 0)
		return -1;
	if (environment->fail_misfits && set_variable("NVTASKSET_ON_MISFIT", "fail", error) < 0)
		return -1;
	if (environment->hide && set_variable("NVTASKSET_HIDE", "1", error) < 0)
		return -1;
	return environment->strict ? set_strict(environment, error) : 0;
}
