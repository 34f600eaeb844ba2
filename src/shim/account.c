#include "account.h"

#include <pthread.h>

static struct segment segment;

__thread struct segment_place *account_place __attribute__((tls_model("initial-exec")));
static __thread bool has_asked_for_place __attribute__((tls_model("initial-exec")));

/* A thread that ends gives its place back. Above the number, the C library takes memory for each thread's value. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t place_key;
static atomic_bool has_place_key;

void account_use(const struct segment *wanted)
{
	segment = *wanted;
	account_place = NULL;
	has_asked_for_place = false;
	/* In a fork's child, it was its parent's. */
	if (atomic_load(&has_place_key))
		pthread_setspecific(place_key, NULL);
}

/* What it launches from now on, in other destructors, counts in the common place. */
static void give_place_back(void *place)
{
	account_place = NULL;
	segment_give_place(&segment, place);
}

void account_follow_threads(void)
{
	bool has_key = pthread_key_create(&place_key, give_place_back) == 0;

	if (has_key && place_key >= KEYS_WITHOUT_MEMORY)
		pthread_key_delete(place_key);
	else
		atomic_store(&has_place_key, has_key);
}

/* Without a key, a thread would have it for ever. */
static struct segment_place *take_place(void)
{
	struct segment_place *place = segment_take_place(&segment);

	if (place && atomic_load(&has_place_key))
		pthread_setspecific(place_key, place);
	return place;
}

void account_launch_elsewhere(bool restricted)
{
	if (!has_asked_for_place)
		account_place = take_place();
	has_asked_for_place = true;
	if (account_place)
		segment_count_launch_alone(account_place, restricted);
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
