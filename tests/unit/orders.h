/*
 * For unit tests: two threads run the real functions of a file in all orders, and stores become visible in all orders.
 *
 * Include this header first, and then the file. The file's atomic operations are places from now on: at each place the
 * second thread may go on. A store waits in a buffer of the thread, and leaves the buffer at any later time, in any
 * order. But a release store leaves after all earlier stores, and a store behind a release fence leaves after all
 * stores in front of the fence. Sequentially consistent stores and fences, and operations that read and write, wait
 * until the buffer is empty. Loads are in order: tests/litmus has the orders of loads.
 *
 * Assertions belong into `end`, since both threads are coroutines.
 */
#ifndef NVTASKSET_TESTS_ORDERS_H
#define NVTASKSET_TESTS_ORDERS_H

#include "../cases.h"

#include <stdatomic.h>
#include <ucontext.h>

#define ORDERS_STORES 64
#define ORDERS_STEPS 1000 /* of an order; more than any test has */

struct orders_store {
	void *at;
	size_t size;
	uint64_t value;
	bool is_release;
	unsigned int fences; /* in front of the store */
};

static struct orders_thread {
	ucontext_t context;
	char stack[1 << 18];
	void (*body)(void);
	bool has_ended, waits;
	struct orders_store stores[ORDERS_STORES];
	unsigned int count, fences;
} orders_threads[2], *orders_self; /* NULL: no order is tried */

static ucontext_t orders_scheduler;
static const volatile void *orders_watched[8];
static size_t orders_watched_count;

/* The choice at each step, and the number of options. */
static struct {
	unsigned char choice, options;
} orders_path[ORDERS_STEPS];
static unsigned int orders_at, orders_length;

/* In `begin`: only operations on variables that are watched are places. */
static inline void orders_watch(const volatile void *variable)
{
	if (orders_watched_count == COUNT_OF(orders_watched))
		abort();
	orders_watched[orders_watched_count++] = variable;
}

/* --- in the threads ----------------------------------------------------------------------------------------------- */

static inline void orders_give_way(void)
{
	swapcontext(&orders_self->context, &orders_scheduler);
}

/* In a loop that waits for the other thread. */
static inline void orders_wait(void)
{
	orders_self->waits = true;
	orders_give_way();
}

/* Whether the variable is watched. If so, the second thread had the chance to go on. */
static inline bool orders_place(const volatile void *at)
{
	bool is_watched = orders_self && orders_watched_count == 0;

	for (size_t i = 0; orders_self && i < orders_watched_count; i++)
		is_watched |= orders_watched[i] == at;
	if (is_watched)
		orders_give_way();
	return is_watched;
}

static inline void orders_write(struct orders_thread *thread, unsigned int which)
{
	memcpy(thread->stores[which].at, &thread->stores[which].value, thread->stores[which].size);
	thread->count--;
	memmove(&thread->stores[which], &thread->stores[which + 1], (thread->count - which) * sizeof thread->stores[0]);
}

static inline void orders_write_all(void)
{
	while (orders_self && orders_self->count > 0)
		orders_write(orders_self, 0);
}

static inline void orders_load(const volatile void *at, void *value, size_t size)
{
	orders_place(at);
	memcpy(value, (const void *)at, size);
	for (unsigned int i = 0; orders_self && i < orders_self->count; i++) {
		if (orders_self->stores[i].at == at)
			memcpy(value, &orders_self->stores[i].value, size);
	}
}

static inline void orders_store(volatile void *at, const void *value, size_t size, memory_order order)
{
	struct orders_thread *self = orders_place(at) ? orders_self : NULL;

	if (!self) {
		memcpy((void *)at, value, size);
		return;
	}
	if (self->count == ORDERS_STORES)
		abort();
	self->stores[self->count] = (struct orders_store){
		.at = (void *)at, .size = size, .is_release = order == memory_order_release, .fences = self->fences,
	};
	memcpy(&self->stores[self->count++].value, value, size);
	if (order == memory_order_seq_cst)
		orders_write_all();
}

/* Before an operation that reads and writes. */
static inline void orders_both(const volatile void *at)
{
	if (orders_place(at))
		orders_write_all();
}

static inline void orders_fence(memory_order order)
{
	if (orders_self)
		orders_self->fences += order == memory_order_release;
	if (order == memory_order_seq_cst)
		orders_write_all();
}

/* --- the orders --------------------------------------------------------------------------------------------------- */

static inline void orders_run(void)
{
	orders_self->body();
	orders_self->has_ended = true;
	orders_give_way();
}

static inline void orders_begin(struct orders_thread *thread, void (*body)(void))
{
	thread->body = body;
	thread->has_ended = thread->waits = false;
	thread->count = thread->fences = 0;
	getcontext(&thread->context);
	thread->context.uc_stack = (stack_t){.ss_sp = thread->stack, .ss_size = sizeof thread->stack};
	makecontext(&thread->context, orders_run, 0);
}

static inline bool orders_may_be_written(const struct orders_thread *thread, unsigned int which)
{
	const struct orders_store *store = &thread->stores[which];
	bool may = true;

	for (unsigned int i = 0; i < which; i++)
		may &= thread->stores[i].at != store->at && !store->is_release &&
		       thread->stores[i].fences == store->fences;
	return may;
}

