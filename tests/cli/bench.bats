#!/usr/bin/env bats
# The experiments of bench/ on the simulated GPU: the form of their results, and what happens when they fail

load helpers

bench() {
	PATH=$BUILD/bench:$PATH TMPDIR=$WORK BENCH_OUT=$WORK/results BENCH_QUICK=${quick-1} "$ROOT/bench/run" "$@"
}

has_program() {
	grep -qsa "BENCH_WORK=$WORK" /proc/[0-9]*/environ
}

# No program and no directory of a run is left. A program that has got a signal may need a moment to end.
left_nothing() {
	[ -z "$(ls -d "$WORK"/nvbench.* 2>/dev/null)" ]
	wait_until not has_program
}

# The file says on what it was measured and has rows, each with a value for every column.
well_formed() {
	awk -F, '
		/^# / {about = about " " $1; next}
		!columns {columns = NF; next}
		NF != columns {print FILENAME ": " $0; wrong = 1}
		{for (i = 1; i <= NF; i++) if ($i == "") {print FILENAME ": empty: " $0; wrong = 1}}
		{rows++}
		END {
			split("experiment machine gpu driver mps nvtaskset date command", names, " ")
			for (i in names)
				if (!index(about, "# " names[i] ":")) {print FILENAME ": no " names[i]; wrong = 1}
			exit wrong || !rows
		}' "$1"
}

# The distinct values of one column.
column() { # FILE NUMBER
	grep -v '^#' "$1" | sed 1d | cut -d , -f "$2" | sort -u | paste -sd ' '
}

draws() (
	. "$ROOT/bench/support/results.bash"
	find_drawing_python >/dev/null
)

