/*
 * Making a topology from the kernel driver's answers. The driver is simulated in this file.
 *
 * It knows the calls by number, size and offset, from NVIDIA's headers and not from rm.c, so that the two
 * check each other. Its GPUs are those of share/topologies: the result must be what the file says.
 */
#include "../cases.h"
#include "gpu/topology/rm.h"
#include "share.h"

/* --- a kernel driver ------------------------------------------------------------------------------------ */

#define REQUEST_ALLOC 0xc030462bul   /* read and write 48 bytes, 'F', 0x2b */
#define REQUEST_CONTROL 0xc020462aul /* 32 bytes, 0x2a */

#define NOT_PERMITTED 0x1bu
#define INVALID_OBJECT 0x33u
#define INVALID_SIZE 0x3au
#define NOT_SUPPORTED 0x56u

#define ATTACHED_IDS 0x201u
#define ID_INFO 0x205u
#define PCI_INFO 0x21bu
#define GPU_INFO 0x20800101u
#define NAME 0x20800110u
#define GID 0x2080014au
#define GR_INFO 0x20801201u
#define SM_ORDER 0x2080121bu
#define FB_INFO 0x20801301u
#define PID_INFO 0x2080018eu

#define CLASS_CLIENT 0x41u
#define CLASS_DEVICE 0x80u
#define CLASS_SUBDEVICE 0x2080u

#define ID_OF(gpu) (0x600u + (gpu))      /* three ways to name a GPU, which must not be mixed up */
#define INSTANCE_OF(gpu) (40u - (gpu))
#define FIRST_CLIENT 0xc1d00000u
#define FILES_MAX 256
#define OBJECTS 256

enum file_kind { CLOSED, CONTROL, DEVICE };

/* Another number in the table of SMs, in a column of 16 bits; row 512 is its end, which holds the counts. */
struct poke {
	unsigned int row, column, value;
	bool is_one;
};

/* What a test may change. */
static struct fake {
	int control_errno; /* of opening /dev/nvidiactl; 0: it opens */
	struct topology_list gpus;
	int device_errno[TOPOLOGY_GPUS_MAX + 1];
	unsigned int count; /* of GPUs; above the list's, copies of its first */
	unsigned int fields;
	uint32_t name_size;
	const char *name; /* instead of the GPU's, 0x40 characters */
	uint32_t mig;
	uint32_t sm_version; /* instead of the GPU's */
	unsigned int refused; /* a command or class, */
	uint32_t status;      /* and the answer to it; 0: the kernel's EPERM */
	const struct poke *pokes; /* what is wrong in the table of SMs, up to one that is none */
	const uint32_t *limit;    /* the number of a limit, and its wrong value */
	bool all_have_id_0;
	bool others_use_all; /* GPUs that this process has not opened are attached all the same */
	bool is_in_use[TOPOLOGY_GPUS_MAX + 1]; /* by this process, already */
	uint32_t pid, pid_status; /* of the process with known memory, and the answer */
} fake;

/* What it has been asked for. */
static enum file_kind files[FILES_MAX];
static unsigned int file_gpu[FILES_MAX];
static unsigned int object_gpu[OBJECTS]; /* by the last bits of a handle */
static enum { NO_OBJECT, A_DEVICE, A_SUBDEVICE } objects[FILES_MAX][OBJECTS];
static unsigned int devices_opened;

static void put16(unsigned char *at, unsigned int value)
{
	memcpy(at, &(uint16_t){(uint16_t)value}, 2);
}

static void put32(unsigned char *at, uint32_t value)
{
	memcpy(at, &value, sizeof value);
}

static uint32_t get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return value;
}

static unsigned char *get_pointer(const unsigned char *at)
{
	unsigned char *value;

	memcpy(&value, at, sizeof value);
	return value;
}

static const struct topology *gpu_at(unsigned int gpu)
{
	return &fake.gpus.gpus[gpu < fake.gpus.count ? gpu : 0];
}

static int new_file(enum file_kind kind, unsigned int gpu)
{
	int file = 3;

	while (files[file] != CLOSED)
		assert_in_range(++file, 0, FILES_MAX - 1);
	files[file] = kind;
	file_gpu[file] = gpu;
	memset(objects[file], 0, sizeof objects[file]);
	return file;
}

