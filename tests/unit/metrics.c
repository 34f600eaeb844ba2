/* Metrics as text, and the labels that a control group tells. */
#include "../cases.h"
#include "root.h"
#include "../../tools/nvtaskset/metrics/exposition.c"
#include "../../tools/nvtaskset/show/workload.c"

/* --- text --------------------------------------------------------------------------------------------------------------- */

/* One sample of each kind. tests/cli/metrics.bats has the other format. */
TEST(openmetrics)
{
	static const char expected[] =
		"# TYPE nvtaskset_program info\n"
		"# HELP nvtaskset_program A program with a partition, by the name of its process.\n"
		"nvtaskset_program_info{user=\"a\\\"b\\\\c\\nd\",pid=\"7\"} 1\n"
		"# TYPE nvtaskset_in_flight_kernels gauge\n"
		"# UNIT nvtaskset_in_flight_kernels kernels\n"
		"# HELP nvtaskset_in_flight_kernels Kernels that wait or run.\n"
		"nvtaskset_in_flight_kernels 12345678901234568\n"
		"# TYPE nvtaskset_busy_seconds counter\n"
		"# UNIT nvtaskset_busy_seconds seconds\n"
		"# HELP nvtaskset_busy_seconds Time in which a kernel of the program was on the GPU.\n"
		"nvtaskset_busy_seconds_total{user=\"a\\\"b\\\\c\\nd\",pid=\"7\"} 0.1\n"
		"nvtaskset_busy_seconds_total 0.30000000000000004\n"
		"# EOF\n";
	struct exposition exposition;
	struct metric_labels labels = {.count = 0}, none = {.count = 0};
	struct error error;
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	metric_label(&labels, "user", "a\"b\\c\nd");
	metric_label(&labels, "pod", "");
	metric_label(&labels, "container", NULL);
	metric_label(&labels, "pid", "7");
	exposition_begin(&exposition, false);
	exposition_add(&exposition, METRIC_BUSY, &labels, 0.1);
	exposition_add(&exposition, METRIC_PROGRAM, &labels, 1);
	exposition_add(&exposition, METRIC_IN_FLIGHT, &none, 12345678901234567.0);
	exposition_add(&exposition, METRIC_BUSY, &none, 0.1 + 0.2);
	assert_int_equal(exposition_end(&exposition, file, &error), 0);
	fclose(file);
	assert_string_equal(text, expected);
	free(text);
}

/* OpenMetrics: a family with a unit has a name that ends with it; only counters end in _total, only infos in _info. */
TEST(names_are_as_openmetrics_wants_them)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		size_t name = strlen(metrics[i].name), unit = strlen(metrics[i].unit);

		assert_true(strspn(metrics[i].name, "abcdefghijklmnopqrstuvwxyz_") == name);
		const char *end = metrics[i].name + name - unit;

		assert_true(unit == 0 || (end[-1] == '_' && strcmp(end, metrics[i].unit) == 0));
		assert_null(strstr(metrics[i].name, "_total"));
		assert_null(strstr(metrics[i].name, "_info"));
		assert_null(strpbrk(metrics[i].help, "\\\"\n"));
		assert_int_equal(metrics[i].help[strlen(metrics[i].help) - 1], '.');
	}
}

/* --- control groups ------------------------------------------------------------------------------------------------------- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID "12345678-9abc-def0-1234-56789abcdef0"
#define UNIT "12345678_9abc_def0_1234_56789abcdef0" /* as systemd has it */

static void assert_workload(const char *cgroup, const char *job, const char *pod_uid, const char *id)
{
	struct workload workload;
	char container[WORKLOAD_NAME];

	workload_read(&workload, cgroup, container);
	assert_string_equal(workload.hpc_job, job);
	assert_string_equal(workload.pod_uid, pod_uid);
	assert_string_equal(container, id);
	assert_string_equal(workload.container, id[0] != '\0' ? "0123456789ab" : "");
	assert_string_equal(workload.pod, "");
	assert_string_equal(workload.namespace, "");
}

TEST(control_groups)
{
	assert_workload("", "", "", "");
	assert_workload("0::/user.slice/user-1000.slice/session-3.scope\n", "", "", "");
	/* Slurm, with cgroup v2 and v1 */
	assert_workload("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "4711", "", "");
	assert_workload("9:memory:/slurm/uid_1000/job_4711/step_batch/task_0\n8:cpu:/\n", "4711", "", "");
	assert_workload("4:devices:/slurm_node1/uid_1000/job_4711\n", "4711", "", "");
	/* Docker, with systemd's driver and without, and Podman */
	assert_workload("0::/system.slice/docker-" ID ".scope\n", "", "", ID);
	assert_workload("5:cpuset:/docker/" ID "\n4:cpu:/docker/" ID "\n", "", "", ID);
	assert_workload("0::/user.slice/libpod-" ID ".scope/container\n", "", "", ID);
	assert_workload("4:devices:/libpod_parent/libpod-" ID "\n", "", "", ID);
	assert_workload("0::/machine.slice/libpod-" ID ".scope\n", "", "", ID);
	/* containerd, CRI-O, and a kubelet that uses systemd where containerd does not; and Kubernetes, with both drivers */
	assert_workload("0::/default/" ID "\n", "", "", ID);
	assert_workload("0::/system.slice:cri-containerd:" ID "\n", "", "", ID);
	assert_workload("0::/kubepods.slice/kubepods-pod" UNIT ".slice/crio-" ID ".scope/container\n", "", UID, ID);
	assert_workload("5:devices:/kubepods/burstable/pod" UID "/crio-" ID "\n", "", UID, ID);
	assert_workload("9:pids:/system.slice/containerd.service/kubepods-burstable-pod" UNIT ".slice:cri-containerd:" ID "\n",
	                "", UID, ID);
	assert_workload("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNIT ".slice/"
	                "cri-containerd-" ID ".scope\n", "", UID, ID);
	assert_workload("3:cpu:/kubepods/besteffort/pod" UID "/" ID "\n", "", UID, ID);
	/* What only looks like it */
	assert_workload("0::/job_4711\n", "", "", "");
	assert_workload("0::/slurm/job_/job_x1/job_12x\n", "", "", "");
	assert_workload("0::/podman/pod1/tripod-\n", "", "", "");
	assert_workload("0::/" ID "0/x" ID "\n", "", "", "");
}

TEST(names_of_pods)
{
	const char *logs = text_of("%s/logs", root);
	struct workload workload;
	char container[WORKLOAD_NAME];

	root_run("mkdir logs && cd logs && touch junk _ a_b "
	         "other_default_main-fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210.log");
	workload_read(&workload, "0::/docker/" ID "\n", container);
	workload_find_names(&workload, container, logs);
	assert_string_equal(workload.pod, "");
	assert_string_equal(workload.container, "0123456789ab");
	root_run("touch logs/infer-6d4cf56db6-x7k2p_team-a_cuda-main-" ID ".log");
	workload_find_names(&workload, container, logs);
	assert_string_equal(workload.pod, "infer-6d4cf56db6-x7k2p");
	assert_string_equal(workload.namespace, "team-a");
	assert_string_equal(workload.container, "cuda-main");
	/* No container: not looked for. No directory: no names. */
	workload_find_names(&workload, "", "/proc");
	workload_find_names(&workload, container, "/nowhere");
}

RUN_TESTS_IN(root_make, root_remove, NULL, NULL)
