#include "cubin.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Symbols of CUDA's device runtime, in the tables of names: a variable, and the function that kernels call to launch
 * (CUDA 13.0; hardware.md). */
static const char *const labels[] = {"__CNPRT_VERSION_NUMBER__", "__cuda_syscall_cnp"};

/* Part of the file; NULL beyond the end. */
static const void *part(const void *cubin, size_t size, uint64_t offset, uint64_t length)
{
	return offset <= size && length <= size - offset ? (const char *)cubin + offset : NULL;
}

static bool has_label(const void *names, size_t length)
{
	bool found = false;

	for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
		found = found || memmem(names, length, labels[i], strlen(labels[i]));
	return found;
}

/* In a symbol's st_other: the variable is managed (cuda-gdb's STO_CUDA_MANAGED). */
#define MANAGED 4

static bool has_managed(const void *symbols, size_t length)
{
	bool found = false;
	Elf64_Sym symbol;

	for (size_t at = 0; at + sizeof symbol <= length && !found; at += sizeof symbol) {
		memcpy(&symbol, (const char *)symbols + at, sizeof symbol);
		found = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_other & MANAGED;
	}
	return found;
}

/* Whether a section has a property. */
typedef bool section_has(const void *content, size_t length);

static bool is_in_section(const void *cubin, size_t size, const Elf64_Ehdr *header, unsigned int number, uint32_t type,
                          section_has *has)
{
	Elf64_Shdr section;
	const void *at = part(cubin, size, header->e_shoff + (uint64_t)number * header->e_shentsize, sizeof section);

	if (!at)
		return false;
	memcpy(&section, at, sizeof section);
	const void *content = part(cubin, size, section.sh_offset, section.sh_size);

	return section.sh_type == type && content && has(content, section.sh_size);
}

static bool is_in_file(const void *cubin, size_t size, uint32_t type, section_has *has)
{
	Elf64_Ehdr header;
	bool found = false;

	if (size < sizeof header)
		return false;
	memcpy(&header, cubin, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_shoff > size)
		return false;
	for (unsigned int number = 0; number < header.e_shnum && !found; number++)
		found = is_in_section(cubin, size, &header, number, type, has);
	return found;
}

/* Another driver may pass other parameters instead of a pointer: unmapped memory is not touched. */
static bool is_mapped(const void *start, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start & ~(page - 1);

	return start && size > 0 && size <= UINTPTR_MAX - (uintptr_t)start &&
	       msync((void *)first, (uintptr_t)start + size - first, MS_ASYNC) == 0;
}

static bool is_in(const void *cubin, size_t size, uint32_t type, section_has *has)
{
	int saved = errno;
	bool found = is_mapped(cubin, size) && is_in_file(cubin, size, type, has);

	errno = saved;
	return found;
}

bool cubin_launches_kernels(const void *cubin, size_t size)
{
	return is_in(cubin, size, SHT_STRTAB, has_label);
}

bool cubin_has_managed_variables(const void *cubin, size_t size)
{
	return is_in(cubin, size, SHT_SYMTAB, has_managed);
}