static int fake_open(const char *path)
{
	unsigned int gpu = 0;
	int result = -1;

	if (strcmp(path, "/dev/nvidiactl") == 0) {
		errno = fake.control_errno;
		result = errno ? -1 : new_file(CONTROL, 0);
	} else {
		assert_int_equal(sscanf(path, "/dev/nvidia%u", &gpu), 1);
		errno = gpu < fake.count ? fake.device_errno[gpu] : ENOENT;
		result = errno ? -1 : new_file(DEVICE, gpu);
		devices_opened += result >= 0;
	}
	return result;
}

static int fake_close(int file)
{
	assert_in_range(file, 3, FILES_MAX - 1);
	assert_int_not_equal(files[file], CLOSED);
	files[file] = CLOSED;
	return 0;
}

static bool is_attached(unsigned int gpu)
{
	bool attached = fake.is_in_use[gpu];

	for (int file = 0; file < FILES_MAX; file++)
		attached = attached || (files[file] == DEVICE && file_gpu[file] == gpu);
	return attached;
}

static uint32_t fake_alloc(int file, unsigned char *call)
{
	uint32_t client = get32(call), parent = get32(call + 4), size = get32(call + 32);
	uint32_t object = get32(call + 8) % OBJECTS;
	const unsigned char *parameters = get_pointer(call + 16);

	if (get32(call + 12) == fake.refused)
		return fake.status;
	switch (get32(call + 12)) {
	case CLASS_CLIENT:
		assert_int_equal(files[file], CONTROL);
		put32(call + 8, FIRST_CLIENT + (uint32_t)file);
		return 0;
	case CLASS_DEVICE:
		assert_each(client, FIRST_CLIENT + (uint32_t)file, parent, client, size, 56);
		assert_in_range(get32(parameters), INSTANCE_OF(fake.count - 1), INSTANCE_OF(0));
		assert_int_equal(objects[file][object], NO_OBJECT);
		object_gpu[object] = INSTANCE_OF(get32(parameters)); /* its own inverse */
		objects[file][object] = is_attached(object_gpu[object]) ? A_DEVICE : NO_OBJECT;
		return is_attached(object_gpu[object]) ? 0 : INVALID_OBJECT;
	case CLASS_SUBDEVICE:
		assert_each(objects[file][parent % OBJECTS], A_DEVICE, objects[file][object], NO_OBJECT, size, 4);
		assert_int_equal(get32(parameters), 0);
		object_gpu[object] = object_gpu[parent % OBJECTS];
		objects[file][object] = A_SUBDEVICE;
		return 0;
	default:
		return NOT_SUPPORTED;
	}
}

static uint32_t list_attached(unsigned char *answer)
{
	unsigned int count = 0;

	memset(answer, 0xff, 128);
	for (unsigned int gpu = 0; gpu < fake.count; gpu++) {
		if (is_attached(gpu) || fake.others_use_all)
			put32(answer + 4 * count++, fake.all_have_id_0 ? ID_OF(0) : ID_OF(gpu));
	}
	return 0;
}

static void write_identity_of(uint32_t id, uint32_t command, unsigned char *answer)
{
	unsigned int gpu = id - ID_OF(0);
	struct pci_address pci = gpu_at(gpu)->pci;

	assert_in_range(gpu, 0, fake.count - 1);
	if (command == ID_INFO) {
		put32(answer + 8, INSTANCE_OF(gpu));
		put32(answer + 12, 0);
	} else {
		put32(answer + 4, pci.domain + (gpu < fake.gpus.count ? 0 : gpu));
		put16(answer + 8, pci.bus);
		put16(answer + 10, pci.device);
	}
}

static uint32_t write_limits(const struct topology *gpu, const unsigned char *question)
{
	unsigned char *list = get_pointer(question + 8);
	unsigned int version = gpu->compute_major << 8 | gpu->compute_minor;
	uint32_t value[4] = {fake.sm_version ? fake.sm_version : version, gpu->gpc_limit, gpu->tpc_limit, gpu->sms_per_tpc};

	if (fake.limit)
		value[fake.limit[0]] = fake.limit[1];
	for (uint32_t i = 0; i < get32(question); i++) {
		uint32_t index = get32(list + 8 * i);

		assert_true(index == 0x0c || index == 0x14 || index == 0x17 || index == 0x20);
		put32(list + 8 * i + 4, value[index == 0x0c ? 0 : index == 0x14 ? 1 : index == 0x17 ? 2 : 3]);
	}
	return 0;
}

