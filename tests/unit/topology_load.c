/* The sources of topologies when the kernel driver does not report them: the kernel module's list of GPUs, and the cache,
 * in a file system of our own. */
#include "../cases.h"
#include "gpu/topology/cache.h"
#include "gpu/topology/kept.h"
#include "gpu/topology/load.h"
#include "root.h"
#include "share.h"

static struct error error;

#define UUID "GPU-01234567-89ab-cdef-0123-456789abcdef"
#define OTHER "GPU-01234567-89ab-cdef-0123-000000000002"

static struct topology_list list;
static char path[PATH_MAX]; /* of what was kept last */

/* --- a machine ------------------------------------------------------------------------------------------------------ */

static void install(const char *bus_id, const char *uuid, unsigned int minor)
{
	root_run("mkdir -p proc/driver/nvidia/gpus/%s dev", bus_id);
	root_run("printf 'Model: \\t\\t NVIDIA H200\\nIRQ: 0\\nGPU UUID: \\t %s\\nBus Location: \\t %s\\nDevice Minor: \\t %u\\n' "
	         "> proc/driver/nvidia/gpus/%s/information",
	         uuid, bus_id, minor, bus_id);
	root_run(": > dev/nvidia%u", minor);
}

static struct topology h200(const char *uuid)
{
	static struct topology_list shipped;

	share_read(&shipped, "h200");
	strcpy(shipped.gpus[0].uuid, uuid);
	for (unsigned int tpc = 0; tpc < shipped.gpus[0].tpc_count; tpc++)
		shipped.gpus[0].tpcs[tpc].gpc = TOPOLOGY_UNKNOWN;
	return shipped.gpus[0];
}

static void keep(const struct topology *gpu)
{
	assert_done(cache_keep(root, gpu, path, &error));
}

FIXTURE(set_up)
{
	assert_int_equal(root_make(NULL), 0);
	unsetenv("HOME");
	setenv("XDG_CACHE_HOME", text_of("%s/cache", root), 1);
}

TEST(installed_gpus)
{
	struct procfs_gpu gpus[TOPOLOGY_GPUS_MAX];

	assert_int_equal(topology_read_procfs(root, gpus), 0);
	install("0000:3b:00.0", UUID, 0);
	assert_int_equal(topology_read_procfs(root, gpus), 1);
	assert_string_equal(gpus[0].uuid, UUID);
	assert_string_equal(gpus[0].name, "NVIDIA H200");
	assert_int_equal(gpus[0].pci.bus, 0x3b);
	root_run("mkdir proc/driver/nvidia/gpus/nonsense proc/driver/nvidia/gpus/0000:3c:00.0");
	assert_int_equal(topology_read_procfs(root, gpus), 1);
}

TEST(garbage_in_the_list)
{
	struct procfs_gpu gpus[TOPOLOGY_GPUS_MAX];

	install("0000:3b:00.0", "GPU-\?\?\?\?\?\?\?\?", 0);
	assert_int_equal(topology_read_procfs(root, gpus), 1);
	assert_string_equal(gpus[0].uuid, "");
	root_run("head -c 100000 /dev/zero | tr '\\0' x > proc/driver/nvidia/gpus/0000:3b:00.0/information");
	assert_int_equal(topology_read_procfs(root, gpus), 0);
	root_run("yes 'Device Minor: 0' | head -n 63 > proc/driver/nvidia/gpus/0000:3b:00.0/information; "
	    "printf 'Model: %%0500d\\nGPU UUID: %%0200d\\n' 0 0 >> proc/driver/nvidia/gpus/0000:3b:00.0/information");
	assert_int_equal(topology_read_procfs(root, gpus), 1);
	assert_string_equal(gpus[0].uuid, "");
	assert_true(strlen(gpus[0].name) < TOPOLOGY_NAME_MAX);
}

/* --- the cache ------------------------------------------------------------------------------------------------------ */

