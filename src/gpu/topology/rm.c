#include "rm.h"

#include "rm_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* --- a connection ---------------------------------------------------------------------------------------------- */

#define HANDLES 0x6e760000 /* of our choice */

/* A client of the driver, on /dev/nvidiactl. The driver frees all objects with the client. */
struct rm {
	const struct rm_system *system;
	int file;
	uint32_t client;
	uint32_t subdevice; /* the GPU being read: the newest handle */
};

/* Makes an object below its parent, with a handle of our choice. -1 if the kernel or the driver refuses. */
static int rm_alloc(struct rm *rm, uint32_t parent, uint32_t object, uint32_t class, void *parameters, uint32_t size)
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

/* Sends a command to an object. Returns the driver's status (rm_abi.h); STATUS_NOT_PERMITTED if the kernel refuses. */
static uint32_t rm_control(const struct rm *rm, uint32_t object, uint32_t command, void *parameters, uint32_t size)
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

static void rm_disconnect(const struct rm *rm)
{
	rm->system->close(rm->file);
}

static int rm_connect(struct rm *rm, const struct rm_system *system, struct error *error)
{
	*rm = (struct rm){.system = system, .file = system->open("/dev/nvidiactl"), .subdevice = HANDLES};
	if (rm->file < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		return error_set(error, "no NVIDIA GPU: /dev/nvidiactl is not there; is the driver loaded?");
	if (rm->file < 0)
		return error_set_errno(error, "/dev/nvidiactl");
	if (rm_alloc(rm, 0, 0, CLASS_CLIENT, NULL, 0) < 0) {
		rm_disconnect(rm);
		return error_set(error, "the NVIDIA kernel driver does not answer");
	}
	return 0;
}

/* --- the GPU -------------------------------------------------------------------------------------------- */

/* While MIG is on, the driver describes only a GPU's instances, and only to their users. */
static bool is_mig_on(const struct rm *rm)
{
	struct info_entry entry = {.index = INFO_MIG};
	struct gpu_info info = {.count = 1, .list = (uintptr_t)&entry};

	return rm_control(rm, rm->subdevice, GPU_INFO, &info, sizeof info) == STATUS_OK &&
	       entry.value == MIG_ON;
}

static int explain(const struct rm *rm, uint32_t status, const char *what, struct error *error)
{
	bool mig = is_mig_on(rm);

	if (mig)
		error_set(error, "MIG is on: only whole GPUs can be partitioned");
	else if (status == STATUS_NOT_PERMITTED)
		error_set(error, "the NVIDIA kernel driver does not let this process ask %s", what);
	else
		error_set(error, "the NVIDIA kernel driver does not say %s (status 0x%x); nvtaskset knows "
		                 "versions 515 to 595", what, status);
	return mig ? TOPOLOGY_REFUSED : -1;
}

/* Copies the text up to the first character that is below `first` or not ASCII. `to` must be all zeros. */
static void copy_text(char *to, const char *from, size_t size, char first)
{
	for (size_t i = 0; i + 1 < size && from[i] >= first && from[i] <= '~'; i++)
		to[i] = from[i];
}

/* Name and UUID are only shown: missing ones are no error. */
static void read_identity(const struct rm *rm, struct topology *gpu)
{
	struct name_string name = {.flags = 0};
	struct gid_info gid = {.flags = 0};
	uint32_t short_size = offsetof(struct name_string, text) + sizeof name.text;

	_Static_assert(sizeof name.text >= sizeof gpu->name && sizeof gid.text >= sizeof gpu->uuid, "copied");
	if (rm_control(rm, rm->subdevice, NAME_STRING, &name, sizeof name) == STATUS_OK ||
	    rm_control(rm, rm->subdevice, NAME_STRING, &name, short_size) == STATUS_OK)
		copy_text(gpu->name, name.text, sizeof gpu->name, ' ');
	if (rm_control(rm, rm->subdevice, GID_INFO, &gid, sizeof gid) == STATUS_OK)
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
	uint32_t status = rm_control(rm, rm->subdevice, ENGINE_INFO, &info, sizeof info);

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

/* --- TPCs ------------------------------------------------------------------------------------------------ */

/* The number of fields in a row of the table of SMs, by driver version. */
static const unsigned int sm_field_counts[] = {
	9, /* from driver 580 on */
	7, /* 575 */
	6, /* up to 570 */
};

/* Reads the table, and the number of fields in a row. Returns STATUS_WRONG_SIZE if no known size is the driver's. */
static uint32_t read_sm_order(const struct rm *rm, struct sm_order *order, unsigned int *fields)
{
	const size_t count = sizeof sm_field_counts / sizeof sm_field_counts[0];
	uint32_t status = STATUS_WRONG_SIZE;

	for (size_t i = 0; i < count && status == STATUS_WRONG_SIZE; i++) {
		/* The counts end at a multiple of 4, and the route is aligned to 8. */
		size_t route = ((size_t)SM_ROWS * sm_field_counts[i] * 2 + 4 + 7) / 8 * 8;

		*fields = sm_field_counts[i];
		memset(order, 0, sizeof *order);
		status = rm_control(rm, rm->subdevice, SM_ORDER, order,
		                    (uint32_t)(route + sizeof(struct route)));
	}
	return status;
}

/* Reads a row's TPC. A migratable number beyond the limit would give the bit of another group. */
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

/* All SMs of a TPC must describe the TPC in the same way, and each TPC must have an SM. */
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
			return error_set(error, "the NVIDIA kernel driver contradicts itself about TPC %u", number);
		gpu->tpcs[number] = tpc;
		tpcset_add(&seen, number);
	}
	if (tpcset_count(&seen) != gpu->tpc_count)
		return error_set(error, "the NVIDIA kernel driver describes %u of %u TPCs",
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
		return error_set(error, "the NVIDIA kernel driver reports %u SMs and %u TPCs", sm_count,
		                 tpc_count);
	gpu->tpc_count = (uint16_t)tpc_count;
	return read_rows(order.words, fields, sm_count, gpu, error);
}

/* --- reading a GPU --------------------------------------------------------------------------------------- */

/* Makes the objects of a GPU, for controls. Freed with the client: freeing each takes time. -1 with the reason. */
static int make_objects(struct rm *rm, const struct id_info *numbers, struct error *error)
{
	struct device_parameters device = {.device_instance = numbers->device_instance};
	struct subdevice_parameters subdevice = {.subdevice_instance = numbers->subdevice_instance};
	uint32_t handle = rm->subdevice + 1;

	rm->subdevice += 2;
	if (rm_alloc(rm, rm->client, handle, CLASS_DEVICE, &device, sizeof device) < 0 ||
	    rm_alloc(rm, handle, rm->subdevice, CLASS_SUBDEVICE, &subdevice, sizeof subdevice) < 0)
		return error_set(error, "the NVIDIA kernel driver does not let this process use it");
	return 0;
}

/* Reads all of an attached GPU except the PCI address; unknown fields stay unchanged. -1 with the reason, or
 * TOPOLOGY_REFUSED like topology_load_rm. */
static int read_gpu(struct rm *rm, const struct id_info *numbers, struct topology *gpu, struct error *error)
{
	int result = make_objects(rm, numbers, error);

	if (result == 0)
		result = read_limits(rm, gpu, error);
	if (result == 0)
		result = read_tpcs(rm, gpu, error);
	if (result == 0) {
		read_identity(rm, gpu);
		result = topology_validate(gpu, error);
	}
	return result;
}

#define DEVICES_MAX 64 /* /dev/nvidia0 and up */

/* --- the client's GPUs -------------------------------------------------------------------------------------------- */

/* Opens all device files: the driver lists and describes a GPU only while the device file is open. -1 if no device file
 * can be opened. */
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

/* Appends the GPU, if wanted. -1 with the reason. */
static int read_attached_gpu(struct rm *rm, uint32_t id, const struct topology_wanted *wanted,
                             struct topology_list *list, struct error *error)
{
	struct id_info numbers = {.id = id};
	struct pci_info pci = {.id = id};
	struct topology *gpu = &list->gpus[list->count];
	struct error why;
	char text[PCI_ADDRESS_TEXT];

	if (rm_control(rm, rm->client, ID_INFO, &numbers, sizeof numbers) != STATUS_OK ||
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
	int result = read_gpu(rm, &numbers, gpu, &why);

	if (result == 0)
		list->count++;
	else
		error_set(error, "GPU %s: %s", text, why.reason);
	return result;
}

/* A GPU without an answer, as in another container, is only an error if no GPU answers. */
static int read_attached(struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
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
		int answer =
			attached.ids[i] != INVALID_ID ? read_attached_gpu(rm, attached.ids[i], wanted, list, error) : 0;

		if (answer < 0)
			result = answer;
	}
	return list->count > 0 ? 0 : result;
}

/* Wakes all GPUs, and reads them. */
static int read_all(struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
                    struct error *error)
{
	int files[DEVICES_MAX];
	int result = open_devices(rm->system, files, error);

	if (result == 0)
		result = read_attached(rm, wanted, list, error);
	for (int i = 0; i < DEVICES_MAX; i++) {
		if (files[i] >= 0)
			rm->system->close(files[i]);
	}
	return result;
}

/* The wanted GPUs may be awake already. Waking other GPUs takes seconds if nothing keeps the GPUs awake. */
static int read_wanted(struct rm *rm, const struct topology_wanted *wanted, struct topology_list *list,
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
	int result = rm_connect(&rm, system, &why);

	if (result == 0) {
		result = wanted ? read_wanted(&rm, wanted, list, &why) : read_all(&rm, NULL, list, &why);
		rm_disconnect(&rm);
		topology_sort(list);
	}
	if (result < 0)
		error_set(error, "%s", why.reason);
	return result;
}

/* --- memory ------------------------------------------------------------------------------------------- */

/* The GPU's numbers, if the driver lists the GPU: a GPU in use is awake. */
static bool find_gpu(const struct rm *rm, struct pci_address wanted, struct id_info *numbers)
{
	struct attached_ids attached;
	bool found = false;

	memset(&attached, 0xff, sizeof attached);
	if (rm_control(rm, rm->client, ATTACHED_IDS, &attached, sizeof attached) != STATUS_OK)
		return false;
	for (unsigned int i = 0; i < ATTACHED_MAX && !found; i++) {
		struct pci_info pci = {.id = attached.ids[i]};

		*numbers = (struct id_info){.id = attached.ids[i]};
		found = attached.ids[i] != INVALID_ID &&
		        rm_control(rm, rm->client, PCI_INFO, &pci, sizeof pci) == STATUS_OK &&
		        pci_address_equal((struct pci_address){pci.domain, pci.bus, pci.slot}, wanted) &&
		        rm_control(rm, rm->client, ID_INFO, numbers, sizeof *numbers) == STATUS_OK;
	}
	return found;
}

static void read_users(const struct rm *rm, struct topology_user *users, unsigned int count)
{
	struct process_info *info = calloc(1, sizeof *info); /* too large for small stacks */

	for (unsigned int i = 0; i < count && info; i++)
		info->list[info->count++].pid = (uint32_t)users[i].pid;
	bool is_told =
		info && rm_control(rm, rm->subdevice, PROCESS_INFO, info, sizeof *info) == STATUS_OK;

	for (unsigned int i = 0; i < count; i++) {
		const struct process_entry *entry = is_told ? &info->list[i] : NULL;

		users[i].bytes = entry && entry->status == STATUS_OK ? entry->own + entry->shared : 0;
	}
	free(info);
}

bool rm_read_memory(const struct rm_system *system, struct pci_address pci, struct topology_user *users,
                    unsigned int count, uint64_t *free_bytes)
{
	struct info_entry entry = {.index = MEMORY_NUMBERS_FREE};
	struct memory_numbers info = {.count = 1, .list = (uintptr_t)&entry};
	struct id_info numbers;
	struct rm rm;

	if (rm_connect(&rm, system, NULL) < 0)
		return false;
	bool is_known = find_gpu(&rm, pci, &numbers) && make_objects(&rm, &numbers, NULL) == 0 &&
	                rm_control(&rm, rm.subdevice, MEMORY_NUMBERS, &info, sizeof info) == STATUS_OK;

	*free_bytes = (uint64_t)entry.value << 10;
	if (is_known)
		read_users(&rm, users, count);
	rm_disconnect(&rm);
	return is_known;
}

/* --- this system -------------------------------------------------------------------------------------- */

/* The driver's waits can be interrupted, and the program of this process may use signals. */
static int open_device(const char *path)
{
	return (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_CLOEXEC));
}

static int call_device(int file, unsigned long request, void *argument)
{
	return (int)TEMP_FAILURE_RETRY(ioctl(file, request, argument));
}

static const struct rm_system here = {open_device, call_device, close};

int topology_load_rm(const struct topology_wanted *wanted, struct topology_list *list, struct error *error)
{
	return rm_load(&here, wanted, list, error);
}

bool topology_read_memory(struct pci_address pci, struct topology_user *users, unsigned int count,
                          uint64_t *free_bytes)
{
	return rm_read_memory(&here, pci, users, count, free_bytes);
}
