#include "hook.h"

#include "base/log.h"
#include "functions.h"
#include "slot.h"

#include <stdatomic.h>
#include <string.h>

enum {
	DOMAIN_RESOURCE = 0x2,
	RESOURCE_CONTEXT_CREATED = 1,
	RESOURCE_CONTEXT_DESTROYED = 2, /* before the handle is given up */
	RESOURCE_MODULE_LOADED = 17,
	MODULE_LOADED_SIZE = 112, /* of the parameters, in the layout known to us */
	DOMAIN_CALL = 0x6,
	DOMAIN_LAUNCH = 0xb,
	LAUNCH_BEFORE_UPLOAD = 1,
	DOMAIN_SUBMISSION = 0x12,
	SUBMISSION_WRITTEN = 2, /* the ring has the entry */
	SUBMISSION_RING = 6
};

/* Words of the parameters; the first four bytes are their size in bytes. */
enum {
	RESOURCE_CONTEXT = 1,
	MODULE_CUBIN = 4,
	MODULE_CUBIN_SIZE = 5,
	MODULE_KIND = 7,
	MODULE_OF_DRIVER = 1 /* in the low half of MODULE_KIND: the driver's own, a few in every context */
};

/* We declare all features, since the driver refuses APIs to a subscription without (facts.md, "The callback table").
 * Today there are features 0 to 10. Declaring an unknown feature does no harm. REFUSALS in a row: there are no more. */
#define FEATURES 32
#define REFUSALS 4

static const CUuuid table_id = SLOT_TABLE_ID;

/* The parameters of a launch, in the driver's layout (facts.md, "Callbacks"). */
struct launch_words {
	uint32_t size; /* in bytes */
	CUcontext context;
	void *object;
	CUfunction function;
	void *qmd;
};

struct submission_words {
	uint32_t size; /* in bytes */
	CUcontext context;
	void *commands;
	uint32_t bytes, channel, unused, entry;
};

/* The parameters of the submission's ring. The entries are published (clc86f.h, GP_ENTRY). */
#define RING_ENTRIES 1024
#define ENTRY_BYTES 8
#define ENTRY_SYNC 7 /* the byte with SYNC, the highest bit */

struct ring_words {
	uint32_t size; /* in bytes */
	CUcontext context;
	const struct {
		uint64_t unused;
		uint32_t entry, number; /* the entry from 0 on, but for rounds; the number's meaning is not known */
		volatile unsigned char (*ring)[ENTRY_BYTES];
	} *place;
};

static struct hook_events events;
static void **table;
static void *entries[SLOT_ENTRIES]; /* the driver's own; the table's may be replaced, for other subscribers */
static uint32_t subscription;
static atomic_bool subscribed; /* never reset */
static atomic_bool wants_submissions;
static atomic_uint wanted_by[CALLS_MAX]; /* the answers of wants_call */
static atomic_bool are_announced[CALLS_MAX]; /* as we asked: the end is still to come if nobody wants a call any more */

/* This thread's current or last launch. The frame is valid from the begin of an API call to the end. */
static __thread struct launch current __attribute__((tls_model("initial-exec")));

/* The next submission of this thread. */
static __thread struct submission submitted __attribute__((tls_model("initial-exec")));
static __thread uint32_t submitted_entry __attribute__((tls_model("initial-exec")));

/* The calls of this thread that are heard, each with the listeners at the begin; the innermost call in the lowest bits.
 * The ends go to the same listeners. Three calls inside of each other have room. */
#define ID_BITS 10
#define HEARD_BITS 21
static __thread uint64_t heard __attribute__((tls_model("initial-exec")));
_Static_assert(CALLS_MAX <= 1 << ID_BITS, "a call's number has room");

/* The number of callbacks of another subscriber around this thread's code. */
static __thread unsigned int in_others __attribute__((tls_model("initial-exec")));

bool hook_is_in_other(void)
{
	return in_others > 0;
}

static void *word_of(const void *parameters, unsigned int word)
{
	return ((void *const *)parameters)[word];
}

static inline unsigned int begin_hearing(int id)
{
	unsigned int by = atomic_load_explicit(&wanted_by[id], memory_order_relaxed);

	if (by != 0)
		heard = heard << HEARD_BITS | by << ID_BITS | (unsigned int)id;
	return by;
}