TEST(what_is_kept_is_found)
{
	struct topology gpu = h200(UUID), found;

	assert_error(cache_find(root, UUID, &found, &error), "");
	assert_int_equal(cache_keep(root, &gpu, path, &error), 0);
	assert_string_equal(path, text_of("%s/cache/nvtaskset/" UUID ".txt", root));
	assert_int_equal(cache_find(root, UUID, &found, &error), 0);
	assert_memory_equal(&found, &gpu, sizeof gpu);
	gpu.tpcs[0].mask_bit = 100; /* measured again */
	keep(&gpu);
	assert_int_equal(cache_find(root, UUID, &found, &error), 0);
	assert_int_equal(found.tpcs[0].mask_bit, 100);
	root_run("[ \"$(ls -A cache/nvtaskset)\" = " UUID ".txt ]");
	root_run("[ \"$(stat -c %%a cache/nvtaskset/*)\" = 644 ]");
}

TEST(where_things_are_kept)
{
	struct topology gpu = h200(UUID), found;

	unsetenv("XDG_CACHE_HOME");
	if (geteuid() == 0) {
		mode_t mask = umask(077);

		keep(&gpu);
		umask(mask);
		root_run("chmod 755 var var/cache");
		root_run("[ -f var/cache/nvtaskset/" UUID ".txt ]");
		root_run("mkdir home && chown 65534 home");
		assert_int_equal(seteuid(65534), 0);
		assert_int_equal(cache_find(root, UUID, &found, &error), 0); /* root's */
	}
	assert_error(cache_keep(root, &gpu, path, &error), "nowhere to keep it: set HOME or XDG_CACHE_HOME");
	setenv("HOME", text_of("%s/home", root), 1);
	setenv("XDG_CACHE_HOME", "relative", 1);
	gpu.tpcs[0].mask_bit = 100;
	keep(&gpu);
	assert_int_equal(cache_find(root, UUID, &found, &error), 0);
	assert_int_equal(found.tpcs[0].mask_bit, 100); /* the user's own, before root's */
	assert_int_equal(seteuid(getuid()), 0);
	root_run("[ -f home/.cache/nvtaskset/" UUID ".txt ]");
}

/* Another user's variable, which sudo -E and su leave to root. */
TEST(root_is_not_led_to_others_places)
{
	struct topology gpu = h200(UUID), found;

	if (geteuid() != 0)
		skip_because("needs root");
	keep(&gpu);
	root_run("mkdir home && mv cache home && chown 65534 home");
	setenv("XDG_CACHE_HOME", text_of("%s/home/cache", root), 1);
	assert_error(cache_find(root, UUID, &found, &error), "");
	root_run("rm -r home/cache/nvtaskset");
	assert_int_equal(cache_keep(root, &gpu, path, &error), 0);
	root_run("[ -f var/cache/nvtaskset/" UUID ".txt ] && [ -z \"$(ls home/cache)\" ]");
	assert_int_equal(cache_find(root, UUID, &found, &error), 0);
}

/* For a reason that follows the file's name. */
static void assert_not_found(const char *reason)
{
	struct topology found;

	assert_error(cache_find(root, UUID, &found, &error), text_of("%s/cache/nvtaskset/" UUID ".txt%s", root, reason));
}

#define DISTRUSTED ": must be a file of root's that nobody else can write; remove it"

/* Files that another user could have put there. */
TEST(files_that_are_not_trusted)
{
	static const char *const changes[] = {
		"chmod g+w *", "chmod 646 *", "chmod 644 *; chown 65534 *", "mv * real; ln -s real " UUID ".txt",
		"rm *; mkdir " UUID ".txt", "rmdir *; mkfifo " UUID ".txt",
	};
	struct topology gpu = h200(UUID);

	if (geteuid() != 0)
		skip_because("needs root");
	keep(&gpu);
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		root_run("cd cache/nvtaskset; %s", changes[i]);
		assert_not_found(strstr(changes[i], "ln -s") ? ": Too many levels of symbolic links" : DISTRUSTED);
	}
}

