#include "cubin.h"

#include <elf.h>
#include <string.h>

/* Symbols of CUDA's device runtime, in the tables of names: a variable, and the function that kernels call to launch
 * (CUDA 13.0; docs/hardware.md). */
static const char *const labels[] = {"__CNPRT_VERSION_NUMBER__", "__cuda_syscall_cnp"};

/* Part of the file; NULL if the file is shorter. */
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

static bool is_labelled(const void *cubin, size_t size, const Elf64_Ehdr *header, unsigned int number)
{
	Elf64_Shdr section;
	const void *at = part(cubin, size, header->e_shoff + (uint64_t)number * header->e_shentsize, sizeof section);

	if (!at)
		return false;
	memcpy(&section, at, sizeof section);
	const void *names = part(cubin, size, section.sh_offset, section.sh_size);

	return section.sh_type == SHT_STRTAB && names && has_label(names, section.sh_size);
}

bool cubin_launches_kernels(const void *cubin, size_t size)
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
		found = is_labelled(cubin, size, &header, number);
	return found;
}
