/*
 * Any content in a board's memory. Who reads it does bounded work and gets claims that are sound; who claims has a
 * place that says what it claimed, or is told that there is none.
 */
#include "fuzz.h"

#include "base/identity.h"
#include "base/memfd_find.h"
#include "state/board/layout.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define NOW (1000 * SECOND)

/* Bits of the input's first byte. */
enum {
	KEEP_HEADER = 1,
	NUMBERS_ARE_NEAR = 2, /* so that claims are sound more often */
	OWNERS_AGREE = 4
};

static const struct pci_address gpu = {.bus = 0x3b};
static struct board_memory *memory;

/* The board that this process is on. */
static void set_up(void)
{
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(directory >= 0 && board_join(NULL) == 0);
	memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED,
	              memfd_next(directory, 0, BOARD_LINK, NULL), 0);
	must(memory != MAP_FAILED);
	close(directory);
}

static void adjust(uint8_t choices)
{
	for (int i = 0; i < BOARD_PLACES; i++) {
		struct board_place *place = &memory->places[i];

		for (int version = 0; version < BOARD_VERSIONS; version++) {
			struct board_entry *entry = (void *)place->versions[version];

			if (choices & OWNERS_AGREE)
				entry->owner.who = place->who;
			if (choices & NUMBERS_ARE_NEAR) {
				entry->owner.namespace = identity_own().namespace; /* others' claims are not read */
				entry->claim.priority &= 0x3f;
				entry->claim.weight &= 0x3f;
				entry->claim.tpcs = (struct tpcset){{entry->claim.tpcs.words[0] & 7}}; /* sometimes none */
				entry->claim.pci = gpu;
			}
		}
	}
}

static void check_claims(void)
{
	static struct board_peer peers[BOARD_PLACES];
	unsigned int count = board_read(gpu, peers);

	must(count <= BOARD_PLACES);
	for (unsigned int i = 0; i < count; i++) {
		const struct board_claim *claim = &peers[i].claim;

		must(pci_address_equal(claim->pci, gpu) && claim->priority <= 99);
		must(claim->weight >= 1 && claim->weight <= 10000 && !tpcset_is_empty(&claim->tpcs));
	}
}

static bool is_said(const struct board_claim *wanted)
{
	bool found = false;

	for (int i = 0; i < BOARD_PLACES && !found; i++) {
		struct board_entry entry;
		const struct board_claim *claim = &entry.claim;

		found = board_place_read(&memory->places[i], &entry) && claim->written == wanted->written &&
		        claim->served_ns == wanted->served_ns && claim->priority == wanted->priority &&
		        claim->weight == wanted->weight && pci_address_equal(claim->pci, wanted->pci) &&
		        tpcset_equal(&claim->tpcs, &wanted->tpcs);
	}
	return found;
}

static void check_own(const uint8_t *data, size_t size)
{
	struct board_claim claim = {.pci = gpu, .tpcs = {{data[0], data[0], 1, size}}, .weight = 1 + data[0],
	                            .priority = data[0] % 100, .served_ns = size, .written = NOW};

	if (board_claim(&claim))
		must(is_said(&claim));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!memory)
		set_up();
	if (size < 2)
		return 0;
	fill(memory, sizeof *memory, data + 2, size - 2);
	if (data[0] & KEEP_HEADER) {
		memory->magic = BOARD_MAGIC;
		memory->version = BOARD_VERSION;
		memory->size = sizeof *memory;
	}
	adjust(data[0]);
	check_claims();
	check_own(data + 1, size);
	return 0;
}
