#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#ifndef MOUNT_ATTR_RDONLY /* glibc before 2.36 */
#include <linux/mount.h>
#endif
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALL_SECONDS 30 /* less than the runtime waits for the hook */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) /* reserves terabytes */
#define MEMORY_MOST RLIM_INFINITY
#else
#define MEMORY_MOST (128u << 20)
#endif
#define IDLE_MS 3000 /* a read from a slow disk takes less */
#define LOOKS_MOST 8
#define MOUNTS_LINE (32 << 10)
#define NO_CONFINEMENT "no confinement for its image, which needs Linux 5.12 and the right to mount"
#define PLAIN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* --- the two views ------------------------------------------------------------------------------------------- */

/* A copy of the mount at `root`, which is in no directory. With AT_RECURSIVE, also of the mounts below. */
static int copy_tree(const char *root, unsigned int recursive, uint64_t set, uint64_t clear)
{
	struct mount_attr changes = {.attr_set = PLAIN | set, .attr_clr = clear};
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, root, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive);

	if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | recursive, &changes, sizeof changes) == 0)
		return tree;
	close(tree);
	return -1;
}

static int mount_over(const char *root)
{
	int view = copy_tree(root, AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0);
	int result = view < 0 ? -1 : (int)syscall(SYS_move_mount, view, "", AT_FDCWD, root, MOVE_MOUNT_F_EMPTY_PATH);

	if (view >= 0)
		close(view);
	return result;
}

static bool is_procfs(const struct mntent *entry, const char *root)
{
	struct statfs status;

	return strcmp(entry->mnt_type, "proc") == 0 && strncmp(entry->mnt_dir, root, strlen(root)) == 0 &&
	       statfs(entry->mnt_dir, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* A mounted file of procfs is not covered, and leads nowhere. */
static int cover_procfs(const char *root)
{
	static char line[MOUNTS_LINE]; /* large */
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent entry;
	int result = mounts ? 0 : -1;

	while (result == 0 && getmntent_r(mounts, &entry, line, sizeof line)) {
		if (is_procfs(&entry, root) && mount("none", entry.mnt_dir, "tmpfs", MS_RDONLY, NULL) < 0)
			result = errno == ENOTDIR ? 0 : -1;
	}
	if (mounts)
		endmntent(mounts);
	return result;
}

/* The host's root leaves this namespace. */
static int make_root(const char *root)
{
	if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -1;
	return chdir("/");
}

/* Returns the view for writing. The container's own view stays read-only where the runtime made the image read-only. */
static int enter(const char *named)
{
	char root[PATH_MAX];
	int image;

	if (!realpath(named, root) || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	image = copy_tree(root, 0, 0, MOUNT_ATTR_RDONLY);
	if (image < 0 || mount_over(root) < 0 || cover_procfs(root) < 0 || make_root(root) < 0 ||
	    mount("none", CONFINED_SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=16m") < 0)
		return -1;
	return image;
}

/* --- privileges, descriptors and bounds ---------------------------------------------------------------------- */

/* For this process, and for the programs that root executes. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct had[2], kept[2] = {{.effective = 0}};
	int result = (int)syscall(SYS_capget, &header, had);

	for (unsigned long i = 0; result == 0 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		result = i == CAP_DAC_OVERRIDE ? 0 : prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	kept[0].effective = kept[0].permitted = had[0].permitted & 1u << CAP_DAC_OVERRIDE;
	return result < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -1 : (int)syscall(SYS_capset, &header, kept);
}

static int let_go_of_standard_streams(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), result = 0;

	for (int file = STDIN_FILENO; file <= STDERR_FILENO && result >= 0; file++)
		result = dup2(nothing, file);
	close(nothing);
	return result;
}

static bool limit(int resource, rlim_t most)
{
	const struct rlimit limits = {.rlim_cur = most, .rlim_max = most};

	return setrlimit(resource, &limits) == 0;
}

static bool limit_all(void)
{
	return limit(RLIMIT_DATA, MEMORY_MOST) && limit(RLIMIT_CPU, ALL_SECONDS / 3) && limit(RLIMIT_FSIZE, 16 << 20) &&
	       limit(RLIMIT_CORE, 0);
}

/* --- the process --------------------------------------------------------------------------------------------- */

static int work_inside(const char *root, confined_work *work, const void *task, struct error *error)
{
	int image = -1;

	signal(SIGALRM, SIG_DFL);
	alarm(ALL_SECONDS);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && let_go_of_standard_streams() >= 0)
		image = enter(root);
	if (image < 0 || drop_capabilities() < 0 || !limit_all())
		return error_set_errno(error, NO_CONFINEMENT);
	return work(image, task, error);
}

int confine(const char *root, confined_work *work, const void *task, struct error *error)
{
	struct error *why = mmap(NULL, sizeof *why, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = why != MAP_FAILED ? fork() : -1;
	int status = -1, result = -1;

	if (pid == 0)
		_exit(work_inside(root, work, task, why) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (pid < 0)
		error_set_errno(error, "no process for the image");
	else if (!WIFEXITED(status))
		error_set(error, "in its image, the hook was ended by signal %d", WTERMSIG(status));
	else
		result = WEXITSTATUS(status) == EXIT_SUCCESS ? 0 : error_pass(error, why);
	if (why != MAP_FAILED)
		munmap(why, sizeof *why);
	return result;
}

/* --- in the process ------------------------------------------------------------------------------------------ */

int confined_directory(int image, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char parent[PATH_MAX];
	const char *name = strrchr(path, '/');
	int above;

	snprintf(parent, sizeof parent, "%.*s/", (int)(name - path), path);
	above = (int)syscall(SYS_openat2, image, parent, &how, sizeof how);
	if (above >= 0) {
		mkdirat(above, name + 1, 0755);
		close(above);
	}
	return (int)syscall(SYS_openat2, image, path, &how, sizeof how);
}

static void execute(int program, char *const arguments[])
{
	char *const environment[] = {NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fexecve(program, arguments, environment);
	_exit(EXIT_FAILURE);
}

/* Whether the program ends. A program that works uses processor time. */
static bool ends(pid_t pid)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	struct timespec used = {.tv_sec = 0}, before;
	clockid_t clock;
	bool has_ended = false, works = end.fd >= 0 && clock_getcpuclockid(pid, &clock) == 0;

	for (int looks = 0; looks < LOOKS_MOST && works && !has_ended; looks++) {
		has_ended = poll(&end, 1, IDLE_MS) > 0;
		before = used;
		works = clock_gettime(clock, &used) == 0 && memcmp(&used, &before, sizeof used) != 0;
	}
	if (end.fd >= 0)
		close(end.fd);
	return has_ended;
}

int confined_execute(int program, char *const arguments[], struct error *error)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		execute(program, arguments);
	if (pid > 0 && !ends(pid))
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0 ? 0 : error_set(error, "the host's %s failed in the image", arguments[0]);
}
