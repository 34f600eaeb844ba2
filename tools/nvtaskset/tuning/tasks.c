#include "tasks.h"

#include "base/extremes.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define MARGIN 0.05
#define NS_OF_MS 1e6
#define DAY_MS 86400e3

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static const char *describe(enum json_error_code code)
{
	const char *text = "not JSON";

	if (code == json_error_premature_end_of_input)
		text = "the file ends in the middle of a value";
	else if (code == json_error_end_of_input_expected)
		text = "there is something behind the document's end";
	else if (code == json_error_duplicate_key)
		text = "a member that its object has already";
	else if (code == json_error_invalid_utf8)
		text = "not UTF-8";
	else if (code == json_error_numeric_overflow)
		text = "a number that is too large";
	return text;
}

static json_t *load_document(const char *path, struct error *error)
{
	json_error_t why;
	json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &why);

	if (!document && json_error_code(&why) == json_error_cannot_open_file)
		error_set_errno(error, "%.200s", path);
	else if (!document)
		error_set(error, "%.200s: line %d: %s", path, why.line, describe(json_error_code(&why)));
	return document;
}

/* A member of an object, and the kind of the value in words. */
struct member {
	const char *name, *kind;
};

#define TEXT "a text"
#define NUMBER "a number"
#define WHOLE_NUMBER "a whole number"
#define TRUTH "true or false"
#define ANYTHING "there" /* the reader checks the kind */

static bool is_of_kind(const json_t *value, const char *kind)
{
	return strcmp(kind, ANYTHING) == 0 || (json_is_string(value) && strcmp(kind, TEXT) == 0) ||
	       (json_is_number(value) && strcmp(kind, NUMBER) == 0) ||
	       (json_is_integer(value) && strcmp(kind, WHOLE_NUMBER) == 0) ||
	       (json_is_boolean(value) && strcmp(kind, TRUTH) == 0);
}

/* The value must be an object with the first member, and may have the rest. The last member has no name. */
static int check_members(json_t *object, const char *what, const struct member *members, struct error *error)
{
	const char *name;
	json_t *value;

	if (!json_object_get(object, members[0].name))
		return error_set(error, "%.200s: must be an object with the member '%s'", what, members[0].name);
	json_object_foreach(object, name, value) {
		const struct member *member = members;

		while (member->name && strcmp(member->name, name) != 0)
			member++;
		if (!member->name)
			return error_set(error, "%.200s: '%.40s': there is no such member", what, name);
		if (!is_of_kind(value, member->kind))
			return error_set(error, "%.200s: %s must be %s", what, name, member->kind);
	}
	return 0;
}

/* --- curves ------------------------------------------------------------------------------------------------------- */

/* A time beyond any number of ns never ends. */
static uint64_t ns_or_never(double ns)
{
	return ns > 0 && ns < (double)SCHEDULE_NEVER ? (uint64_t)ns : SCHEDULE_NEVER;
}

/* More TPCs make no task later: curve_ns sees to that. In one partition, jobs run one after the other, and do not
 * disturb each other. All tasks share the memory: a task beside others takes the time measured beside a neighbour. */
void task_fill_times(struct task *task, const struct tasks *tasks)
{
	for (unsigned int tpcs = 1; tpcs < PLAN_TPCS; tpcs++) {
		double beside = tasks->count > 1 ? curve_ns(&task->beside, tpcs, CURVE_LONGEST) : 0;

		task->longest_ns[tpcs] = ns_or_never(max_double(curve_ns(&task->curve, tpcs, CURVE_LONGEST), beside) *
		                                     (1 + tasks->margin));
		task->launches_ns[tpcs] = task->launch_ns > 0 ? task->launch_ns
		                                              : ns_or_never(curve_ns(&task->curve, tpcs, CURVE_LAUNCH));
	}
	task->needs.alone_ns = task->needs.beside_ns = task->longest_ns;
	task->needs.launch_ns = task->launches_ns;
}

/* Real neighbours use less memory bandwidth than a pure copier. Beside five real neighbours, the middle was within 11 %
 * of the measurement, and the curve alone was 6 to 29 % too short (planning.md). */
