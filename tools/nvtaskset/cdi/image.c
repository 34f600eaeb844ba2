#include "inside.h"

#include "base/driver_names.h"
#include "start/configuration.h"
#include "start/driver.h"
#include "start/elf_file.h"
#include "start/library_path.h"
#include "start/loader_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/etc"
#define CONFIGURATION_TOP "ld.so.conf"
#define OUR_CONFIGURATION "# nvtaskset's library stands in front of the CUDA driver's.\n" INSIDE_FRONT "\n"
#define CACHE "ld.so.cache"
#define CACHE_NEW CONFINED_SCRATCH "/" CACHE
#define DRIVER_LINK_NAME (&INSIDE_DRIVER[sizeof CONFIGURATION_DIRECTORY])
#define TEMPORARY "00-000-nvtaskset.new"
#define FILE_MOST (64u << 20) /* bytes of a libc, or of a cache */

struct task {
	const char *driver, *search_path;
	int ldconfig; /* the host's, since the image's own is not believed */
	int glibc;    /* the version that our library needs */
	unsigned int machine;
};

/* --- reading ------------------------------------------------------------------------------------------------- */

/* The bytes of a file, with a NUL behind, for the caller to free. NULL where there is no file of at most FILE_MOST. The
 * file is not mapped, since a mapped file may get shorter. */
static char *read_file(const char *path, size_t *size)
{
	struct stat status;
	int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool is_one = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < FILE_MOST;
	char *bytes = is_one ? malloc((size_t)status.st_size + 1) : NULL;
	ssize_t length = bytes ? read(file, bytes, (size_t)status.st_size) : 0;

	*size = length > 0 ? (size_t)length : 0;
	if (bytes)
		bytes[*size] = '\0';
	if (file >= 0)
		close(file);
	return bytes;
}

/* --- which glibc --------------------------------------------------------------------------------------------- */

/* The x of the last version GLIBC_2.x that a library defines or needs. -1 where there is none, or no 64-bit library. */
static int glibc_of(const char *path, unsigned int *machine)
{
	static const char prefix[] = "GLIBC_2.";
	const size_t length = sizeof prefix - 1;
	int newest = -1;
	size_t size;
	char *bytes = read_file(path, &size);
	const char *at = bytes;

	if (size > sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0 && bytes[EI_CLASS] == ELFCLASS64) {
		*machine = ((const Elf64_Ehdr *)(const void *)bytes)->e_machine;
		while ((at = memmem(at, (size_t)(bytes + size - at), prefix, length))) {
			int version = atoi(at += length);

			newest = version > newest ? version : newest;
		}
	}
	free(bytes);
	return newest;
}

