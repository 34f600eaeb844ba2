#include "loader_cache.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* glibc's format (dl-cache.h), since 2.32 the only format that glibc writes: a head, entries, and strings. Offsets of
 * strings count from the beginning of the head. */
#define MAGIC "glibc-ld.so.cache1.1"

#if defined(__x86_64__)
#define LIBRARY_FLAGS 0x0303 /* ELF for glibc, x86-64 */
#elif defined(__aarch64__)
#define LIBRARY_FLAGS 0x0a03 /* ELF for glibc, aarch64 */
#else
#error "which flags has the dynamic linker's cache for libraries of this machine?"
#endif

struct head {
	char magic[20];
	uint32_t entry_count;
	uint32_t string_bytes;
	uint32_t unused[5];
};

struct entry {
	int32_t flags;
	uint32_t name; /* offset of its string */
	uint32_t path; /* offset of its string */
	uint32_t os_version;
	uint64_t hardware;
};

_Static_assert(sizeof(struct head) == 48 && sizeof(struct entry) == 24, "glibc's layout");

/* NULL if the string does not end inside the file. */
static const char *text_at(const char *file, size_t size, uint32_t offset)
{
	return offset < size && memchr(file + offset, '\0', size - offset) ? file + offset : NULL;
}

/* The dynamic linker compares numbers in names by value. */
static bool is_same(const char *a, const char *b)
{
	bool same = true;

	while (*a && *b && same) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b))
			same = strtoul(a, (char **)&a, 10) == strtoul(b, (char **)&b, 10);
		else
			same = *a++ == *b++;
	}
	return same && *a == *b;
}

static bool find_library(const char *file, size_t size, const char *name, bool (*wanted)(const char *path),
                         char path[PATH_MAX])
{
	const struct head *head = (const struct head *)file;
	const struct entry *entries = (const struct entry *)(head + 1);
	bool found = false;

	if (size < sizeof *head || memcmp(head->magic, MAGIC, sizeof head->magic) != 0 ||
	    head->entry_count > (size - sizeof *head) / sizeof *entries)
		return false;
	for (uint32_t i = 0; i < head->entry_count && !found; i++) {
		const char *entry_name = text_at(file, size, entries[i].name);
		const char *entry_path = text_at(file, size, entries[i].path);

		if (entries[i].flags == LIBRARY_FLAGS && entry_name && entry_path &&
		    is_same(entry_name, name) && strlen(entry_path) < PATH_MAX && (!wanted || wanted(entry_path))) {
			strcpy(path, entry_path);
			found = true;
		}
	}
	return found;
}

bool loader_cache_find(const char *cache, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX])
{
	struct stat status;
	bool found = false;
	int file = open(cache, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
		size_t size = (size_t)status.st_size;
		void *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);

		if (mapped != MAP_FAILED) {
			found = find_library(mapped, size, name, wanted, path);
			munmap(mapped, size);
		}
	}
	if (file >= 0)
		close(file);
	return found;
}
