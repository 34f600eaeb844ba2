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

/* Onto the disk: after a crash, the name must not lead to an empty file. */
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

/* Everybody may read the file, unless the user's umask says otherwise: node_exporter has a user of its own. */
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

/* With these signals the process ends, but not before the temporary file is gone. */
static sigset_t hold_signals(void)
{
	const int ending[] = {SIGHUP, SIGINT, SIGTERM};
	sigset_t held, before;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
		sigaddset(&held, ending[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	return before;
}

int replace_file(const char *path, const char *text, size_t length, struct error *error)
{
	char temporary[PATH_MAX];
	struct stat before;

	if (lstat(path, &before) == 0 && !S_ISREG(before.st_mode))
		return error_set(error, "%.200s: not a regular file", path);
	sigset_t signals = hold_signals();
	int file = make_temporary(temporary, path);

	/* Beyond a limit of the file's size, the write is to fail, and the temporary file to go. */
	signal(SIGXFSZ, SIG_IGN);
	int result = file >= 0 && write_all(file, text, length) == 0 && share(file) == 0 && rename(temporary, path) == 0
	                     ? 0
	                     : error_set_errno(error, "%.200s", path);

	if (result < 0 && file >= 0)
		unlink(temporary);
	if (file >= 0)
		close(file);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	return result;
}
