#include "memory.h"

#include "base/extremes.h"
#include "layout.h"
#include "state/ledger.h"

/* --- limits ------------------------------------------------------------------------------------------------------- */

/* SEGMENT_MEMORY_OFF if the group has no limit for the process. */
static uint64_t limit_of_group(const struct group *group, uint64_t own)
{
	struct segment_revision revision = {.memory = 0};
	uint64_t number;
	bool is_known = group_read(group, &revision, &number);
	uint64_t limit = is_known ? segment_memory_limit(&revision) : SEGMENT_MEMORY_OFF;

	return group->is_file || limit == own ? limit : SEGMENT_MEMORY_OFF;
}

bool segment_read_memory_limits(const struct segment *segment, struct segment_memory_limits *limits, uint64_t *number)
{
	struct segment_revision revision;
	bool is_known = segment_read(segment, &revision, number);

	if (is_known) {
		limits->own = segment_memory_limit(&revision);
		limits->together = limit_of_group(&segment->group, limits->own);
	}
	return is_known;
}

/* --- use ---------------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of_slot(const struct ledger_gpu *gpu, int slot)
{
	return gpu && slot >= 0 ? ledger_share(gpu, slot) * LEDGER_UNIT : 0;
}

static uint64_t bytes_of_all(const struct ledger *ledger, struct pci_address pci, int file)
{
	const struct ledger_gpu *gpu = ledger ? ledger_look(ledger, pci) : NULL;

	return gpu ? ledger_of_living(ledger, gpu, file) * LEDGER_UNIT : 0;
}

static uint64_t shown(uint64_t limit)
{
	return limit == SEGMENT_MEMORY_OFF ? 0 : limit;
}

struct segment_memory_use segment_read_memory_use(const struct segment *segment, struct pci_address pci)
{
	const struct ledger *ledger = group_ledger(&segment->group);
	struct segment_memory_limits limits = {SEGMENT_MEMORY_OFF, SEGMENT_MEMORY_OFF};
	int slot = ledger ? ledger_slot_of(ledger, segment_owner(segment)) : -1;
	uint64_t number;

	segment_read_memory_limits(segment, &limits, &number);
	bool is_shared = slot >= 0;

	if (!is_shared) {
		ledger = segment_ledger(segment);
		slot = 0;
	}
	return (struct segment_memory_use){
		.limit = shown(min_u64(limits.own, limits.together)),
		.used = bytes_of_slot(ledger_look(ledger, pci), slot),
		.together = bytes_of_all(ledger, pci, is_shared ? segment->group.file : -1),
		.has_gap = atomic_load(&segment->memory->memory_gap) != 0,
	};
}

void segment_ask_memory_use(struct pci_address pci, const struct segment_memory_user *users, unsigned int count)
{
	struct topology_user told[TOPOLOGY_USERS_MAX];
	uint64_t free_bytes;

	for (unsigned int i = 0; i < count; i++)
		told[i] = (struct topology_user){.pid = users[i].pid};
	bool is_answered = topology_read_memory(pci, told, count, &free_bytes);

	for (unsigned int i = 0; i < count && is_answered; i++)
		users[i].use->used = max_u64(users[i].use->used, told[i].bytes);
}

void segment_set_memory_gap(const struct segment *segment)
{
	atomic_store(&segment->memory->memory_gap, 1);
}

struct segment_memory_use segment_read_memory_use_of_group(const struct group *group, struct pci_address pci)
{
	struct segment_revision revision = {.memory = 0};
	uint64_t number;

	group_read(group, &revision, &number);
	return (struct segment_memory_use){
		.limit = shown(segment_memory_limit(&revision)),
		.together = bytes_of_all(group_ledger(group), pci, group->file),
	};
}