TEST(files_that_are_damaged)
{
	struct topology gpu = h200(OTHER);

	keep(&gpu);
	root_run("cd cache/nvtaskset; mv * " UUID ".txt");
	assert_not_found(": not about the one GPU that it is named after; remove it");
	gpu = h200(UUID);
	keep(&gpu);
	root_run("cd cache/nvtaskset; head -n 40 " UUID ".txt > cut; mv cut " UUID ".txt");
	assert_not_found(":3: this GPU has 66 TPCs, but 30 are listed: is the file cut off?");
	root_run("cd cache/nvtaskset; : > " UUID ".txt");
	assert_not_found(":1: the first line must be 'nvtaskset-topology 1'");
	root_run("cd cache/nvtaskset; yes '#' | head -c 100000 > " UUID ".txt");
	assert_not_found(": too large for a topology file; remove it");
}

TEST(uuids_that_are_no_names)
{
	static const char *const bad[] = {"", "../passwd", "a/b", ".", "GPU 1", "x\n"};
	struct topology gpu = h200(UUID), found;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_error(cache_find(root, bad[i], &found, &error), "");
		strcpy(gpu.uuid, bad[i]);
		assert_error(cache_keep(root, &gpu, path, &error),
		             "the driver gives the GPU no UUID, by which its topology would be kept");
	}
}

TEST(places_that_cannot_be_written)
{
	struct topology gpu = h200(UUID);

	root_run(": > cache");
	assert_error(cache_keep(root, &gpu, path, &error), text_of("%s/cache/nvtaskset: Not a directory", root));
	assert_error(cache_find(root, UUID, &gpu, &error), "");
	root_run("rm cache; mkdir -p cache/nvtaskset/" UUID ".txt");
	assert_int_equal(cache_keep(root, &gpu, path, &error), -1);
	root_run("[ \"$(ls -A cache/nvtaskset)\" = " UUID ".txt ]");
}

/* --- together ------------------------------------------------------------------------------------------------------- */

static void assert_fails(const char *reason)
{
	assert_error(load_cache(root, &list, &error), reason);
	assert_int_equal(list.count, 0);
}

/* A GPU may have been moved to another slot since. */
TEST(measured_gpus_are_known_by_uuid)
{
	struct topology first = h200(UUID), second = h200(OTHER);

	install("0000:3c:00.0", UUID, 0);
	install("0000:3b:00.0", OTHER, 1);
	keep(&first);
	assert_fails("GPU 0000:3b:00.0: was not measured, as others were");
	keep(&second);
	assert_done(load_cache(root, &list, &error));
	assert_int_equal(list.count, 2);
	assert_string_equal(list.gpus[0].uuid, OTHER);
	assert_int_equal(list.gpus[0].pci.bus, 0x3b);
	assert_string_equal(list.gpus[1].uuid, UUID);
	assert_int_equal(list.gpus[1].pci.bus, 0x3c);
}

/* As on Jetson, where the kernel module lists nothing. */
TEST(measured_gpus_of_a_machine_without_list)
{
	struct topology first = h200(UUID), second = h200(OTHER);

	first.pci.bus = 7;
	keep(&first);
	keep(&second);
	root_run("echo garbage > cache/nvtaskset/README; : > cache/nvtaskset/.txt; : > 'cache/nvtaskset/a b.txt'");
	assert_done(load_cache(root, &list, &error));
	assert_int_equal(list.count, 2);
	assert_string_equal(list.gpus[0].uuid, OTHER);
	second.pci = first.pci;
	keep(&second);
	assert_error_has(load_cache(root, &list, &error), "two GPUs at 0000:07:06.0; remove what is not of this machine");
}

/* The module learns UUIDs late. */
TEST(measured_gpus_without_uuid)
{
	struct topology gpu = h200(UUID);

	install("0000:00:06.0", "GPU-\?\?", 0);
	assert_fails("");
	keep(&gpu);
	assert_done(load_cache(root, &list, &error));
	assert_string_equal(list.gpus[0].uuid, UUID);
	gpu.pci.bus = 7;
	keep(&gpu);
	assert_fails("");
}

static void assert_fallback(int failure, const char *reason)
{
	error = (struct error){.reason = "why"};
	assert_int_equal(load_fallback(root, failure, &list, &error), -1);
	assert_string_equal(error.reason, reason);
}

