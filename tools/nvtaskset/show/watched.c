#include "activity.h"

#include "base/extremes.h"
#include "base/purse.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* --- one program -------------------------------------------------------------------------------------------------- */

static void end_one(struct watched *watched)
{
	monitor_end(watched->look);
	function_sums_free(&watched->functions);
	free(watched->loans);
	free(watched->launches);
}

static struct watched begin_one(const struct process *process, struct purse *purse)
{
	struct watched watched = {.pid = process->pid, .started = process->started, .user = process->uid};
	struct error error = {.reason = ""};

	watched.look = monitor_begin(process->pid, purse, &error);
	snprintf(watched.why, sizeof watched.why, "%s", error.reason);
	return watched;
}

static const char *first_gap(uint32_t gaps)
{
	const char *why = NULL;

	for (int gap = MONITOR_GAP_COUNT - 1; gap >= 0; gap--)
		why = gaps >> gap & 1 ? monitor_gap_text((enum monitor_gap)gap) : why;
	return why;
}

#define CLOCKS (UINT32_C(1) << MONITOR_CLOCKS)

/* A take with unknown clocks is left out, and is not a reason. */
static const char *why_unknown(const struct monitor_gpu *gpu)
{
	const char *why = gpu->is_time_known ? NULL : first_gap(gpu->gaps & ~CLOCKS);

	return gpu->is_time_known || gpu->gaps == CLOCKS || why ? why : "some were lost";
}

/* There is room for each GPU of a look, once. */
static struct watched_gpu *gpu_of(struct watched *watched, struct pci_address pci)
{
	struct watched_gpu *gpu = (struct watched_gpu *)watched_find_gpu(watched, pci);

	if (!gpu && watched->gpu_count < MONITOR_GPUS) {
		gpu = &watched->gpus[watched->gpu_count++];
		*gpu = (struct watched_gpu){.pci = pci};
	}
	return gpu;
}

static void add_gpu(struct watched *watched, const struct monitor_gpu *came)
{
	struct watched_gpu *gpu = gpu_of(watched, came->pci);

	if (!gpu)
		return;
	gpu->why_unknown = gpu->why_unknown ? gpu->why_unknown : why_unknown(came);
	gpu->is_presence = came->is_presence;
	if (came->gaps == CLOCKS)
		gpu->left_out_ns += (double)came->span_ns;
	else
		gpu->span_ns += (double)came->span_ns;
	if (came->is_time_known) {
		gpu->busy_ns += (double)came->busy_ns;
		gpu->busy_error_ns += (double)came->busy_error_ns;
		gpu->tpc_ns += (double)came->tpc_ns;
		gpu->all_span_ns += (double)came->span_ns;
		gpu->all_busy_ns += (double)came->busy_ns;
		gpu->all_tpc_ns += (double)came->tpc_ns;
	}
}

/* Without memory, launches are missing. */
static void add_launches(struct watched *lender, const struct monitor_gpu *gpu)
{
	size_t count = lender->launch_count;
	struct loan_launch *more =
	    gpu->interval_count > 0 ? realloc(lender->launches, (count + gpu->interval_count) * sizeof *more) : NULL;

	for (size_t i = 0; more && i < gpu->interval_count; i++) {
		if (gpu->intervals[i].kind == TIMES_KERNEL)
			more[count++] = loans_launch(gpu, &gpu->intervals[i]);
	}
	lender->launches = more ? more : lender->launches;
	lender->launch_count = count;
}

static void hear(struct watched *watched, bool has_functions, const struct listener *listener,
                 const struct monitor_times *times)
{
	watched->was_taken = true;
	watched->why_unknown = watched->why_unknown ? watched->why_unknown : first_gap(times->gaps);
	for (unsigned int i = 0; i < times->gpu_count; i++)
		add_gpu(watched, &times->gpus[i]);
	if (has_functions)
		function_sums_add(&watched->functions, times);
	if (watched->loans)
		loans_add(watched->loans, times);
	if (listener->hear)
		listener->hear(listener->context, watched, times);
	for (unsigned int i = 0; i < times->gpu_count; i++) {
		if (watched->lends)
			add_launches(watched, &times->gpus[i]);
		free(times->gpus[i].intervals);
	}
}