/* Column 5 is the inverse of the rule in facts.md, "Mask bits". Before Hopper the driver fills these fields, too, and they must be
 * ignored. */
static uint32_t write_sm_order(const struct topology *gpu, unsigned char *rows)
{
	const unsigned int width = 2 * fake.fields;
	unsigned int sm_count = gpu->tpc_count * gpu->sms_per_tpc;

	memset(rows, 0xee, 512 * width);
	for (unsigned int sm = 0; sm < sm_count; sm++) {
		const struct topology_tpc *tpc = &gpu->tpcs[sm / gpu->sms_per_tpc];
		unsigned char *row = rows + sm * width;

		put16(row, tpc->gpc);
		put16(row + 4, sm % gpu->sms_per_tpc);
		put16(row + 6, sm / gpu->sms_per_tpc);
		put16(row + 8, tpc->virtual_gpc == TOPOLOGY_UNKNOWN ? sm % 3 : tpc->virtual_gpc);
		put16(row + 10, tpc->virtual_gpc < gpu->gpc_limit ? tpc->mask_bit - (unsigned int)(tpc->virtual_gpc * gpu->tpc_limit) : 0);
	}
	put16(rows + 512 * width, sm_count);
	put16(rows + 512 * width + 2, gpu->tpc_count);
	for (const struct poke *poke = fake.pokes; poke && poke->is_one; poke++)
		put16(rows + poke->row * width + 2 * poke->column, poke->value);
	return 0;
}

static void write_text(unsigned char *answer, const char *text, size_t size)
{
	memset(answer, 0, size);
	memcpy(answer, text, strnlen(text, size));
}

#define FREE_KIB 0xf0000000u /* does not fit into 32 bits as bytes */
#define OWN_BYTES 0x212345678ull
#define SHARED_BYTES 0x1000ull

/* Imported memory is not the process's. */
static void write_memory(unsigned char *answer)
{
	const uint64_t bytes[3] = {OWN_BYTES, SHARED_BYTES, 1 << 30};
	unsigned char *of = answer + 8;

	for (uint32_t count = get32(answer); count > 0; count--, of += 72) {
		bool is_known = get32(of) == fake.pid;

		assert_int_equal(get32(of + 4), 0);
		put32(of + 8, is_known ? fake.pid_status : 0);
		if (is_known)
			memcpy(of + 16, bytes, sizeof bytes);
	}
}

static uint32_t answer_of_gpu(const struct topology *gpu, uint32_t command, unsigned char *answer)
{
	switch (command) {
	case GPU_INFO:
		assert_int_equal(get32(answer), 1);
		assert_int_equal(get32(get_pointer(answer + 8)), 0x2a);
		put32(get_pointer(answer + 8) + 4, fake.mig);
		break;
	case NAME:
		write_text(answer + 4, fake.name ? fake.name : gpu->name, 0x40);
		break;
	case GID:
		write_text(answer + 12, gpu->uuid, 0x100);
		break;
	case GR_INFO:
		return write_limits(gpu, answer);
	case FB_INFO:
		assert_int_equal(get32(answer), 1);
		assert_int_equal(get32(get_pointer(answer + 8)), 0x16);
		put32(get_pointer(answer + 8) + 4, FREE_KIB);
		break;
	case PID_INFO:
		write_memory(answer);
		break;
	default:
		return write_sm_order(gpu, answer);
	}
	return 0;
}

/* The size of a command's parameters, which the driver compares with its own. 0: no such command. */
static uint32_t size_of(uint32_t command)
{
	const uint32_t sizes[][2] = {
		{ATTACHED_IDS, 128}, {ID_INFO, 32}, {PCI_INFO, 12}, {GPU_INFO, 16}, {NAME, fake.name_size}, {GID, 268},
		{GR_INFO, 32}, {FB_INFO, 16}, {PID_INFO, 14408},
		{SM_ORDER, fake.fields == 6 ? 6168 : fake.fields == 7 ? 7192 : fake.fields == 9 ? 9240 : 1},
	};
	size_t i = 0;

	while (i < COUNT_OF(sizes) && sizes[i][0] != command)
		i++;
	return i < COUNT_OF(sizes) ? sizes[i][1] : 0;
}

