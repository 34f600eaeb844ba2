#include "holdings.h"

#include "base/pointer_map.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map holdings; /* of 0 bytes: over */
static atomic_bool some_are_managed; /* or were */

void holdings_add(const struct holding *holding)
{
	if (holding->is_managed)
		atomic_store(&some_are_managed, true);
	pthread_mutex_lock(&lock);
	struct holding *there = pointer_map_have(&holdings, sizeof *there, holding->key);
	struct holding lost = there ? *there : *holding; /* ended unseen, or is being replaced */

	if (there)
		*there = *holding;
	pthread_mutex_unlock(&lock);
	if (lost.bytes > 0)
		account_change(lost.account, -(int64_t)lost.bytes);
}

struct holding holdings_take(const void *key)
{
	struct holding taken = {.bytes = 0};

	pthread_mutex_lock(&lock);
	struct holding *there = key ? pointer_map_find(&holdings, sizeof *there, key) : NULL;

	if (there) {
		taken = *there;
		there->bytes = 0;
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

uint64_t holdings_managed(const struct account *account)
{
	uint64_t bytes = 0;

	if (!atomic_load(&some_are_managed))
		return 0;
	pthread_mutex_lock(&lock);
	const struct holding *all = holdings.structs;

	for (size_t i = 0; i < holdings.room; i++)
		bytes += all[i].key && all[i].is_managed && all[i].account == account ? all[i].bytes : 0;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void holdings_forget(CUcontext context)
{
	struct holding *all;

	pthread_mutex_lock(&lock);
	all = holdings.structs;
	for (size_t i = 0; i < holdings.room; i++) {
		if (all[i].key && all[i].context == context && all[i].bytes > 0) {
			account_change(all[i].account, -(int64_t)all[i].bytes);
			all[i].bytes = 0;
		}
	}
	pthread_mutex_unlock(&lock);
}

void holdings_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pointer_map_forget(&holdings);
}