/* Programs of the image get the glibc that the dynamic linker finds, wherever the linker is. */
static int check_glibc(int needed, unsigned int machine, struct error *error)
{
	char libc[PATH_MAX];
	unsigned int found_machine = 0;
	int found = library_path_find_glibc(libc) ? glibc_of(libc, &found_machine) : -1;

	if (found < 0 || found_machine != machine)
		return error_set(error,
		                 "the image has no glibc for " ELF_FILE_MACHINE_NAME ", which our library needs");
	if (found < needed)
		return error_set(error, "the image has glibc 2.%d, and our library needs 2.%d", found, needed);
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------- */

/* Replaces a file or a link as a whole. A directory stays, and is an error. */
static int put_file(int directory, const char *name, const char *bytes, size_t size, struct error *error)
{
	unlinkat(directory, TEMPORARY, 0);
	int file = openat(directory, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool failed = file < 0 || fchmod(file, 0644) < 0 || write(file, bytes, size) != (ssize_t)size ||
	              renameat(directory, TEMPORARY, directory, name) < 0;
	int result = failed ? error_set_errno(error, "%s cannot be written in the image", name) : 0;

	if (file >= 0)
		close(file);
	if (failed)
		unlinkat(directory, TEMPORARY, 0);
	return result;
}

static int put_text(int directory, const char *name, const char *text, struct error *error)
{
	return put_file(directory, name, text, strlen(text), error);
}

/* The container does not see the written file. */
static int say_mounted(const char *name, struct error *error)
{
	return error_set(error, DIRECTORY "/%s: a mount hides the file that the hook has written in the image", name);
}

/* An image without a configuration gets the usual one. */
static int configure(int etc, int directory, const char *driver, struct error *error)
{
	if (access(DIRECTORY "/" CONFIGURATION_TOP, F_OK) < 0 &&
	    put_text(etc, CONFIGURATION_TOP, "include " CONFIGURATION_DIRECTORY "/*.conf\n", error) < 0)
		return -1;
	unlinkat(directory, DRIVER_LINK_NAME, 0);
	if (symlinkat(driver, directory, DRIVER_LINK_NAME) < 0)
		return error_set_errno(error, INSIDE_DRIVER " cannot be made in the image");
	if (put_text(directory, CONFIGURATION_NAME, OUR_CONFIGURATION, error) < 0)
		return -1;
	return access(CONFIGURATION, F_OK) == 0 ? 0 : say_mounted("ld.so.conf.d", error);
}

static void remove_configuration(int directory)
{
	unlinkat(directory, CONFIGURATION_NAME, 0);
	unlinkat(directory, DRIVER_LINK_NAME, 0);
}

/* --- the cache ----------------------------------------------------------------------------------------------- */

static bool leads_to_us(const char *cache)
{
	char found[PATH_MAX];

	return loader_cache_find(cache, DRIVER_NAME, NULL, found) &&
	       strcmp(found, INSIDE_FRONT "/" DRIVER_NAME) == 0;
}

/* The image's auxiliary cache is not believed (-i), and ldconfig cannot write there. */
static int make_cache(int etc, int ldconfig, struct error *error)
{
	char *const arguments[] = {"ldconfig", "-iX", "-f", DIRECTORY "/" CONFIGURATION_TOP, "-C", CACHE_NEW, NULL};
	size_t size = 0;
	char *bytes = confined_execute(ldconfig, arguments, error) == 0 ? read_file(CACHE_NEW, &size) : NULL;
	int result = -1;

	if (bytes && !leads_to_us(CACHE_NEW))
		error_set(error, "its /etc/ld.so.conf does not include " CONFIGURATION_DIRECTORY " first");
	else if (bytes && put_file(etc, CACHE, bytes, size, error) == 0)
		result = leads_to_us(LOADER_CACHE) ? 0 : say_mounted(CACHE, error);
	free(bytes);
	return result;
}

static int write_into(int image, const char *driver, int ldconfig, struct error *error)
{
	int etc = confined_directory(image, DIRECTORY), directory = confined_directory(image, CONFIGURATION_DIRECTORY);
	int result = -1;

	if (etc < 0 || directory < 0)
		error_set_errno(error, "its %s cannot be opened", etc < 0 ? DIRECTORY : CONFIGURATION_DIRECTORY);
	else if (configure(etc, directory, driver, error) == 0)
		result = make_cache(etc, ldconfig, error);
	if (result < 0 && directory >= 0)
		remove_configuration(directory);
	return result;
}

/* --- inside -------------------------------------------------------------------------------------------------- */

static int check_search_path(const char *directories, struct error *error)
{
	const struct library_path list = {.directories = directories};
	char path[PATH_MAX];

	return driver_find_in_list(&list, path) ? error_set(error, "LD_LIBRARY_PATH leads to %.150s, and not to our "
	                                                           "library: clear it, or use --strict", path)
	                                        : 0;
}

static int work(int image, const void *given, struct error *error)
{
	const struct task *task = given;
	char driver[PATH_MAX];

	if (check_glibc(task->glibc, task->machine, error) < 0)
		return -1;
	if (!driver_find_installed(task->driver, driver))
		return error_set(error, "no NVIDIA driver is in it: give it a GPU, too (nvidia.com/gpu)");
	return write_into(image, driver, task->ldconfig, error) < 0 ? -1 : check_search_path(task->search_path, error);
}

int image_put_in_front(const char *root, const char *driver, const char *search_path, struct error *error)
{
	struct task task = {.driver = driver, .search_path = search_path};
	char library[PATH_MAX];
	int result = -1;

	if (start_library_directory(library, error) < 0)
		return -1;
	strcat(library, "/" DRIVER_NAME);
	task.glibc = glibc_of(library, &task.machine);
	task.ldconfig = open("/sbin/ldconfig.real", O_RDONLY | O_CLOEXEC); /* Ubuntu's is a script */
	if (task.ldconfig < 0)
		task.ldconfig = open("/sbin/ldconfig", O_RDONLY | O_CLOEXEC);
	result = task.ldconfig >= 0 ? confine(root, work, &task, error) : error_set_errno(error, "/sbin/ldconfig");
	if (task.ldconfig >= 0)
		close(task.ldconfig);
	return result;
}
