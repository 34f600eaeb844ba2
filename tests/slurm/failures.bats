#!/usr/bin/env bats
# What can go wrong on a node, and what users can send.
# limit: 600

load helpers

setup_file() {
	LUA=0 PLUGIN_OPTIONS="wait=1 requeues=1" start_cluster
}

spool() { # NODE
	echo "$CLUSTER/spool/$1/nvtaskset"
}

# Runs a job that must fail, with this reason in the task's own standard error.
fails() { # REASON, and options of srun
	local reason=$1
	shift
	not srun "$@" true >"$WORK/said" 2>&1
	grep -qF -- "nvtaskset: $reason" "$WORK/said" || {
		cat "$WORK/said"
		false
	}
}

runs() { # options of srun
	srun "$@" true
}

start_where() { # NODE SHARDS; sets `job`
	start_job -w "$1" --open-mode=append --gres="shard:$2" --wrap "$BUILD/demo/where 60"
}

@test "only the hooks are exported, and nothing of the shim is in the plugin" {
	nm -D --defined-only "$BUILD/slurm/nvtaskset.so" | grep -vE ' (plugin_(name|type|version)|slurm_spank_[a-z_]+)$' >"$WORK/others" || true
	[ ! -s "$WORK/others" ]
	not grep -q 'cuGetExportTable' "$BUILD/slurm/nvtaskset.so"
}

@test "--tpcs without job_submit.lua is refused, and so beside another count" {
	fails "--tpcs was given, and the job has no shards" --tpcs=8
	fails "--gpcs was given, and the job has no shards" --gpcs=1
	fails "--tpcs asks for 9 TPCs, and the job has 8" --gres=shard:8 --tpcs=9
	runs --gres=shard:8 --tpcs=8
	runs --gres=shard:17 --tpcs=25%
}

@test "the user cannot say how much the job has, or where it runs" {
	for variable in SLURM_SHARDS_ON_NODE=60 SLURM_STEP_GPUS=1 SLURM_JOB_GPUS=1 SLURMD_NODENAME=n2 NVTASKSET_GROUP_FILE=/nowhere \
		NVTASKSET_SLURMD=1.1 SPANK_NVTASKSET=1 NVTASKSET_PARTITION=0000:18:00.0=0-65 NVTASKSET_PID=1 SLURM_SPANK_NVTASKSET=1; do
		srun -w n1 env "$variable" true
		(
			export "${variable?}"
			SLURM_CONF=$CLUSTER/etc/slurm.conf srun -w n1 --gres=shard:8 where 1
		) >"$WORK/output" 2>"$WORK/errors" || {
			echo "$variable"
			cat "$WORK/errors"
			false
		}
		grep -q '(16 SMs)' "$WORK/output"
	done
	# Settings of the plugin's options that are none: also where no srun looks at them. No node is drained (teardown).
	env _SLURM_SPANK_OPTION_nvtaskset_tpcs='%n%s' _SLURM_SPANK_OPTION_nvtaskset_gpcs= SPANK__SLURM_SPANK_OPTION_nvtaskset_tpcs=0x8 \
		sbatch -W -w n1 -o "$WORK/output" --gres=shard:8 --wrap "$BUILD/demo/where 1"
	grep -q '(16 SMs)' "$WORK/output"
	not env _SLURM_SPANK_OPTION_nvtaskset_tpcs='8;rm' SLURM_SPANK__SLURM_SPANK_OPTION_nvtaskset_tpcs='%n%s' srun -w n1 --gres=shard:8 --tpcs='%s' true
}

@test "a job without shards does not join another's group" {
	start_where n1 8
	NVTASKSET_GROUP_FILE=$(spool n1)/job-$job srun -w n1 env >"$WORK/environment"
	not grep -q '^NVTASKSET_GROUP_FILE=' "$WORK/environment"
	NVTASKSET_GROUP_FILE=$WORK/mine srun -w n1 env >"$WORK/environment"
	grep -qx "NVTASKSET_GROUP_FILE=$WORK/mine" "$WORK/environment"
}

@test "another user's job: may read its group, and not change it" {
	for program in id true; do
		as_nobody srun -w n1 "$program" >/dev/null 2>&1 || skip "this user cannot submit here"
	done
	chmod 777 "$WORK"
	cd /
	as_nobody srun -w n1 --gres=shard:8 bash -c \
		'where 1; ! rm "$NVTASKSET_GROUP_FILE" && ! nvtaskset -tp --group "$NVTASKSET_GROUP_FILE" 0-65' >"$WORK/output" 2>"$WORK/errors"
	grep -q '(16 SMs)' "$WORK/output"
}

no_job() {
	[ -z "$(squeue -h)" ]
}

# What the epilog could not remove, which is an empty group here, is removed when slurmd is started (below).
@test "another user who locks a job's file, which everybody can read, keeps nobody from changing it" {
	start_where n1 8
	chmod 777 "$WORK"
	as_nobody /usr/bin/python3 - "$(spool n1)/job-$job" "$WORK/locked" <<-END 3>&- &
		import fcntl, sys, time
		file = open(sys.argv[1])
		fcntl.lockf(file, fcntl.LOCK_SH, 1 << 40) # behind are locks of the job's programs
		fcntl.flock(file, fcntl.LOCK_EX)
		open(sys.argv[2], "w").close()
		time.sleep(60)
	END
	locker=$!
	wait_until [ -e "$WORK/locked" ]
	nvtaskset -G 0 -tp --group "$(spool n1)/job-$job" 0-1
	wait_until grep -q 'TPCs 0-1 (4 SMs)' "$WORK/output.$job"
	kill "$locker"
	scancel "$job"
}

