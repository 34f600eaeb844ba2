#!/usr/bin/env bats
# Jobs in control groups (proctrack/cgroup), of version 1 here: these can be used without systemd.
# limit: 600

load helpers

setup_file() {
	FREEZER=/sys/fs/cgroup/freezer
	[ -w "$FREEZER/cgroup.procs" ] || skip "this machine has no control groups of version 1 that Slurm can use"
	# They are named after the nodes.
	[ ! -e "$FREEZER/slurm_n1" ] || skip "another cluster uses Slurm's control groups"
	export TRACK=cgroup
	make_fake_mps
	PLUGIN_OPTIONS="mps=$CONTROL" start_cluster
}

@test "a change of the job's group reaches a program that has cleared its environment" {
	start_job -w n1 --gres=shard:8 --wrap "env -i NVTASKSET_TOPOLOGY=$NVTASKSET_TOPOLOGY NVTASKSET_DRIVER=$NVTASKSET_DRIVER XDG_RUNTIME_DIR=$WORK XDG_CACHE_HOME=$WORK \\
		$BUILD/nvtaskset --mps off -t 8-11 $BUILD/demo/where 60"
	grep -q 'TPCs 8-11' "$WORK/output.$job"
	nvtaskset -G 0 -tp --group "$CLUSTER/spool/n1/nvtaskset/job-$job" 0-1
	wait_until grep -q 'TPCs 0-1 (4 SMs)' "$WORK/output.$job"
	scancel "$job"
}

@test "MPS's daemon outlives the job that had it started, while another needs it" {
	start_job -w n1 --gres=shard:8 --wrap 'echo started; sleep 60'
	daemon=$(cat "$CLUSTER/spool/n1/nvtaskset/mps-0/pipe/nvidia-cuda-mps-control.pid")
	first=$job
	start_job -w n1 --gres=shard:8 --wrap 'echo started; sleep 60'
	scancel "$first"
	wait_until [ ! -e "$CLUSTER/spool/n1/nvtaskset/job-$first" ]
	[ -e "/proc/$daemon" ]
	not grep -q '/job_' "/proc/$daemon/cgroup"
	scancel "$job"
	wait_until [ ! -e "/proc/$daemon" ]
}