static void take_one(struct watched *watched, bool has_functions, const struct listener *listener,
                     struct purse *purse)
{
	struct monitor_times times;
	struct error error;

	if (!watched->look)
		return;
	int result = monitor_take(watched->look, &times, purse, &error);

	if (result >= 0)
		hear(watched, has_functions, listener, &times);
	if (result != 0) {
		monitor_end(watched->look);
		watched->look = NULL;
		snprintf(watched->why, sizeof watched->why, "%s", error.reason);
	}
}

/* --- lending ----------------------------------------------------------------------------------------------------- */

static void settle_one(const struct watch_list *watched, struct watched *lender, const struct loan_launch *launch)
{
	struct watched_gpu *gpu = gpu_of(lender, launch->pci);

	for (size_t i = 0; i < watched->count && gpu; i++) {
		const struct watched *borrower = &watched->list[i];
		double waited = borrower->loans && borrower != lender ? (double)loans_wait(borrower->loans, launch) : 0;

		gpu->waited_ns = waited > gpu->waited_ns ? waited : gpu->waited_ns;
	}
}

/* After a round, the borrowers have told all kernels that ended before the round of these launches. */
static void settle(const struct watch_list *watched, struct watched *lender)
{
	size_t left = lender->launch_count - lender->due_count;

	for (size_t i = 0; i < lender->due_count; i++)
		settle_one(watched, lender, &lender->launches[i]);
	if (lender->due_count > 0)
		memmove(lender->launches, lender->launches + lender->due_count, left * sizeof lender->launches[0]);
	lender->launch_count = lender->due_count = left;
}

static uint64_t least_limit(const struct processes *processes)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < processes->count; i++) {
		uint32_t limit = segment_lends_us(&processes->list[i].revision.lending);

		least = limit > 0 ? min_u64(least, limit * UINT64_C(1000)) : least;
	}
	return least;
}

static void follow_lending(struct watched *watched, const struct process *process, bool tells, uint64_t limit)
{
	watched->lends = segment_lends_us(&process->revision.lending) > 0;
	watched->borrows = segment_borrows(&process->revision.lending);
	if (watched->borrows && !watched->loans)
		watched->loans = calloc(1, sizeof *watched->loans);
	if (watched->look)
		monitor_tell(watched->look, tells || watched->lends || watched->borrows, limit);
}

/* --- all programs ------------------------------------------------------------------------------------------------ */

const struct watched *watched_find(const struct watch_list *watched, const struct process *process)
{
	const struct watched *found = NULL;

	for (size_t i = 0; i < watched->count && !found; i++) {
		bool is_it = watched->list[i].pid == process->pid && watched->list[i].started == process->started;

		found = is_it ? &watched->list[i] : NULL;
	}
	return found;
}

const struct watched_gpu *watched_find_gpu(const struct watched *watched, struct pci_address pci)
{
	const struct watched_gpu *found = NULL;

	for (unsigned int i = 0; i < watched->gpu_count && !found; i++)
		found = pci_address_equal(watched->gpus[i].pci, pci) ? &watched->gpus[i] : NULL;
	return found;
}

/* The least known part of the time that stands for the rest. */
#define KNOWN_PART 0.1

const char *watched_why_unknown(const struct watched_gpu *gpu)
{
	bool is_little = gpu->left_out_ns > 0 && gpu->span_ns < KNOWN_PART * (gpu->span_ns + gpu->left_out_ns);

	return !gpu->why_unknown && is_little ? monitor_gap_text(MONITOR_CLOCKS) : gpu->why_unknown;
}

static void drop_unlisted(struct watch_list *watched)
{
	size_t kept = 0;

	for (size_t i = 0; i < watched->count; i++) {
		if (watched->list[i].is_listed)
			watched->list[kept++] = watched->list[i];
		else
			end_one(&watched->list[i]);
	}
	watched->count = kept;
}

