#include "account.h"

#include <pthread.h>

static struct segment segment;

__thread struct segment_place *account_place __attribute__((tls_model("initial-exec")));
static __thread bool has_asked_for_place __attribute__((tls_model("initial-exec")));

/* A thread that ends gives its place back. For a key at or above this limit, the C library allocates memory in each
 * thread. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t place_key;
static atomic_bool has_place_key;

void account_use(const struct segment *wanted)
{
	segment = *wanted;
	account_place = NULL;
	has_asked_for_place = false;
	/* In the child of a fork, the value is the parent's place. */
	if (atomic_load(&has_place_key))
		pthread_setspecific(place_key, NULL);
}

/* Launches that other destructors still make are counted in the shared place. */
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

/* Without a key, the thread keeps its place until the process ends. */
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
