#include "clock.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#define PAGE 4096 /* holds all headers; each image has at least this size */

struct image {
	const char *bytes;
	size_t size;
	uint64_t first; /* the address of the first byte in the file's own terms */
};

static const void *part_at(const struct image *image, uint64_t address, size_t size)
{
	uint64_t offset = address - image->first;

	return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

static bool take_value(const struct image *image, uint64_t address, void *into, size_t size)
{
	const void *bytes = part_at(image, address, size);

	if (bytes)
		memcpy(into, bytes, size);
	return bytes != NULL;
}

static bool find_header(const struct image *page, uint32_t type, Elf64_Phdr *found)
{
	Elf64_Ehdr header;
	bool is_found = false, is_file = take_value(page, 0, &header, sizeof header) &&
	                                 memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	                                 header.e_ident[EI_CLASS] == ELFCLASS64 &&
	                                 header.e_phentsize == sizeof *found;

	for (unsigned int i = 0; is_file && !is_found && i < header.e_phnum; i++)
		is_found = take_value(page, header.e_phoff + i * sizeof *found, found, sizeof *found) &&
		           found->p_type == type;
	return is_found;
}

/* Addresses of the tables. The names lie behind the symbols; nothing else tells the number of symbols. */
struct tables {
	uint64_t symbols, names;
};

static struct tables find_tables(const struct image *image, uint64_t dynamic)
{
	struct tables tables = {.symbols = 0};
	Elf64_Dyn entry;

	for (uint64_t next = dynamic; take_value(image, next, &entry, sizeof entry) && entry.d_tag != DT_NULL;
	     next += sizeof entry) {
		if (entry.d_tag == DT_SYMTAB)
			tables.symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			tables.names = entry.d_un.d_ptr;
	}
	return tables;
}

static const void *find_symbol(const struct image *image, struct tables tables, const char *name)
{
	const void *found = NULL;
	Elf64_Sym symbol;

	for (uint64_t next = tables.symbols; !found && next < tables.names && take_value(image, next, &symbol,
	                                                                                 sizeof symbol);
	     next += sizeof symbol) {
		const void *entry = part_at(image, tables.names + symbol.st_name, strlen(name) + 1);

		if (symbol.st_shndx != SHN_UNDEF && entry && memcmp(entry, name, strlen(name) + 1) == 0)
			found = part_at(image, symbol.st_value, 1);
	}
	return found;
}

const void *vdso_find(const void *bytes, size_t size, const char *name)
{
	struct image image = {.bytes = bytes, .size = size < PAGE ? size : PAGE};
	Elf64_Phdr code, dynamic;

	if (!find_header(&image, PT_LOAD, &code) || !find_header(&image, PT_DYNAMIC, &dynamic))
		return NULL;
	image.first = code.p_vaddr - code.p_offset;
	image.size = code.p_offset + code.p_filesz < size ? code.p_offset + code.p_filesz : size;
	return find_symbol(&image, find_tables(&image, dynamic.p_vaddr), name);
}

void *vdso_function(const char *name)
{
	unsigned long image = getauxval(AT_SYSINFO_EHDR);

	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return image != 0 ? (void *)vdso_find((const void *)image, SIZE_MAX, name) : NULL;
}
