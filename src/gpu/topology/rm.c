/*
 * Asks NVIDIA's kernel driver which GPU has which TPC, by the calls of docs/facts.md, "Topology". Structures and
 * numbers are published in open-gpu-kernel-modules; each names its header there (under src/common/sdk/nvidia/inc).
 *
 * It runs in other people's processes too: no allocation; the descriptors are closed before it returns, and
 * with them the kernel frees everything that was made through them.
 */
#include "rm.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEVICES_MAX 64 /* /dev/nvidia0 and up */

/* --- the kernel driver's structures ------------------------------------------------------------------ */

struct rm_alloc { /* nvos.h, NVOS64_PARAMETERS */
	uint32_t client;
	uint32_t parent;
	uint32_t object;
	uint32_t class;
	uint64_t parameters;
	uint64_t rights;
	uint32_t size;
	uint32_t flags;
	uint32_t status;
};

struct rm_control { /* nvos.h, NVOS54_PARAMETERS */
	uint32_t client;
	uint32_t object;
	uint32_t command;
	uint32_t flags;
	uint64_t parameters;
	uint32_t size;
	uint32_t status;
};

_Static_assert(sizeof(struct rm_alloc) == 48, "the 48-byte form");
_Static_assert(sizeof(struct rm_control) == 32, "layout");

#define IOCTL_CONTROL _IOWR('F', 0x2a, struct rm_control) /* nv_escape.h */
#define IOCTL_ALLOC _IOWR('F', 0x2b, struct rm_alloc)

enum {
	CLASS_CLIENT = 0x41,
	CLASS_DEVICE = 0x80,     /* class/cl0080.h */
	CLASS_SUBDEVICE = 0x2080 /* class/cl2080.h */
};

enum { /* nvstatuscodes.h */
	STATUS_OK = 0,
	STATUS_NOT_PERMITTED = 0x1b,
	STATUS_WRONG_SIZE = 0x3a /* of the parameters */
};

/* Handles are ours to choose; each GPU has a client of its own, so these can be the same for all. */
enum {
	HANDLE_DEVICE = 0x6e760001,
	HANDLE_SUBDEVICE = 0x6e760002
};

struct device_parameters { /* class/cl0080.h */
	uint32_t device_instance;
	uint32_t unused[5];
	uint64_t unused_sizes[3];
	uint32_t unused_mode;
};

struct subdevice_parameters { /* class/cl2080.h */
	uint32_t subdevice_instance;
};

#define ATTACHED_IDS 0x201
#define ATTACHED_MAX 32
#define INVALID_ID UINT32_MAX
struct attached_ids { /* ctrl/ctrl0000/ctrl0000gpu.h */
	uint32_t ids[ATTACHED_MAX];
};

#define ID_INFO 0x205
struct id_info { /* the same */
	uint32_t id;
	uint32_t flags;
	uint32_t device_instance;
	uint32_t subdevice_instance;
	uint32_t unused[4];
};

#define PCI_INFO 0x21b
struct pci_info { /* the same */
	uint32_t id;
	uint32_t domain;
	uint16_t bus;
	uint16_t slot;
};

#define NAME_STRING 0x20800110
struct name_string { /* ctrl/ctrl2080/ctrl2080gpu.h */
	uint32_t flags; /* 0: ASCII */
	union {
		char text[0x40];
		uint16_t unicode[0x40]; /* gone from driver 595 on, and with it half of the size */
	};
};

#define GPU_INFO 0x20800101
struct gpu_info { /* the same */
	uint32_t count;
	uint64_t list;
};

enum { /* the same */
	INFO_MIG = 0x2a,
	MIG_ON = 1
};

#define GID_INFO 0x2080014a
struct gid_info { /* the same */
	uint32_t index;
	uint32_t flags; /* 0: ASCII, SHA-1, of the GPU */
	uint32_t length;
	char text[0x100];
};

struct route { /* ctrl/ctrl0080/ctrl0080gr.h */
	uint32_t flags;
	uint64_t route;
};

#define ENGINE_INFO 0x20801201
struct engine_info { /* ctrl/ctrl2080/ctrl2080gr.h */
	uint32_t count;
	uint64_t list;
	struct route route;
};

struct info_entry { /* of either list */
	uint32_t index;
	uint32_t value;
};

enum { /* ctrl/ctrl0080/ctrl0080gr.h */
	INFO_SM_VERSION = 0x0c,
	INFO_GPC_LIMIT = 0x14,
	INFO_TPC_LIMIT = 0x17,
	INFO_SMS_PER_TPC = 0x20
};

