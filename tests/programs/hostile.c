/*
 * Usage: hostile TRICK ARGUMENT…
 *
 * Has a segment, by which it offers other processes what costs them as much as possible, or what is not true. Says "ready", and
 * does nothing more.
 */
#include "base/shared_file.h"
#include "state/handle.h"
#include "state/kernels/timestamps_layout.h"
#include "state/segment/layout.h"
#include "state/segment/owner.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct segment segment;

static void make_segment_on(unsigned int bus)
{
	struct segment_revision revision = {.count = 1, .partitions[0].pci = {.bus = (uint16_t)bus, .device = 6}};
	struct error error;

	tpcset_add_range(&revision.partitions[0].set, 0, 3);
	if (segment_create(&segment, &revision, NULL, -1, -1, &error) < 0)
		errx(1, "%s", error.reason);
	segment_set_at_work(&segment);
}

static void make_segment(void)
{
	make_segment_on(0);
}

/* So many processes that go on. */
static void be_many(const char *number)
{
	for (int count = atoi(number); count > 1; count--) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			break;
		}
	}
}

/* So many processes with a partition, on the GPU of this bus. */
static void trick_many(char **arguments)
{
	be_many(arguments[0]);
	make_segment_on((unsigned int)strtoul(arguments[1], NULL, 0));
}

/* Two partitions of the GPU in the domain. */
static void trick_twice(char **arguments)
{
	struct pci_address pci = {.domain = (uint32_t)strtoul(arguments[0], NULL, 16), .device = 6};
	struct segment_revision revision = {.count = 2, .partitions = {{.pci = pci}, {.pci = pci}}};
	struct error error;

	tpcset_add_range(&revision.partitions[0].set, 0, 3);
	tpcset_add_range(&revision.partitions[1].set, 4, 7);
	if (segment_create(&segment, &revision, NULL, -1, -1, &error) < 0)
		errx(1, "%s", error.reason);
	segment_set_at_work(&segment);
}

/* Its partition cannot be read. */
static void trick_damaged(char **arguments)
{
	make_segment();
	memset((void *)segment.memory->ring, 0xff, sizeof segment.memory->ring);
}

static int make_memory(const char *name, size_t size)
{
	struct error error;
	int file = shared_file_make(name, size, &error);

	return file >= 0 ? file : (errx(1, "%s", error.reason), -1);
}

/* --- its environment ----------------------------------------------------------------------------------------------- */

static unsigned long long stat_field(int number)
{
	char text[4096];
	int file = open("/proc/self/stat", O_RDONLY);
	ssize_t length = read(file, text, sizeof text - 1);

	close(file);
	text[length > 0 ? length : 0] = '\0';
	const char *at = strrchr(text, ')');

	for (int field = 2; field < number; field++)
		at = strchr(at + 1, ' ');
	return strtoull(at, NULL, 10);
}

static void be_environment(const void *memory, size_t size)
{
	struct prctl_mm_map map = {
		.start_code = stat_field(26), .end_code = stat_field(27), .start_stack = stat_field(28), .start_data = stat_field(45),
		.end_data = stat_field(46), .start_brk = stat_field(47), .brk = (uintptr_t)sbrk(0), .arg_start = stat_field(48),
		.arg_end = stat_field(49), .env_start = (uintptr_t)memory, .env_end = (uintptr_t)memory + size, .exe_fd = (uint32_t)-1,
	};

	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) < 0)
		err(77, "PR_SET_MM_MAP");
}

static void environ_of(size_t size, bool is_unmapped)
{
	char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		err(77, "mmap");
	be_environment(memory, size);
	if (is_unmapped)
		munmap(memory, size);
}

static void trick_environ(char **arguments)
{
	environ_of(strtoull(arguments[0], NULL, 0) << 30, false);
}

static void trick_unmapped(char **arguments)
{
	environ_of(1UL << 20, true);
}

/* --- its group ------------------------------------------------------------------------------------------------------ */

static void say_group(struct group_identity identity, int number)
{
	segment.memory->group = identity;
	atomic_store(&segment.memory->group_descriptor, (uint64_t)number);
}

/* The group that this inode number is, which it has not open. */
static void trick_claim(char **arguments)
{
	make_segment();
	say_group((struct group_identity){.device = strtoull(arguments[0], NULL, 0), .inode = strtoull(arguments[1], NULL, 0)}, 9999);
}

/* The group of this file, which it has open for reading. */
static void trick_read(char **arguments)
{
	int file = fcntl(open(arguments[0], O_RDONLY), F_DUPFD, 240);

	if (file < 0)
		err(1, "%s", arguments[0]);
	make_segment();
	say_group(group_identity_of(file), file);
}

/* A file system that answers until it is told not to. */
static _Atomic int *is_silent;

static void answer(int device, uint64_t unique, int error, const void *content, size_t size)
{
	char bytes[512];
	struct fuse_out_header header = {.len = (uint32_t)(sizeof header + size), .error = -error, .unique = unique};

	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, content, size);
	if (write(device, bytes, header.len) < 0 && errno != ENOENT)
		err(1, "fuse");
}

static struct fuse_attr attributes(uint64_t node)
{
	return node == 1 ? (struct fuse_attr){.ino = 1, .nlink = 2, .mode = S_IFDIR | 0755}
	                 : (struct fuse_attr){.ino = 2, .nlink = 1, .mode = S_IFREG | 0644, .size = GROUP_FILE_SIZE};
}

