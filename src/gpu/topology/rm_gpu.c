#include "rm_gpu.h"

#include "rm_abi.h"

#include <stddef.h>
#include <string.h>

/* Handles of our choice. Each GPU has a client of its own, so they can be the same for all. */
enum {
	HANDLE_DEVICE = 0x6e760001,
	HANDLE_SUBDEVICE = 0x6e760002
};

/* --- the GPU -------------------------------------------------------------------------------------------- */

/* While MIG is on, the driver describes only a GPU's instances, and only to their users. */
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

/* Name and UUID are only shown, so it is no error if they are missing. */
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

/* --- TPCs ------------------------------------------------------------------------------------------------ */

/* The number of fields in a row of the table of SMs, by driver version. */
static const unsigned int sm_field_counts[] = {
	9, /* from driver 580 on */
	7, /* 575 */
	6, /* up to 570 */
};

/* Reads the table, and the number of fields in its rows. Returns STATUS_WRONG_SIZE if no known size is the driver's. */
static uint32_t read_sm_order(const struct rm *rm, struct sm_order *order, unsigned int *fields)
{
	const size_t count = sizeof sm_field_counts / sizeof sm_field_counts[0];
	uint32_t status = STATUS_WRONG_SIZE;

	for (size_t i = 0; i < count && status == STATUS_WRONG_SIZE; i++) {
		/* The counts end at a multiple of 4, and the route is aligned to 8. */
		size_t route = ((size_t)SM_ROWS * sm_field_counts[i] * 2 + 4 + 7) / 8 * 8;

		*fields = sm_field_counts[i];
		memset(order, 0, sizeof *order);
		status = rm_control(rm, HANDLE_SUBDEVICE, SM_ORDER, order,
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

/* All SMs of a TPC must describe it in the same way, and each TPC must have an SM. */
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

int rm_gpu_read(const struct rm_system *system, const struct rm_instance *instance, struct topology *gpu,
                struct error *error)
{
	struct device_parameters device = {.device_instance = instance->device};
	struct subdevice_parameters subdevice = {.subdevice_instance = instance->subdevice};
	struct rm rm;
	int result = rm_connect(&rm, system, error);

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
	rm_disconnect(&rm);
	return result;
}