/* The SM version is the compute capability, 0x905 would be 9.5; before 5.0 the minor number stood a digit
 * further left, and 12.0 was 10.4 before it got its name (ctrl2080gr.h, SM_VERSION_10_04). */
#define SM_VERSION_OF_5_0 0x500
#define SM_VERSION_10_04 0xa04
#define SM_VERSION_12_00 0xc00

/* The table of SMs: 512 rows of 16-bit fields, two counts, a route. Rows grew with the driver; the call
 * fails where the size is not exactly the driver's. */
#define SM_ORDER 0x2080121b
#define SM_ROWS 512
#define SM_FIELDS_MAX 9

static const unsigned int sm_field_counts[] = {
	9, /* from driver 580 on */
	7, /* 575 */
	6, /* up to 570 */
};

enum sm_field {
	SM_GPC = 0,
	SM_TPC = 3,
	SM_VIRTUAL_GPC = 4,
	SM_MIGRATABLE_TPC = 5
};

struct sm_order {
	union {
		uint16_t words[SM_ROWS * SM_FIELDS_MAX + 2 + sizeof(struct route) / 2 + 4];
		uint64_t alignment;
	};
};

_Static_assert(sizeof(struct device_parameters) == 56, "layout");
_Static_assert(sizeof(struct id_info) == 32, "layout");
_Static_assert(sizeof(struct pci_info) == 12, "layout");
_Static_assert(sizeof(struct name_string) == 132, "layout");
_Static_assert(sizeof(struct gpu_info) == 16, "layout");
_Static_assert(sizeof(struct gid_info) == 268, "layout");
_Static_assert(sizeof(struct engine_info) == 32, "layout");

/* --- calls --------------------------------------------------------------------------------------------- */

/* A connection to the kernel driver: one client, on /dev/nvidiactl. */
struct rm {
	const struct rm_system *system;
	int file;
	uint32_t client;
};

/* 0, or -1 where the kernel or the driver refuses. */
static int rm_alloc(struct rm *rm, uint32_t parent, uint32_t object, uint32_t class, void *parameters,
                    uint32_t size)
{
	struct rm_alloc call = {
		.client = rm->client,
		.parent = parent,
		.object = object,
		.class = class,
		.parameters = (uintptr_t)parameters,
		.size = size,
	};

	if (rm->system->ioctl(rm->file, IOCTL_ALLOC, &call) < 0 || call.status != STATUS_OK)
		return -1;
	if (class == CLASS_CLIENT)
		rm->client = call.object;
	return 0;
}

/* The driver's status, STATUS_OK where it did as asked; not permitted, where the kernel refuses to ask it. */
static uint32_t rm_control(const struct rm *rm, uint32_t object, uint32_t command, void *parameters,
                           uint32_t size)
{
	struct rm_control call = {
		.client = rm->client,
		.object = object,
		.command = command,
		.parameters = (uintptr_t)parameters,
		.size = size,
	};

	return rm->system->ioctl(rm->file, IOCTL_CONTROL, &call) < 0 ? STATUS_NOT_PERMITTED : call.status;
}