static uint32_t fake_control(int file, const unsigned char *call)
{
	uint32_t client = get32(call), object = get32(call + 4), command = get32(call + 8);
	unsigned char *answer = get_pointer(call + 16);

	assert_int_equal(client, FIRST_CLIENT + (uint32_t)file);
	assert_int_equal(get32(call + 12), 0);
	if (get32(call + 24) != size_of(command))
		return size_of(command) ? INVALID_SIZE : NOT_SUPPORTED;
	if (command == fake.refused)
		return fake.status;
	if (command == ATTACHED_IDS)
		return list_attached(answer);
	if (command == ID_INFO || command == PCI_INFO) {
		assert_int_equal(object, client);
		write_identity_of(get32(answer), command, answer);
		return 0;
	}
	assert_int_not_equal(object, client);
	assert_int_equal(objects[file][object % OBJECTS], A_SUBDEVICE);
	return answer_of_gpu(gpu_at(object_gpu[object % OBJECTS]), command, answer);
}

static int fake_ioctl(int file, unsigned long request, void *argument)
{
	unsigned char *call = argument;
	bool is_control = request == REQUEST_CONTROL;

	assert_true(is_control || request == REQUEST_ALLOC);
	if (fake.refused && !fake.status && get32(call + (is_control ? 8 : 12)) == fake.refused) {
		errno = EPERM;
		return -1;
	}
	put32(call + (is_control ? 28 : 40), is_control ? fake_control(file, call) : fake_alloc(file, call));
	return 0;
}

/* --- loading from it ------------------------------------------------------------------------------------- */

static struct topology_list list;
static const struct topology_wanted *wanted; /* NULL: all */

static void prepare(const char *name)
{
	memset(&fake, 0, sizeof fake);
	wanted = NULL;
	devices_opened = 0;
	share_read(&fake.gpus, name);
	fake.count = fake.gpus.count;
	fake.fields = 9;
	fake.name_size = 132;
}

/* Whatever the result, no file stays open, and a failure leaves no GPU. */
static int load(struct error *error)
{
	static const struct rm_system system = {fake_open, fake_ioctl, fake_close};

	memset(&list, 0xa5, sizeof list);
	int result = rm_load(&system, wanted, &list, error);

	for (int file = 0; file < FILES_MAX; file++)
		assert_int_equal(files[file], CLOSED);
	assert_int_equal(result == 0, list.count > 0);
	return result;
}

static void assert_loads(void)
{
	struct error error = {.reason = ""};

	assert_done(load(&error));
	assert_string_equal(error.reason, "");
}

static void assert_fails(const char *reason)
{
	struct error error = {.reason = ""};

	assert_true(load(&error) < 0);
	assert_string_equal(error.reason, reason);
	assert_true(load(NULL) < 0);
}

static void assert_same(unsigned int number, unsigned int fakes)
{
	assert_memory_equal(&list.gpus[number], &fake.gpus.gpus[fakes], sizeof list.gpus[0]);
}

static void assert_loads_all(void)
{
	assert_loads();
	assert_int_equal(list.count, fake.gpus.count);
	for (unsigned int i = 0; i < list.count; i++)
		assert_same(i, i);
}

static void assert_loads_second_alone(void)
{
	assert_loads();
	assert_int_equal(list.count, 1);
	assert_same(0, 1);
}

#define H200 "h200"
#define GPU "GPU 0000:00:06.0: "
#define DRIVER "the NVIDIA kernel driver "
#define VERSIONS "nvtaskset knows versions 515 to 595"

/* --- memory ---------------------------------------------------------------------------------------------- */

static struct topology_user users[TOPOLOGY_USERS_MAX];
static struct topology_user *const last_user = &users[TOPOLOGY_USERS_MAX - 1];
static uint64_t free_bytes;

static bool read_memory(unsigned int gpu)
{
	static const struct rm_system system = {fake_open, fake_ioctl, fake_close};

	for (int i = 0; i < TOPOLOGY_USERS_MAX; i++)
		users[i] = (struct topology_user){.pid = 4711 + i, .bytes = 1};
	bool is_known = rm_read_memory(&system, gpu_at(gpu)->pci, users, TOPOLOGY_USERS_MAX, &free_bytes);

	for (int file = 0; file < FILES_MAX; file++)
		assert_int_equal(files[file], CLOSED);
	return is_known;
}

