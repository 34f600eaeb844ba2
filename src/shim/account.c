#include "account.h"

#include <pthread.h>

static struct segment segment;

__thread struct counter_slot *account_slot __attribute__((tls_model("initial-exec")));
static __thread bool has_asked_for_slot __attribute__((tls_model("initial-exec")));

/* A thread that ends gives its slot back. For a key at or above this limit, the C library allocates memory in each
 * thread. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t slot_key;
static atomic_bool has_slot_key;

void account_use(const struct segment *wanted)
{
	segment = *wanted;
	account_slot = NULL;
	has_asked_for_slot = false;
	/* In the child of a fork, the value is the parent's slot. */
	if (atomic_load(&has_slot_key))
		pthread_setspecific(slot_key, NULL);
}

/* Launches that other destructors still make are counted in the shared slot. */
static void give_slot_back(void *slot)
{
	account_slot = NULL;
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

void account_launch_elsewhere(bool restricted)
{
	if (!has_asked_for_slot)
		account_slot = take_slot();
	has_asked_for_slot = true;
	if (account_slot)
		counter_slot_count_launch(account_slot, restricted);
	else
		segment_count_launch(&segment, restricted);
}

void account_reason(enum segment_reason reason)
{
	segment_count_reason(&segment, reason);
}

void account_refresh(void)
{
	segment_count_refresh(&segment);
}
