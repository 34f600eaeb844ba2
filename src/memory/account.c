#include "account.h"

#include "base/extremes.h"
#include "base/identity.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "state/group/find.h"
#include "state/group/group.h"
#include "state/handle.h"
#include "state/ledger.h"
#include "state/revision_text.h"
#include "state/segment/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct account {
	struct pci_address pci;
	CUdevice device;
	uint64_t bytes; /* of this process */
	struct ledger_gpu *gpu; /* NULL: the ledger has no room */
	struct ledger_gpu *own; /* on the segment's ledger, for watchers, where the ledger is apart; else NULL */
};

static struct segment segment;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct account accounts[LEDGER_GPUS];
static atomic_uint count; /* raised when the account is filled: readers take no lock */

/* The ledger, and the process's slot. */
static struct {
	struct ledger *ledger; /* NULL: not opened yet */
	int slot;
	bool is_apart;         /* of the user's members of a group (state/group/apart.c) */
	int file;              /* -1: the ledger is not shared */
	ino_t inode;           /* The program may close the file, and open another at the same number. */
	size_t size;
} book = {.file = -1};

/* The first process of the program's command; 0: unknown. */
static uint64_t command;

/* The limits in force, and the number of their revision. */
static struct segment_memory_limits limits = {SEGMENT_MEMORY_OFF, SEGMENT_MEMORY_OFF};
static uint64_t limits_number;

/* --- the ledger --------------------------------------------------------------------------------------------------- */

static bool has_file(void)
{
	return book.file >= 0 && handle_leads_to(book.file, book.inode, book.size);
}

static void close_book(void)
{
	if (book.is_apart)
		apart_unmap(book.ledger);
	else if (book.file >= 0)
		group_ledger_unmap(book.ledger);
	if (has_file())
		close(book.file);
	book.ledger = NULL;
	book.file = -1;
	book.is_apart = false;
}

/* Takes the file over. Nothing is open if no slot there is free. */
static void join(struct ledger *ledger, int file, bool is_apart)
{
	struct stat status = {.st_size = 0};

	fstat(file, &status);
	book.ledger = ledger;
	book.file = file;
	book.inode = status.st_ino;
	book.size = (size_t)status.st_size;
	book.is_apart = is_apart;
	book.slot = ledger_join(ledger, file);
	limits_number = 0;
	if (book.slot < 0)
		close_book();
}

/* The group's own, or the ledger of this user's members. */
static void open_groups_book(void)
{
	int file = group_open_to_write(&segment.group, segment_group_descriptor(&segment)), apart = -1;
	struct ledger *ledger = file >= 0 ? group_ledger_map(file) : NULL;

	if (ledger) {
		join(ledger, handle_move_up(file), false);
	} else if (file >= 0) {
		apart = apart_open(&segment.group, file, &ledger);
		close(file);
	}
	if (apart >= 0)
		join(ledger, apart, true);
}

static void open_book(void)
{
	if (!book.ledger)
		open_groups_book();
	if (!book.ledger) {
		book.ledger = segment_ledger(&segment);
		book.slot = ledger_join(book.ledger, -1);
	}
}

void accounts_use(const struct segment *wanted)
{
	const char *root = secure_getenv(SEGMENT_ROOT_ENVIRONMENT);

	segment = *wanted;
	command = root ? strtoull(root, NULL, 10) : 0;
	limits_number = 0;
}

bool accounts_are_limited(void)
{
	struct segment_memory_limits now;
	uint64_t number;

	return segment_read_memory_limits(&segment, &now, &number) &&
	       (now.own != SEGMENT_MEMORY_OFF || now.together != SEGMENT_MEMORY_OFF);
}

/* The file's lock is the parent's for as long as any process has the file open. */
void accounts_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	close_book();
	count = 0;
}

void account_note_gap(void)
{
	segment_set_memory_gap(&segment);
}

void account_reclaim(void)
{
	pthread_mutex_lock(&lock);
	open_book();
	if (has_file())
		ledger_reclaim(book.ledger, book.file, book.slot);
	pthread_mutex_unlock(&lock);
}

/* --- the GPUs ----------------------------------------------------------------------------------------------------- */

static struct account *find_known(struct pci_address pci)
{
	struct account *found = NULL;

	for (unsigned int i = 0; i < count && !found; i++)
		found = pci_address_equal(accounts[i].pci, pci) ? &accounts[i] : NULL;
	return found;
}