@test "every experiment writes the tables that it names, and all are drawn" {
	PYTHONPATH=$ROOT/tests/fake-torch PYTHONDONTWRITEBYTECODE=1 run bench
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"this is a simulated one, and its numbers mean nothing"* ]]
	[[ "$output" != *"left out: valgrind "* ]] || rm "$WORK/results/callback.csv"
	# A sanitizer's run-time library would have to come with python.
	! is_sanitized || rm "$WORK"/results/{faulty,network}.csv
	for file in "$WORK"/results/*.csv; do
		well_formed "$file"
	done
	cd "$WORK/results"
	[ "$(column startup.csv 2)" = "green mps mps-percent none nvtaskset nvtaskset-no-mps" ]
	[ "$(column parts.csv 2 | wc -w)" -eq 16 ]
	[ "$(column launch.csv 3)" = "finish start submit" ]
	[ "$(column hook.csv 2)" = "mps none" ]
	[ "$(column hook.csv 3)" = "hook-half hook-out hook-whole" ]
	[ "$(column account.csv 2)" = "kernel launch node" ]
	[ "$(column account.csv 3)" = "off on" ]
	[ "$(column account_start.csv 2)" = "off on" ]
	[ "$(column registration.csv 2)" = "mps none" ]
	[ "$(column registration.csv 3)" = "again first" ]
	[ "$(column registration.csv 4)" = "off on" ]
	[ "$(column enforcement.csv 3)" = "distributed gpcs packed whole" ]
	[ "$(column enforcement.csv 5)" = "1024 6144 8192" ]
	[ "$(column enforcement.csv 6)" = "alone compute memory" ]
	[ "$(column enforcement_neighbour.csv 6)" = "compute memory" ]
	[ "$(column granularity.csv 2)" = "green mps-percent nvtaskset" ]
	[ "$(column pitfall.csv 3)" = "task1 task2 task3" ]
	[ "$(column resize.csv 1)" = "eager graph1 graph10 graph100 graph1000" ]
	[ "$(column command.csv 2)" = "change list show true" ]
	[ "$(column group.csv 3)" = "change one show" ]
	[ "$(column tail.csv 3)" = "batch critical" ]
	[ "$(column processes.csv 2)" = "mps mps-percent none nvtaskset" ]
	[ "$(column strategies.csv 2)" = "distributed packed" ]
	[ "$(column overlap.csv 3)" = "first-first free second-first" ]
	[ "$(column overlap.csv 4)" = "0 16 24 33 8" ]
	[ "$(column slices.csv 3)" = "20 alone default" ]
	[ "$(column priority.csv 2)" = "alone mps mps-priority none nvtaskset nvtaskset-priority" ]
	[ "$(column bursts.csv 3)" = "first next" ]
	[ "$(column preemption.csv 3)" = "0.1 1.9 nothing" ]
	[ "$(column weights.csv 4)" = "100 200 2000 400" ]
	[ "$(column decode_priority.csv 2)" = "ahead mps mps-priority none nvtaskset nvtaskset-priority" ]
	[ "$(column resnet.csv 3)" = "loop task" ]
	[ "$(column resnet_weights.csv 4)" = "100 300" ]
	[ "$(column held_priority.csv 2)" = "alone mps mps-priority nvtaskset nvtaskset-ht nvtaskset-prt nvtaskset-stepping" ]
	[ "$(column held_priority.csv 3)" = "1 20 nothing" ]
	[ "$(column held_quota_over.csv 2)" = "ae pe" ]
	[ "$(column held_quota_over.csv 4)" = "alone full room" ]
	[ "$(column held_unreached.csv 2)" = "9900ms/10s unlimited" ]
	[ "$(column held_cost.csv 2)" = "mps nvtaskset nvtaskset-ae nvtaskset-ht nvtaskset-pe nvtaskset-prt" ]
	[ "$(column prediction.csv 4)" = "launches percent predicted us" ]
	[ "$(column timegraph_response.csv 2)" = "mps nvtaskset-ht nvtaskset-pe nvtaskset-prt" ]
	[ "$(column timegraph_isolation.csv 3)" = "0 1 2" ]
	[ "$(column timegraph_rate.csv 4)" = "game widget" ]
	left_nothing
	[ "$(grep -c '^### ' tables.md)" -ge 14 ]
	if draws; then
		for picture in startup parts launch hook enforcement-1024 granularity pitfall resize command tail decode decode_training \
			slices priority bursts preemption weights decode_priority resnet resnet_weights held_priority held_quota_spent \
			timegraph_response timegraph_rate processes strategies \
			overlap slots kernels $(is_sanitized || echo network faulty); do
			grep -q '</svg>' "$picture.svg"
		done
	else
		[[ "$output" == *"not drawn: no python3 with matplotlib here"* ]]
	fi
}

@test "programs that take turns" {
	run bench decode decode_training
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"  left out: green: a program of PyTorch cannot have what another's green context leaves"* ]]
	for file in "$WORK"/results/decode*.csv; do
		well_formed "$file"
	done
	[ "$(column "$WORK/results/decode.csv" 2)" = \
		"mps mps-percent mps-priority none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap" ]
	[ "$(column "$WORK/results/decode.csv" 3)" = "alone products" ]
	[ "$(column "$WORK/results/decode_training.csv" 3)" = training ]
	[ "$(column "$WORK/results/decode_neighbour.csv" 2)" = \
		"alone mps mps-percent mps-priority none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap" ]
	[ "$(column "$WORK/results/decode_neighbour.csv" 3)" = products ]
	[ "$(column "$WORK/results/decode_training_neighbour.csv" 3)" = training ]
	left_nothing
}

has_rows() { # FILE
	[ -n "$(grep -v '^#' "$1" 2>/dev/null | sed 1d)" ]
}

@test "a program that dies is reported once, and the others go on" {
	BENCH_DECODE_SECONDS=6 bench decode >"$WORK/output" 2>&1 3>&- &
	wait_until has_rows "$WORK/results/decode.csv"
	for environ in $(grep -lsaz '^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=26' /proc/[0-9]*/environ); do
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

