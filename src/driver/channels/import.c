#include "kernel_client.h"

#include "driver/functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMPORT "ioctl"
#define C_LIBRARY "libc.so.6"

#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_IMPORT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_IMPORT(type) ((void)(type), false)
#endif

/* With a second slot the import is unknown to us. */
static import_place *slot;
static import_ioctl *before; /* the former content of the slot */
static bool is_read_only;

/* --- the driver library in memory --------------------------------------------------------------------------------- */

struct extent {
	uintptr_t base;
	uintptr_t begin, end;             /* the whole library */
	uintptr_t read_only, read_only_end; /* made read-only by the dynamic linker after relocation */
};

static int measure_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct extent *extent = data;
	bool is_it = info->dlpi_addr == extent->base;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && is_it; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;

		if (part->p_type == PT_LOAD && (extent->begin == 0 || begin < extent->begin))
			extent->begin = begin;
		if (part->p_type == PT_LOAD && end > extent->end)
			extent->end = end;
		if (part->p_type == PT_GNU_RELRO) {
			extent->read_only = begin;
			extent->read_only_end = end;
		}
	}
	return is_it;
}

static bool is_inside(uintptr_t address, uintptr_t begin, uintptr_t end)
{
	return address >= begin && address < end;
}

/* Tables for a search through the dynamic section of the library. */
struct tables {
	const Elf64_Rela *list[2];
	size_t bytes[2];
	const Elf64_Sym *symbols;
	const char *names;
};

/* glibc has relocated most addresses already. */
static const void *address_at(const struct link_map *library, Elf64_Addr address)
{
	return (const void *)(address < library->l_addr ? library->l_addr + address : address);
}

static struct tables read_tables(const struct link_map *library)
{
	struct tables tables = {.list = {NULL, NULL}};

	for (const Elf64_Dyn *entry = library->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_JMPREL)
			tables.list[0] = address_at(library, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_PLTRELSZ)
			tables.bytes[0] = entry->d_un.d_val;
		else if (entry->d_tag == DT_RELA)
			tables.list[1] = address_at(library, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_RELASZ)
			tables.bytes[1] = entry->d_un.d_val;
		else if (entry->d_tag == DT_SYMTAB)
			tables.symbols = address_at(library, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRTAB)
			tables.names = address_at(library, entry->d_un.d_ptr);
	}
	return tables;
}

static bool is_import(const struct tables *tables, const Elf64_Rela *entry)
{
	size_t symbol = ELF64_R_SYM(entry->r_info);

	return symbol != 0 && IS_IMPORT(ELF64_R_TYPE(entry->r_info)) &&
	       strcmp(tables->names + tables->symbols[symbol].st_name, IMPORT) == 0;
}

/* The number of slots; `found` is the last slot. */
static unsigned int find_slots(const struct link_map *library, import_place **found)
{
	struct tables tables = read_tables(library);
	unsigned int count = 0;

	for (int list = 0; list < 2 && tables.symbols && tables.names; list++) {
		size_t entries = tables.list[list] ? tables.bytes[list] / sizeof(Elf64_Rela) : 0;

		for (size_t i = 0; i < entries; i++) {
			const Elf64_Rela *entry = &tables.list[list][i];

			if (is_import(&tables, entry)) {
				*found = (import_place *)(library->l_addr + entry->r_offset);
				count++;
			}
		}
	}
	return count;
}

/* --- replacing ---------------------------------------------------------------------------------------------------- */

/* The function called by the driver library; NULL if the function is unknown to us. Before the first call, the slot
 * leads to code of the library, which asks the dynamic linker and would overwrite the slot. */
static import_ioctl *destination(import_ioctl *current, const struct extent *extent)
{
	import_ioctl *programs = (import_ioctl *)dlsym(RTLD_DEFAULT, IMPORT);
	void *library = dlopen(C_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	bool is_known = current == programs || (library && current == (import_ioctl *)dlsym(library, IMPORT));

	if (library)
		dlclose(library);
	if (!is_known && is_inside((uintptr_t)current, extent->begin, extent->end)) {
		current = programs;
		is_known = programs != NULL;
	}
	return is_known ? current : NULL;
}

static int store(import_ioctl *function)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)slot & ~(page - 1));

	if (is_read_only && mprotect(start, page, PROT_READ | PROT_WRITE) < 0)
		return -1;
	atomic_store_explicit(slot, function, memory_order_release);
	if (is_read_only)
		mprotect(start, page, PROT_READ);
	return 0;
}

int import_replace(import_ioctl *ours, import_place *next, struct error *error)
{
	const struct link_map *library = driver_library();
	struct extent extent = {.base = library ? library->l_addr : 0};

	if (!library || find_slots(library, &slot) != 1 || dl_iterate_phdr(measure_library, &extent) == 0)
		return error_set(error, "the driver library has no import of ioctl as we know it");
	import_ioctl *current = atomic_load(slot);

	if (current == ours)
		return 0;
	import_ioctl *found = destination(current, &extent);

	if (!found)
		return error_set(error, "the driver library's import of ioctl leads to another library");
	before = current;
	is_read_only = is_inside((uintptr_t)slot, extent.read_only, extent.read_only_end);
	atomic_store(next, found);
	return store(ours) == 0 ? 0 : error_set_errno(error, "the driver library's import of ioctl cannot be changed");
}

void import_restore(import_ioctl *ours)
{
	if (slot && atomic_load(slot) == ours)
		store(before);
}
