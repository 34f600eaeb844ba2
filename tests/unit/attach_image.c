/* Libraries as seen in their process's memory: the symbols that they define, and memory that a hostile process has
 * forged. */
#include "../cases.h"
#include "attach/image.h"

#include <dlfcn.h>
#include <elf.h>

static struct memory memory;

FIXTURE(set_up)
{
	assert_int_equal(memory_open(&memory, getpid()), 0);
}

FIXTURE(tear_down)
{
	memory_close(&memory);
}

static struct image image_of(const void *address)
{
	struct image image;
	Dl_info info;

	assert_true(dladdr(address, &info));
	assert_true(image_open(&image, &memory, (uint64_t)(uintptr_t)info.dli_fbase));
	return image;
}

static void *const in_libc = (void *)getpid;

/* --- real libraries ------------------------------------------------------------------------------------------------ */

TEST(symbols)
{
	static const char *const names[] = {"getpid", "malloc", "dlopen", "environ", "stdout", "qsort", "write", "strsep"};
	struct image libc = image_of(in_libc);
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(handle);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		uint64_t size = 0, address = image_find(&libc, &memory, names[i], &size);

		/* Another definition may come first, a sanitizer's for example. */
		assert_true(range_has(&libc.range, address));
		assert_true(size > 0);
	}
	uint64_t address = image_find(&libc, &memory, "gnu_get_libc_version", NULL);

	assert_ptr_equal((void *)(uintptr_t)address, dlsym(handle, "gnu_get_libc_version"));
	dlclose(handle);
	/* The range has zeroed data, too, which is in no file, and nothing else. */
	assert_true(range_has(&libc.range, image_find(&libc, &memory, "obstack_exit_failure", NULL)));
	assert_false(range_has(&libc.range, (uint64_t)(uintptr_t)&memory));
}

TEST(no_such_symbol)
{
	static const char *const names[] = {"", "getpi", "getpidd", "no_such_symbol", "_rtld_global",
	                                    "a_name_that_is_longer_than_any_that_is_ever_looked_for_by_this_module"};
	struct image libc = image_of(in_libc);
	uint64_t size = 7;

	for (size_t i = 0; i < COUNT_OF(names); i++)
		assert_int_equal(image_find(&libc, &memory, names[i], &size), 0);
}

TEST(loader)
{
	struct image loader = image_of(dlsym(RTLD_DEFAULT, "_dl_mcount") ?: dlsym(RTLD_DEFAULT, "__tls_get_addr"));
	uint64_t size = 0;

	assert_true(image_find(&loader, &memory, "_rtld_global", &size) != 0);
	assert_true(size > 1000);
}

TEST(not_an_image)
{
	static const char text[8192] = "text";
	struct image image;

	assert_false(image_open(&image, &memory, (uint64_t)(uintptr_t)text));
	assert_false(image_open(&image, &memory, 0));
	assert_false(image_open(&image, &memory, UINT64_MAX - 100));
}

/* --- forged libraries ---------------------------------------------------------------------------------------------- */

/* The first pages of the C library with all tables for looking up symbols, and its dynamic section, to which the
 * headers are made to point. */
#define COPY_SIZE ((size_t)256 << 10)

static unsigned char *copy_libc(void)
{
	struct image libc = image_of(in_libc);
	unsigned char *copy = mmap(NULL, COPY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	Elf64_Dyn *dynamic = (Elf64_Dyn *)(copy + COPY_SIZE - 4096);

	assert_ptr_not_equal(copy, MAP_FAILED);
	assert_true(memory_read(&memory, libc.range.start, copy, COPY_SIZE - 4096));
	Elf64_Ehdr *header = (Elf64_Ehdr *)copy;
	Elf64_Phdr *headers = (Elf64_Phdr *)(copy + header->e_phoff);

	for (unsigned int i = 0; i < header->e_phnum; i++) {
		if (headers[i].p_type == PT_DYNAMIC)
			headers[i].p_vaddr = COPY_SIZE - 4096;
	}
	dynamic[0] = (Elf64_Dyn){.d_tag = DT_SYMTAB, .d_un.d_ptr = libc.symbols - libc.range.start};
	dynamic[1] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = libc.strings - libc.range.start};
	dynamic[2] = (Elf64_Dyn){.d_tag = DT_GNU_HASH, .d_un.d_ptr = libc.hash - libc.range.start};
	dynamic[3] = (Elf64_Dyn){.d_tag = DT_NULL};
	return copy;
}

static uint64_t find_in(const unsigned char *copy)
{
	struct image image;
	bool opened = image_open(&image, &memory, (uint64_t)(uintptr_t)copy);

	return opened ? image_find(&image, &memory, "getpid", NULL) : 0;
}

TEST(damaged_images)
{
	unsigned char *copy = copy_libc(), *damaged = copy_libc();
	struct image libc = image_of(in_libc);
	const size_t places[] = {0, 64, COPY_SIZE - 4096, libc.hash - libc.range.start, libc.symbols - libc.range.start};

	/* The undamaged copy works. */
	assert_int_equal(find_in(copy) - (uint64_t)(uintptr_t)copy,
	                 image_find(&libc, &memory, "getpid", NULL) - libc.range.start);
	for (unsigned int i = 0; i < 20000; i++) {
		size_t place = places[i % 5] + (size_t)(rand() % 64);
		unsigned char value = (unsigned char)rand();

		if (i % 8 == 0)
			memcpy(damaged, copy, COPY_SIZE);
		damaged[place] = i % 3 == 0 ? 0xff : value;
		/* It only has to return. */
		find_in(damaged);
	}
	munmap(copy, COPY_SIZE);
	munmap(damaged, COPY_SIZE);
}

/* A chain of so many symbols; the one that is sought is behind `steps` others, of which one may be marked as the last. */
static uint64_t find_behind(uint32_t steps, uint32_t marked_as_last)
{
	enum { SYMBOLS = 10000 };
	static struct {
		uint32_t bucket_count, first_symbol, filter_words, filter_shift;
		uint64_t filter;
		uint32_t bucket, chain[SYMBOLS];
	} table;
	static Elf64_Sym symbols[SYMBOLS];
	static const char strings[] = "\0f";
	const uint32_t hash = 5381 * 33 + 'f';
	struct image image = {.symbols = (uint64_t)(uintptr_t)symbols, .strings = (uint64_t)(uintptr_t)strings,
	                      .hash = (uint64_t)(uintptr_t)&table};

	memset(&table, 0, sizeof table);
	table.bucket_count = table.filter_words = 1;
	table.filter = UINT64_MAX;
	table.chain[marked_as_last] = 1;
	table.chain[steps] = hash & ~1U;
	symbols[steps] = (Elf64_Sym){.st_name = 1, .st_shndx = 1, .st_value = 1234};
	return image_find(&image, &memory, "f", NULL);
}

TEST(long_chains)
{
	assert_int_equal(find_behind(100, 9999), 1234);
	assert_int_equal(find_behind(100, 50), 0);
	/* A hostile one ends nowhere. */
	assert_int_equal(find_behind(9000, 9999), 0);
}

RUN_TESTS(set_up, tear_down)