@test "no permission on the directory: the reason, and the node stays" {
	runs -w n1 --gres=shard:8
	wait_until nothing_is_left
	chmod 777 "$(spool n1)" # as an administrator's mistake
	fails "$(spool n1)" -w n1 --gres=shard:8
	wait_until no_job
	chmod 755 "$(spool n1)"
	runs -w n1 --gres=shard:8
	wait_until nothing_is_left
	mv "$(spool n1)" "$(spool n1).away"
	: >"$(spool n1)"
	fails "$(spool n1)" -w n1 --gres=shard:8
	wait_until no_job
	rm "$(spool n1)"
	mv "$(spool n1).away" "$(spool n1)"
	runs -w n1 --gres=shard:8
}

# tests/slurm/unit/parts.c has what jobs leave that have no epilog.
@test "garbage in the directory does no harm; files of jobs that are not there go when slurmd is started" {
	mkdir "$(spool n1)/directory" "$(spool n1)/a.b"
	head -c 8192 /dev/urandom >"$(spool n1)/job-999999"
	: >"$(spool n1)/job-999998"
	mkfifo "$(spool n1)/pipe"
	ln -s /nowhere "$(spool n1)/link"
	printf 'x' >"$(spool n1)/.note-999999"
	runs -w n1 --gres=shard:8
	# And where it stands in the way.
	cluster kill TERM n1
	cluster daemon n1
	wait_until runs -w n1 --gres=shard:8
	wait_until [ ! -e "$(spool n1)/job-999999" ]
	[ ! -e "$(spool n1)/job-999998" ]
	[ ! -e "$(spool n1)/.note-999999" ]
	rm -r "$(spool n1)"/{directory,a.b,pipe,link}
}

@test "without room, an interactive job fails with the reason; a batch job is requeued, and then fails" {
	NVTASKSET_GROUP_FILE=$(spool n1)/managers nvtaskset --mps off -G all -n 60 true
	fails "" -w n1 --gres=shard:60
	submit -w n1 --gres=shard:60 --wrap true
	wait_until job_is "$job" PENDING
	wait_until fails_at_last "$job"
	grep -q 'Restarts=1' "$WORK/job"
	rm "$(spool n1)/managers"
}

fails_at_last() { # JOB
	scontrol show job "$1" >"$WORK/job"
	grep -q 'JobState=FAILED' "$WORK/job" || { scontrol update JobId="$1" StartTime=now 2>/dev/null || true; false; }
}

@test "slurmd's restart, with a signal and without: jobs keep their TPCs, nothing is left" {
	for signal in TERM KILL; do
		start_where n1 8
		cp "$(spool n1)/job-$job" "$WORK/before"
		cluster kill "$signal" n1
		cluster daemon n1
		wait_until runs -w n1 --gres=shard:40
		cmp -n 12288 "$(spool n1)/job-$job" "$WORK/before" # behind is the ledger of memory
		job_is "$job" RUNNING
		scancel "$job"
		wait_until nothing_is_left
	done
}

@test "a node that fails: its job goes on elsewhere, and the node is clean when it is back" {
	start_where n1 8
	scontrol update NodeName=n1 State=DOWN Reason=test
	wait_until job_is "$job" PENDING
	scontrol update JobId="$job" ReqNodeList=n2 StartTime=now
	# It may be back by itself.
	scontrol update NodeName=n1 State=RESUME || true
	wait_until [ -e "$(spool n2)/job-$job" ]
	wait_until [ ! -e "$(spool n1)/job-$job" ]
	scancel "$job"
}

@test "without the topology, jobs with shards fail with the reason, and others run" {
	mv "$CLUSTER/gpus.txt" "$CLUSTER/away"
	fails "NVTASKSET_TOPOLOGY=$CLUSTER/gpus.txt" -w n1 --gres=shard:8
	runs -w n1
	mv "$CLUSTER/away" "$CLUSTER/gpus.txt"
	runs -w n1 --gres=shard:8
}

@test "without our library on the node, jobs with shards fail with the reason, and others run" {
	mv "$CLUSTER/lib" "$CLUSTER/away"
	fails "$CLUSTER/lib/libcuda.so.1: is not there" -w n1 --gres=shard:8
	runs -w n1
	mv "$CLUSTER/away" "$CLUSTER/lib"
}

@test "slurmd says what is wrong in plugstack.conf, and does not start" {
	cp "$CLUSTER/etc/plugstack.conf" "$WORK/"
	sed -i 's/$/ wiat=3/' "$CLUSTER/etc/plugstack.conf"
	cluster kill TERM n4
	not cluster daemon n4
	grep -q "nvtaskset: plugstack.conf: 'wiat=3' is none of" "$CLUSTER/log/n4"
	cp "$WORK/plugstack.conf" "$CLUSTER/etc/"
	cluster daemon n4
	wait_until runs -w n4 --gres=shard:8
}