static void serve(int device)
{
	static char request[1 << 20];

	for (;;) {
		const struct fuse_in_header *header = (const void *)request;
		const struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 65536};
		struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 100000, .attr_valid = 100000, .attr = attributes(2)};
		struct fuse_attr_out attribute = {.attr_valid = 100000};
		const struct fuse_open_out opened = {.fh = 1};
		const struct fuse_statfs_out status = {.st.bsize = 4096};

		if (read(device, request, sizeof request) < 0) {
			if (errno == ENODEV)
				_exit(0);
			continue;
		}
		attribute.attr = attributes(header->nodeid);
		if (atomic_load(is_silent) && (header->opcode == FUSE_OPEN || header->opcode == FUSE_READ))
			continue;
		if (header->opcode == FUSE_INIT)
			answer(device, header->unique, 0, &init, sizeof init);
		else if (header->opcode == FUSE_LOOKUP)
			answer(device, header->unique, 0, &entry, sizeof entry);
		else if (header->opcode == FUSE_GETATTR)
			answer(device, header->unique, 0, &attribute, sizeof attribute);
		else if (header->opcode == FUSE_OPEN || header->opcode == FUSE_OPENDIR)
			answer(device, header->unique, 0, &opened, sizeof opened);
		else if (header->opcode == FUSE_STATFS)
			answer(device, header->unique, 0, &status, sizeof status);
		else
			answer(device, header->unique, ENOSYS, "", 0);
	}
}

static void write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		err(77, "%s", path);
	close(file);
}

/* The group of a file on an overlay over that file system. `fuse` in its directory is the device. */
static void trick_silent(char **arguments)
{
	char text[512];
	const char *top = arguments[0];
	unsigned int user = getuid(), group = getgid();

	if (chdir(top) < 0 || mkdir("lower", 0755) < 0 || mkdir("empty", 0755) < 0 || mkdir("merged", 0755) < 0)
		err(1, "%s", top);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		err(77, "namespaces");
	write_to("/proc/self/setgroups", "deny");
	snprintf(text, sizeof text, "0 %u 1", user);
	write_to("/proc/self/uid_map", text);
	snprintf(text, sizeof text, "0 %u 1", group);
	write_to("/proc/self/gid_map", text);
	int device = open("fuse", O_RDWR | O_CLOEXEC);

	snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || mount("hostile", "lower", "fuse", MS_NOSUID | MS_NODEV, text) < 0)
		err(77, "FUSE");
	is_silent = mmap(NULL, sizeof *is_silent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(device);
	}
	close(device);
	if (mount("hostile", "merged", "overlay", 0, "lowerdir=lower:empty") < 0)
		err(77, "overlay");
	trick_read((char *[]){"merged/g"});
	atomic_store(is_silent, 1);
}

/* --- what it has open ------------------------------------------------------------------------------------------------ */

/* So many descriptors of memory with this name. */
static void trick_open(char **arguments)
{
	struct rlimit limit;
	int file = make_memory(arguments[0], GROUP_FILE_SIZE), count = atoi(arguments[1]);

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (count-- > 0 && dup(file) >= 0)
		;
}

/* So many processes. */
static void trick_lock(char **arguments)
{
	char path[64];

	be_many(arguments[0]);
	make_segment();
	snprintf(path, sizeof path, "/proc/self/fd/%d", segment.file);
	int file = open(path, O_RDWR | O_CLOEXEC);

	if (fcntl(file, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0)
		err(1, "lock");
}

/* Names of functions that are as many and as long as there is room for, in all rings that it may have. */
static void trick_names(char **arguments)
{
	struct stat status;

	make_segment();
	for (int number = 0; number < SEGMENT_AREAS; number++) {
		int file = make_memory(TIMESTAMPS_NAME, sizeof(struct timestamps_memory));
		struct timestamps_memory *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

		if (memory == MAP_FAILED || fstat(file, &status) < 0)
			err(77, "mmap");
		memory->header.version = TIMESTAMPS_VERSION;
		memory->header.size = sizeof *memory;
		for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
			struct timestamps *ring = &memory->rings[i];

			ring->pci = (struct pci_address){.device = 6};
			memset((void *)ring->names.text, 'a', TIMESTAMPS_TEXT);
			for (unsigned int name = 0; name < TIMESTAMPS_FUNCTIONS; name++) {
				ring->names.list[name].function = 16 * (uint64_t)(name + 1);
				ring->names.list[name].length = TIMESTAMPS_NAME_MAX - name % 2000;
			}
			ring->names.count = TIMESTAMPS_FUNCTIONS;
			ring->magic = TIMESTAMPS_MAGIC;
		}
		memory->header.magic = TIMESTAMPS_MAGIC;
		segment.memory->timestamps[number].file = (uint64_t)file;
		segment.memory->timestamps[number].inode = status.st_ino;
	}
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*play)(char **arguments);
		int arguments;
	} tricks[] = {
		{"environ", trick_environ, 1}, {"unmapped", trick_unmapped, 0}, {"claim", trick_claim, 2}, {"read", trick_read, 1},
		{"silent", trick_silent, 1},   {"open", trick_open, 2},         {"lock", trick_lock, 1},   {"many", trick_many, 2},
		{"damaged", trick_damaged, 0}, {"names", trick_names, 0},     {"twice", trick_twice, 1},
	};
	size_t trick = 0;

	while (trick < sizeof tricks / sizeof *tricks &&
	       (count < 2 || strcmp(arguments[1], tricks[trick].name) != 0 || count - 2 != tricks[trick].arguments))
		trick++;
	if (trick == sizeof tricks / sizeof *tricks)
		errx(2, "no such trick");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tricks[trick].play(arguments + 2);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
