/*
 * The job or container of a process, from its control group: under Slurm, in Kubernetes, in Docker and more.
 *
 * The names are as in dcgm-exporter's labels. A control group has the ids of a pod and of a container. Their names are
 * known if the container's log has a link in /var/log/containers, as on every node of Kubernetes.
 */
#ifndef NVTASKSET_WORKLOAD_H
#define NVTASKSET_WORKLOAD_H

#include <sys/types.h>

#define WORKLOAD_NAME 256

/* "" where not known. Names and numbers without characters that move a cursor. */
struct workload {
	char hpc_job[WORKLOAD_NAME]; /* the number of the Slurm job */
	char pod_uid[WORKLOAD_NAME];
	char pod[WORKLOAD_NAME];
	char namespace[WORKLOAD_NAME];
	char container[WORKLOAD_NAME]; /* the name, or the first 12 digits of the id, as in `docker ps` */
};

void workload_of(struct workload *workload, pid_t pid);

/* "namespace/pod/container", or the container alone; or "job 4711"; or "". Returns `text`. */
#define WORKLOAD_TEXT (3 * WORKLOAD_NAME + 8)
const char *workload_format(const struct workload *workload, char text[WORKLOAD_TEXT]);

/* First from the content of /proc/PID/cgroup, then from the names of links in a directory. */
void workload_read(struct workload *workload, const char *cgroup, char container[WORKLOAD_NAME]);
void workload_find_names(struct workload *workload, const char *container, const char *directory);

#endif