/* Nobody, if the begin was not heard. Calls inside whose ends were not announced have ended. */
static inline unsigned int end_hearing(int id)
{
	uint64_t calls = heard;

	while (calls != 0 && (calls & ((1u << ID_BITS) - 1)) != (unsigned int)id)
		calls >>= HEARD_BITS;
	heard = calls != 0 ? calls >> HEARD_BITS : heard;
	return (calls & ((1u << HEARD_BITS) - 1)) >> ID_BITS;
}

static __attribute__((noinline)) void on_call(int id, const struct call_words *words)
{
	if (__builtin_expect(words->size < sizeof *words || (unsigned int)id >= CALLS_MAX, 0))
		return;
	unsigned int by = words->phase == 0 ? begin_hearing(id) : end_hearing(id);

	if (by == 0)
		return;
	const struct call call = {
		.id = id,
		.wanted_by = by,
		.context = words->context,
		.arguments = words->arguments,
		.result = words->result,
		.frame = &current.frame,
	};

	if (words->phase == 0) {
		events.call_begins(&call);
		calls_enter(&call);
	} else {
		calls_leave(&call);
		events.call_ended(&call);
	}
}

static void on_resource(int id, const void *parameters)
{
	uint32_t size;

	memcpy(&size, parameters, sizeof size);
	if (size < (RESOURCE_CONTEXT + 1) * sizeof(uint64_t))
		return;
	if (id == RESOURCE_CONTEXT_CREATED)
		events.context_created(word_of(parameters, RESOURCE_CONTEXT));
	else if (id == RESOURCE_CONTEXT_DESTROYED)
		events.context_destroyed(word_of(parameters, RESOURCE_CONTEXT));
	else if (id == RESOURCE_MODULE_LOADED && size == MODULE_LOADED_SIZE &&
	         (uint32_t)(uintptr_t)word_of(parameters, MODULE_KIND) != MODULE_OF_DRIVER)
		events.module_loaded(word_of(parameters, MODULE_CUBIN),
		                     (uintptr_t)word_of(parameters, MODULE_CUBIN_SIZE));
}

static inline bool has_descriptor(const struct launch_words *words)
{
	return words->size >= sizeof *words && words->qmd;
}

static inline void on_launch(const struct launch_words *words)
{
	if (has_descriptor(words)) {
		current.context = words->context;
		current.function = words->function;
		current.qmd = words->qmd;
		events.launch(&current);
	}
}

/* The driver first announces the commands, and then the ring. */
static __attribute__((hot)) void on_submission(int id, const void *parameters)
{
	const struct submission_words *written = parameters;
	const struct ring_words *ring = parameters;

	if (id == SUBMISSION_WRITTEN && written->size >= sizeof *written) {
		submitted = (struct submission){
			.context = written->context, .commands = written->commands, .bytes = written->bytes,
		};
		submitted_entry = written->entry;
	} else if (id == SUBMISSION_RING && ring->size >= sizeof *ring && submitted.commands &&
	           ring->context == submitted.context && ring->place->entry % RING_ENTRIES == submitted_entry) {
		submitted.sync = &ring->place->ring[ring->place->entry % RING_ENTRIES][ENTRY_SYNC];
		events.submits(&current, &submitted);
		submitted.commands = NULL;
	}
}

static __attribute__((noinline)) void on_other(void *user, int domain, int id, const void *parameters)
{
	(void)user;
	if (domain == DOMAIN_RESOURCE)
		on_resource(id, parameters);
}

static inline void on_own_event(void *user, int domain, int id, const void *parameters)
{
	if (__builtin_expect(domain == DOMAIN_LAUNCH && id == LAUNCH_BEFORE_UPLOAD, 1))
		on_launch(parameters);
	else if (__builtin_expect(domain == DOMAIN_CALL, 1))
		on_call(id, parameters);
	else if (domain == DOMAIN_SUBMISSION)
		on_submission(id, parameters);
	else
		on_other(user, domain, id, parameters);
}

/* Calls of the other subscriber are inside of the program's call, and neither get nor change what the frame says of the
 * program's launch. */
