#!/usr/bin/env bats
# Jobs of all kinds, on a real cluster with simulated GPUs.
# needs: slurm/nvtaskset.so
# limit: 600

load helpers

setup_file() {
	start_cluster
}

count_tpcs() { # FILE: the SMs of its only line, two of a TPC
	[ "$(wc -l <"$1")" = 1 ]
	sed 's/.*(\([0-9]*\) SMs).*/\1/' "$1" | awk '{print $1 / 2}'
}

@test "a job runs in as many TPCs as it has shards" {
	srun --gres=shard:8 where 1 >"$WORK/output"
	[ "$(count_tpcs "$WORK/output")" = 8 ]
}

@test "a job without shards has the whole GPU, and no library of ours" {
	srun env -u CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH="$BUILD/sim" where 1 >"$WORK/output"
	grep -q 'on TPCs 0-65 (' "$WORK/output"
	srun env >"$WORK/environment"
	not grep -E '^(NVTASKSET_GROUP_FILE|LD_LIBRARY_PATH)=' "$WORK/environment"
}

# Without the words of Slurm.
environment_of() { # options of srun
	srun "$@" env | sort | grep -vE '^(SLURM|SRUN|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_|ZE_|TMPDIR|_=)'
}

@test "a task has its user's environment, the group's file and the library's directory, and nothing else" {
	environment_of >"$WORK/without"
	# As nvtaskset leaves words to srun.
	export NVTASKSET_PARTITION=0-7 NVTASKSET_PID=$$
	for path in unset '' /first:/second; do
		[ "$path" = unset ] || export LD_LIBRARY_PATH=$path
		diff "$WORK/without" <(environment_of -w n1 --gres=shard:8) | grep '^[<>]' |
			sed 's/job-[0-9]*$/job-N/' >"$WORK/added"
		[ "$path" != unset ] || path=
		diff "$WORK/added" - <<-END
			> LD_LIBRARY_PATH=$CLUSTER/lib${path:+:$path}
			> NVTASKSET_GROUP_FILE=$CLUSTER/spool/n1/nvtaskset/job-N
		END
	done
}

@test "all tasks, and steps side by side, are in the job's TPCs" {
	sbatch -W -o "$WORK/output" --gres=shard:8 -n 3 --wrap "srun $BUILD/demo/where 1
		srun -n 1 --overlap --gres=shard:4 $BUILD/demo/where 2 & srun -n 1 --overlap $BUILD/demo/where 2 & wait
		$BUILD/demo/where 1"
	[ "$(grep -c 'run on .* (16 SMs)' "$WORK/output")" = 6 ]
	[ "$(grep -o 'on TPCs [0-9,-]* ' "$WORK/output" | sort -u | wc -l)" = 1 ]
	[ "$(sort -u "$WORK/output" | grep -c 'run on')" = 1 ]
	[[ "$(cat "$WORK/output")" == *"(16 SMs)"* ]]
}

@test "a job on several nodes has its TPCs on each" {
	srun -N 4 --gres=shard:5 where 1 >"$WORK/output"
	[ "$(grep -c '(10 SMs)' "$WORK/output")" = 4 ]
}

@test "whole GPUs, one or several: nobody else has their TPCs, and programs run without our library" {
	srun -w n1 --gpus=2 bash -c 'env; until [ -e "$0" ]; do sleep 0.1; done' "$WORK/seen" >"$WORK/environment" &
	wait_until grep -q '^SLURM_JOB_ID' "$WORK/environment"
	not grep -E '^(NVTASKSET_GROUP_FILE|LD_LIBRARY_PATH)=' "$WORK/environment"
	job=$(sed -n 's/^SLURM_JOB_ID=//p' "$WORK/environment")
	for gpu in 0 1; do
		[[ "$(nvtaskset -G "$gpu" -tp --group "$CLUSTER/spool/n1/nvtaskset/job-$job")" == *": 0-65" ]]
	done
	touch "$WORK/seen"
	wait
	# One beside a job with shards of the other, or after it.
	srun -w n1 --gres=shard:66 bash -c 'echo $SLURM_STEP_GPUS; sleep 2; touch "$0"' "$WORK/ended" >"$WORK/shards" &
	wait_until [ -s "$WORK/shards" ]
	srun -w n1 --gres=gpu:1 bash -c '[ -e "$0" ] && echo after it || echo $SLURM_STEP_GPUS' "$WORK/ended" >"$WORK/whole"
	wait
	[[ "$(cat "$WORK/whole") $(cat "$WORK/shards")" =~ ^(0\ 1|1\ 0|after\ it\ [01])$ ]]
}

# It ignores SIGTERM, and so lives for KillWait after scancel.
start_stubborn_job() {
	start_job -w n1 --gres=shard:60 --wrap "trap '' TERM; $BUILD/demo/where 60 & while :; do sleep 1; done"
}

