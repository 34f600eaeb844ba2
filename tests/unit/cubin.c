/* Modules whose kernels launch kernels, and those with managed variables. */
#include "../cases.h"
#include "gpu/cubin.h"

#include <elf.h>

#define NAMES_AT 256

/* A file with an empty section and a table of names. */
struct file {
	Elf64_Ehdr header;
	Elf64_Shdr sections[2];
	char rest[512];
};

static struct file make(const char *names, size_t length)
{
	struct file file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64}},
		.sections = {{.sh_type = SHT_NULL}, {.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = length}},
	};

	file.header.e_shoff = offsetof(struct file, sections);
	file.header.e_shentsize = sizeof file.sections[0];
	file.header.e_shnum = 2;
	memcpy((char *)&file + NAMES_AT, names, length);
	return file;
}

/* In memory of exactly this size, so that a sanitizer sees reads beyond it. */
static bool launches(const struct file *file, size_t size)
{
	void *copy = malloc(size > 0 ? size : 1);

	assert_non_null(copy);
	memcpy(copy, file, size);
	bool answer = cubin_launches_kernels(copy, size);

	free(copy);
	return answer;
}

#define MODULE(names, type, does) {names, sizeof(names), type, does}

TEST(names_of_the_device_runtime)
{
	static const struct {
		const char *names;
		size_t length;
		Elf64_Word type;
		bool launches;
	} rows[] = {
		MODULE("\0.strtab\0parent\0__CNPRT_VERSION_NUMBER__", SHT_STRTAB, true),
		MODULE("\0__cuda_syscall_cnpv2GetParameterBuffer", SHT_STRTAB, true),
		MODULE("\0.strtab\0plain\0vprintf\0__CNPRT_VERSION_N", SHT_STRTAB, false),
		MODULE("__CNPRT_VERSION_NUMBER__", SHT_PROGBITS, false), /* inside code */
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct file file = make(rows[i].names, rows[i].length);

		ROW("%zu", i);
		file.sections[1].sh_type = rows[i].type;
		assert_int_equal(launches(&file, sizeof file), rows[i].launches);
	}
}

TEST(managed_variables)
{
	Elf64_Sym symbols[] = {
		{.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_other = 0x14},
		{.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_other = 0x24},
	};
	struct file file = make((const char *)symbols, sizeof symbols);

	assert_false(cubin_has_managed_variables(&file, sizeof file));
	file.sections[1].sh_type = SHT_SYMTAB;
	assert_true(cubin_has_managed_variables(&file, sizeof file));
	for (size_t size = 0; size < NAMES_AT + sizeof symbols; size++)
		assert_false(cubin_has_managed_variables(&file, size));
	symbols[1].st_other = 0x20;
	file = make((const char *)symbols, sizeof symbols);
	file.sections[1].sh_type = SHT_SYMTAB;
	assert_false(cubin_has_managed_variables(&file, sizeof file));
}

/* Every length, and sections that lie elsewhere. */
TEST(truncated_or_damaged_modules)
{
	static const char names[] = "\0__CNPRT_VERSION_NUMBER__";
	struct file file = make(names, sizeof names);

	for (size_t size = 0; size < NAMES_AT + sizeof names; size++)
		assert_false(launches(&file, size));
	assert_true(launches(&file, NAMES_AT + sizeof names));
	file.header.e_shoff = UINT64_MAX - 8;
	assert_false(launches(&file, sizeof file));
	file = make(names, sizeof names);
	file.header.e_shnum = UINT16_MAX;
	assert_true(launches(&file, sizeof file));
	file.sections[1].sh_size = UINT64_MAX;
	assert_false(launches(&file, sizeof file));
	file = make(names, sizeof names);
	file.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_false(launches(&file, sizeof file));
	file.header.e_ident[0] = 'x';
	assert_false(launches(&file, sizeof file));
}

RUN_TESTS(NULL, NULL)
