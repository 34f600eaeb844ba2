#include "elf_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MOST 64 /* the dynamic linker and usual programs have some 12 */
#define DYNAMIC_MOST 128 /* entries; the dynamic linker has some 30 */
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

/* How many entries of the table the file has, `most` at most. */
static size_t read_whole(int file, void *table, size_t size, size_t most, uint64_t offset)
{
	ssize_t got = pread(file, table, size * most, (off_t)offset);

	return got > 0 ? (size_t)got / size : 0;
}

/* Finds the first segment of a type that has `address` in the file's part; UINT64_MAX: any address. */
static bool find_segment(int file, const Elf64_Ehdr *header, Elf64_Word type, uint64_t address, Elf64_Phdr *segment)
{
	Elf64_Phdr segments[SEGMENTS_MOST];
	size_t most = header->e_phnum < SEGMENTS_MOST ? header->e_phnum : SEGMENTS_MOST;
	size_t count = read_whole(file, segments, sizeof segments[0], most, header->e_phoff);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		*segment = segments[i];
		found = segment->p_type == type &&
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

/* The values of two tags; 0: no entry. */
static void read_dynamic(int file, const Elf64_Phdr *dynamic, const Elf64_Sxword tags[2], uint64_t values[2])
{
	Elf64_Dyn entries[DYNAMIC_MOST];
	size_t count = read_whole(file, entries, sizeof entries[0], DYNAMIC_MOST, dynamic->p_offset);

	values[0] = values[1] = 0;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		for (int which = 0; which < 2; which++) {
			if (entries[i].d_tag == tags[which])
				values[which] = entries[i].d_un.d_val;
		}
	}
}

bool elf_file_is_linker(int file, const Elf64_Ehdr *header)
{
	static const Elf64_Sxword tags[] = {DT_STRTAB, DT_SONAME};
	char name[sizeof LINKER_NAME] = "";
	Elf64_Phdr dynamic, strings;
	uint64_t values[2];

	if (find_segment(file, header, PT_DYNAMIC, UINT64_MAX, &dynamic)) {
		read_dynamic(file, &dynamic, tags, values);
		uint64_t table = values[0], offset = values[1];

		if (offset != 0 && find_segment(file, header, PT_LOAD, table, &strings))
			read_text(file, strings.p_offset + (table - strings.p_vaddr) + offset, name, sizeof name);
	}
	return strcmp(name, LINKER_NAME) == 0;
}