static struct account *find_account(struct pci_address pci, CUdevice device)
{
	pthread_mutex_lock(&lock);
	open_book();
	struct account *found = find_known(pci);
	if (!found && count < LEDGER_GPUS) {
		found = &accounts[count];
		*found = (struct account){.pci = pci, .device = device, .gpu = ledger_find(book.ledger, pci)};
		if (book.is_apart)
			found->own = ledger_find(segment_ledger(&segment), pci);
		count++;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

struct account *account_of_device(CUdevice device)
{
	char text[PCI_ADDRESS_TEXT] = "";
	struct pci_address pci;
	bool is_known = device >= 0 && driver.device_get_pci_bus_id(text, sizeof text, device) == CUDA_SUCCESS &&
	                pci_address_parse(&pci, text, NULL) == 0;

	return is_known ? find_account(pci, device) : NULL;
}

/* Of a GPU whose topology is known, the driver is asked once. */
struct account *account_of_context(CUcontext context)
{
	const struct gpu *gpu = context ? contexts_gpu(context) : NULL;
	struct account *found = gpu && gpu->topology ? find_known(gpu->pci) : NULL;
	CUdevice device;

	if (!found && context && contexts_device(context, &device) == CUDA_SUCCESS)
		found = account_of_device(device);
	return found;
}

CUdevice account_device(const struct account *account)
{
	return account->device;
}

struct pci_address account_pci(const struct account *account)
{
	return account->pci;
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

/* Within a group that fences, all processes of a command obey the command's limit together: processes with the same
 * limit, and with the same first process. */
static bool is_of_command(void)
{
	return segment.group.is_file && book.file >= 0 && limits.own < limits.together;
}

static void publish_command(void)
{
	uint64_t number = (command << 32 ^ identity_own().namespace) * UINT64_C(0x9e3779b97f4a7c15) ^ limits.own;

	atomic_store(&book.ledger->members[book.slot].command, command > 0 && is_of_command() ? number : 0);
}

/* A revision that cannot be read changes nothing. An edit in between makes the number older than the limits: read
 * once more. */
static void read_limits(void)
{
	uint64_t now = segment_revision_number(&segment), number;

	if (limits_number != now && segment_read_memory_limits(&segment, &limits, &number)) {
		limits_number = now;
		publish_command();
	}
}

/* --- amounts ------------------------------------------------------------------------------------------------------ */

static uint32_t limit_in_kib(uint64_t bytes)
{
	return bytes / LEDGER_UNIT < LEDGER_UNLIMITED ? (uint32_t)(bytes / LEDGER_UNIT) : LEDGER_UNLIMITED;
}

static int64_t in_units(uint64_t bytes)
{
	return (int64_t)((bytes + LEDGER_UNIT - 1) / LEDGER_UNIT);
}

static bool change_ledger(const struct account *account, int64_t change, bool obeys)
{
	uint32_t together = obeys ? limit_in_kib(limits.together) : LEDGER_UNLIMITED;
	uint32_t own = obeys && is_of_command() ? limit_in_kib(limits.own) : LEDGER_UNLIMITED;

	return ledger_change_within(account->gpu, book.slot, change, together,
	                            own == LEDGER_UNLIMITED ? NULL : book.ledger, own);
}

/* Whether the ledger has them now. */
static bool write_down(struct account *account, uint64_t bytes, bool obeys)
{
	int64_t change = in_units(bytes) - in_units(account->bytes);
	bool is_done = !account->gpu || change == 0 || change_ledger(account, change, obeys);

	if (is_done || !obeys)
		account->bytes = bytes;
	if (is_done && account->own && change != 0)
		ledger_change(account->own, 0, change, LEDGER_UNLIMITED);
	return is_done;
}

bool account_reserve(struct account *account, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	read_limits();
	bool is_limited = limits.own != SEGMENT_MEMORY_OFF || limits.together != SEGMENT_MEMORY_OFF;
	bool fits = bytes <= limits.own && account->bytes <= limits.own - bytes;
	/* Without a limit, nothing is refused, even where the ledger's words are too small. */
	bool is_done = fits && (write_down(account, account->bytes + bytes, is_limited) || !is_limited);

	pthread_mutex_unlock(&lock);
	return is_done;
}

void account_change(struct account *account, int64_t bytes)
{
	pthread_mutex_lock(&lock);
	uint64_t less = bytes < 0 ? min_u64((uint64_t)-bytes, account->bytes) : 0;

	write_down(account, account->bytes - less + (bytes > 0 ? (uint64_t)bytes : 0), false);
	pthread_mutex_unlock(&lock);
}

static uint64_t used_of_own_limit(const struct account *account)
{
	return account->gpu && is_of_command() ? ledger_of_command(book.ledger, account->gpu, book.slot) * LEDGER_UNIT
	                                       : account->bytes;
}

struct account_room account_room(struct account *account)
{
	pthread_mutex_lock(&lock);
	read_limits();
	uint64_t all = account->gpu ? ledger_total(account->gpu) * LEDGER_UNIT : account->bytes;
	struct account_room room = {
		.limit = min_u64(limits.own, limits.together),
		.free = min_u64(rest_u64(limits.own, used_of_own_limit(account)), rest_u64(limits.together, all)),
	};

	pthread_mutex_unlock(&lock);
	return room;
}

uint64_t account_bytes(struct account *account)
{
	pthread_mutex_lock(&lock);
	uint64_t bytes = account->bytes;

	pthread_mutex_unlock(&lock);
	return bytes;
}
