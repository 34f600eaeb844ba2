#include "execution.h"

#include "proc.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>

#define ENTRIES_MAX 64 /* the kernel writes some 20 (AT_VECTOR_SIZE) */

/* Addresses that the kernel chooses: of the stack, the vDSO, the dynamic linker and the program. */
static const uint64_t addresses[] = {AT_RANDOM, AT_EXECFN, AT_SYSINFO_EHDR, AT_BASE, AT_PHDR, AT_ENTRY};

static uint64_t add(uint64_t number, uint64_t address)
{
	return (number ^ address) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t execution_own(void)
{
	uint64_t number = 0;

	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
		number = add(number, getauxval(addresses[i]));
	return number | 1;
}

/* The value of an entry; 0 if there is none. The kernel writes entries of two words: type and value. */
static uint64_t look_up(const Elf64_auxv_t *entries, size_t count, uint64_t type)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count && value == 0; i++)
		value = entries[i].a_type == type ? entries[i].a_un.a_val : 0;
	return value;
}

uint64_t execution_of(pid_t pid)
{
	Elf64_auxv_t entries[ENTRIES_MAX];
	ssize_t length = proc_read(entries, sizeof entries, "/proc/%d/auxv", (int)pid);
	uint64_t number = 0;

	if (length <= 0)
		return 0;
	for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
		number = add(number, look_up(entries, (size_t)length / sizeof entries[0], addresses[i]));
	return number | 1;
}