static int add_process(struct watch_list *watched, const struct process *process, struct purse *purse,
                       struct error *error)
{
	struct watched *more = realloc(watched->list, (watched->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	watched->list = more;
	more[watched->count] = begin_one(process, purse);
	more[watched->count++].is_listed = true;
	return 0;
}

static bool is_chosen(const struct watch_list *watched, const struct process *process)
{
	const struct listener *listener = &watched->listener;

	return (watched->functions_of == 0 || watched->functions_of == process->pid) &&
	       (!listener->wants || listener->wants(listener->context, process));
}

/* A watched program has two open files. The rest of the command needs some, for clients of metrics for example. */
#define FILES_OF_ONE 2
#define OTHER_FILES 80
#define WATCHED_MOST 2048

static size_t find_most(void)
{
	struct rlimit limit;
	size_t most = 0;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return most;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > OTHER_FILES)
		most = (limit.rlim_cur - OTHER_FILES) / FILES_OF_ONE;
	return most < WATCHED_MOST ? most : WATCHED_MOST;
}

/* No user's programs get more places than stay free for other users. */
static bool has_place(const struct watch_list *watched, size_t most, uid_t user)
{
	size_t own = 0;

	for (size_t i = 0; i < watched->count; i++)
		own += watched->list[i].user == user;
	return watched->count + own < most;
}

int watched_follow(struct watch_list *watched, const struct processes *processes, struct error *error)
{
	struct purse purse = {.wait_ms = 0};
	size_t most = find_most();
	uint64_t limit = least_limit(processes);
	int result = 0;

	watched->misses_borrowers = false;
	for (size_t i = 0; i < watched->count; i++)
		watched->list[i].is_listed = false;
	for (size_t i = 0; result == 0 && i < processes->count; i++) {
		const struct process *process = &processes->list[i];
		struct watched *known = (struct watched *)watched_find(watched, process);
		bool is_wanted = !process->yields_to_descendants && !process->not_in_force;

		if (known)
			known->is_listed = is_wanted;
		else if (is_wanted && is_chosen(watched, process) &&
		         has_place(watched, most, process->uid) && purse_begin(&purse, process->pid))
			result = add_process(watched, process, &purse, error);
		known = (struct watched *)watched_find(watched, process);
		if (known)
			follow_lending(known, process, watched->listener.hear, limit);
		bool borrows = segment_borrows(&process->revision.lending),
		     tells = known && known->look && known->loans;

		watched->misses_borrowers |= borrows && !tells;
	}
	drop_unlisted(watched);
	return result;
}

/* The next round begins with the programs that this round did not reach. */
void watched_take(struct watch_list *watched)
{
	struct purse purse = {.wait_ms = 0};
	bool goes_on = true;

	for (size_t i = 0; i < watched->count && goes_on; i++) {
		struct watched *one = &watched->list[watched->next++ % watched->count];

		if (purse_begin(&purse, one->pid))
			take_one(one, watched->functions_of == one->pid, &watched->listener, &purse);
		goes_on = !watched->is_wanted || !watched->is_wanted();
	}
	for (size_t i = 0; i < watched->count && goes_on; i++)
		settle(watched, &watched->list[i]);
}

void watched_begin_interval(struct watch_list *watched)
{
	for (size_t i = 0; i < watched->count; i++) {
		struct watched *one = &watched->list[i];

		one->was_taken = false;
		one->why_unknown = NULL;
		for (unsigned int place = 0; place < one->gpu_count; place++) {
			struct watched_gpu *gpu = &one->gpus[place];

			*gpu = (struct watched_gpu){.pci = gpu->pci,
			                            .is_presence = gpu->is_presence,
			                            .all_span_ns = gpu->all_span_ns,
			                            .all_busy_ns = gpu->all_busy_ns,
			                            .all_tpc_ns = gpu->all_tpc_ns};
		}
	}
}

void watched_end(struct watch_list *watched)
{
	for (size_t i = 0; i < watched->count; i++)
		end_one(&watched->list[i]);
	free(watched->list);
	*watched = (struct watch_list){.count = 0};
}