static void hand_on(int domain, int id, const void *parameters)
{
	struct launch outer = current;

	/* The program's call may have its arguments there: a refusal's, and memory's. */
	current = (struct launch){.frame = {
		.nested = outer.frame.nested, .refused = outer.frame.refused, .memory = outer.frame.memory,
	}};
	in_others++;
	slot_hand_on(domain, id, parameters);
	in_others--;
	current = outer;
}

/* The other subscriber comes last, and sees the descriptor as the GPU will. Our own calls are not passed on. Results of
 * our calls are, as the end of a context: the program has given up the context. */
static __attribute__((noinline)) void on_shared_event(void *user, int domain, int id, const void *parameters)
{
	bool is_launch = domain == DOMAIN_LAUNCH && id == LAUNCH_BEFORE_UPLOAD && has_descriptor(parameters);

	on_own_event(user, domain, id, parameters);
	struct qmd_mask mask = is_launch ? events.mask(&current) : (struct qmd_mask){{0}};

	if (domain != DOMAIN_CALL || !driver_is_called_by_us())
		hand_on(domain, id, parameters);
	if (is_launch)
		events.keep_mask(&current, &mask);
}

static __attribute__((hot)) void on_event(void *user, int domain, int id, const void *parameters)
{
	if (__builtin_expect(slot_is_shared(), 0))
		on_shared_event(user, domain, id, parameters);
	else
		on_own_event(user, domain, id, parameters);
}

static bool is_ours(int domain, int id)
{
	return (domain == DOMAIN_LAUNCH && id == LAUNCH_BEFORE_UPLOAD) ||
	       (domain == DOMAIN_RESOURCE &&
	        (id == RESOURCE_CONTEXT_CREATED || id == RESOURCE_CONTEXT_DESTROYED ||
	         id == RESOURCE_MODULE_LOADED)) ||
	       (domain == DOMAIN_SUBMISSION && (id == SUBMISSION_WRITTEN || id == SUBMISSION_RING) &&
	        atomic_load(&wants_submissions)) ||
	       (domain == DOMAIN_CALL && id < CALLS_MAX && atomic_load(&are_announced[id]));
}

/* NULL with the reason. */
static void **find_table(struct error *error)
{
	const void *found = NULL;
	CUresult result = driver.get_export_table(&found, &table_id);

	if (result != CUDA_SUCCESS || !found) {
		error_set(error, "the driver has no callback table (error %d)", result);
		found = NULL;
	} else if (*(const uint64_t *)found < SLOT_ENTRIES * sizeof(void *)) {
		error_set(error, "the driver's callback table is shorter than any that we know");
		found = NULL;
	}
	return (void **)found;
}

static void declare_features(void)
{
	slot_declare_feature *declare = (slot_declare_feature *)entries[SLOT_DECLARE_FEATURE];
	int refused = 0;

	for (int feature = 0; feature < FEATURES && refused < REFUSALS; feature++)
		refused = declare(true, subscription, feature) == CUDA_SUCCESS ? 0 : refused + 1;
}

static CUresult enable(int domain, int id)
{
	if (domain == DOMAIN_CALL)
		atomic_store(&are_announced[id], true);
	return ((slot_enable *)entries[SLOT_ENABLE])(true, subscription, domain, id);
}

/* Of two threads that ask at the same time, the last has the newest answer. */
static bool ask_who_wants(int id)
{
	unsigned int by;

	do {
		by = events.wants_call(id);
		atomic_store(&wanted_by[id], by);
		atomic_thread_fence(memory_order_seq_cst);
	} while (by != events.wants_call(id));
	return by != 0;
}

/* No listener wants a call of another number. */
#define NUMBER(name, number, kinds) (number),
static const int known_calls[] = {CALLS(NUMBER)};
#define KNOWN_CALLS (sizeof known_calls / sizeof known_calls[0])

void hook_want_more(void)
{
	for (size_t i = 0; i < KNOWN_CALLS; i++) {
		if (ask_who_wants(known_calls[i]))
			enable(DOMAIN_CALL, known_calls[i]);
	}
}

bool hook_is_subscribed(void)
{
	return atomic_load(&subscribed);
}