@test "a job with whole GPUs waits for TPCs that an ending job still has" {
	start_stubborn_job
	scancel "$job"
	wait_until job_is "$job" CANCELLED
	srun -w n1 --gpus=2 bash -c "[ ! -e '$CLUSTER/spool/n1/nvtaskset/job-$job' ]"
}

@test "a job waits for TPCs that an ending job still has" {
	start_stubborn_job
	sbatch -w n1 -o "$WORK/other" --gres=shard:60 --wrap "$BUILD/demo/where 60"
	wait_until [ -s "$WORK/other" ]
	scancel "$job"
	wait_until job_is "$job" CANCELLED
	srun -w n1 --gres=shard:60 where 1 >"$WORK/second"
	[ "$(count_tpcs "$WORK/second")" = 60 ]
}

@test "--tpcs and --gpcs" {
	srun --tpcs=8 where 1 >"$WORK/output"
	srun --tpcs=25% where 1 >>"$WORK/output"
	srun --tpcs=7 --tpcs=9 where 1 >>"$WORK/output"
	srun --tpcs=5 : --tpcs=6 where 1 >>"$WORK/output"
	for sms in 16 34 18 10 12; do
		grep -q "($sms SMs)" "$WORK/output"
	done
	srun --gpcs=1 where 1 >"$WORK/output"
	[[ "$(count_tpcs "$WORK/output")" =~ ^[789]$ ]]
}

@test "--gpu-memory" {
	play=$BUILD/tests/programs/play
	srun --tpcs=8 --gpu-memory=512M "$play" room allocate 500 allocate 20 >"$WORK/output"
	[ "$(xargs <"$WORK/output")" = "512/512 0 0 2 2" ]
	srun --gres=shard:8 --gpu-memory=2G bash -c '"$0" room; nvtaskset -p --group "$NVTASKSET_GROUP_FILE"' "$play" \
		>"$WORK/output"
	grep -qx 2048/2048 "$WORK/output"
	grep -q 'current memory: 2G: ' "$WORK/output"
	not srun --gpu-memory=2G true 2>"$WORK/errors"
	grep -qF "nvtaskset: --gpu-memory was given, and the job has no shards" "$WORK/errors"
}

# The steps of a script have the script's options.
@test "--gpu-memory of a later step is the job's from then on; a step without leaves what root has set" {
	sbatch -w n1 -W -o "$WORK/output" --gres=shard:8 --gpu-memory=512M >/dev/null 3>&- <<-END &
		#!/bin/bash
		room() { "$BUILD/tests/programs/play" room; }
		room
		srun --overlap "$BUILD/tests/programs/play" room
		srun --overlap --gpu-memory=1G "$BUILD/tests/programs/play" room
		room
		echo "\$NVTASKSET_GROUP_FILE" >"$WORK/changed"
		until [ -e "$WORK/go" ]; do sleep 0.1; done
		srun --overlap --gpu-memory=1G "$BUILD/tests/programs/play" room
	END
	wait_until [ -s "$WORK/changed" ]
	nvtaskset -p --group "$(<"$WORK/changed")" --memory 2G
	touch "$WORK/go"
	wait $!
	cat "$WORK/output"
	[ "$(xargs <"$WORK/output")" = "512/512 512/512 1024/1024 1024/1024 2048/2048" ]
}

# A GPC has 9 TPCs, or 8. A job tries 9 first.
@test "whole GPCs for three jobs at once" {
	for i in 1 2 3; do
		srun -w n1 --gpcs=1 bash -c "where 1; cd '$WORK'; touch ran$i
			until [ -e ran1 -a -e ran2 -a -e ran3 ]; do sleep 0.1; done" \
			>"$WORK/output$i" || touch "$WORK/ran$i" &
	done
	wait
	[ "$(for i in 1 2 3; do count_tpcs "$WORK/output$i"; done | sort | xargs)" = "8 9 9" ]
}

refuses_job() { # REASON, and options of srun
	local reason=$1
	shift
	not srun "$@" true 2>"$WORK/errors"
	grep -qF -- "$reason" "$WORK/errors" || {
		cat "$WORK/errors"
		false
	}
}

@test "options that are wrong are refused before a job is there" {
	refuses_job "--tpcs=0: wants a number of TPCs" --tpcs=0
	refuses_job "--tpcs=8x: wants a number of TPCs" --tpcs=8x
	refuses_job "--gpcs=0: wants a number of GPCs" --gpcs=0
	refuses_job "--gpu-memory=2: wants a whole number and M, G or T" --tpcs=1 --gpu-memory=2
	refuses_job "--tpcs and --gpcs: give one of them" --tpcs=1 --gpcs=1
	refuses_job "--tpcs=67: a GPU has 66 TPCs" --tpcs=67
	refuses_job "leave --gres and --gpus out" --tpcs=8 --gres=shard:8
	refuses_job "leave --gres and --gpus out" --tpcs=8 --gpus=1
}
