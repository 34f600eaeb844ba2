#include "containers.h"

#include "base/proc.h"
#include "terminal/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_MAX 16384

#define MEMBERS(X) \
	X(device) X(pod) X(namespace) X(name) X(trouble)

bool container_id_is_valid(const char *id)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return id[0] != '\0' && id[0] != '.' && id[strspn(id, characters)] == '\0' && strlen(id) < CONTAINER_TEXT - 1;
}

/* The instance of /proc that this process sees, or 0. Each PID namespace has its own. */
static uint64_t own_proc(void)
{
	struct stat status;

	return stat("/proc", &status) == 0 ? status.st_dev : 0;
}

/* --- one note ------------------------------------------------------------------------------------------------ */

/* First under a name with a dot in front, which is not a note: readers see no half notes. */
void container_write(int directory, const struct container *container)
{
	char temporary[CONTAINER_TEXT + 1], clean[TEXT_ROOM(ERROR_MAX)];
	json_t *note = json_pack("{s:I, s:I, s:I}", "pid", (json_int_t)container->pid,
	                         "started", (json_int_t)container->started, "proc", (json_int_t)own_proc());
	int file;

	/* JSON takes UTF-8 alone. An image's path has any bytes. */
#define MEMBER_WRITE(member) \
	text_clean(clean, container->member, strlen(container->member)); \
	json_object_set_new(note, #member, json_string(clean));
	MEMBERS(MEMBER_WRITE)
#undef MEMBER_WRITE
	snprintf(temporary, sizeof temporary, ".%s", container->id);
	unlinkat(directory, temporary, 0);
	file = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (file >= 0 && json_dumpfd(note, file, JSON_COMPACT) == 0)
		renameat(directory, temporary, directory, container->id);
	if (file >= 0)
		close(file);
	json_decref(note);
}

static void take_text(char *to, size_t room, const json_t *note, const char *member)
{
	const char *text = json_string_value(json_object_get(note, member));

	text_copy(to, room, text ? text : "");
}

/* Only a file of root or of the reader is believed, without write access for any other user. */
static json_t *load_note(int directory, const char *id)
{
	int file = container_id_is_valid(id) ? openat(directory, id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
	                                     : -1;
	struct stat status;
	json_t *note = NULL;

	if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < NOTE_MAX &&
	    (status.st_uid == 0 || status.st_uid == geteuid()) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		note = json_loadfd(file, 0, NULL);
	if (file >= 0)
		close(file);
	return note;
}

static bool read_note(struct container *container, int directory, const char *id)
{
	json_t *note = load_note(directory, id);
	bool found = note != NULL;

	*container = (struct container){.pid = 0};
	if (found) {
		snprintf(container->id, sizeof container->id, "%s", id);
#define MEMBER_READ(member) take_text(container->member, sizeof container->member, note, #member);
		MEMBERS(MEMBER_READ)
#undef MEMBER_READ
		container->pid = (pid_t)json_integer_value(json_object_get(note, "pid"));
		container->started = (uint64_t)json_integer_value(json_object_get(note, "started"));
		container->proc = (uint64_t)json_integer_value(json_object_get(note, "proc"));
	}
	json_decref(note);
	return found;
}

bool container_read(struct container *container, const char *directory, const char *id)
{
	int file = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool found = file >= 0 && read_note(container, file, id);

	if (file >= 0)
		close(file);
	return found;
}

/* --- all notes --------------------------------------------------------------------------------------------------- */

void containers_each(const char *directory, void (*see)(const struct container *container, void *context),
                     void *context)
{
	DIR *notes = opendir(directory);
	struct container container;

	if (!notes)
		return;
	for (const struct dirent *entry = readdir(notes); entry; entry = readdir(notes)) {
		if (!read_note(&container, dirfd(notes), entry->d_name))
			continue;
		uint64_t started = container.pid > 0 ? proc_started(container.pid) : 0;

		if (started != 0 && started == container.started)
			see(&container, context);
		else if (container.proc == own_proc())
			unlinkat(dirfd(notes), entry->d_name, 0);
	}
	closedir(notes);
}
