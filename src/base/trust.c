#include "trust.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel's limit */

/* --- following a path -------------------------------------------------------------------------------------- */

/* A path, followed name by name, as by the kernel. All names before a name have been judged: no other user can change
 * the meaning of the name any more. */
struct way {
	char at[PATH_MAX];   /* without links, except perhaps the last name */
	char rest[PATH_MAX]; /* behind `at`, still to be followed */
	struct stat status;  /* of `at` */
	unsigned int links;  /* links followed so far */
	uid_t top;           /* the owner of / */
};

static int read_status(struct way *way)
{
	return lstat(way->at[0] ? way->at : "/", &way->status);
}

static int begin_way(struct way *way, const char *path, struct error *error)
{
	*way = (struct way){.links = 0};
	if (path[0] != '/' || strlen(path) >= sizeof way->rest)
		return error_set(error, "%.200s: not an absolute path, or too long", path);
	strcpy(way->rest, path);
	if (read_status(way) < 0)
		return error_set_errno(error, "/");
	way->top = way->status.st_uid;
	return 0;
}

static bool is_over(const struct way *way)
{
	return way->rest[strspn(way->rest, "/")] == '\0' && !S_ISLNK(way->status.st_mode);
}

static void go_up(struct way *way)
{
	char *last = strrchr(way->at, '/');

	if (last)
		*last = '\0';
}

/* The link's target comes first, then the rest. */
static int follow_link(struct way *way)
{
	char target[PATH_MAX];
	size_t rest = strlen(way->rest);
	ssize_t length = readlink(way->at, target, sizeof target);

	if (length < 0)
		return -1;
	if (++way->links > LINKS_MAX || (size_t)length + rest >= sizeof way->rest) {
		errno = ELOOP;
		return -1;
	}
	memmove(way->rest + length, way->rest, rest + 1);
	memcpy(way->rest, target, (size_t)length);
	if (target[0] == '/')
		way->at[0] = '\0';
	else
		go_up(way);
	return 0;
}

static int step(struct way *way)
{
	if (S_ISLNK(way->status.st_mode) && follow_link(way) < 0)
		return -1;

	const char *name = way->rest + strspn(way->rest, "/");
	size_t length = strcspn(name, "/"), before = strlen(way->at);

	if (before + 1 + length >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (length == 2 && memcmp(name, "..", 2) == 0)
		go_up(way);
	else if (length > 0 && !(length == 1 && name[0] == '.'))
		sprintf(way->at + before, "/%.*s", (int)length, name);
	memmove(way->rest, name + length, strlen(name + length) + 1);
	return read_status(way);
}

/* Makes a directory if the name does not exist. */
static int step_or_make(struct way *way)
{
	int result = step(way);

	if (result < 0 && errno == ENOENT) {
		result = mkdir(way->at, 0755);
		if (result == 0 && geteuid() == 0)
			result = chmod(way->at, 0755);
		if (result == 0 || errno == EEXIST)
			result = read_status(way);
	}
	return result;
}

/* --- users with the right to change ------------------------------------------------------------------------------- */

static bool others_write(const struct stat *status)
{
	return !S_ISLNK(status->st_mode) && (status->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

/* Whether no user can replace another user's files in the directory, as in /tmp. */
static bool is_sticky(const struct stat *status)
{
	return S_ISDIR(status->st_mode) && (status->st_mode & S_ISVTX) != 0;
}

/* The owner of / is trusted: that user can change every program here. In a container without a name for root, the owner
 * of / is nobody, who also owns /tmp. */
static int judge(const struct way *way, uid_t user, enum trust trust, struct error *error)
{
	const struct stat *status = &way->status;
	const char *path = way->at[0] ? way->at : "/";
	int result = 0;

	if (status->st_uid != 0 && status->st_uid != user && status->st_uid != way->top)
		result = error_set(error, "%.200s: belongs to another user", path);
	else if (others_write(status) && !(is_sticky(status) && trust == TRUST_NOW && !is_over(way)))
		result = error_set(error, "%.200s: others can write there", path);
	return result;
}

int trust_check(const char *path, uid_t user, enum trust trust, struct error *error)
{
	struct way way;
	int result = begin_way(&way, path, error);
	bool there = true;

	if (result == 0)
		result = judge(&way, user, trust, error);
	while (result == 0 && there && !is_over(&way)) {
		bool others = others_write(&way.status);

		there = step(&way) == 0;
		if (there)
			result = judge(&way, user, trust, error);
		else if (errno != ENOENT)
			result = error_set_errno(error, "%.200s", way.at);
		else if (others)
			result = error_set(error, "%.200s: others can make it", way.at);
	}
	return result;
}

int trust_make_directory(const char *path, char real[PATH_MAX], struct error *error)
{
	struct way way;
	int result = begin_way(&way, path, error);

	if (result == 0)
		result = judge(&way, geteuid(), TRUST_NOW, error);
	while (result == 0 && !is_over(&way))
		result = step_or_make(&way) < 0 ? error_set_errno(error, "%.200s", way.at)
		                                : judge(&way, geteuid(), TRUST_NOW, error);
	if (result == 0 && (!S_ISDIR(way.status.st_mode) || way.status.st_uid != geteuid()))
		result = error_set(error, "%.200s: not a directory of yours", way.at);
	if (result == 0)
		strcpy(real, way.at);
	return result;
}

/* --- users with the right to read --------------------------------------------------------------------------------- */

static bool is_closed(const struct stat *status)
{
	mode_t needed = S_ISLNK(status->st_mode) ? 0 : S_ISDIR(status->st_mode) ? S_IXOTH : S_IROTH;

	return (status->st_mode & needed) != needed;
}

int trust_check_readable(const char *path, struct error *error)
{
	struct way way;
	int result = begin_way(&way, path, error);

	while (result == 0 && !is_closed(&way.status) && !is_over(&way))
		result = step(&way) < 0 ? error_set_errno(error, "%.200s", way.at) : 0;
	if (result == 0 && is_closed(&way.status))
		result = error_set(error, "%.200s: other users cannot read it", way.at);
	return result;
}
