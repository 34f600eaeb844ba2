#!/usr/bin/env bats
# The experiments of bench/ on the simulated GPU: what happens when they fail. Their results: bench_space.bats, bench_time.bats
# needs: bench/all
# processes: no
# limit: 600
# takes: long
# sanitizers: no

load helpers
OWN_GPUS=yes
load experiments

has_rows() { # FILE
	[ -n "$(grep -v '^#' "$1" 2>/dev/null | sed 1d)" ]
}

@test "a program that dies is reported once, and the others go on" {
	BENCH_DECODE_SECONDS=3 bench decode >"$WORK/output" 2>&1 3>&- &
	wait_until has_rows "$WORK/results/decode.csv"
	for environ in $(grep -lsaz '^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=2[0-9]' /proc/[0-9]*/environ); do
		! grep -qsaz "^BENCH_WORK=$WORK" "$environ" || kill -KILL "$(cut -d / -f 3 <<<"$environ")"
	done
	status=0
	wait $! || status=$?
	cat "$WORK/output"
	[ "$status" -eq 1 ]
	[ "$(grep -c '^  decode-mps-percent: ' "$WORK/output")" -eq 1 ]
	grep -q '^decode: done in .* s, but for what FAILED$' "$WORK/output"
	[[ "$(column "$WORK/results/decode.csv" 2)" == *"mps"*"none nvtaskset nvtaskset-"* ]]
	left_nothing
}

@test "without MPS, experiments that need it are left out" {
	FAKE_MPS=no-start run -0 bench startup connections
	[[ "$output" == *"bench: MPS does not start: Failed to create the log directory"* ]]
	[[ "$output" == *"  left out: nvtaskset: there is no MPS"* ]]
	[ "$(column "$WORK/results/startup.csv" 2)" = "none nvtaskset-no-mps" ]
}

@test "an experiment that fails is reported, and the others go on" {
	SIM_FAULTS=no-table run -1 bench resize startup
	[[ "$output" == *"resize: FAILED"*"startup: done in "*", but for what FAILED"*"; failed: resize startup" ]]
	[ "$(column "$WORK/results/startup.csv" 2)" = "green mps mps-percent none" ]
	left_nothing
}

@test "an experiment that takes too long is ended, and those that have no time left are left out" {
	quick='' BENCH_SECONDS=3 run -1 bench enforcement startup
	[[ "$output" == *"enforcement: FAILED: not done after "[123]" s"* ]]
	[[ "$output" == *"startup: left out: no time left"* ]]
	left_nothing
}

@test "a run that is interrupted leaves nothing" {
	TMPDIR=$WORK BENCH_OUT=$WORK/results "$ROOT/bench/run" enforcement >"$WORK/output" 2>&1 3>&- &
	wait_for_line '^enforcement:'
	sleep 0.5
	kill -TERM $!
	status=0
	wait $! || status=$?
	[ "$status" -eq 130 ]
	left_nothing
}

# Programs in Python stand in for PyTorch's.
@test "a job of programs that take turns has answers and rates under each mechanism" {
	export BENCH_UNTUNED_LOADS=0.5 BENCH_UNTUNED_PARTS=50 BENCH_UNTUNED_SECONDS=8
	local all="fixed lend-2ms mps mps-percent mps-priority none nvtaskset-priority nvtaskset-stepping"
	cat >"$WORK/columns" <<-END
		untuned 2 alone-first $all
		untuned 3 50 all
		untuned 5 arrival begin
		untuned_rate 2 alone-rest $all
	END
	run -0 bench untuned
	in_twenty_tries all_have_samples untuned
	rm "$WORK/results/untuned_state.csv" # a simulated GPU has no clock
	are_well_formed
	left_nothing
}

# Types into a shell with the settings of the demo, which writes into the test's directory.
in_demo_shell() { # COMMANDS
	local own="export XDG_CACHE_HOME=$WORK CUDA_MPS_PIPE_DIRECTORY=$WORK/demo-mps FAKE_MPS_LINGER=60"
	env -u NVTASKSET_TOPOLOGY -u NVTASKSET_DRIVER bash -c ". $WORK/settings; $own; $1"
}