/* Takes the step with the number `wanted`, of a thread or of a buffer. Returns the number of options, or more than
 * `wanted`. */
static inline unsigned int orders_step(unsigned int wanted)
{
	unsigned int options = 0;

	for (size_t i = 0; i < COUNT_OF(orders_threads) && options <= wanted; i++) {
		struct orders_thread *thread = &orders_threads[i];
		bool may_run = !thread->has_ended && !thread->waits;

		if (may_run && options++ == wanted) {
			orders_threads[1 - i].waits = false;
			orders_self = thread;
			swapcontext(&orders_scheduler, &thread->context);
			orders_self = NULL;
		}
		for (unsigned int which = 0; which < thread->count && options <= wanted; which++) {
			if (orders_may_be_written(thread, which) && options++ == wanted) {
				orders_write(thread, which);
				orders_threads[1 - i].waits = false;
			}
		}
	}
	return options;
}

/* Runs the order that the path names, and completes the path where it ends. */
static inline void orders_follow(void)
{
	for (orders_at = 0; orders_at < ORDERS_STEPS; orders_at++) {
		unsigned int options = orders_step(UINT_MAX);

		if (options == 0)
			break;
		if (orders_at == orders_length)
			orders_path[orders_length++].choice = 0;
		orders_path[orders_at].options = (unsigned char)options;
		orders_step(orders_path[orders_at].choice);
	}
	if (!orders_threads[0].has_ended || !orders_threads[1].has_ended)
		fail_msg("both threads wait for each other");
}

/* Whether there is one more order. */
static inline bool orders_next(void)
{
	while (orders_length > 0 && orders_path[orders_length - 1].choice + 1 == orders_path[orders_length - 1].options)
		orders_length--;
	if (orders_length > 0)
		orders_path[orders_length - 1].choice++;
	return orders_length > 0;
}

/* `end` is called after each order, and `begin` before. */
static inline void orders_try(void (*begin)(void), void (*one)(void), void (*other)(void), void (*end)(void))
{
	unsigned int orders = 0;

	orders_length = 0;
	do {
		ROW("order %u", ++orders);
		orders_watched_count = 0;
		begin();
		orders_begin(&orders_threads[0], one);
		orders_begin(&orders_threads[1], other);
		orders_follow();
		end();
	} while (orders_next());
	*case_row = '\0';
	print_message("# %u orders\n", orders);
	assert_true(orders > 1);
}

/* --- the operations ----------------------------------------------------------------------------------------------- */

#define ORDERS_TYPE(at) __typeof__((void)0, *(at))
#define ORDERS_PLAIN(at) (*(ORDERS_TYPE(at) *)(uintptr_t)(at))

/* The value before; `new` is computed from `was`. */
#define ORDERS_CHANGE(at, new)                                                                    \
	({                                                                                        \
		orders_both(at);                                                                  \
		ORDERS_TYPE(at) was = ORDERS_PLAIN(at);                                           \
		ORDERS_PLAIN(at) = (ORDERS_TYPE(at))(new);                                        \
		was;                                                                              \
	})

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_fetch_add
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or
#undef atomic_fetch_and
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_thread_fence

#define atomic_load_explicit(at, order)                                                           \
	({                                                                                        \
		ORDERS_TYPE(at) loaded;                                                           \
		orders_load(at, &loaded, sizeof loaded);                                          \
		loaded;                                                                           \
	})
#define atomic_store_explicit(at, value, order)                                                   \
	do {                                                                                      \
		ORDERS_TYPE(at) stored = (value);                                                 \
		orders_store(at, &stored, sizeof stored, order);                                  \
	} while (0)
#define atomic_compare_exchange_strong(at, expected, wanted)                                      \
	({                                                                                        \
		orders_both(at);                                                                  \
		bool is_equal = ORDERS_PLAIN(at) == *(expected);                                  \
		if (is_equal)                                                                     \
			ORDERS_PLAIN(at) = (wanted);                                              \
		else                                                                              \
			*(expected) = ORDERS_PLAIN(at);                                           \
		is_equal;                                                                         \
	})
#define atomic_load(at) atomic_load_explicit(at, memory_order_seq_cst)
#define atomic_store(at, value) atomic_store_explicit(at, value, memory_order_seq_cst)
#define atomic_exchange(at, value) ORDERS_CHANGE(at, value)
#define atomic_exchange_explicit(at, value, order) ORDERS_CHANGE(at, value)
#define atomic_fetch_add(at, value) ORDERS_CHANGE(at, was + (value))
#define atomic_fetch_add_explicit(at, value, order) ORDERS_CHANGE(at, was + (value))
#define atomic_fetch_sub_explicit(at, value, order) ORDERS_CHANGE(at, was - (value))
#define atomic_fetch_or(at, value) ORDERS_CHANGE(at, was | (value))
#define atomic_fetch_and(at, value) ORDERS_CHANGE(at, was & (value))
#define atomic_compare_exchange_strong_explicit(at, expected, wanted, success, failure) \
	atomic_compare_exchange_strong(at, expected, wanted)
#define atomic_compare_exchange_weak_explicit(at, expected, wanted, success, failure) \
	atomic_compare_exchange_strong(at, expected, wanted)
#define atomic_thread_fence(order) orders_fence(order)

#endif