double task_predicted_ns(const struct task *task, const struct tasks *tasks)
{
	double alone = curve_ns(&task->curve, task->grant.tpcs, CURVE_JOB),
	       beside = curve_ns(&task->beside, task->grant.tpcs, CURVE_JOB);

	return tasks->count > 1 && beside > 0 ? (alone + beside) / 2 : alone;
}

/* A number that the point lacks stays 0. */
static int read_points(struct curve *curve, json_t *array, struct error *error)
{
	size_t index;
	json_t *value;

	curve->count = 0;
	json_array_foreach(array, index, value) {
		double job_ms = 0, longest_ms = 0, launch_ms = 0;
		int tpcs = 0;

		json_unpack(value, "{s:i, s:F, s?F, s?F}", "tpcs", &tpcs, "job_ms", &job_ms, "longest_ms", &longest_ms,
		            "launch_ms", &launch_ms);
		struct curve_point point = {(unsigned int)tpcs, .job_ns = job_ms * 1e6,
		                            .worst_ns = max_double(longest_ms, job_ms) * 1e6,
		                            .launch_ns = launch_ms * 1e6};

		if (point.tpcs <= (curve->count > 0 ? curve->points[curve->count - 1].tpcs : 0) ||
		    !(point.job_ns > 0) || curve->count == CURVE_POINTS)
			return error_set(error, "curve: point %zu: needs tpcs, more than the one before, and job_ms; "
			                        "there are at most %d", index, CURVE_POINTS);
		curve->points[curve->count++] = point;
	}
	return 0;
}

