/* slurmd itself. */
#include "contexts.h"

#include "config.h"
#include "jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A mistake is told when the daemon starts, and not by the first job. The files are looked through by the next step: it can
 * ask the controller, which perhaps does not answer yet (slurmstepd.c). */
int slurmd_init(int count, char **arguments)
{
	struct config config;
	struct nvtaskset_error error;
	char life[48];

	if (config_parse(&config, count, arguments, &error) < 0) {
		slurm_error("nvtaskset: %s", error.reason);
		return -1;
	}
	snprintf(life, sizeof life, "%d.%lld", (int)getpid(), (long long)time(NULL));
	setenv(JOBS_LIFE, life, 1);
	return 0;
}
