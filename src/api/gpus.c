#include "api/internal.h"

#include "gpu/topology/select_tpcs.h"

#include <stdlib.h>
#include <strings.h>

_Static_assert(sizeof((struct nvtaskset_gpu *)NULL)->name >= TOPOLOGY_NAME_MAX, "room for any name");
_Static_assert(sizeof((struct nvtaskset_gpu *)NULL)->uuid >= TOPOLOGY_UUID_MAX, "room for any UUID");
_Static_assert(sizeof((struct nvtaskset_gpu *)NULL)->bus_id >= PCI_ADDRESS_TEXT, "room for any PCI address");

int nvtaskset_topology_load(struct nvtaskset_topology **topology, struct nvtaskset_error *error)
{
	struct nvtaskset_topology *loaded = malloc(sizeof *loaded);

	if (!loaded)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_NO_MEMORY, "no memory");
	if (topology_load(&loaded->list, inside_error(error)) < 0) {
		free(loaded);
		return api_failed(error, NVTASKSET_ERROR_NOT_KNOWN);
	}
	for (unsigned int gpu = 0; gpu < loaded->list.count; gpu++)
		loaded->all[gpu] = topology_all(&loaded->list.gpus[gpu]);
	*topology = loaded;
	return 0;
}

void nvtaskset_topology_free(struct nvtaskset_topology *topology)
{
	free(topology);
}

unsigned int nvtaskset_topology_gpu_count(const struct nvtaskset_topology *topology)
{
	return topology->list.count;
}

const struct topology *api_gpu(const struct nvtaskset_topology *topology, unsigned int gpu, struct error *error)
{
	if (gpu < topology->list.count)
		return &topology->list.gpus[gpu];
	error_set_code(error, NVTASKSET_ERROR_NOT_KNOWN, "GPU %u: this machine has GPUs 0-%u", gpu,
	               topology->list.count - 1);
	return NULL;
}

static int check_set(const struct tpcset *set, const struct tpcset *all, const struct topology *gpu,
                     struct error *error)
{
	struct tpcset absent = tpcset_without(set, all);

	if (!tpcset_is_empty(&absent))
		return error_set_code(error, NVTASKSET_ERROR_NOT_KNOWN, "TPC %u: this GPU has TPCs 0-%u",
		                      tpcset_next(&absent, 0), gpu->tpc_count - 1u);
	if (tpcset_is_empty(set))
		return error_set_code(error, NVTASKSET_ERROR_INVALID,
		                      "an empty set: a program without TPCs would never run");
	return 0;
}

struct nvtaskset_set api_set_on(const struct nvtaskset_topology *topology, unsigned int gpu,
                                const struct segment_revision *revision)
{
	const struct segment_partition *found = revision_find_partition(revision, topology->list.gpus[gpu].pci);
	const struct tpcset *all = &topology->all[gpu];
	struct tpcset present = tpcset_and(all, found ? &found->set : all);

	return outside(&present);
}

int api_want_set(struct segment_revision *wanted, const struct nvtaskset_topology *topology, unsigned int gpu,
                 const struct nvtaskset_set *set, struct error *error)
{
	const struct topology *model = api_gpu(topology, gpu, error);

	*wanted = (struct segment_revision){.count = 1, .partitions[0].set = inside(set)};
	if (!model || check_set(&wanted->partitions[0].set, &topology->all[gpu], model, error) < 0)
		return -1;
	wanted->partitions[0].pci = model->pci;
	return 0;
}

int nvtaskset_topology_find_gpu(const struct nvtaskset_topology *topology, const char *name, unsigned int *gpu,
                                struct nvtaskset_error *error)
{
	const struct topology_list *list = &topology->list;
	struct pci_address pci;
	bool is_address = pci_address_parse(&pci, name, NULL) == 0, found = false;

	for (unsigned int i = 0; i < list->count && !found && name[0] != '\0'; i++) {
		found =
		    is_address ? pci_address_equal(list->gpus[i].pci, pci) : strcasecmp(list->gpus[i].uuid, name) == 0;
		if (found)
			*gpu = i;
	}
	return found ? 0
	             : error_set_code(inside_error(error), NVTASKSET_ERROR_NOT_KNOWN,
	                              "GPU '%.60s': no GPU here has this bus id or UUID", name);
}

