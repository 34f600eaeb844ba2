#include "rm_client.h"

#include "rm_abi.h"

#include <errno.h>
#include <stddef.h>

int rm_alloc(struct rm *rm, uint32_t parent, uint32_t object, uint32_t class, void *parameters, uint32_t size)
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

uint32_t rm_control(const struct rm *rm, uint32_t object, uint32_t command, void *parameters, uint32_t size)
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

int rm_connect(struct rm *rm, const struct rm_system *system, struct error *error)
{
	*rm = (struct rm){.system = system, .file = system->open("/dev/nvidiactl")};
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

void rm_disconnect(const struct rm *rm)
{
	rm->system->close(rm->file);
}
