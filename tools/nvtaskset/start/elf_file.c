#include "elf_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DYNAMIC_MOST 256 /* entries; the dynamic linker has some 30 */
#define LINKER_NAME "ld-linux"

int elf_file_open(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
}

/* False unless the file is ELF. */
static bool read_header(int file, Elf64_Ehdr *header)
{
	return pread(file, header, sizeof *header, 0) == sizeof *header &&
	       memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
}

bool elf_file_is_native(const Elf64_Ehdr *header)
{
	return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == ELF_FILE_MACHINE;
}

bool elf_file_is_library(const char *path)
{
	Elf64_Ehdr header;
	int file = elf_file_open(path);
	bool is_library = file >= 0 && read_header(file, &header) && elf_file_is_native(&header) &&
	                  header.e_type == ET_DYN;

	if (file >= 0)
		close(file);
	return is_library;
}

/* --- segments ------------------------------------------------------------------------------------- */

/* Finds the first segment of a type that has `address` in the file's part; UINT64_MAX: any address. */
static bool find_segment(int file, const Elf64_Ehdr *header, Elf64_Word type, uint64_t address, Elf64_Phdr *segment)
{
	bool found = false;

	for (unsigned int i = 0; i < header->e_phnum && !found; i++) {
		off_t offset = (off_t)(header->e_phoff + i * sizeof *segment);

		found = pread(file, segment, sizeof *segment, offset) == sizeof *segment && segment->p_type == type &&
		        (address == UINT64_MAX || address - segment->p_vaddr < segment->p_filesz);
	}
	return found;
}

static void read_text(int file, uint64_t offset, char *text, size_t size)
{
	ssize_t got = pread(file, text, size - 1, (off_t)offset);

	text[got > 0 ? got : 0] = '\0';
}

bool elf_file_linker(int file, const Elf64_Ehdr *header, char linker[PATH_MAX])
{
	Elf64_Phdr segment;
	bool found = find_segment(file, header, PT_INTERP, UINT64_MAX, &segment);

	if (found)
		read_text(file, segment.p_offset, linker,
		          segment.p_filesz < PATH_MAX ? segment.p_filesz + 1 : PATH_MAX);
	return found;
}

/* 0: no entry. */
static uint64_t dynamic_entry(int file, const Elf64_Phdr *dynamic, Elf64_Sxword tag)
{
	Elf64_Dyn entry = {.d_tag = DT_DEBUG};
	uint64_t value = 0;

	for (unsigned int i = 0; i < DYNAMIC_MOST && entry.d_tag != DT_NULL && value == 0; i++) {
		if (pread(file, &entry, sizeof entry, (off_t)(dynamic->p_offset + i * sizeof entry)) != sizeof entry)
			entry.d_tag = DT_NULL;
		else if (entry.d_tag == tag)
			value = entry.d_un.d_val;
	}
	return value;
}

bool elf_file_is_linker(int file, const Elf64_Ehdr *header)
{
	char name[sizeof LINKER_NAME] = "";
	Elf64_Phdr dynamic, strings;

	if (find_segment(file, header, PT_DYNAMIC, UINT64_MAX, &dynamic)) {
		uint64_t table = dynamic_entry(file, &dynamic, DT_STRTAB);
		uint64_t offset = dynamic_entry(file, &dynamic, DT_SONAME);

		if (offset != 0 && find_segment(file, header, PT_LOAD, table, &strings))
			read_text(file, strings.p_offset + (table - strings.p_vaddr) + offset, name, sizeof name);
	}
	return strcmp(name, LINKER_NAME) == 0;
}