@test "the demo leaves nothing, and its shell can do what README and guide show" {
	[ ! -e /dev/nvidiactl ] || skip "a GPU is here, whose links stay"
	mkdir "$WORK/tmp"
	run -0 env TMPDIR="$WORK/tmp" BUILD="$BUILD" "$ROOT/demo/run"
	# Halves, changed while they run, and the whole GPU for both: a letter for two TPCs.
	[[ "$output" =~ [Aa]{16}[Bb]{17}" " ]]
	[[ "$output" =~ [Aa]{8}[Bb]{25}" " ]]
	[[ "$output" =~ (A{33}|B{33})" " ]]
	[ -z "$(ls "$WORK/tmp")" ]
	[ ! -e "$XDG_CACHE_HOME/nvtaskset" ]
	# The settings do for every command, also for measure, which writes a topology.
	sed -n '/^export PATH/,/[^\\]$/p' <<<"$output" >"$WORK/settings"
	run -0 in_demo_shell 'nvtaskset measure'
	[[ "${lines[0]}" == "GPU 0000:00:06.0 (NVIDIA H200): 66 TPCs in 12 virtual GPCs"* ]]
	run -0 in_demo_shell 'nvtaskset -t 0-7 where 1; nvtaskset mps; nvtaskset --strict --lend -n 25% where 1'
	[[ "$output" == *"MPS: started a control daemon in $WORK/demo-mps"*"run on TPCs 0-7 "* ]]
	[[ "$output" == *"started by nvtaskset"*"16 of 66 TPCs"*"run on TPCs "* ]]
	if [ "$(uname -m)" = x86_64 ]; then
		run -0 in_demo_shell "where 600 >$WORK/plain & until [ -s $WORK/plain ]; do sleep 0.1; done
			nvtaskset --attach -tp 0-7 \$!; kill \$!"
		[[ "$output" == *"new TPC list: 0-7" ]]
	fi
	run -0 in_demo_shell 'nvtaskset mps stop'
}

@test "what the programs refuse" {
	PATH=$BUILD/bench:$PATH LD_LIBRARY_PATH=$BUILD/sim
	export LD_LIBRARY_PATH
	while IFS='|' read -r command reason; do
		run $command
		echo "$command: $output"
		[ "$status" -eq 1 ]
		[ "$output" = "$reason" ]
	done <<-'END'
		task nonsense|task: nonsense: not a kind of work
		task matmul --size 33|task: a matrix has a multiple of 32 rows, up to 16384
		env SIM_FAULTS=no-device task copy --size 1|task: error 100 (CUDA_ERROR_NO_DEVICE): cuInit(0)
		startup /nonexistent|startup: /nonexistent: No such file or directory
		env SIM_FAULTS=no-register account 1|account: kernels are not counted on this GPU
		env SIM_FAULTS=no-table hook 1|hook: error 500 (unknown): cuGetExportTable(&found, &table_id)
	END
	[ "$("$ROOT/bench/run" --list | cut -d : -f 1 | sort)" = "$(experiments_of accounting cost jobs space time | sort)" ]
	run -1 "$ROOT/bench/run" nonsense
	[[ "$output" == "bench: nonsense: no such experiment; there are: launch "* ]]
	BUILD=$WORK run -1 "$ROOT/bench/run"
	[[ "$output" == "bench: $WORK has no bench/task: build first (make bench does)" ]]
}

@test "a damaged table is refused, not drawn" {
	mkdir "$WORK/results"
	printf '# gpu: x\nround,mechanism,ms\n1,none,1.5\n2,none\n' >"$WORK/results/startup.csv"
	run ! python3 "$ROOT/bench/report/tables.py" "$WORK/results"
	[[ "$output" == *"startup.csv:4: not as many values as columns"* ]]
}
