# Functions that the tests of Slurm's plugin share. All cases of a file share one real cluster (cluster), with four nodes of
# two simulated H200.

load ../cli/helpers

# Begins a file. Variables of `cluster` may stand before it.
start_cluster() {
	BUILD=${BUILD:-$BATS_TEST_DIRNAME/../../build}
	needs_root
	for program in slurmctld slurmd srun munged; do
		needs "$program"
	done
	# Not in bats's own directory: munged wants every user to get at its socket.
	CLUSTER=$(mktemp -d)
	"$BATS_TEST_DIRNAME/cluster" start "$CLUSTER" >"$BATS_FILE_TMPDIR/said" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/said"
		return 1
	}
	export CLUSTER BUILD SLURM_CONF=$CLUSTER/etc/slurm.conf
}

# Plays NVIDIA's MPS: CONTROL is then a directory for it.
make_fake_mps() {
	CONTROL=$(mktemp -d)
	export CONTROL
	chmod 755 "$CONTROL"
	cat >"$CONTROL/nvidia-cuda-mps-control" <<-END
		#!/bin/bash
		PATH=/usr/bin:/bin
		# What a user can do to its own processes that start and end its daemon.
		[ ! -e "$CONTROL/stops" ] || [ "\$(id -u)" = 0 ] || { kill -STOP "\$PPID"; sleep 60; }
		FAKE_MPS_LINGER=600 exec bash "$CONTROL/fake" "\$@"
	END
	cp "$BATS_TEST_DIRNAME/../fake-mps/nvidia-cuda-mps-control" "$CONTROL/fake"
	chmod 755 "$CONTROL"/*
}

teardown_file() {
	[ -z "${CLUSTER:-}" ] || "$BATS_TEST_DIRNAME/cluster" stop "$CLUSTER"
	rm -rf "${CONTROL:-}"
}

cluster() { # ACTION [SIGNAL] and NAMEs
	local action=$1
	shift
	if [ "$action" = kill ]; then
		"$BATS_TEST_DIRNAME/cluster" kill "$1" "$CLUSTER" "${@:2}"
	else
		"$BATS_TEST_DIRNAME/cluster" "$action" "$CLUSTER" "$@"
	fi
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	WORK=$(mktemp -d)
	chmod 755 "$WORK"
	PATH=$BUILD:$BUILD/demo:$PATH
	# Programs of the jobs, and commands outside, have the same simulated GPUs.
	export NVTASKSET_TOPOLOGY=$CLUSTER/gpus.txt NVTASKSET_DRIVER=$BUILD/sim/libcuda.so.1
	export XDG_CACHE_HOME=$WORK XDG_RUNTIME_DIR=$WORK
	unset LD_LIBRARY_PATH NVTASKSET_GROUP_FILE
}

# Nothing is left of any job, whatever the case has done. (bats does not end a teardown where a command fails.)
teardown() {
	scancel --user=root 2>/dev/null
	scancel --user=nobody 2>/dev/null
	wait_until nothing_is_left || {
		squeue
		find_files
		grep -h nvtaskset "$CLUSTER"/log/n? | tail -n 20
		return 1
	}
	all_nodes_work || return
	rm -rf "$WORK"
}

as_nobody() { # COMMAND…
	setpriv --reuid 65534 --regid 65534 --clear-groups env XDG_CACHE_HOME="$WORK" XDG_RUNTIME_DIR="$WORK" "$@"
}

# Sets `job`; its output goes to $WORK/output.JOB. AS: as which user.
submit() { # options of sbatch
	job=$(cd / && "${AS:-env}" sbatch --parsable -o "$WORK/output.%j" "$@")
}

# The same, and waits until the job has printed something.
start_job() { # options of sbatch
	submit "$@"
	wait_until [ -s "$WORK/output.$job" ]
}

find_files() {
	find "$CLUSTER"/spool/*/nvtaskset -name 'job-*' -o -name '.note-*' -o -name '.live-*' -o -name '.new-*' 2>/dev/null
}

nothing_is_left() {
	[ -z "$(squeue -h)" ] && [ -z "$(find_files)" ]
}

# An epilog that fails drains its node.
all_nodes_work() {
	! sinfo -h -N -o '%N %T %E' | grep -E 'drain|down|fail'
}

job_runs() { # JOB
	[ "$(squeue -h -j "$1" -o %T 2>/dev/null)" = RUNNING ]
}

job_is() { # JOB STATE
	scontrol show job "$1" | grep -q "JobState=$2 "
}
