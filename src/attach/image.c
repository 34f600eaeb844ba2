#include "image.h"

#include <elf.h>
#include <string.h>

/* Bounds, since a hostile process may claim any number. */
#define HEADERS_MAX 64
#define DYNAMIC_MAX 256
#define CHAIN_MAX 4096

#ifdef __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* --- opening -------------------------------------------------------------------------------------------------- */

static bool is_native(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_machine == MACHINE && header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum > 0 &&
	       header->e_phnum <= HEADERS_MAX;
}

/* The dynamic linker has relocated the addresses in the dynamic section, in every image but the kernel's own. */
static uint64_t absolute(const struct image *image, uint64_t value)
{
	return value >= image->range.start ? value : image->bias + value;
}

static void take_entry(struct image *image, const Elf64_Dyn *entry)
{
	if (entry->d_tag == DT_SYMTAB)
		image->symbols = absolute(image, entry->d_un.d_ptr);
	else if (entry->d_tag == DT_STRTAB)
		image->strings = absolute(image, entry->d_un.d_ptr);
	else if (entry->d_tag == DT_GNU_HASH)
		image->hash = absolute(image, entry->d_un.d_ptr);
}

static bool read_dynamic(struct image *image, const struct memory *memory, uint64_t address)
{
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t count = 0;

	while (count < DYNAMIC_MAX &&
	       memory_read(memory, address + count * sizeof *entries, &entries[count], sizeof *entries) &&
	       entries[count].d_tag != DT_NULL)
		take_entry(image, &entries[count++]);
	return image->symbols && image->strings && image->hash;
}

static uint64_t page_start(uint64_t address)
{
	return address & ~UINT64_C(4095);
}

/* Finds the extent, the gap and the dynamic section. Returns the section's address in the file; 0: no section. */
static uint64_t take_headers(struct image *image, const Elf64_Phdr *headers, size_t count)
{
	uint64_t first = UINT64_MAX, last = 0, code = 0, dynamic = 0;

	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr < first)
			first = headers[i].p_vaddr;
		if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr + headers[i].p_memsz > last)
			last = headers[i].p_vaddr + headers[i].p_memsz;
		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X)
			code = headers[i].p_vaddr + headers[i].p_memsz;
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = headers[i].p_vaddr;
	}
	image->bias = image->range.start - page_start(first);
	image->range.end = image->bias + last;
	image->gap = (struct range){image->bias + code, image->bias + page_start(code + 4095)};
	return dynamic;
}

bool image_open(struct image *image, const struct memory *memory, uint64_t start)
{
	Elf64_Ehdr header;
	Elf64_Phdr headers[HEADERS_MAX];

	*image = (struct image){.range.start = start};
	if (!memory_read(memory, start, &header, sizeof header) || !is_native(&header) ||
	    !memory_read(memory, start + header.e_phoff, headers, header.e_phnum * sizeof *headers))
		return false;
	uint64_t dynamic = take_headers(image, headers, header.e_phnum);

	return dynamic && read_dynamic(image, memory, image->bias + dynamic);
}

/* --- symbols -------------------------------------------------------------------------------------------------- */

/* DT_GNU_HASH: this header, a Bloom filter of 64-bit words, the buckets, and one word for each symbol from
 * `first_symbol` on. */
struct hash_header {
	uint32_t bucket_count, first_symbol, filter_words, filter_shift;
};

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool may_have(const struct image *image, const struct memory *memory, const struct hash_header *header,
                     uint32_t hash)
{
	uint64_t word, place = hash / 64 % header->filter_words;

	return memory_read(memory, image->hash + sizeof *header + place * sizeof word, &word, sizeof word) &&
	       (word >> hash % 64 & word >> (hash >> (header->filter_shift & 31)) % 64 & 1);
}

static bool is_called(const struct image *image, const struct memory *memory, const Elf64_Sym *symbol,
                      const char *name)
{
	char found[64] = "";
	size_t length = strlen(name) + 1;

	return symbol->st_shndx != SHN_UNDEF && length <= sizeof found &&
	       memory_read(memory, image->strings + symbol->st_name, found, length) &&
	       memcmp(found, name, length) == 0;
}

/* Walks the symbols of a bucket. The last one's hash has its lowest bit set. */
static bool find_in_chain(const struct image *image, const struct memory *memory, const struct hash_header *header,
                          uint32_t index, uint32_t hash, const char *name, Elf64_Sym *symbol)
{
	uint64_t chain = image->hash + sizeof *header + header->filter_words * UINT64_C(8) +
	                 header->bucket_count * UINT64_C(4);
	bool found = false;
	uint32_t word = 0;

	for (unsigned int step = 0; !found && !(word & 1) && step < CHAIN_MAX; step++, index++) {
		if (!memory_read(memory, chain + (index - header->first_symbol) * UINT64_C(4), &word, sizeof word))
			word = 1;
		else if ((word | 1) == (hash | 1))
			found = memory_read(memory, image->symbols + index * sizeof *symbol, symbol, sizeof *symbol) &&
			        is_called(image, memory, symbol, name);
	}
	return found;
}

uint64_t image_find(const struct image *image, const struct memory *memory, const char *name, uint64_t *size)
{
	uint32_t hash = hash_of(name), index = 0;
	struct hash_header header;
	Elf64_Sym symbol = {.st_value = 0};
	uint64_t address = 0;

	if (!memory_read(memory, image->hash, &header, sizeof header) || header.bucket_count == 0 ||
	    header.filter_words == 0 || !may_have(image, memory, &header, hash))
		return 0;
	uint64_t buckets = image->hash + sizeof header + header.filter_words * UINT64_C(8);

	if (memory_read(memory, buckets + hash % header.bucket_count * UINT64_C(4), &index, sizeof index) &&
	    index >= header.first_symbol &&
	    find_in_chain(image, memory, &header, index, hash, name, &symbol))
		address = image->bias + symbol.st_value;
	if (size)
		*size = symbol.st_size;
	return address;
}
