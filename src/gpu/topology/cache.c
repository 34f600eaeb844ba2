#include "cache.h"

#include "base/path.h"
#include "base/trust.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERYBODYS "/var/cache/nvtaskset"
#define SUFFIX ".txt"
#define BYTES_MAX (64 * 1024) /* limit for a file; 256 TPCs take 8 KiB */

/* A directory, and the user who must own the files. */
struct place {
	char directory[PATH_MAX];
	uid_t owner;
};

/* --- directories ------------------------------------------------------------------------------------------ */

static void everybodys_place(const char *root, struct place *place)
{
	snprintf(place->directory, sizeof place->directory, "%s" EVERYBODYS, root);
	place->owner = 0;
}

/* Root may have inherited a user's XDG_CACHE_HOME (sudo -E, su), and must not follow the path to where the user can
 * write. */
static bool is_followed(const char *cache, uid_t user)
{
	return cache && cache[0] == '/' && (user != 0 || trust_check(cache, user, TRUST_NOW, NULL) == 0);
}

/* This user's own place. False without a place: the variables are not set, or are no absolute paths. */
static bool own_place(const char *root, struct place *place)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	bool found = true;

	place->owner = geteuid();
	if (is_followed(cache, place->owner))
		found = path_join(place->directory, cache, "nvtaskset");
	else if (place->owner == 0)
		everybodys_place(root, place);
	else if (home && home[0] == '/')
		found = path_join(place->directory, home, ".cache/nvtaskset");
	else
		found = false;
	return found;
}

bool cache_directory(char directory[PATH_MAX])
{
	struct place place;
	bool found = own_place("", &place);

	if (found)
		memcpy(directory, place.directory, sizeof place.directory);
	return found;
}

/* The places to search, in order. Returns the number of places. */
static unsigned int find_places(const char *root, struct place places[2])
{
	unsigned int count = own_place(root, &places[0]) ? 1 : 0;

	everybodys_place(root, &places[count]);
	if (count == 0 || strcmp(places[0].directory, places[1].directory) != 0)
		count++;
	return count;
}

/* Whether the text may be a UUID: UUIDs become file names. */
static bool is_uuid(const char *text, size_t length)
{
	bool good = length > 0 && length < TOPOLOGY_UUID_MAX;

	for (size_t i = 0; i < length && good; i++)
		good = isalnum((unsigned char)text[i]) || text[i] == '-';
	return good;
}

