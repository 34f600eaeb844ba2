#include "account.h"

#include "driver/contexts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct segment segment;

__thread struct account_own account_own __attribute__((tls_model("initial-exec")));
static __thread bool has_asked_for_slot __attribute__((tls_model("initial-exec")));

/* For launches that are counted nowhere: the launch path need not ask. */
static __thread _Atomic uint64_t nowhere __attribute__((tls_model("initial-exec")));

/* An ending thread gives its slot back. For keys from the limit on, the C library allocates memory in each thread. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t slot_key;
static atomic_bool has_slot_key;

/* Nsight Compute sets the variable for profiled programs. It runs a kernel many times, or not at all. */
#define NCU_ENVIRONMENT "NV_COMPUTE_PROFILER_PERFWORKS_DIR"

static bool is_off;
static bool is_repeated;

void account_open(void)
{
	const char *text = secure_getenv(ACCOUNT_ENVIRONMENT);

	is_off = text && strcmp(text, "off") == 0;
	is_repeated = secure_getenv(NCU_ENVIRONMENT) != NULL;
}

void account_use(const struct segment *wanted)
{
	segment = *wanted;
	account_own.slot = NULL;
	has_asked_for_slot = false;
	if (is_off)
		counts_note_gap_everywhere(&segment, COUNTS_OFF);
	else
		releases_use(&segment);
	if (is_repeated)
		counts_note_gap_everywhere(&segment, COUNTS_REPEATED);
	/* In the child of a fork, the value is the parent's slot. */
	if (atomic_load(&has_slot_key))
		pthread_setspecific(slot_key, NULL);
}

/* Launches of later destructors are counted in the shared slot. */
static void give_slot_back(void *slot)
{
	account_own.slot = NULL;
	segment_slot_give_back(&segment, slot);
}

void account_follow_threads(void)
{
	bool has_key = pthread_key_create(&slot_key, give_slot_back) == 0;

	if (has_key && slot_key >= KEYS_WITHOUT_MEMORY)
		pthread_key_delete(slot_key);
	else
		atomic_store(&has_slot_key, has_key);
}

/* Without a key, the thread keeps the slot until the process ends. */
static struct counter_slot *take_slot(void)
{
	struct counter_slot *slot = segment_slot_take(&segment);

	if (slot && atomic_load(&has_slot_key))
		pthread_setspecific(slot_key, slot);
	return slot;
}

static void note_everywhere(enum counts_gap gap)
{
	if (!is_off)
		counts_note_gap_everywhere(&segment, gap);
}

void account_launch_elsewhere(const struct releases *releases, bool restricted)
{
	segment_count_launch(&segment, restricted);
	if (releases->place)
		counts_launch_shared(releases->place);
}

void account_node(const struct releases *releases, bool restricted)
{
	if (releases->are_unknown)
		note_everywhere(COUNTS_OLDER);
	if (!has_asked_for_slot)
		account_own.slot = take_slot();
	has_asked_for_slot = true;
	if (account_own.slot)
		segment_slot_count_launch(account_own.slot, restricted);
	else
		segment_count_launch(&segment, restricted);
}

void account_launch_anew(const struct releases *releases, bool restricted)
{
	struct counts_place *place = releases->place;

	account_node(releases, restricted);
	account_own.launched =
	    account_own.slot && place ? counts_launched(place, &segment, account_own.slot) : &nowhere;
	if (account_own.slot)
		counts_launch(account_own.launched);
	else if (place)
		counts_launch_shared(place);
}

void account_uncounted_node(const struct releases *releases, enum qmd_release_outcome why)
{
	account_node_gap(releases, why == QMD_SLOT_USED ? COUNTS_SLOT_USED : COUNTS_NO_SLOTS);
}

void account_node_gap(const struct releases *releases, enum counts_gap why)
{
	if (releases->place)
		counts_note_gap(releases->place, why);
}

void account_uncounted_launch(const struct releases *releases, enum qmd_release_outcome why)
{
	account_uncounted_node(releases, why);
	if (releases->place)
		counts_note_uncounted(releases->place, COUNTS_PLAIN, 1);
}

void account_stop(void)
{
	is_off = true;
}

void account_unknown_graph(CUcontext context, enum counts_gap why)
{
	const struct releases *releases = contexts_releases(context);

	if (releases && releases->place)
		counts_note_gap(releases->place, why);
	else
		note_everywhere(why);
}

void account_reason(enum segment_reason reason)
{
	segment_count_reason(&segment, reason);
}

void account_reasons(uint32_t reasons)
{
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (reasons >> reason & 1)
			account_reason((enum segment_reason)reason);
	}
}

void account_refresh(void)
{
	segment_count_refresh(&segment);
}