static int connect_client(struct rm *rm, const struct rm_system *system, struct error *error)
{
	*rm = (struct rm){.system = system, .file = system->open("/dev/nvidiactl")};
	if (rm->file < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		return error_set(error, "no NVIDIA GPU: /dev/nvidiactl is not there; is the driver loaded?");
	if (rm->file < 0)
		return error_set_errno(error, "/dev/nvidiactl");
	if (rm_alloc(rm, 0, 0, CLASS_CLIENT, NULL, 0) < 0) {
		system->close(rm->file);
		return error_set(error, "the NVIDIA kernel driver does not answer");
	}
	return 0;
}

/* --- one GPU -------------------------------------------------------------------------------------------- */

/* While MIG is on, the driver describes a GPU's instances, and only to those who use one. */
static bool is_mig_on(const struct rm *rm)
{
	struct info_entry entry = {.index = INFO_MIG};
	struct gpu_info info = {.count = 1, .list = (uintptr_t)&entry};

	return rm_control(rm, HANDLE_SUBDEVICE, GPU_INFO, &info, sizeof info) == STATUS_OK &&
	       entry.value == MIG_ON;
}

static int explain(const struct rm *rm, uint32_t status, const char *what, struct error *error)
{
	bool mig = is_mig_on(rm);

	if (mig)
		error_set(error, "MIG is on: only whole GPUs can be partitioned");
	else if (status == STATUS_NOT_PERMITTED)
		error_set(error, "the NVIDIA kernel driver does not permit to ask %s", what);
	else
		error_set(error, "the NVIDIA kernel driver does not say %s (status 0x%x); nvtaskset knows "
		                 "versions 515 to 595", what, status);
	return mig ? TOPOLOGY_REFUSED : -1;
}

/* Up to the first character that is below `first` or not of ASCII. `to` was all zeros. */
static void copy_text(char *to, const char *from, size_t size, char first)
{
	for (size_t i = 0; i + 1 < size && from[i] >= first && from[i] <= '~'; i++)
		to[i] = from[i];
}

/* Neither is needed for anything but showing it. */
static void read_identity(const struct rm *rm, struct topology *gpu)
{
	struct name_string name = {.flags = 0};
	struct gid_info gid = {.flags = 0};
	uint32_t short_size = offsetof(struct name_string, text) + sizeof name.text;

	_Static_assert(sizeof name.text >= sizeof gpu->name && sizeof gid.text >= sizeof gpu->uuid, "copied");
	if (rm_control(rm, HANDLE_SUBDEVICE, NAME_STRING, &name, sizeof name) == STATUS_OK ||
	    rm_control(rm, HANDLE_SUBDEVICE, NAME_STRING, &name, short_size) == STATUS_OK)
		copy_text(gpu->name, name.text, sizeof gpu->name, ' ');
	if (rm_control(rm, HANDLE_SUBDEVICE, GID_INFO, &gid, sizeof gid) == STATUS_OK)
		copy_text(gpu->uuid, gid.text, sizeof gpu->uuid, '!');
}

static void set_compute(struct topology *gpu, uint32_t sm_version)
{
	if (sm_version == SM_VERSION_10_04)
		sm_version = SM_VERSION_12_00;
	gpu->compute_major = (uint16_t)(sm_version >> 8);
	gpu->compute_minor = sm_version < SM_VERSION_OF_5_0 ? sm_version >> 4 & 0xf : sm_version & 0xff;
}

static int read_limits(const struct rm *rm, struct topology *gpu, struct error *error)
{
	struct info_entry entries[] = {
		{.index = INFO_SM_VERSION},
		{.index = INFO_GPC_LIMIT},
		{.index = INFO_TPC_LIMIT},
		{.index = INFO_SMS_PER_TPC},
	};
	struct engine_info info = {.count = 4, .list = (uintptr_t)entries};
	uint32_t status = rm_control(rm, HANDLE_SUBDEVICE, ENGINE_INFO, &info, sizeof info);

	if (status != STATUS_OK)
		return explain(rm, status, "what the GPU is", error);
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		if (entries[i].value > UINT16_MAX)
			return error_set(error, "the NVIDIA kernel driver gives 0x%x as the GPU's limit 0x%x",
			                 entries[i].value, entries[i].index);
	}
	set_compute(gpu, entries[0].value);
	gpu->gpc_limit = (uint16_t)entries[1].value;
	gpu->tpc_limit = (uint16_t)entries[2].value;
	gpu->sms_per_tpc = (uint16_t)entries[3].value;
	return 0;
}

/* The table, and how many fields its rows have; the status where no known size is the driver's. */
static uint32_t read_sm_order(const struct rm *rm, struct sm_order *order, unsigned int *fields)
{
	const size_t count = sizeof sm_field_counts / sizeof sm_field_counts[0];
	uint32_t status = STATUS_WRONG_SIZE;

	for (size_t i = 0; i < count && status == STATUS_WRONG_SIZE; i++) {
		/* The counts end on a multiple of 4; the route wants one of 8. */
		size_t route = ((size_t)SM_ROWS * sm_field_counts[i] * 2 + 4 + 7) / 8 * 8;

		*fields = sm_field_counts[i];
		memset(order, 0, sizeof *order);
		status = rm_control(rm, HANDLE_SUBDEVICE, SM_ORDER, order,
		                    (uint32_t)(route + sizeof(struct route)));
	}
	return status;
}

/* What a row says of its TPC. A migratable number beyond the limit would make another group's bit. */
static int read_row(const struct topology *gpu, const uint16_t *row, struct topology_tpc *tpc,
                    struct error *error)
{
	unsigned int virtual_gpc = row[SM_VIRTUAL_GPC], migratable = row[SM_MIGRATABLE_TPC];
	unsigned int bit = topology_mask_bit(gpu, row[SM_TPC], virtual_gpc, migratable);
	bool grouped = gpu->compute_major >= 9;

