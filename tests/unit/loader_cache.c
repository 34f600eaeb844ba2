/* The dynamic linker's cache: this machine's, and caches that are truncated or wrong. */
#include "../cases.h"
#include "../../tools/nvtaskset/start/loader_cache.c"

static bool any(const char *path)
{
	return path[0] == '/';
}

static bool none(const char *path)
{
	return false;
}

TEST(this_machines)
{
	char path[PATH_MAX];

	if (access("/etc/ld.so.cache", R_OK) < 0)
		skip_because("there is no /etc/ld.so.cache");
	assert_true(loader_cache_find("/etc/ld.so.cache", "libc.so.6", any, path));
	assert_int_equal(access(path, R_OK), 0);
	assert_false(loader_cache_find("/etc/ld.so.cache", "libc.so.6", none, path));
	assert_false(loader_cache_find("/etc/ld.so.cache", "libnothing.so.0", any, path));
	assert_false(loader_cache_find("/nonexistent", "libc.so.6", any, path));
}

/* --- made caches ---------------------------------------------------------------------------------------- */

static struct {
	struct head head;
	struct entry entries[2];
	char text[64];
} cache;

static char file[] = "/tmp/nvtaskset-cache-XXXXXX";

static int make_cache(void **state)
{
	static const char text[] = "libcuda.so.1\0/wrong/libcuda.so.1\0/right/libcuda.so.1";
	uint32_t base = offsetof(__typeof__(cache), text);
	int made = mkstemp(file);

	memset(&cache, 0, sizeof cache);
	memcpy(cache.head.magic, MAGIC, sizeof cache.head.magic);
	cache.head.entry_count = 2;
	memcpy(cache.text, text, sizeof text);
	cache.entries[0] = (struct entry){.flags = 0x0003, .name = base, .path = base + 13};
	cache.entries[1] = (struct entry){.flags = LIBRARY_FLAGS, .name = base, .path = base + 33};
	return made < 0 ? -1 : close(made);
}

FIXTURE(remove_cache)
{
	unlink(file);
	strcpy(file + sizeof file - 7, "XXXXXX");
}

static bool find_in(size_t size, char path[PATH_MAX])
{
	int written = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(written >= 0);
	assert_int_equal(write(written, &cache, size), (ssize_t)size);
	close(written);
	return loader_cache_find(file, "libcuda.so.1", any, path);
}

/* As a whole, it has the library of this machine's kind. */
TEST_WITH(make_cache, remove_cache, cut_off_anywhere)
{
	char path[PATH_MAX];
	size_t whole = offsetof(__typeof__(cache), text) + 33 + sizeof "/right/libcuda.so.1";

	for (size_t size = 0; size < sizeof cache; size++)
		assert_int_equal(find_in(size, path), size >= whole);
	assert_string_equal(path, "/right/libcuda.so.1");
}

TEST_WITH(make_cache, remove_cache, hostile_numbers)
{
	char path[PATH_MAX];

	cache.head.entry_count = UINT32_MAX;
	assert_false(find_in(sizeof cache, path));
	cache.head.entry_count = 1 << 20;
	assert_false(find_in(sizeof cache, path));
	cache.head.entry_count = 2;
	cache.entries[1].path = UINT32_MAX;
	assert_false(find_in(sizeof cache, path));
	cache.head.magic[0] = 'x';
	assert_false(find_in(sizeof cache, path));
}

RUN_TESTS(NULL, NULL)
