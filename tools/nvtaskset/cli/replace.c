#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes all onto the disk: after a crash, the name must not lead to an empty file. */
static int write_all(int file, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t written = write(file, text, length);

		if (written < 0 && errno != EINTR)
			return -1;
		text += written > 0 ? written : 0;
		length -= written > 0 ? (size_t)written : 0;
	}
	return fsync(file);
}

/* Everybody may read the file, unless the user's umask forbids: node_exporter runs as a user of its own. */
static int share(int file)
{
	mode_t mask = umask(0);

	umask(mask);
	return fchmod(file, 0666 & ~mask);
}

/* In the same directory, under a name that node_exporter does not read. */
static int make_temporary(char name[PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	int length = snprintf(name, PATH_MAX, "%.*s.%s.XXXXXX", (int)(last - path), path, last);

	errno = ENAMETOOLONG;
	return length < PATH_MAX ? mkostemp(name, O_CLOEXEC) : -1;
}

int replace_file(const char *path, const char *text, size_t length, struct error *error)
{
	char temporary[PATH_MAX];
	struct stat before;

	if (lstat(path, &before) == 0 && !S_ISREG(before.st_mode))
		return error_set(error, "%.200s: not a regular file", path);
	int file = make_temporary(temporary, path);

	if (file < 0)
		return error_set_errno(error, "%.200s", path);
	/* Beyond a limit of the file's size, the write must fail, and the temporary file go. */
	signal(SIGXFSZ, SIG_IGN);
	int result = write_all(file, text, length) == 0 && share(file) == 0 && rename(temporary, path) == 0
	                     ? 0
	                     : error_set_errno(error, "%.200s", path);

	if (result < 0)
		unlink(temporary);
	close(file);
	return result;
}