@test "programs of Python talk as bench/task does" {
	export LD_LIBRARY_PATH=$BUILD/sim PYTHONPATH=$ROOT/bench PYTHONDONTWRITEBYTECODE=1
	cat >"$WORK/steps" <<-'END'
		#!/usr/bin/env python3
		from support import conversation
		class Work:
		    def step(self): return 1.5
		    def rest(self): pass
		conversation.converse(Work(), 132, conversation.parser("").parse_args())
	END
	chmod +x "$WORK/steps"
	for command in "$WORK/steps" "$BUILD/bench/task compute --size 8"; do
		: >"$WORK/output"
		$command --at-rest --samples 3 >"$WORK/output" 3>&- &
		wait_until [ -s "$WORK/output" ]
		grep -q '^ready 132$' "$WORK/output"
		kill -USR1 $!
		wait $!
		[ "$(grep -cE '^[0-9]+\.[0-9][0-9]$' "$WORK/output")" -eq 3 ]
		[ "$(wc -l <"$WORK/output")" -eq 4 ]
		: >"$WORK/output"
		$command >"$WORK/output" 3>&- &
		wait_until [ -s "$WORK/output" ]
		kill -USR2 $!
		wait_for_line '^rest$'
		[ "$(tail -n 1 "$WORK/output")" = rest ]
		# It rests until it ends, and has no more samples.
		kill -TERM $!
		wait $!
		[ "$(tail -n 1 "$WORK/output")" = rest ]
	done
}

@test "a network in PyTorch, many kernels, changes" {
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	PYTHONPATH=$ROOT/tests/fake-torch PYTHONDONTWRITEBYTECODE=1 run bench faulty network kernels slots change
	echo "$output"
	[[ "$output" != *FAILED* ]]
	[[ "$output" != *"left out: there is no PyTorch"* ]]
	cd "$WORK/results"
	for file in faulty network kernels slots slots_used change; do
		well_formed "$file.csv"
	done
	[ "$(column faulty.csv 2)" = "mps mps-percent mps-priority none nvtaskset" ]
	[ "$(column faulty.csv 3)" = "alone faulty planned" ]
	[ "$(column network.csv 3)" = "1 66 8" ]
	[ "$(column network.csv 6)" = 0 ]
	[ "$(column kernels.csv 3 | wc -w)" -eq 38 ]
	[ "$(column kernels.csv 5 | wc -w)" -eq 17 ]
	[ "$(column slots.csv 4)" = "high normal" ]
	[ "$(column change.csv 2)" = "idle working" ]
	[ "$(column slots_used.csv 2)" = "green mps mps-percent mps-priority none nvtaskset" ]
	left_nothing
}

@test "a network that ends before it has inferred is a failure" {
	mkdir "$WORK/torch"
	echo 'raise RuntimeError("no such GPU")' >"$WORK/torch/nn.py"
	echo >"$WORK/torch/__init__.py"
	PYTHONPATH=$WORK run bench faulty network
	echo "$output"
	[ "$status" -eq 1 ]
	[[ "$output" == *"network-nvtaskset: RuntimeError: no such GPU"* ]]
	[[ "$output" == *"faulty: done in "*", but for what FAILED"* ]]
	[[ "$output" == *"network: FAILED"* ]]
	left_nothing
}