/* --- reading ----------------------------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a pipe must not wait for a writer. */
static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static int check_trust(int file, const char *path, uid_t owner, struct error *error)
{
	struct stat status;

	if (fstat(file, &status) < 0)
		return error_set_errno(error, "%.200s", path);
	if (!S_ISREG(status.st_mode) || status.st_uid != owner || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(error, "%.200s: must be a file of %s that nobody else can write; remove it", path,
		                 owner == 0 ? "root's" : "yours");
	if (status.st_size > BYTES_MAX)
		return error_set(error, "%.200s: too large for a topology file; remove it", path);
	return 0;
}

/* Reads the file's GPU, which must have the UUID. Takes over the descriptor. A list is large, and allocated because
 * stacks can be small. */
static int read_gpu(int descriptor, const char *path, const char *uuid, struct topology *gpu, struct error *error)
{
	struct topology_list *list = malloc(sizeof *list);
	FILE *file = list ? fdopen(descriptor, "r") : NULL;

	if (!file) {
		error_set_errno(error, "%.200s", path);
		free(list);
		close(descriptor);
		return -1;
	}
	int result = topology_read(list, file, path, error);

	fclose(file);
	if (result == 0 && (list->count != 1 || strcmp(list->gpus[0].uuid, uuid) != 0))
		result = error_set(error, "%.200s: not about the one GPU that it is named after; remove it", path);
	if (result == 0)
		*gpu = list->gpus[0];
	free(list);
	return result;
}

static int read_file(const struct place *place, const char *uuid, struct topology *gpu, struct error *error)
{
	char path[PATH_MAX], name[TOPOLOGY_UUID_MAX + sizeof SUFFIX];
	int result = -1;

	snprintf(name, sizeof name, "%s" SUFFIX, uuid);
	error_set(error, "%s", "");
	if (!path_join(path, place->directory, name))
		return -1;
	int file = open_file(path);

	if (file < 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
		error_set_errno(error, "%.200s", path);
	else if (file >= 0 && check_trust(file, path, place->owner, error) < 0)
		close(file);
	else if (file >= 0)
		result = read_gpu(file, path, uuid, gpu, error);
	return result;
}

int cache_find(const char *root, const char *uuid, struct topology *gpu, struct error *error)
{
	struct place places[2];
	struct error why = {.reason = ""};
	unsigned int count = is_uuid(uuid, strlen(uuid)) ? find_places(root, places) : 0;
	int result = -1;

	for (unsigned int i = 0; i < count && result < 0 && why.reason[0] == '\0'; i++)
		result = read_file(&places[i], uuid, gpu, &why);
	if (result < 0)
		error_set(error, "%s", why.reason);
	return result;
}

/* --- finding all ------------------------------------------------------------------------------------------- */

static bool has_uuid(const struct topology_list *list, const char *uuid)
{
	bool found = false;

	for (unsigned int i = 0; i < list->count; i++)
		found = found || strcmp(list->gpus[i].uuid, uuid) == 0;
	return found;
}

/* Adds the GPU of the file, unless the list has the GPU. Ignores files with other names. */
static int add_file(const struct place *place, const char *name, struct topology_list *list, struct error *error)
{
	size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
	struct topology *gpu = &list->gpus[list->count];
	char uuid[TOPOLOGY_UUID_MAX] = "", pci[PCI_ADDRESS_TEXT];

	if (length <= suffix || strcmp(name + length - suffix, SUFFIX) != 0 || !is_uuid(name, length - suffix))
		return 0;
	memcpy(uuid, name, length - suffix);
	if (has_uuid(list, uuid))
		return 0;
	if (list->count == TOPOLOGY_GPUS_MAX)
		return error_set(error, "%.200s: more than %d GPUs; remove what is not of this machine",
		                 place->directory, TOPOLOGY_GPUS_MAX);
	if (read_file(place, uuid, gpu, error) < 0)
		return -1;
	if (topology_find(list, gpu->pci))
		return error_set(error, "%.200s: two GPUs at %s; remove what is not of this machine", place->directory,
		                 pci_address_format(gpu->pci, pci));
	list->count++;
	return 0;
}

static int add_place(const struct place *place, struct topology_list *list, struct error *error)
{
	DIR *directory = opendir(place->directory);
	struct dirent *entry;
	int result = 0;

	while (directory && result == 0 && (entry = readdir(directory)))
		result = add_file(place, entry->d_name, list, error);
	if (directory)
		closedir(directory);
	return result;
}

int cache_find_all(const char *root, struct topology_list *list, struct error *error)
{
	struct place places[2];
	unsigned int count = find_places(root, places);
	int result = 0;

	list->count = 0;
	error_set(error, "%s", "");
	for (unsigned int i = 0; i < count && result == 0; i++)
		result = add_place(&places[i], list, error);
	topology_sort(list);
	return list->count > 0 ? result : -1;
}

/* --- keeping ----------------------------------------------------------------------------------------------- */

static int write_list(const struct topology *gpu, FILE *file)
{
	struct topology_list *list = calloc(1, sizeof *list);
	int result = -1;

	if (list) {
		list->gpus[list->count++] = *gpu;
		result = topology_write(list, file);
	}
	free(list);
	return result;
}

/* Writes a GPU, or the text. */
static int write_file(const char *path, const struct topology *gpu, const char *text, struct error *error)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
	int failed = !file || fchmod(descriptor, 0644) < 0 || (gpu ? write_list(gpu, file) : fputs(text, file)) < 0;

	if (failed)
		error_set_errno(error, "%.200s", path);
	if (file && fclose(file) != 0 && !failed)
		failed = error_set_errno(error, "%.200s", path);
	return failed ? -1 : 0;
}

/* Puts a GPU or a text into this user's directory, in place of an older file. `path` gets the file's path. */
static int put(const char *root, const char *name, const struct topology *gpu, const char *text, char path[PATH_MAX],
               struct error *error)
{
	struct place place;
	char directory[PATH_MAX], temporary[PATH_MAX], hidden[64];

	if (!own_place(root, &place))
		return error_set(error, "nowhere to keep it: set HOME or XDG_CACHE_HOME");
	snprintf(hidden, sizeof hidden, ".%d", (int)getpid());
	if (trust_make_directory(place.directory, directory, error) < 0)
		return -1;
	if (!path_join(path, directory, name) || !path_join(temporary, directory, hidden))
		return error_set(error, "%.200s: the path is too long", directory);
	unlink(temporary);
	int result = write_file(temporary, gpu, text, error);

	if (result == 0 && rename(temporary, path) < 0)
		result = error_set_errno(error, "%.200s", path);
	if (result < 0)
		unlink(temporary);
	return result;
}

int cache_keep(const char *root, const struct topology *gpu, char path[PATH_MAX], struct error *error)
{
	char name[TOPOLOGY_UUID_MAX + sizeof SUFFIX];

	if (!is_uuid(gpu->uuid, strlen(gpu->uuid)))
		return error_set(error, "the driver gives the GPU no UUID, by which its topology would be kept");
	snprintf(name, sizeof name, "%s" SUFFIX, gpu->uuid);
	return put(root, name, gpu, NULL, path, error);
}

/* --- texts ------------------------------------------------------------------------------------------------- */

void cache_read_text(const char *root, const char *name, char *text, size_t room)
{
	struct place place;
	char path[PATH_MAX];
	int file = own_place(root, &place) && path_join(path, place.directory, name) ? open_file(path) : -1;
	ssize_t length = file >= 0 && check_trust(file, path, place.owner, NULL) == 0 ? read(file, text, room - 1) : 0;

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
}

int cache_write_text(const char *root, const char *name, const char *text, struct error *error)
{
	char path[PATH_MAX];

	return put(root, name, NULL, text, path, error);
}