	if (bit >= TOPOLOGY_MASK_BITS ||
	    (grouped && virtual_gpc < gpu->gpc_limit && migratable >= gpu->tpc_limit))
		return error_set(error, "the NVIDIA kernel driver makes TPC %u number %u of virtual GPC %u",
		                 row[SM_TPC], migratable, virtual_gpc);
	*tpc = (struct topology_tpc){
		.gpc = row[SM_GPC],
		.virtual_gpc = grouped ? (uint16_t)virtual_gpc : TOPOLOGY_UNKNOWN,
		.mask_bit = (uint16_t)bit,
	};
	return 0;
}

/* All SMs of a TPC must say the same of it, and each TPC must have one. */
static int read_rows(const uint16_t *rows, unsigned int fields, unsigned int sm_count, struct topology *gpu,
                     struct error *error)
{
	struct tpcset seen = {{0}};

	for (unsigned int sm = 0; sm < sm_count; sm++) {
		const uint16_t *row = &rows[(size_t)sm * fields];
		unsigned int number = row[SM_TPC];
		struct topology_tpc tpc;

		if (number >= gpu->tpc_count)
			return error_set(error, "the NVIDIA kernel driver puts SM %u into TPC %u of %u", sm,
			                 number, gpu->tpc_count);
		if (read_row(gpu, row, &tpc, error) < 0)
			return -1;
		if (tpcset_has(&seen, number) && memcmp(&tpc, &gpu->tpcs[number], sizeof tpc) != 0)
			return error_set(error, "the NVIDIA kernel driver says two things of TPC %u", number);
		gpu->tpcs[number] = tpc;
		tpcset_add(&seen, number);
	}
	if (tpcset_count(&seen) != gpu->tpc_count)
		return error_set(error, "the NVIDIA kernel driver tells of %u TPCs of %u",
		                 tpcset_count(&seen), gpu->tpc_count);
	return 0;
}

static int read_tpcs(const struct rm *rm, struct topology *gpu, struct error *error)
{
	struct sm_order order;
	unsigned int fields;
	uint32_t status = read_sm_order(rm, &order, &fields);

	if (status != STATUS_OK)
		return explain(rm, status, "which SM is where", error);
	unsigned int sm_count = order.words[SM_ROWS * fields], tpc_count = order.words[SM_ROWS * fields + 1];

	if (sm_count > SM_ROWS || tpc_count > TPCSET_MAX)
		return error_set(error, "the NVIDIA kernel driver speaks of %u SMs and %u TPCs", sm_count,
		                 tpc_count);
	gpu->tpc_count = (uint16_t)tpc_count;
	return read_rows(order.words, fields, sm_count, gpu, error);
}

/* Through a client of its own, so that all handles go with it. */
static int read_gpu(const struct rm_system *system, const struct id_info *id, struct topology *gpu,
                    struct error *error)
{
	struct device_parameters device = {.device_instance = id->device_instance};
	struct subdevice_parameters subdevice = {.subdevice_instance = id->subdevice_instance};
	struct rm rm;
	int result = connect_client(&rm, system, error);

	if (result < 0)
		return -1;
	if (rm_alloc(&rm, rm.client, HANDLE_DEVICE, CLASS_DEVICE, &device, sizeof device) < 0 ||
	    rm_alloc(&rm, HANDLE_DEVICE, HANDLE_SUBDEVICE, CLASS_SUBDEVICE, &subdevice, sizeof subdevice) < 0)
		result = error_set(error, "the NVIDIA kernel driver does not let this process use it");
	else
		result = read_limits(&rm, gpu, error);
	if (result == 0)
		result = read_tpcs(&rm, gpu, error);
	if (result == 0) {
		read_identity(&rm, gpu);
		result = topology_validate(gpu, error);
	}
	system->close(rm.file);
	return result;
}

/* --- all GPUs ----------------------------------------------------------------------------------------- */

/* A GPU is attached, and answers, only while somebody has its device file open. -1 where none opens. */
static int open_devices(const struct rm_system *system, int files[DEVICES_MAX], struct error *error)
{
	int result = error_set(error, "no NVIDIA GPU: there is no /dev/nvidia0");

	for (int i = 0; i < DEVICES_MAX; i++) {
		char path[24];

		snprintf(path, sizeof path, "/dev/nvidia%d", i);
		files[i] = system->open(path);
		if (files[i] >= 0)
			result = 0;
		else if (errno != ENOENT)
			error_set_errno(error, "%s", path);
	}
	return result;
}

