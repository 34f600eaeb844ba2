/* The kernel driver's answers about memory, by way of /dev/nvidiactl: how much memory of a GPU is free, and how much
 * the process has. Managed memory counts once a kernel or a copy has touched the memory, as on an H200. Other processes
 * have their own simulators: each is told to have the same. */
#include "rm.h"

#include "context.h"
#include "faults.h"
#include "memory.h"
#include "gpu/topology/rm_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS 64
#define FIRST_CLIENT 0xc2000000u
#define MEMORY_OF_OTHERS ((uint64_t)444 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1; /* each client gets a duplicate */
static uint32_t clients;
static CUdevice devices[CLIENTS]; /* of each client, the newest */

/* A viewer, with the library preloaded, has not begun to use CUDA. */
int rm_memory_open(void)
{
	cuInit(0);
	pthread_mutex_lock(&lock);
	if (file < 0)
		file = rm_open_file();
	pthread_mutex_unlock(&lock);
	return fcntl(file, F_DUPFD_CLOEXEC, 0);
}

bool rm_memory_is_file(int number)
{
	struct stat own, asked;

	return file >= 0 && fstat(file, &own) == 0 && fstat(number, &asked) == 0 && own.st_ino == asked.st_ino &&
	       own.st_dev == asked.st_dev;
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

static CUdevice *device_of(uint32_t client)
{
	return &devices[(client - FIRST_CLIENT) % CLIENTS];
}

static void alloc(struct rm_alloc *call)
{
	if (call->class == CLASS_CLIENT)
		call->object = FIRST_CLIENT + clients++;
	else if (call->class == CLASS_DEVICE)
		*device_of(call->client) =
			(CUdevice)((const struct device_parameters *)(uintptr_t)call->parameters)->device_instance;
	call->status = STATUS_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void list_gpus(struct attached_ids *attached)
{
	for (CUdevice device = 0; device < ATTACHED_MAX; device++)
		attached->ids[device] = device_topology(device) ? (uint32_t)device : INVALID_ID;
}

static void say_address(struct pci_info *info)
{
	const struct topology *gpu = device_topology((CUdevice)info->id);

	info->domain = gpu->pci.domain;
	info->bus = gpu->pci.bus;
	info->slot = gpu->pci.device;
}

static void say_free(const struct memory_numbers *numbers, CUdevice device)
{
	struct info_entry *entry = (void *)(uintptr_t)numbers->list;

	entry->value = (uint32_t)((DEVICE_MEMORY_BYTES - device_memory_held(device)) >> 10);
}

static void say_use(struct process_info *info, CUdevice device)
{
	for (uint32_t i = 0; i < info->count; i++) {
		bool is_own = (pid_t)info->list[i].pid == getpid();

		info->list[i].status = STATUS_OK;
		info->list[i].own = is_own ? device_memory_held(device) - memory_untouched(device) : MEMORY_OF_OTHERS;
	}
}

static uint32_t answer(const struct rm_control *call)
{
	void *parameters = (void *)(uintptr_t)call->parameters;
	CUdevice device = *device_of(call->client);
	uint32_t status = STATUS_OK;

	if (call->command == ATTACHED_IDS)
		list_gpus(parameters);
	else if (call->command == PCI_INFO)
		say_address(parameters);
	else if (call->command == ID_INFO)
		((struct id_info *)parameters)->device_instance = ((struct id_info *)parameters)->id;
	else if (call->command == MEMORY_NUMBERS)
		say_free(parameters, device);
	else if (call->command == PROCESS_INFO)
		say_use(parameters, device);
	else
		status = STATUS_NOT_PERMITTED;
	return status;
}

int rm_memory_answer(unsigned long request, void *argument)
{
	int result = 0;

	pthread_mutex_lock(&lock);
	if (request == IOCTL_ALLOC) {
		alloc(argument);
	} else if (request == IOCTL_CONTROL) {
		((struct rm_control *)argument)->status = answer(argument);
	} else {
		errno = ENOTTY;
		result = -1;
	}
	pthread_mutex_unlock(&lock);
	return result;
}