/* Submissions stay announced, since another tool may need the announcements; nobody is called. */
bool hook_want_submissions(bool wanted)
{
	CUresult result = atomic_load(&subscribed) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;

	atomic_store(&wants_submissions, wanted);
	if (result == CUDA_SUCCESS && (wanted || !slot_is_shared())) {
		slot_enable *set = (slot_enable *)entries[SLOT_ENABLE];

		result = set(wanted, subscription, DOMAIN_SUBMISSION, SUBMISSION_RING);
		if (result == CUDA_SUCCESS)
			result = set(wanted, subscription, DOMAIN_SUBMISSION, SUBMISSION_WRITTEN);
	}
	return result == CUDA_SUCCESS;
}

void hook_want_less(void)
{
	for (size_t i = 0; i < KNOWN_CALLS; i++) {
		int id = known_calls[i];

		if (!ask_who_wants(id) && !slot_is_shared()) {
			atomic_store(&are_announced[id], false);
			((slot_enable *)entries[SLOT_ENABLE])(false, subscription, DOMAIN_CALL, id);
			/* A second thread may want the call by now. */
			if (ask_who_wants(id))
				enable(DOMAIN_CALL, id);
		}
	}
}

static int enable_events(struct error *error)
{
	CUresult result = enable(DOMAIN_LAUNCH, LAUNCH_BEFORE_UPLOAD);

	if (result != CUDA_SUCCESS) {
		((slot_unsubscribe *)entries[SLOT_UNSUBSCRIBE])(subscription);
		return error_set(error, "the driver does not announce launches (error %d)", result);
	}
	/* Without both events, a reused context handle could be taken for the old context (contexts.h). */
	enable(DOMAIN_RESOURCE, RESOURCE_CONTEXT_CREATED);
	enable(DOMAIN_RESOURCE, RESOURCE_CONTEXT_DESTROYED);
	enable(DOMAIN_RESOURCE, RESOURCE_MODULE_LOADED);
	hook_want_more();
	return 0;
}

static enum hook_state take_slot(struct error *error)
{
	enum hook_state state = HOOK_FAILED;
	uint32_t handle = 0;
	struct error why;
	CUresult result = ((slot_subscribe *)entries[SLOT_SUBSCRIBE])(&handle, on_event, NULL);

	if (result == CUDA_SUCCESS) {
		subscription = handle;
		declare_features();
		events.subscribed();
		state = enable_events(error) == 0 ? HOOK_SUBSCRIBED : HOOK_FAILED;
	} else if (result == CUDA_ERROR_ALREADY_ACQUIRED) {
		error_set(error, "another tool (a profiler or debugger) holds the driver's callback slot");
		state = HOOK_WAITS;
	} else {
		error_set(error, "the driver refuses a subscription (error %d)", result);
	}
	if (state == HOOK_SUBSCRIBED)
		atomic_store(&subscribed, true);
	/* The partition is in force even if the slot cannot be shared. */
	if (state == HOOK_SUBSCRIBED && slot_share(table, handle, is_ours, &why) < 0)
		log_warning("%s; they will not work in this program", why.reason);
	return state;
}

/* The slot is free, unless another tool was faster. */
static void subscribe_late(void)
{
	struct error error;
	enum hook_state state = take_slot(&error);

	if (state == HOOK_SUBSCRIBED)
		events.subscribed_late();
	else if (state == HOOK_FAILED)
		log_warning("%s; this program runs unrestricted", error.reason);
}

/* Keeps the reason of take_slot. */
static enum hook_state wait_for_slot(void)
{
	enum hook_state state = HOOK_FAILED;

	events.waits();
	if (slot_wait(table, subscribe_late) == 0) {
		/* The tool may have unsubscribed before our hook was in place. */
		subscribe_late();
		state = atomic_load(&subscribed) ? HOOK_SUBSCRIBED : HOOK_WAITS;
	}
	return state;
}

enum hook_state hook_subscribe(const struct hook_events *wanted, struct error *error)
{
	enum hook_state state = HOOK_FAILED;

	events = *wanted;
	table = find_table(error);
	if (table) {
		memcpy(entries, table, sizeof entries);
		state = take_slot(error);
	}
	return state == HOOK_WAITS ? wait_for_slot() : state;
}