static void close_devices(const struct rm_system *system, const int files[DEVICES_MAX])
{
	for (int i = 0; i < DEVICES_MAX; i++) {
		if (files[i] >= 0)
			system->close(files[i]);
	}
}

/* Appends the GPU, if it is wanted, or says why not. */
static int read_attached_gpu(const struct rm *rm, uint32_t id, const struct topology_wanted *wanted,
                             struct topology_list *list, struct error *error)
{
	struct id_info instance = {.id = id};
	struct pci_info pci = {.id = id};
	struct topology *gpu = &list->gpus[list->count];
	struct error why;
	char text[PCI_ADDRESS_TEXT];

	if (rm_control(rm, rm->client, ID_INFO, &instance, sizeof instance) != STATUS_OK ||
	    rm_control(rm, rm->client, PCI_INFO, &pci, sizeof pci) != STATUS_OK)
		return error_set(error, "the NVIDIA kernel driver does not say where its GPU 0x%x is", id);
	struct pci_address address = {.domain = pci.domain, .bus = pci.bus, .device = pci.slot};

	if (!topology_wants(wanted, address))
		return 0;
	pci_address_format(address, text);
	if (topology_find(list, address))
		return error_set(error, "GPU %s: the NVIDIA kernel driver lists it twice", text);
	memset(gpu, 0, sizeof *gpu);
	gpu->pci = address;
	int result = read_gpu(rm->system, &instance, gpu, &why);

	if (result == 0)
		list->count++;
	else
		error_set(error, "GPU %s: %s", text, why.reason);
	return result;
}

/* A GPU that does not answer (another container's, say) is not ours to complain about while others do. */
static int read_attached(const struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
                         struct error *error)
{
	struct attached_ids attached;
	int result = -1;

	memset(list, 0, sizeof *list);
	memset(&attached, 0xff, sizeof attached);
	if (rm_control(rm, rm->client, ATTACHED_IDS, &attached, sizeof attached) != STATUS_OK)
		return error_set(error, "the NVIDIA kernel driver does not list its GPUs");
	error_set(error, "no NVIDIA GPU that this process may use");
	for (unsigned int i = 0; i < ATTACHED_MAX && list->count < TOPOLOGY_GPUS_MAX; i++) {
		int answer = attached.ids[i] != INVALID_ID ? read_attached_gpu(rm, attached.ids[i], wanted, list, error) : 0;

		if (answer < 0)
			result = answer;
	}
	return list->count > 0 ? 0 : result;
}

/* With all of them awake. */
static int read_all(const struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
                    struct error *error)
{
	int files[DEVICES_MAX];
	int result = open_devices(rm->system, files, error);

	if (result == 0)
		result = read_attached(rm, wanted, list, error);
	close_devices(rm->system, files);
	return result;
}

/* Those that are wanted may be awake already, and to wake others takes seconds where nothing keeps them so. */
static int read_wanted(const struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
                       struct error *error)
{
	return read_attached(rm, wanted, list, NULL) == 0 && list->count == wanted->count
	               ? 0
	               : read_all(rm, wanted, list, error);
}

int rm_load(const struct rm_system *system, const struct topology_wanted *wanted, struct topology_list *list,
            struct error *error)
{
	struct error why = {.reason = ""};
	struct rm rm;

	list->count = 0;
	int result = connect_client(&rm, system, &why);

	if (result == 0) {
		result = wanted ? read_wanted(&rm, wanted, list, &why) : read_all(&rm, NULL, list, &why);
		system->close(rm.file);
		topology_sort(list);
	}
	if (result < 0)
		error_set(error, "%s", why.reason);
	return result;
}

/* --- this system -------------------------------------------------------------------------------------- */

/* The driver waits interruptibly, and the program whose process this is may live on signals. */
static int open_device(const char *path)
{
	return (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC));
}

static int call_device(int file, unsigned long request, void *argument)
{
	return (int)TEMP_FAILURE_RETRY(ioctl(file, request, argument));
}

int topology_load_rm(const struct topology_wanted *wanted, struct topology_list *list, struct error *error)
{
	static const struct rm_system here = {open_device, call_device, close};

	return rm_load(&here, wanted, list, error);
}
