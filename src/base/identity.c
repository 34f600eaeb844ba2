#include "identity.h"

#include "proc.h"
#include "proc_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define LINK_START "pid:["

static uint64_t read_namespace(const char *process)
{
	char link[32];

	proc_read_link(link, sizeof link, "/proc/%s/ns/pid", process);
	return strlen(link) > sizeof LINK_START ? strtoull(link + sizeof LINK_START - 1, NULL, 10) : 0;
}

struct identity identity_own(void)
{
	return (struct identity){.pid = (uint64_t)getpid(), .namespace = read_namespace("self")};
}

uint64_t identity_inner(pid_t pid)
{
	return proc_status_of(pid, "NSpid:", (uint64_t)pid);
}

struct identity identity_of(pid_t pid)
{
	char process[16];

	snprintf(process, sizeof process, "%d", (int)pid);
	return (struct identity){.pid = identity_inner(pid), .namespace = read_namespace(process)};
}

bool identity_matches(struct identity a, struct identity b)
{
	return a.pid == b.pid && (a.namespace == b.namespace || a.namespace == 0 || b.namespace == 0);
}

bool identity_is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}
