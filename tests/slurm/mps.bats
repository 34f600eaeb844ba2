#!/usr/bin/env bats
# MPS's daemons, one for each user with jobs; tests/fake-mps plays NVIDIA's program.
# limit: 600

load helpers

setup_file() {
	make_fake_mps
	CRED_EXPIRE=5 PLUGIN_OPTIONS="mps=$CONTROL" start_cluster
}

home_of() { # USER
	echo "$CLUSTER/spool/n1/nvtaskset/mps-$1"
}

daemon_runs() { # USER
	[ "$(stat -c %u "/proc/$(cat "$(home_of "$1")/pipe/nvidia-cuda-mps-control.pid")")" = "$1" ]
}

says_pipes=(-w n1 --gres=shard:8 --wrap 'echo "$CUDA_MPS_PIPE_DIRECTORY"; sleep 60')

@test "the first job with shards has a daemon started, the last one ends it" {
	srun -w n1 true
	srun -w n1 --gpus=1 true
	[ ! -e "$(home_of 0)" ]
	start_job "${says_pipes[@]}"
	first=$job
	[ "$(cat "$WORK/output.$job")" = "$(home_of 0)/pipe" ]
	daemon_runs 0
	daemon=$(cat "$(home_of 0)/pipe/nvidia-cuda-mps-control.pid")
	start_job "${says_pipes[@]}"
	[ "$(cat "$(home_of 0)/pipe/nvidia-cuda-mps-control.pid")" = "$daemon" ]
	scancel "$first"
	wait_until [ ! -e "$CLUSTER/spool/n1/nvtaskset/job-$first" ]
	srun -w n1 true
	daemon_runs 0
	scancel "$job"
	wait_until [ ! -e "$(home_of 0)" ]
	wait_until [ ! -e "/proc/$daemon" ]
}

@test "each user has a daemon of its own, with nothing of root's, and only its own directory" {
	chmod 777 "$WORK"
	start_job "${says_pipes[@]}"
	AS=as_nobody start_job "${says_pipes[@]}"
	[ "$(cat "$WORK/output.$job")" = "$(home_of 65534)/pipe" ]
	daemon_runs 0
	daemon_runs 65534
	[ "$(stat -c '%u %a' "$(home_of 65534)")" = "65534 700" ]
	grep -q "^CUDA_MPS_PIPE_DIRECTORY=$(home_of 65534)/pipe$" "$(home_of 65534)/pipe/running"
	daemon=$(cat "$(home_of 65534)/pipe/nvidia-cuda-mps-control.pid")
	grep -q '^Groups:[[:space:]]*\(65534 \?\)\?$' "/proc/$daemon/status"
	not grep -q SLURM "$(home_of 65534)/pipe/running"
	scancel "$job"
	wait_until [ ! -e "$(home_of 65534)" ]
	daemon_runs 0
}

@test "a user's own choice stays" {
	[ "$(CUDA_MPS_PIPE_DIRECTORY=/dev/null srun -w n1 --gres=shard:8 bash -c 'echo $CUDA_MPS_PIPE_DIRECTORY')" = /dev/null ]
}

break_mps() {
	sed -i 's/FAKE_MPS_LINGER/FAKE_MPS=no-start &/' "$CONTROL/nvidia-cuda-mps-control"
}

mend_mps() {
	sed -i 's/FAKE_MPS=no-start //' "$CONTROL/nvidia-cuda-mps-control"
}

@test "a daemon that does not start: the job fails with the reason, the log has more, and the node stays" {
	break_mps
	not srun -w n1 --gres=shard:8 true 2>"$WORK/errors"
	grep -q 'nvtaskset: MPS: no control daemon of user 0 runs on this node' "$WORK/errors"
	grep -q 'MPS: the control daemon does not start: Failed to create the log directory' "$CLUSTER/log/n1"
	srun -w n1 --gpus=1 true
	mend_mps
	srun -w n1 --gres=shard:8 true
}

@test "a daemon that was killed: steps fail with the reason; the user's next job has it started anew" {
	start_job "${says_pipes[@]}"
	daemon=$(cat "$(home_of 0)/pipe/nvidia-cuda-mps-control.pid")
	kill "$daemon"
	# It is there until its parent has waited for it.
	wait_until [ ! -e "/proc/$daemon" ]
	rm -r "$(home_of 0)/pipe"/{running,lock}
	not srun --overlap --jobid="$job" true 2>"$WORK/errors"
	grep -q 'nvtaskset: MPS: no control daemon of user 0 runs on this node' "$WORK/errors"
	srun -w n1 --gres=shard:8 bash -c '[ -d "$CUDA_MPS_PIPE_DIRECTORY" ]'
	daemon_runs 0
	srun --overlap --jobid="$job" true
	scancel "$job"
}

has_restarts() { # JOB COUNT
	scontrol show job "$1" | grep -q " Restarts=$2 "
}

runs_with_daemon() { # JOB
	job_runs "$1" && grep -qx "$(home_of 0)/pipe" "$WORK/output.$1" && daemon_runs 0
}

# As where Slurm leaves the prolog out, since somebody has set a requeued job's StartTime.
@test "a batch job that finds no daemon is put back, and runs with one when it comes again" {
	break_mps
	submit "${says_pipes[@]}"
	wait_until has_restarts "$job" 1
	mend_mps
	grep -q "job $job is put back into the queue, for the 1. time: MPS: no control daemon of user 0 runs" "$CLUSTER/log/n1"
	wait_until runs_with_daemon "$job"
	has_restarts "$job" 1
	scancel "$job"
}

has_no_jobs() { # USER
	[ -z "$(squeue -h -u "$1")" ]
}

@test "a user who stops what starts and ends the daemon keeps nobody else waiting" {
	chmod 777 "$WORK"
	: >"$CONTROL/stops"
	(cd / && not as_nobody srun -w n1 --gres=shard:8 true) >"$WORK/his" 2>&1 3>&- &
	his=$!
	wait_until [ -d "$(home_of 65534)" ]
	srun -w n1 --gres=shard:8 true
	wait_until has_no_jobs root
	kill -0 "$his"
	wait "$his"
	grep -q 'MPS: no control daemon of user 65534 runs' "$WORK/his"
	grep -q 'MPS: not done after 20 s' "$CLUSTER/log/n1"
	rm "$CONTROL/stops"
}

@test "what a machine that went down has left of a daemon, the epilog of the user's next job removes" {
	start_job "${says_pipes[@]}"
	mkdir "$WORK/away"
	cp -rp "$(home_of 0)" "$WORK/away/"
	scancel "$job"
	wait_until [ ! -e "$(home_of 0)" ]
	rm -r "$WORK/away/mps-0/pipe"/{running,lock}
	cp -rp "$WORK/away/mps-0" "$(home_of 0)"
	srun -w n1 true
	wait_until [ ! -e "$(home_of 0)" ]
}
