#include "subscriber.h"

#include "../../cases.h"
#include "gpu/qmd.h"

#define EVENTS_MAX 128

static struct {
	uint32_t handle;
	subscriber_action *act;
	struct event events[EVENTS_MAX];
	unsigned int count;
} subscriber;

void *const *subscriber_table(void)
{
	static const CUuuid tools = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71,
	                              0x9f, 0xe5, 0xf7, 0x4b}};
	static const void *table;

	if (!table)
		gpu_check(cuGetExportTable(&table, &tools));
	return table;
}

static void on_event(void *user, int domain, int id, const void *parameters)
{
	struct event *event = &subscriber.events[subscriber.count];
	const uint64_t *words = parameters;
	uint32_t size = (uint32_t)words[0];

	assert_ptr_equal(user, &subscriber);
	assert_true(subscriber.count < EVENTS_MAX);
	memset(event, 0, sizeof *event);
	event->domain = domain;
	event->id = id;
	memcpy(event->words, words, size < sizeof event->words ? size : sizeof event->words);
	if (domain == LAUNCHES)
		memcpy(event->qmd, (const void *)(uintptr_t)words[4], sizeof event->qmd);
	subscriber.count++;
	if (subscriber.act)
		subscriber.act(domain, id, parameters);
}

void subscriber_open(subscriber_action *act)
{
	subscriber.act = act;
	subscriber.count = 0;
	gpu_check(tool_subscribe(&subscriber.handle, on_event, &subscriber));
	subscriber_enable(LAUNCHES, BEFORE_UPLOAD);
	subscriber_enable(LAUNCHES, GRAPH_NODE_LAUNCH);
}

void subscriber_close(void)
{
	gpu_check(tool_unsubscribe(subscriber.handle));
}

void subscriber_enable(int domain, int id)
{
	gpu_check(tool_enable(1, subscriber.handle, domain, id));
}

CUresult subscriber_declare(int feature)
{
	return tool_declare_feature(1, subscriber.handle, feature);
}

unsigned int subscriber_count(int domain, int id)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < subscriber.count; i++)
		count += subscriber.events[i].domain == domain && subscriber.events[i].id == id;
	return count;
}

unsigned int subscriber_count_all(void)
{
	return subscriber.count;
}

unsigned int subscriber_count_function(int domain, int id, CUfunction function)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < subscriber.count; i++)
		count += subscriber.events[i].domain == domain && subscriber.events[i].id == id &&
		         subscriber.events[i].words[3] == (uintptr_t)function;
	return count;
}

const struct event *subscriber_last(int domain, int id)
{
	const struct event *last = NULL;

	for (unsigned int i = 0; i < subscriber.count; i++) {
		if (subscriber.events[i].domain == domain && subscriber.events[i].id == id)
			last = &subscriber.events[i];
	}
	assert_non_null(last);
	return last;
}

const struct event *subscriber_event(unsigned int number)
{
	assert_true(number < subscriber.count);
	return &subscriber.events[number];
}

void subscriber_forget(void)
{
	subscriber.count = 0;
}

static const struct qmd_family *family;
static struct qmd_mask disable;

void subscriber_narrow_to(const struct gpu_under_test *gpu, struct tpcset set)
{
	family = qmd_family_for(gpu->topology->compute_major, gpu->topology->compute_minor);
	assert_non_null(family);
	topology_disable_mask(gpu->topology, &set, disable.words, QMD_MASK_BITS);
}

void subscriber_narrow(int domain, int id, const uint64_t *words)
{
	void *qmd = (void *)(uintptr_t)words[4];

	if (domain == LAUNCHES && id == BEFORE_UPLOAD) {
		assert_true(qmd_is_known(family, qmd));
		qmd_write(family, qmd, &(struct qmd_change){.disable = &disable, .is_exact = true}, NULL);
	}
}