/* The curve itself, or the path of its file, relative to the file of tasks. */
static int read_curve(struct task *task, json_t *curve, const char *tasks_path, struct error *error)
{
	const char *name = json_string_value(curve), *slash = strrchr(tasks_path, '/');
	char path[PATH_MAX];

	if (!name && !json_is_object(curve))
		return error_set(error, "task %.60s: has no curve; 'nvtaskset curve --json PID' measures one",
		                 task->name);
	if (name)
		snprintf(path, sizeof path, "%.*s%s", slash && name[0] != '/' ? (int)(slash + 1 - tasks_path) : 0,
		         tasks_path, name);
	json_t *document = name ? load_document(path, error) : json_incref(curve);
	bool is_read = document && read_points(&task->curve, json_object_get(document, "points"), error) == 0 &&
	               read_points(&task->beside, json_object_get(document, "points_beside"), error) == 0;

	json_decref(document);
	return is_read && task->curve.count == 0 ? error_set(error, "curve: has no points") : is_read ? 0 : -1;
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static int read_command(struct task *task, const json_t *command, struct error *error)
{
	size_t count = json_array_size(command);
	bool is_good = count < TASK_WORDS;

	for (size_t i = 0; i < count && is_good; i++) {
		task->command[i] = (char *)json_string_value(json_array_get(command, i));
		is_good = task->command[i] != NULL;
	}
	if (!is_good)
		return error_set(error, "task %.60s: command must be an array of at most %d strings", task->name,
		                 TASK_WORDS - 1);
	return (count > 0) != (task->pid > 0) ? 0
	                                      : error_set(error, "task %.60s: needs a command or a pid", task->name);
}

enum { PERIOD, DEADLINE, RATE, LAUNCH, NUMBERS };

/* The numbers of a task; NAN: not given. */
static int take_numbers(struct task *task, const double given[NUMBERS], struct error *error)
{
	static const char *const names[NUMBERS] = {"period_ms", "deadline_ms", "per_second", "launch_ms"};
	double period = isnan(given[RATE]) ? given[PERIOD] : 1000 / given[RATE],
	       deadline = isnan(given[DEADLINE]) ? period : given[DEADLINE];

	for (int i = 0; i < NUMBERS; i++) {
		if (given[i] <= 0)
			return error_set(error, "task %.60s: %s: %g: a %s must be above 0", task->name, names[i],
			                 given[i], i == RATE ? "rate" : "time");
	}
	if (!isnan(given[PERIOD]) + !isnan(given[RATE]) + task->is_best_effort != 1)
		return error_set(error, "task %.60s: needs one of period_ms, per_second and best_effort", task->name);
	task->launch_ns = isnan(given[LAUNCH]) ? 0 : ns_or_never(given[LAUNCH] * NS_OF_MS);
	if (task->is_best_effort)
		return 0;
	if (!(period <= DAY_MS && deadline <= period))
		return error_set(error, "task %.60s: its deadline must not be later than its next period", task->name);
	task->needs.period_ns = (uint64_t)(period * NS_OF_MS);
	task->needs.deadline_ns = (uint64_t)(deadline * NS_OF_MS);
	return task->needs.deadline_ns > 0
	               ? 0 : error_set(error, "task %.60s: its deadline must be 1 ns or longer", task->name);
}

/* Adds a task. Two tasks with one program would each change its partition. */
static int read_task(struct tasks *tasks, json_t *value, const char *path, struct error *error)
{
	static const struct member members[] = {
		{"name", TEXT}, {"command", ANYTHING}, {"pid", WHOLE_NUMBER}, {"period_ms", NUMBER},
		{"deadline_ms", NUMBER}, {"per_second", NUMBER}, {"launch_ms", NUMBER}, {"best_effort", TRUTH},
		{"critical", TRUTH}, {"curve", ANYTHING}, {NULL, NULL}
	};
	struct task *task = &tasks->list[tasks->count++];
	const char *name = json_string_value(json_object_get(value, "name"));
	char what[96];
	json_t *command = NULL, *curve = NULL;
	double numbers[NUMBERS] = {NAN, NAN, NAN, NAN};
	int best_effort = 0, critical = 0;
	json_int_t pid = 0;

	*task = (struct task){.name = ""};
	if (name)
		snprintf(what, sizeof what, "task %.60s", name);
	else
		snprintf(what, sizeof what, "task number %zu", tasks->count);
	if (check_members(value, what, members, error) < 0)
		return -1;
	json_unpack(value, "{s:s, s?o, s?I, s?F, s?F, s?F, s?F, s?b, s?b, s?o}", "name", &task->name, "command",
	            &command, "pid", &pid, "period_ms", &numbers[PERIOD], "deadline_ms", &numbers[DEADLINE],
	            "per_second", &numbers[RATE], "launch_ms", &numbers[LAUNCH], "best_effort", &best_effort,
	            "critical", &critical, "curve", &curve);
	if (pid < 0 || pid > INT_MAX)
		return error_set(error, "task %.60s: pid must be a number of a process", task->name);
	for (const struct task *other = tasks->list; other < task && pid > 0; other++) {
		if (other->pid == pid)
			return error_set(error, "task %.60s: has the pid of task %.60s", task->name, other->name);
	}
	task->pid = (pid_t)pid;
	task->is_best_effort = best_effort;
	task->needs.is_alone = critical;
	if (read_command(task, command, error) < 0 || take_numbers(task, numbers, error) < 0)
		return -1;
	return best_effort ? 0 : read_curve(task, curve, path, error);
}

int tasks_read(struct tasks *tasks, const char *path, struct error *error)
{
	static const struct member members[] = {{"tasks", ANYTHING}, {"margin", NUMBER}, {NULL, NULL}};
	json_t *list = NULL;
	int result = 0;

	tasks->margin = MARGIN;
	tasks->document = load_document(path, error);
	if (!tasks->document)
		return -1;
	if (check_members(tasks->document, path, members, error) < 0)
		return -1;
	json_unpack(tasks->document, "{s?F, s:o}", "margin", &tasks->margin, "tasks", &list);
	if (json_array_size(list) == 0 || json_array_size(list) > PROGRAMS_MAX || !(tasks->margin >= 0))
		return error_set(error, "%.150s: needs 1 to %d tasks, and a margin that is not negative", path,
		                 PROGRAMS_MAX);
	for (size_t i = 0; i < json_array_size(list) && result == 0; i++)
		result = read_task(tasks, json_array_get(list, i), path, error);
	return result;
}
