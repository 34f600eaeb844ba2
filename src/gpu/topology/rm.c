#include "rm.h"

#include "rm_abi.h"
#include "rm_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEVICES_MAX 64 /* /dev/nvidia0 and up */

/* --- its GPUs -------------------------------------------------------------------------------------------------- */

/* Opens all device files: the driver lists and describes a GPU only while its device file is open. -1 if none can be
 * opened. */
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

/* Appends the GPU, if it is wanted. -1 with the reason. */
static int read_attached_gpu(const struct rm *rm, uint32_t id, const struct topology_wanted *wanted,
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
	struct rm_instance instance = {.device = numbers.device_instance, .subdevice = numbers.subdevice_instance};

	if (!topology_wants(wanted, address))
		return 0;
	pci_address_format(address, text);
	if (topology_find(list, address))
		return error_set(error, "GPU %s: the NVIDIA kernel driver lists it twice", text);
	memset(gpu, 0, sizeof *gpu);
	gpu->pci = address;
	int result = rm_gpu_read(rm->system, &instance, gpu, &why);

	if (result == 0)
		list->count++;
	else
		error_set(error, "GPU %s: %s", text, why.reason);
	return result;
}

/* A GPU that does not answer, such as another container's, is only an error if no GPU answers. */
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

/* Wakes all GPUs, and reads them. */
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

/* The wanted GPUs may be awake already. Waking the others takes seconds if nothing keeps them awake, so it
 * is avoided. */
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

int topology_load_rm(const struct topology_wanted *wanted, struct topology_list *list, struct error *error)
{
	static const struct rm_system here = {open_device, call_device, close};

	return rm_load(&here, wanted, list, error);
}
