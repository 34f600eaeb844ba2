#include "holding.h"

#include "base/extremes.h"

/* --- reasons ------------------------------------------------------------------------------------------------------ */

static bool wants_higher(const struct holding_view *view)
{
	return view->rivals.has_higher && view->rivals.higher_wants;
}

/* Between two looks it is taken to go on as it was. */
void holding_see(struct holding *holding, const struct holding_view *view, uint64_t now)
{
	bool wants = wants_higher(view);

	if (wants || holding->higher_wants)
		holding->higher_wanted = now;
	holding->higher_wants = wants;
}

static uint64_t recent_until(const struct holding *holding)
{
	return holding->higher_wanted != 0 ? holding->higher_wanted + HOLDING_RECENT_NS : 0;
}

static unsigned int window_of(const struct holding *holding, const struct holding_view *view, uint64_t now)
{
	bool may_come = view->rivals.has_higher && now < recent_until(holding);

	return holding->policy == HOLDING_PRT && may_come ? 1 : HOLDING_WINDOW;
}

static bool is_wanted(struct holding *holding, const struct holding_launch *launch, enum holding_reason reason,
                      const struct holding_view *view, uint64_t now)
{
	bool wanted = false;

	switch (reason) {
	case HOLDING_FOR_PRIORITY:
		wanted = wants_higher(view);
		break;
	case HOLDING_FOR_WINDOW:
		wanted = view->rivals.has_higher && view->in_flight >= window_of(holding, view, now);
		break;
	case HOLDING_FOR_QUOTA:
		wanted = holding->reserve && !holding->is_unlimited &&
		         !reserve_has_room(holding->reserve, &launch->reserved, now);
		break;
	case HOLDING_REASONS:
		break;
	}
	return wanted;
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

/* When a hold for this reason ends; it begins now if it has not before. */
static uint64_t bound_of(struct holding *holding, struct holding_launch *launch, enum holding_reason reason, uint64_t now)
{
	uint64_t *until = reason == HOLDING_FOR_QUOTA ? &launch->quota_until : &launch->turn_until;

	if (*until == 0 && reason == HOLDING_FOR_QUOTA)
		*until = reserve_wait(holding->reserve, &launch->reserved, now);
	else if (*until == 0)
		*until = now + HOLDING_BOUND_NS;
	return *until;
}

/* When to ask again though nothing may have happened. */
static uint64_t news_of(const struct holding *holding, enum holding_reason reason, uint64_t now)
{
	uint64_t news = UINT64_MAX;

	if (reason == HOLDING_FOR_QUOTA)
		news = reserve_next_period(holding->reserve, now);
	else if (reason == HOLDING_FOR_WINDOW && now < recent_until(holding))
		news = recent_until(holding);
	return news;
}

/* What all reasons together say. */
struct verdict {
	bool holds;
	bool for_quota; /* among others */
	bool struck[HOLDING_REASONS]; /* the reason is there, and its bound is over */
	uint64_t wake;
};

static void hold_for(struct verdict *verdict, enum holding_reason reason, uint64_t wake)
{
	verdict->holds = true;
	verdict->for_quota = verdict->for_quota || reason == HOLDING_FOR_QUOTA;
	verdict->wake = min_u64(verdict->wake, wake);
}

static struct verdict judge(struct holding *holding, struct holding_launch *launch, const struct holding_view *view,
                            uint64_t now)
{
	struct verdict verdict = {.wake = UINT64_MAX};

	for (int i = 0; i < HOLDING_REASONS; i++) {
		enum holding_reason reason = (enum holding_reason)i;

		if (is_wanted(holding, launch, reason, view, now)) {
			uint64_t until = bound_of(holding, launch, reason, now);

			if (now >= until)
				verdict.struck[i] = true;
			else
				hold_for(&verdict, reason, min_u64(until, news_of(holding, reason, now)));
		}
	}
	return verdict;
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

static void go(struct holding *holding, struct holding_launch *launch, const struct verdict *verdict, uint64_t now)
{
	for (int i = 0; i < HOLDING_REASONS; i++)
		holding->struck[i] += verdict->struck[i];
	holding->held += launch->is_held;
	holding->held_ns += launch->is_held ? now - launch->since : 0;
	launch->is_held = launch->is_ready = false;
	if (holding->reserve)
		reserve_go(holding->reserve, &launch->reserved, now);
}

static void hold(struct holding_launch *launch, const struct verdict *verdict, uint64_t now)
{
	if (!launch->is_held)
		launch->since = now;
	launch->is_held = true;
	launch->is_ready = !verdict->for_quota;
}

bool holding_ask(struct holding *holding, struct holding_launch *launch, const struct holding_view *view, uint64_t now,
                 uint64_t *wake)
{
	struct verdict verdict = {.holds = false};

	holding_see(holding, view, now);
	if (!view->is_over)
		verdict = judge(holding, launch, view, now);
	if (verdict.holds)
		hold(launch, &verdict, now);
	if (verdict.holds && view->is_busy_elsewhere) {
		verdict.holds = now - launch->since < HOLDING_BOUND_NS;
		holding->struck_elsewhere += !verdict.holds;
		verdict.wake = min_u64(verdict.wake, launch->since + HOLDING_BOUND_NS);
	}
	*wake = verdict.wake;
	if (!verdict.holds)
		go(holding, launch, &verdict, now);
	return !verdict.holds;
}