@test "the pitfalls of MPS, and the properties of the mechanisms" {
	run bench pitfalls fault properties
	echo "$output"
	for file in "$WORK"/results/*.csv; do
		well_formed "$file"
	done
	cd "$WORK/results"
	[[ "$output" == *"pitfalls: done in "*"fault: done in "*"properties: done in "* ]]
	[[ "$output" != *"but for what FAILED"* ]]
	[ "$(column pitfall1.csv 3)" = "first first+second" ]
	[ "$(column pitfall2.csv 2)" = "green mps mps-percent none nvtaskset nvtaskset-no-mps" ]
	[ "$(column pitfall2.csv 4)" = yes ]
	[ "$(column pitfall4.csv 3)" = "8 default" ]
	[ "$(column pitfall5.csv 3)" = "first second" ]
	[ "$(column pitfall6.csv 3)" = "first first+second first+third second+third" ]
	# Two blocks in each of 132 SMs, or of half of them: the simulated GPU has partitions, but knows no percentages.
	grep -q '^1,mps,first,132,0,264,0,264$' pitfall6.csv
	grep -q '^1,nvtaskset,first,66,0,132,0,132$' pitfall6.csv
	[ "$(grep -c '^1,mps,first,[0-9]*,4$' pitfall5.csv)" -eq 132 ]
	[ "$(grep -c '^1,nvtaskset,first,[0-9]*,8$' pitfall5.csv)" -eq 66 ]
	[ "$(grep -c '^1,nvtaskset,second,[0-9]*,8$' pitfall5.csv)" -eq 66 ]
	[ "$(grep -c '^1,nvtaskset.*,dynamic,132,264,yes$' properties.csv)" -eq 2 ]
	[ "$(grep -c '^1,nvtaskset.*,granular,4,4,yes$' properties.csv)" -eq 2 ]
	grep -q '^1,mps-percent,dynamic,264,264,no$' properties.csv
	grep -q '^1,mps-percent,granular,4,80,no$' properties.csv
	[ "$(column properties.csv 3)" = "dynamic granular isolated" ]
	left_nothing
}

@test "looking at programs" {
	cat >"$WORK/nvidia-smi" <<-'END'
		#!/bin/sh
		case $* in
		"pmon -c 1 -s u -i 0")
			echo '# gpu        pid  type    sm   mem   enc   dec   command'
			pgrep duty | sed 's/^/    0 /; s/$/ M+C - - - - duty/; 1s/ - - - -/ 37 1 - -/'
			;;
		--query-compute-apps*) pgrep duty | sed 's/$/, 512 MiB/' ;;
		--query-gpu=utilization*) echo 61 ;;
		esac
	END
	chmod +x "$WORK/nvidia-smi"
	PATH=$WORK:$PATH run bench looking busy watchers
	echo "$output"
	[[ "$output" != *FAILED* ]]
	[[ "$output" == *"  nvml says nothing: nvml: libnvidia-ml.so.1: "* ]]
	cd "$WORK/results"
	for file in looking looking_cpu looking_graph busy busy_change busy_ways busy_clock watchers; do
		well_formed "$file.csv"
	done
	[ "$(column looking.csv 2)" = "10 us 2 us graph" ]
	[ "$(column looking.csv 3)" = "nobody top watch" ]
	[ "$(column looking_cpu.csv 3)" = "top watch" ]
	[ "$(column looking_graph.csv 2)" = "begins ends goes on unchanged" ]
	[ "$(column busy.csv 2)" = "nvtaskset nvtaskset-no-mps" ]
	[ "$(column busy.csv 3)" = "10 1000 10000 2 200 5 50" ]
	[ "$(column busy_change.csv 4)" = "0 100 1000 20000 5000" ]
	[ "$(column busy_ways.csv 3)" = "graph1 graph10 graph100 plain" ]
	[ "$(column busy_ways.csv 5)" = "front latency next release visible" ]
	[ "$(column watchers.csv 2)" = "compute-apps nvml own pmon top utilization" ]
	# What says nothing has no number, and no 0; what its kernels saw, and what top says, are numbers.
	[ "$(grep -c '^1,nvml,.*,no,n/a$' watchers.csv)" -eq 4 ]
	[ "$(grep -c '^1,compute-apps,.*,yes,n/a$' watchers.csv)" -eq 4 ]
	[ "$(grep -c '^1,pmon,.*,yes,n/a$' watchers.csv)" -eq 3 ]
	[ "$(grep -c '^1,pmon,.*,yes,37$' watchers.csv)" -eq 1 ]
	grep -q '^1,utilization,all,yes,61$' watchers.csv
	[ "$(grep -cE '^1,(own|top),(20|50|90|0.1),yes,[0-9.]+$' watchers.csv)" -eq 8 ]
	grep -qF '| nvidia-smi --query-compute-apps | 20 | yes | 0 | n/a | n/a |' tables.md
	! draws || grep -q '</svg>' looking.svg busy_change.svg watchers.svg
	left_nothing
}

# On the simulated GPU, all launches begin at the same time.
@test "blocks at once" {
	. "$ROOT/bench/support/clients.bash"
	BENCH_WORK=$WORK turns_taken=([first]=2 [second]=1)
	printf '%s\n' "ready 8" 0,0,0,1,100,900 0,0,1,1,100,900 0,0,2,1,100,900 "done" \
		0,0,0,1,100000000000100,100000000000200 0,0,1,1,100000000000200,100000000000300 "done" >"$WORK/first.out"
	printf '%s\n' "ready 8" 0,0,0,1,100000000000299,100000000000400 0,0,1,1,100000000000250,100000000000260 "done" \
		>"$WORK/second.out"
	[ "$(at_once first)" = 1 ]
	[ "$(at_once second)" = 1 ]
	[ "$(at_once first second)" = 2 ]
	[ "$(blocks_of second | wc -l)" = 2 ]
}

@test "static partitions and MIG, where they exist" {
	cat >"$WORK/nvidia-smi" <<-'END'
		#!/bin/sh
		case $1 in
		-L) printf '  MIG 3g.71gb Device 0: (UUID: MIG-aaaaaaaa-%s-bbbb-cccc-dddddddddddd)\n' 1111 2222 ;;
		*) echo GPU-01234567-89ab-cdef-0123-456789abcdef ;;
		esac
	END
	chmod +x "$WORK/nvidia-smi"
	PATH=$WORK:$PATH FAKE_MPS_STATIC=1 run bench enforcement decode
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(column "$WORK/results/enforcement.csv" 2)" = \
		"green mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-no-mps" ]
	[ "$(column "$WORK/results/decode.csv" 2)" = \
		"mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap" ]
	left_nothing
}

@test "without MPS, experiments that need it are left out" {
	FAKE_MPS=no-start run bench startup strategies
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"bench: MPS does not start: Failed to create the log directory"* ]]
	[[ "$output" == *"  left out: nvtaskset: there is no MPS"* ]]
	[ "$(column "$WORK/results/startup.csv" 2)" = "none nvtaskset-no-mps" ]
}

@test "an experiment that fails is reported, and the others go on" {
	SIM_FAULTS=no-table run bench resize startup
	echo "$output"
	[ "$status" -eq 1 ]
	[[ "$output" == *"resize: FAILED"*"startup: done in "*", but for what FAILED"*"; failed: resize startup" ]]
	[ "$(column "$WORK/results/startup.csv" 2)" = "green mps mps-percent none" ]
	left_nothing
}

@test "an experiment that takes too long is ended, and those that have no time left are left out" {
	quick='' BENCH_SECONDS=3 run bench enforcement startup
	echo "$output"
	[ "$status" -eq 1 ]
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

@test "a run without an experiment leaves nothing" {
	mkdir "$WORK/empty"
	BUILD=$WORK/empty run bench launch
	[ "$status" -eq 1 ]
	[[ "$output" == "bench: $WORK/empty has no bench/task: build first (make bench does)" ]]
	left_nothing
	[ ! -e "$WORK/results" ]
}

@test "the demo leaves nothing, and measure works with the settings that it prints" {
	[ ! -e /dev/nvidiactl ] || skip "a GPU is here, whose links stay"
	mkdir "$WORK/tmp"
	run env TMPDIR="$WORK/tmp" "$ROOT/demo/run"
	[ "$status" -eq 0 ]
	[[ "$output" == *"my kernels run on TPCs 8-15 "* ]]
	[ -z "$(ls "$WORK/tmp")" ]
	[ ! -e "$XDG_CACHE_HOME/nvtaskset" ]
	# The settings that it prints do for every command, also for this one, which writes a topology of its own.
	sed -n '/^export PATH/,/[^\\]$/p' <<<"$output" >"$WORK/settings"
	# shellcheck disable=SC2016 # the inner shell's
	run env -u NVTASKSET_TOPOLOGY -u NVTASKSET_DRIVER bash -c '. "$0"; XDG_CACHE_HOME=$1 nvtaskset measure' "$WORK/settings" "$WORK"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == "GPU 0000:00:06.0 (NVIDIA H200): 66 TPCs in 12 virtual GPCs"* ]]
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
		task|task: one KIND of work is needed
		task nonsense|task: nonsense: not a kind of work
		task matmul --size 33|task: a matrix has a multiple of 32 rows, up to 16384
		task matmul --seconds -1|task: an option: '-1' is not a number
		task matmul --seconds nan|task: an option: 'nan' is not a number
		task compute --rounds 0|task: 1 to 2^24 rounds
		task copy --size 99999|task: a copy has up to 16384 MiB
		task compute --size 0.5|task: 1 to 2^24 blocks
		env BENCH_GREEN=x task copy --size 1|task: BENCH_GREEN=x: neither N nor N-rest
		env BENCH_GREEN=8-all task copy --size 1|task: BENCH_GREEN=8-all: neither N nor N-rest
		env SIM_FAULTS=no-device task copy --size 1|task: error 100 (CUDA_ERROR_NO_DEVICE): cuInit(0)
		startup|startup: not started by 'startup COMMAND…'
		startup --driver|startup: not started by 'startup COMMAND…'
		startup /nonexistent|startup: /nonexistent: No such file or directory
		latency|latency: Usage: latency SAMPLES [PLACE]
		slice default 100|slice: Usage: slice US|default ROUNDS BLOCKS
		slots 1|slots: Usage: slots KERNELS normal|high, up to 1024
		slots 1 low|slots: Usage: slots KERNELS normal|high, up to 1024
		kernels|kernels: Usage: kernels each|whole
		progress many|progress: Usage: progress BLOCKS|many START SECONDS
		spans /nonexistent 1|spans: /nonexistent: No such file or directory
		spans /dev/null 0|spans: Usage: spans TURNS STREAMS
		trespass hold x|trespass: Usage: trespass hold WORD | trespass read ADDRESS
		repeat 1 false|repeat: false: failed
		repeat 0 true|repeat: Usage: repeat COUNT COMMAND…
		resize|resize: Usage: resize SAMPLES [NODES]
		hook|hook: Usage: hook ROUNDS
		account|account: Usage: account ROUNDS
		env SIM_FAULTS=no-register account 1|account: kernels are not counted on this GPU
		registration|registration: Usage: registration ROUNDS
		env SIM_FAULTS=no-register registration 1|registration: kernels are not counted on this GPU
		functions x|functions: Usage: functions [--at-rest]
		spent 10us 30 100 pe|spent: Usage: spent 10us|1ms|40ms|graph RUN_MS PERIOD_MS pe|ae SECONDS
		spent 10us 30 20 pe 1|spent: Usage: spent 10us|1ms|40ms|graph RUN_MS PERIOD_MS pe|ae SECONDS
		looking|looking: Usage: looking FIRST REPEATS MS, or looking watch PID
		busy|busy: Usage: busy KERNELS
		duty 0 10|duty: Usage: duty PERCENT MS
		nvml|nvml: Usage: nvml GPU MS
		env SIM_FAULTS=no-table hook 1|hook: error 500 (unknown): cuGetExportTable(&found, &table_id)
		split packed|split: Usage: split [packed|distributed|gpcs COUNT]
		split nonsense 3|split: nonsense: not a strategy
		split gpcs 1|split: no GPC fits into 1 TPCs
	END
	run "$ROOT/bench/run" nonsense
	[ "$status" -eq 1 ]
	[[ "$output" == "bench: nonsense: no such experiment; there are: launch "* ]]
	BUILD=$WORK run "$ROOT/bench/run"
	[ "$status" -eq 1 ]
	[[ "$output" == "bench: $WORK has no bench/task: build first (make bench does)" ]]
}

@test "a damaged table is refused, not drawn" {
	mkdir "$WORK/results"
	printf '# gpu: x\nround,mechanism,ms\n1,none,1.5\n2,none\n' >"$WORK/results/startup.csv"
	run python3 "$ROOT/bench/report/tables.py" "$WORK/results"
	[ "$status" -ne 0 ]
	[[ "$output" == *"startup.csv:4: not as many values as columns"* ]]
}
