#include "processes.h"

#include "base/proc.h"
#include "containers.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_MAX 16384
#define CONTAINER_DIGITS 64
#define CONTAINER_SHORT 12
#define UID_LENGTH 36
#define LOGS "/var/log/containers"

/* --- names of control groups -------------------------------------------------------------------------------------- */

static void copy(char to[WORKLOAD_NAME], const char *from, size_t length)
{
	snprintf(to, WORKLOAD_NAME, "%.*s", (int)length, from);
}

/* "job_123", below a group of Slurm's. */
static void take_job(struct workload *workload, const char *name, size_t length)
{
	size_t digits = length > 4 && strncmp(name, "job_", 4) == 0 ? strspn(name + 4, "0123456789") : 0;

	if (digits > 0 && digits == length - 4)
		copy(workload->hpc_job, name + 4, digits);
}

/* "pod01234567-89ab-…", or "kubepods-burstable-pod01234567_89ab_….slice", as systemd spells it. */
static void take_pod(struct workload *workload, const char *name, size_t length)
{
	char text[WORKLOAD_NAME];

	copy(text, name, length);
	char *pod = strncmp(text, "pod", 3) == 0 ? text : strstr(text, "-pod");

	if (!pod)
		return;
	pod += pod[0] == '-' ? 4 : 3;
	for (char *at = pod; *at; at++)
		*at = *at == '_' ? '-' : *at;
	if (strspn(pod, "0123456789abcdef-") >= UID_LENGTH)
		copy(workload->pod_uid, pod, UID_LENGTH);
}

/* 64 hexadecimal digits, alone or as in "docker-….scope", "crio-…" and "….slice:cri-containerd:…". */
static void take_container(char container[WORKLOAD_NAME], const char *name, size_t length)
{
	const char *end = name + length;

	for (const char *at = name; at < end; at++) {
		size_t digits = strspn(at, "0123456789abcdef");
		bool begins = at == name || at[-1] == '-' || at[-1] == ':';

		if (begins && digits == CONTAINER_DIGITS && (at + digits == end || at[digits] == '.'))
			copy(container, at, digits);
	}
}

void workload_read(struct workload *workload, const char *cgroup, char container[WORKLOAD_NAME])
{
	bool is_slurm = strstr(cgroup, "slurm") != NULL;

	*workload = (struct workload){.hpc_job = ""};
	container[0] = '\0';
	while (*cgroup) {
		size_t length = strcspn(cgroup, "/\n");

		if (is_slurm)
			take_job(workload, cgroup, length);
		take_pod(workload, cgroup, length);
		take_container(container, cgroup, length);
		cgroup += length + (cgroup[length] != '\0');
	}
	copy(workload->container, container, CONTAINER_SHORT);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

#define IN_NAMES "abcdefghijklmnopqrstuvwxyz0123456789.-"

/* "POD_NAMESPACE_CONTAINER-ID.log". None of the names can contain '_', or anything that moves a cursor. */
static bool take_names(struct workload *workload, const char *link, const char *container)
{
	const char *first = strchr(link, '_'), *second = first ? strchr(first + 1, '_') : NULL;
	const char *last = second ? strrchr(second, '-') : NULL;
	size_t digits = strlen(container);
	bool is_it = last && link[strspn(link, IN_NAMES "_")] == '\0' && strncmp(last + 1, container, digits) == 0 &&
	             strcmp(last + 1 + digits, ".log") == 0;

	if (is_it) {
		copy(workload->pod, link, (size_t)(first - link));
		copy(workload->namespace, first + 1, (size_t)(second - first - 1));
		copy(workload->container, second + 1, (size_t)(last - second - 1));
	}
	return is_it;
}

void workload_find_names(struct workload *workload, const char *container, const char *directory)
{
	DIR *logs = container[0] != '\0' ? opendir(directory) : NULL;
	bool found = false;

	if (!logs)
		return;
	for (const struct dirent *entry = readdir(logs); entry && !found; entry = readdir(logs))
		found = take_names(workload, entry->d_name, container);
	closedir(logs);
}

/* A note of our hook comes first, if the container has a device of ours. */
static bool find_note(struct workload *workload, const char *id)
{
	struct container noted;
	bool found = container_read(&noted, CONTAINERS_DIRECTORY, id) && noted.name[0] != '\0';

	if (found) {
		copy(workload->pod, noted.pod, WORKLOAD_NAME);
		copy(workload->namespace, noted.namespace, WORKLOAD_NAME);
		copy(workload->container, noted.name, WORKLOAD_NAME);
	}
	return found;
}

void workload_of(struct workload *workload, pid_t pid)
{
	static char cgroup[CGROUP_MAX]; /* large */
	char container[WORKLOAD_NAME];

	proc_read_text(cgroup, sizeof cgroup, "/proc/%d/cgroup", (int)pid);
	workload_read(workload, cgroup, container);
	if (!find_note(workload, container))
		workload_find_names(workload, container, LOGS);
}

const char *workload_format(const struct workload *workload, char text[WORKLOAD_TEXT])
{
	bool has_pod = workload->pod[0] != '\0', has_container = workload->container[0] != '\0';

	if (has_pod || has_container)
		snprintf(text, WORKLOAD_TEXT, "%s%s%s%s%s", workload->namespace, has_pod ? "/" : "", workload->pod,
		         has_pod && has_container ? "/" : "", workload->container);
	else
		snprintf(text, WORKLOAD_TEXT, "%s%s", workload->hpc_job[0] != '\0' ? "job " : "", workload->hpc_job);
	return text;
}