int nvtaskset_gpu_describe(const struct nvtaskset_topology *topology, unsigned int gpu,
                           struct nvtaskset_gpu *description, struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(topology, gpu, inside_error(error));
	struct nvtaskset_gpu filled;
	char bus_id[PCI_ADDRESS_TEXT];

	if (!model)
		return -1;
	filled = (struct nvtaskset_gpu){.compute_major = model->compute_major,
	                                .compute_minor = model->compute_minor,
	                                .tpc_count = model->tpc_count,
	                                .sms_per_tpc = model->sms_per_tpc,
	                                .gpc_limit = model->gpc_limit};
	memcpy(filled.bus_id, pci_address_format(model->pci, bus_id), sizeof bus_id);
	memcpy(filled.name, model->name, sizeof model->name);
	memcpy(filled.uuid, model->uuid, sizeof model->uuid);
	return api_fill(description, &filled, sizeof filled, inside_error(error));
}

/* --- GPCs --------------------------------------------------------------------------------------------------------- */

static const struct topology_tpc *find_tpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                           unsigned int tpc)
{
	const struct topology *model = api_gpu(topology, gpu, NULL);

	return model && tpc < model->tpc_count ? &model->tpcs[tpc] : NULL;
}

static int known(uint16_t number)
{
	return number == TOPOLOGY_UNKNOWN ? -1 : number;
}

int nvtaskset_gpu_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc)
{
	const struct topology_tpc *found = find_tpc(topology, gpu, tpc);

	return found ? known(found->gpc) : -1;
}

int nvtaskset_gpu_virtual_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc)
{
	const struct topology_tpc *found = find_tpc(topology, gpu, tpc);

	return found ? known(found->virtual_gpc) : -1;
}

struct nvtaskset_set nvtaskset_gpu_tpcs(const struct nvtaskset_topology *topology, unsigned int gpu)
{
	static const struct tpcset none;

	return outside(api_gpu(topology, gpu, NULL) ? &topology->all[gpu] : &none);
}

static struct nvtaskset_set tpcs_of(struct tpcset (*group)(const struct topology *, unsigned int),
                                    const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int number)
{
	const struct topology *model = api_gpu(topology, gpu, NULL);
	/* TOPOLOGY_UNKNOWN is no group, although TPCs may have the number. */
	struct tpcset tpcs = model && number != TOPOLOGY_UNKNOWN ? group(model, number) : (struct tpcset){{0}};

	return outside(&tpcs);
}

struct nvtaskset_set nvtaskset_gpu_tpcs_of_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                               unsigned int gpc)
{
	return tpcs_of(topology_gpc, topology, gpu, gpc);
}

struct nvtaskset_set nvtaskset_gpu_tpcs_of_virtual_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                                       unsigned int virtual_gpc)
{
	return tpcs_of(topology_virtual_gpc, topology, gpu, virtual_gpc);
}

int nvtaskset_gpu_choose(const struct nvtaskset_topology *topology, unsigned int gpu, const struct nvtaskset_set *used,
                         unsigned int count, enum nvtaskset_strategy strategy, struct nvtaskset_set *chosen,
                         struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(topology, gpu, inside_error(error));
	struct tpcset taken = used ? inside(used) : (struct tpcset){{0}}, set = {{0}};

	if (!model)
		return -1;
	if (count == 0)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID,
		                      "0 TPCs: a program without TPCs would never run");
	if (strategy != NVTASKSET_PACKED && strategy != NVTASKSET_DISTRIBUTED)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID,
		                      "strategy %d: no such strategy", (int)strategy);
	if (select_tpcs(&set, model, &taken, count,
	                strategy == NVTASKSET_DISTRIBUTED ? STRATEGY_DISTRIBUTED : STRATEGY_PACKED,
	                inside_error(error)) < 0)
		return api_failed(error, NVTASKSET_ERROR_NO_ROOM);
	*chosen = outside(&set);
	return 0;
}