TEST(memory_of_processes)
{
	prepare("h200-x2");
	fake.pid = 4711;
	fake.is_in_use[1] = true;
	assert_false(read_memory(0)); /* no user of the GPU */
	assert_true(read_memory(1));
	assert_each(free_bytes, (uint64_t)FREE_KIB << 10, users[0].bytes, OWN_BYTES + SHARED_BYTES);
	assert_each(users[1].bytes, 0, last_user->bytes, 0);
	assert_int_equal(devices_opened, 0);
	fake.pid = (uint32_t)last_user->pid;
	assert_true(read_memory(1));
	assert_each(users[0].bytes, 0, last_user->bytes, OWN_BYTES + SHARED_BYTES);
	fake.pid_status = NOT_SUPPORTED;
	assert_true(read_memory(1));
	assert_int_equal(last_user->bytes, 0);
}

TEST(memory_that_is_not_told)
{
	static const unsigned int refused[] = {FB_INFO, CLASS_SUBDEVICE, PCI_INFO, ATTACHED_IDS, CLASS_CLIENT};

	for (size_t i = 0; i < COUNT_OF(refused); i++) {
		ROW("%#x", refused[i]);
		prepare(H200);
		fake.is_in_use[0] = true;
		fake.refused = refused[i];
		assert_false(read_memory(0));
		fake.status = NOT_PERMITTED;
		assert_false(read_memory(0));
	}
	prepare(H200);
	fake.is_in_use[0] = true;
	fake.refused = PID_INFO;
	fake.pid = 4711;
	assert_true(read_memory(0));
	assert_int_equal(users[0].bytes, 0);
}

TEST(each_size_of_record)
{
	static const char *const paths[] = {H200, "hopper-synthetic", "blackwell", "ada", "turing", "h200-x2"};
	static const unsigned int fields[] = {6, 7, 9};

	for (size_t i = 0; i < COUNT_OF(paths) * 3; i++) {
		prepare(paths[i / 3]);
		fake.fields = fields[i % 3];
		assert_loads_all();
	}
}

TEST(unknown_size_of_record)
{
	prepare(H200);
	fake.fields = 10;
	assert_fails(GPU DRIVER "does not say which SM is where (status 0x3a); " VERSIONS);
}

TEST(one_sm_in_a_tpc)
{
	struct topology *gpu = &fake.gpus.gpus[0];

	prepare("ada");
	gpu->sms_per_tpc = gpu->compute_minor = 1;
	gpu->compute_major = 6;
	assert_loads_all();
}

/* The table's 512 SMs. */
TEST(largest_gpu)
{
	struct topology *gpu = &fake.gpus.gpus[0];

	prepare("ada");
	gpu->tpc_count = TPCSET_MAX;
	for (uint16_t tpc = 0; tpc < TPCSET_MAX; tpc++)
		gpu->tpcs[tpc] = (struct topology_tpc){tpc % 12, TOPOLOGY_UNKNOWN, tpc};
	assert_loads_all();
}

/* Device files are numbered as the driver finds the GPUs; the list is ordered by bus id. */
TEST(order)
{
	struct topology first;

	prepare("h200-x2");
	first = fake.gpus.gpus[0];
	fake.gpus.gpus[0] = fake.gpus.gpus[1];
	fake.gpus.gpus[1] = first;
	assert_loads();
	assert_same(0, 1);
	assert_same(1, 0);
}

TEST(more_gpus_than_the_maximum)
{
	prepare(H200);
	fake.count = TOPOLOGY_GPUS_MAX + 1;
	assert_loads();
	assert_each(list.count, TOPOLOGY_GPUS_MAX, list.gpus[15].pci.domain, 15);
}

TEST(no_driver)
{
	static const int absent[] = {ENOENT, ENXIO, ENODEV};

	prepare(H200);
	for (size_t i = 0; i < COUNT_OF(absent); i++) {
		fake.control_errno = absent[i];
		assert_fails("no NVIDIA GPU: /dev/nvidiactl is not there; is the driver loaded?");
	}
	fake.control_errno = EACCES;
	assert_fails("/dev/nvidiactl: Permission denied");
	fake.control_errno = 0;
	fake.count = 0;
	assert_fails("no NVIDIA GPU: there is no /dev/nvidia0");
}

