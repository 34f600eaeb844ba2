#include "account.h"

#include "driver/contexts.h"
#include "driver/releases.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct segment segment;

__thread struct account_own account_own __attribute__((tls_model("initial-exec")));
static __thread bool has_asked_for_slot __attribute__((tls_model("initial-exec")));
static __thread struct counts_place *chosen __attribute__((tls_model("initial-exec")));

/* Counts launches that are counted nowhere, so that the launch path need not ask. */
static __thread _Atomic uint64_t nowhere __attribute__((tls_model("initial-exec")));

/* A thread that ends gives its slot back. For a key at or above this limit, the C library allocates memory in each
 * thread. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t slot_key;
static atomic_bool has_slot_key;

/* Nsight Compute sets this for the programs that it profiles. It runs a kernel many times, or not at all. */
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
	account_own = (struct account_own){.slot = NULL};
	has_asked_for_slot = false;
	chosen = NULL;
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

/* Launches that other destructors still make are counted in the shared slot. */
static void give_slot_back(void *slot)
{
	account_own.slot = NULL;
	counter_slot_give_back(&segment, slot);
}

void account_follow_threads(void)
{
	bool has_key = pthread_key_create(&slot_key, give_slot_back) == 0;

	if (has_key && slot_key >= KEYS_WITHOUT_MEMORY)
		pthread_key_delete(slot_key);
	else
		atomic_store(&has_slot_key, has_key);
}

/* Without a key, the thread keeps its slot until the process ends. */
static struct counter_slot *take_slot(void)
{
	struct counter_slot *slot = counter_slot_take(&segment);

	if (slot && atomic_load(&has_slot_key))
		pthread_setspecific(slot_key, slot);
	return slot;
}

static struct counter_slot *have_slot(void)
{
	if (!has_asked_for_slot)
		account_own.slot = take_slot();
	has_asked_for_slot = true;
	return account_own.slot;
}

void account_choose(struct counts_place *place)
{
	const struct counter_slot *slot = have_slot();

	chosen = place;
	account_own.launched = slot && place ? counts_launched(place, &segment, slot) : &nowhere;
}

void account_launch_elsewhere(bool restricted)
{
	segment_count_launch(&segment, restricted);
	if (chosen)
		counts_launch_shared(chosen);
}

void account_node(bool restricted)
{
	if (account_own.slot)
		counter_slot_count_launch(account_own.slot, restricted);
	else
		segment_count_launch(&segment, restricted);
}

void account_uncounted_node(enum qmd_release_outcome why)
{
	account_node_gap(why == QMD_SLOT_USED ? COUNTS_SLOT_USED : COUNTS_NO_SLOTS);
}

void account_node_gap(enum counts_gap why)
{
	if (chosen)
		counts_note_gap(chosen, why);
}

void account_uncounted_launch(enum qmd_release_outcome why)
{
	account_uncounted_node(why);
	if (chosen)
		counts_note_uncounted(chosen, COUNTS_PLAIN, 1);
}

void account_stop(void)
{
	is_off = true;
	account_own.launched = &nowhere;
	chosen = NULL;
}

static void note_everywhere(enum counts_gap gap)
{
	if (!is_off)
		counts_note_gap_everywhere(&segment, gap);
}

void account_unknown_graph(CUcontext context, enum counts_gap why)
{
	const struct releases *releases = contexts_find(context).releases;

	if (releases && releases->place)
		counts_note_gap(releases->place, why);
	else
		note_everywhere(why);
}

void account_older_context(void)
{
	note_everywhere(COUNTS_OLDER);
}

void account_reason(enum segment_reason reason)
{
	segment_count_reason(&segment, reason);
}

void account_refresh(void)
{
	segment_count_refresh(&segment);
}
