#include "identity.h"

#include "proc.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

/* --- processes ---------------------------------------------------------------------------------------------------- */

static uint64_t namespace_of(const char *process)
{
	char link[32];
	unsigned long long number = 0;

	proc_read_link(link, sizeof link, "/proc/%s/ns/pid", process);
	sscanf(link, "pid:[%llu", &number);
	return number;
}

struct identity identity_own(void)
{
	return (struct identity){.pid = (uint64_t)getpid(), .namespace = namespace_of("self")};
}

uint64_t identity_inner(pid_t pid)
{
	return proc_status(pid, "NSpid:", (uint64_t)pid);
}

struct identity identity_of(pid_t pid)
{
	char process[16];

	snprintf(process, sizeof process, "%d", (int)pid);
	return (struct identity){.pid = identity_inner(pid), .namespace = namespace_of(process)};
}

bool identity_matches(struct identity a, struct identity b)
{
	return a.pid == b.pid && (a.namespace == b.namespace || a.namespace == 0 || b.namespace == 0);
}

bool identity_is_privileged(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* --- executions --------------------------------------------------------------------------------------------------- */

#define ENTRIES_MAX 64 /* the kernel writes some 20 (AT_VECTOR_SIZE) */

/* Of the addresses of the stack, the vDSO, the dynamic linker and the program, as chosen by the kernel. */
static uint64_t number_of(uint64_t (*address_of)(const Elf64_auxv_t *entries, uint64_t type),
                          const Elf64_auxv_t *entries)
{
	static const uint64_t types[] = {AT_RANDOM, AT_EXECFN, AT_SYSINFO_EHDR, AT_BASE, AT_PHDR, AT_ENTRY};
	uint64_t number = 0;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		number = (number ^ address_of(entries, types[i])) * UINT64_C(0x9e3779b97f4a7c15);
	return number | 1;
}

static uint64_t own_address(const Elf64_auxv_t *entries, uint64_t type)
{
	(void)entries;
	return getauxval(type);
}

uint64_t identity_own_execution(void)
{
	return number_of(own_address, NULL);
}

static uint64_t look_up(const Elf64_auxv_t *entries, uint64_t type)
{
	uint64_t value = 0;

	for (size_t i = 0; i < ENTRIES_MAX && value == 0; i++)
		value = entries[i].a_type == type ? entries[i].a_un.a_val : 0;
	return value;
}

uint64_t identity_execution_of(pid_t pid)
{
	Elf64_auxv_t entries[ENTRIES_MAX] = {{.a_type = AT_NULL}};
	ssize_t length = proc_read(entries, sizeof entries, "/proc/%d/auxv", (int)proc_thread(pid));

	return length > 0 ? number_of(look_up, entries) : 0;
}