TEST(gpus_that_may_not_be_opened)
{
	prepare("h200-x2");
	fake.device_errno[0] = EACCES;
	assert_loads_second_alone();
	fake.others_use_all = true;
	assert_loads();
	assert_int_equal(list.count, 1);
	fake.device_errno[1] = EACCES;
	assert_fails("/dev/nvidia1: Permission denied");
	fake.device_errno[1] = ENOENT;
	assert_fails("/dev/nvidia0: Permission denied");
	fake.device_errno[0] = EIO;
	assert_fails("/dev/nvidia0: Input/output error");
}

/* Of two GPUs, this one and those behind it. */
static void prepare_and_want(unsigned int first)
{
	static struct topology_wanted those;

	prepare("h200-x2");
	those.count = 0;
	for (unsigned int gpu = first; gpu < 2; gpu++)
		those.gpus[those.count++] = fake.gpus.gpus[gpu].pci;
	wanted = &those;
}

/* To open the others would wake them. */
TEST(wanted_gpu)
{
	prepare_and_want(1);
	fake.is_in_use[1] = true;
	assert_loads_second_alone();
	fake.others_use_all = true;
	assert_loads_second_alone();
	assert_int_equal(devices_opened, 0);
	prepare_and_want(1);
	assert_loads_second_alone();
	fake.is_in_use[0] = true;
	assert_loads_second_alone();
	assert_int_equal(devices_opened, 4);
	prepare_and_want(0);
	fake.is_in_use[1] = true;
	assert_loads_all();
	prepare_and_want(1);
	fake.others_use_all = true;
	fake.device_errno[1] = EACCES;
	assert_fails("GPU 0000:00:07.0: " DRIVER "does not let this process use it");
	fake.others_use_all = false;
	assert_fails("no NVIDIA GPU that this process may use");
}

/* Each call, refused by the driver with a status or, for 0, by the kernel. */
TEST(refusals)
{
	static const struct {
		unsigned int refused;
		uint32_t status;
		const char *reason;
	} rows[] = {
		{CLASS_CLIENT, NOT_PERMITTED, DRIVER "does not answer"},
		{CLASS_CLIENT, 0, DRIVER "does not answer"},
		{ATTACHED_IDS, NOT_SUPPORTED, DRIVER "does not list its GPUs"},
		{ATTACHED_IDS, 0, DRIVER "does not list its GPUs"},
		{ID_INFO, NOT_SUPPORTED, DRIVER "does not say where its GPU 0x600 is"},
		{PCI_INFO, NOT_SUPPORTED, DRIVER "does not say where its GPU 0x600 is"},
		{CLASS_DEVICE, NOT_PERMITTED, GPU DRIVER "does not let this process use it"},
		{CLASS_SUBDEVICE, NOT_PERMITTED, GPU DRIVER "does not let this process use it"},
		{GR_INFO, NOT_PERMITTED, GPU DRIVER "does not let this process ask what the GPU is"},
		{GR_INFO, 0, GPU DRIVER "does not let this process ask what the GPU is"},
		{GR_INFO, NOT_SUPPORTED, GPU DRIVER "does not say what the GPU is (status 0x56); " VERSIONS},
		{SM_ORDER, NOT_PERMITTED, GPU DRIVER "does not let this process ask which SM is where"},
		{SM_ORDER, NOT_SUPPORTED, GPU DRIVER "does not say which SM is where (status 0x56); " VERSIONS},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		prepare(H200);
		fake.refused = rows[i].refused;
		fake.status = rows[i].status;
		assert_fails(rows[i].reason);
	}
}

TEST(mig)
{
	prepare(H200);
	fake.mig = 1;
	assert_loads(); /* as long as the driver answers for the whole GPU */
	fake.refused = GR_INFO;
	fake.status = 0x1f;
	assert_fails(GPU "MIG is on: only whole GPUs can be partitioned");
	assert_int_equal(load(NULL), TOPOLOGY_REFUSED);
	fake.mig = 2;
	assert_int_equal(load(NULL), -1);
	assert_fails(GPU DRIVER "does not say what the GPU is (status 0x1f); " VERSIONS);
}

/* --- contradictory answers --- */

