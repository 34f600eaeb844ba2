#include "own_library.h"

#include "base/driver_names.h"
#include "base/path.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <unistd.h>

bool own_library_is(const char *path)
{
	const struct elf_note note = ELF_NOTE;
	char beginning[ELF_NOTE_WITHIN];
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = file >= 0 ? read(file, beginning, sizeof beginning) : 0;

	if (file >= 0)
		close(file);
	return size > 0 && memmem(beginning, (size_t)size, &note, sizeof note) != NULL;
}

static bool own_directory_is(char directory[PATH_MAX], const char *parent, const char *name)
{
	char library[PATH_MAX];

	return path_join(directory, parent, name) && path_join(library, directory, DRIVER_NAME) && own_library_is(library);
}

int own_library_directory(char directory[PATH_MAX], struct error *error)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0)
		return error_set_errno(error, "/proc must be mounted");
	self[length] = '\0';
	if (!own_directory_is(directory, dirname(self), "lib") &&
	    !own_directory_is(directory, dirname(self), "lib/nvtaskset"))
		return error_set(error, "our library " DRIVER_NAME " is neither beside the command nor in "
		                        "../lib/nvtaskset: install nvtaskset again");
	return 0;
}