TEST(what_the_kernel_driver_does_not_say)
{
	struct topology gpu = h200(UUID);

	assert_fallback(-1, "why"); /* nor would a measurement find a GPU */
	root_run("mkdir dev && : > dev/nvidiactl");
	assert_fallback(-1, "why; try 'nvtaskset measure'");
	install("0000:00:06.0", UUID, 0);
	assert_fallback(-1, "why; try 'nvtaskset measure'");
	keep(&gpu);
	assert_int_equal(load_fallback(root, -1, &list, &error), 0);
	assert_int_equal(list.count, 1);
	assert_fallback(TOPOLOGY_REFUSED, "why"); /* what it refuses, nothing else says */
}

/* --- the kernel driver's last answer ------------------------------------------------------------------------------ */

static struct topology_list answer; /* of the kernel driver */
static unsigned int asked;

static int ask(struct topology_list *to, struct error *why)
{
	asked++;
	*to = answer;
	return answer.count > 0 ? 0 : error_set(why, "no answer");
}

/* Installs `count` GPUs; the driver is asked once. */
static void ask_once(unsigned int count)
{
	root_run("mkdir -p proc/sys/kernel/random sys/module/nvidia");
	root_run("echo 0123-4567 > proc/sys/kernel/random/boot_id; echo 580.159.04 > sys/module/nvidia/version");
	answer.count = count;
	for (unsigned int i = 0; i < count; i++) {
		answer.gpus[i] = h200(i == 0 ? UUID : OTHER);
		strcpy(answer.gpus[i].name, "NVIDIA H200");
		answer.gpus[i].pci.bus = (uint8_t)(0x3b + i);
		install(text_of("0000:%x:06.0", 0x3b + i), answer.gpus[i].uuid, i);
	}
	asked = 0;
	assert_done(kept_load(root, ask, &list, &error));
	assert_int_equal(asked, 1);
	assert_memory_equal(&list, &answer, sizeof list);
}

static void assert_kept(bool is_kept)
{
	asked = 0;
	memset(&list, 0, sizeof list);
	assert_done(kept_load(root, ask, &list, &error));
	assert_int_equal(asked, is_kept ? 0 : 1);
	assert_memory_equal(&list, &answer, sizeof list);
}

TEST(kept_answer)
{
	ask_once(1);
	assert_kept(true);
	ask_once(2);
	assert_kept(true);
}

TEST(answers_that_hold_no_longer)
{
	static const char *const changes[] = {
		"echo 0123-4568 > proc/sys/kernel/random/boot_id",
		"rm proc/sys/kernel/random/boot_id",
		"echo 595.10 > sys/module/nvidia/version",
		"sed -i s/000000000002/000000000003/ proc/driver/nvidia/gpus/0000:3c:06.0/information",
		"sed -i 's/UUID:.*/UUID: GPU-\?\?\?\?/' proc/driver/nvidia/gpus/0000:3c:06.0/information",
		"mv proc/driver/nvidia/gpus/0000:3c:06.0 proc/driver/nvidia/gpus/0000:3d:06.0",
		"rm dev/nvidia1",
		"sed -i 's/;tpcs 66;/;tpcs 65;/' cache/nvtaskset/answer",
		": > cache/nvtaskset/answer",
		"chmod g+w cache/nvtaskset/answer",
		"mkdir -p proc/driver/nvidia/capabilities/gpu1/mig/gi0",
	};

	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		root_run("rm -rf cache proc dev");
		ask_once(2);
		root_run("%s", changes[i]);
		assert_kept(false);
	}
	root_run("rm -rf cache proc dev");
	ask_once(1);
	install("0000:3c:06.0", OTHER, 1);
	assert_kept(false);
}

/* The lists of the driver and of the kernel module may differ. */
TEST(answers_that_are_not_kept)
{
	ask_once(2);
	root_run("rm -r cache proc/driver/nvidia/gpus/0000:3c:06.0");
	assert_kept(false);
	assert_kept(false);
	root_run("rm -r proc/driver");
	assert_kept(false);
	assert_int_equal(access(text_of("%s/cache/nvtaskset/answer", root), F_OK), -1);
	answer.count = 0;
	assert_error(kept_load(root, ask, &list, &error), "no answer");
	ask_once(1);
	root_run("rm -r cache && : > cache");
	assert_kept(false);
}

RUN_TESTS(set_up, root_remove)