TEST(contradictory_tables)
{
	static const struct {
		struct poke pokes[5];
		const char *reason;
	} rows[] = {
		{{{512, 0, 513, true}}, DRIVER "reports 513 SMs and 66 TPCs"},
		{{{512, 1, 257, true}}, DRIVER "reports 132 SMs and 257 TPCs"},
		{{{512, 1, 65, true}}, DRIVER "puts SM 130 into TPC 65 of 65"},
		{{{512, 1, 67, true}}, DRIVER "describes 66 of 67 TPCs"},
		{{{512, 0, 130, true}}, DRIVER "describes 65 of 66 TPCs"},
		{{{512, 0, 0, true}, {512, 1, 0, true}}, "TPCs: 0, must be 1-256"},
		{{{11, 0, 7, true}}, DRIVER "contradicts itself about TPC 5"},                              /* its two SMs' GPCs */
		{{{11, 5, 8, true}}, DRIVER "contradicts itself about TPC 5"},                              /* and mask bits */
		{{{10, 0, 32, true}, {11, 0, 32, true}}, "TPC 5: GPC 32 is beyond 31"},
		{{{10, 4, 0xff, true}}, DRIVER "makes TPC 5 number 0 of virtual GPC 255"},                  /* a disabled SM */
		{{{0, 5, 9, true}}, DRIVER "makes TPC 0 number 9 of virtual GPC 0"},
		{{{2, 4, 0, true}, {2, 5, 0, true}, {3, 4, 0, true}, {3, 5, 0, true}}, "TPC 1: mask bit 0 stands for another TPC already"},
	};
	static const unsigned int fields[] = {6, 7, 9};

	for (size_t i = 0; i < COUNT_OF(rows) * 3; i++) {
		ROW("%s, %u fields", rows[i / 3].reason, fields[i % 3]);
		prepare(H200);
		fake.fields = fields[i % 3];
		fake.pokes = rows[i / 3].pokes;
		assert_fails(text_of(GPU "%s", rows[i / 3].reason));
	}
}

TEST(contradictory_limits)
{
	static const struct {
		uint32_t limit[2];
		const char *reason;
	} rows[] = {
		{{1, 0x10008}, DRIVER "gives 0x10008 as the GPU's limit 0x14"},
		{{1, 0}, "room for GPCs: 0, must be 1-32"},
		{{3, 3}, "SMs in a TPC: 3, must be 1-2"},
		{{0, 0}, "compute capability, before the point: 0, must be 1-99"},
		{{2, 257}, DRIVER "makes TPC 1 number 0 of virtual GPC 1"},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%s", rows[i].reason);
		prepare(H200);
		fake.limit = rows[i].limit;
		assert_fails(text_of(GPU "%s", rows[i].reason));
	}
}

TEST(gpu_listed_twice)
{
	prepare("h200-x2");
	fake.all_have_id_0 = true;
	assert_loads();
	assert_int_equal(list.count, 1);
}

/* --- what the answers mean --- */

TEST(compute_capability)
{
	static const struct {
		uint32_t sm_version;
		unsigned int major, minor;
	} rows[] = {
		{0x350, 3, 5}, {0x500, 5, 0}, {0x502, 5, 2}, {0x601, 6, 1}, {0x705, 7, 5},
		{0x809, 8, 9}, {0xa00, 10, 0}, {0xa03, 10, 3}, {0xa04, 12, 0}, {0xc01, 12, 1},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		prepare("hopper-synthetic");
		fake.sm_version = rows[i].sm_version;
		assert_loads();
		assert_each(list.gpus[0].compute_major, rows[i].major, list.gpus[0].compute_minor, rows[i].minor);
	}
}

TEST(names)
{
	static const char endless[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	static const uint32_t sizes[] = {132, 68};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		prepare(H200);
		fake.name_size = sizes[i];
		strcpy(fake.gpus.gpus[0].uuid, "GPU-6d4fc787-c00f-df1c-8107-50a21ec528df");
		assert_loads_all();
		fake.name = endless;
		assert_loads();
		assert_int_equal(strlen(list.gpus[0].name), TOPOLOGY_NAME_MAX - 1);
		fake.name = "NVIDIA \x1b[2J";
		assert_loads();
		assert_string_equal(list.gpus[0].name, "NVIDIA ");
	}
	fake.refused = NAME;
	fake.status = NOT_SUPPORTED;
	assert_loads();
	assert_string_equal(list.gpus[0].name, "");
	fake.refused = GID;
	assert_loads();
	assert_string_equal(list.gpus[0].uuid, "");
}

RUN_TESTS(NULL, NULL)
