/*
 * The ioctls of NVIDIA's kernel driver that we need, as structures and numbers. Published in open-gpu-kernel-modules;
 * the comments name the header (under src/common/sdk/nvidia/inc).
 */
#pragma once

#include "topology.h"

#include <stdint.h>
#include <sys/ioctl.h>

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
		uint16_t unicode[0x40]; /* removed in driver 595, which halves the size */
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

#define MEMORY_NUMBERS 0x20801301
struct memory_numbers { /* ctrl/ctrl2080/ctrl2080fb.h, NV2080_CTRL_FB_GET_INFO_PARAMS */
	uint32_t count;
	uint64_t list; /* of struct info_entry */
};

#define MEMORY_NUMBERS_FREE 0x16 /* the same, NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE: KiB */

#define PROCESS_INFO 0x2080018e
struct process_info { /* ctrl/ctrl2080/ctrl2080gpu.h, NV2080_CTRL_GPU_GET_PID_INFO_PARAMS */
	uint32_t count;
	struct process_entry {
		uint32_t pid;
		uint32_t index; /* 0: memory */
		uint32_t status;
		uint64_t own, shared, imported, protected[3]; /* bytes of memory */
		uint32_t instances[2];
	} list[TOPOLOGY_USERS_MAX];
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

/* The SM version is the compute capability: 0x905 would be 9.5. Before 5.0 the minor number was one digit further left.
 * 12.0 was called 10.4 at first (ctrl2080gr.h, SM_VERSION_10_04). */
#define SM_VERSION_OF_5_0 0x500
#define SM_VERSION_10_04 0xa04
#define SM_VERSION_12_00 0xc00

/* The table of SMs: 512 rows of 16-bit fields, two counts, a route. Newer drivers have longer rows, up to 9 fields so
 * far; the call fails unless the size is exactly the driver's. */
#define SM_ORDER 0x2080121b
#define SM_ROWS 512
#define SM_FIELDS_MAX 9

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
_Static_assert(sizeof(struct memory_numbers) == 16, "layout");
_Static_assert(sizeof(struct process_entry) == 72, "layout");
_Static_assert(sizeof(struct process_info) == 14408, "layout");
