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
			split("experiment machine gpu driver cuda pytorch cublas mps nvtaskset date command", names, " ")
			for (i in names)
				if (!index(about, "# " names[i] ":")) {print FILENAME ": no " names[i]; wrong = 1}
			if (!rows) {print FILENAME ": no rows"; wrong = 1}
			exit wrong
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

# On a busy machine, an experiment may not see what it compares, and says so.
succeeds_again() { # what a run has printed, whose last line names those that failed
	local again
	again=$(sed -n '$s/.*; failed: //p' <<<"$1")
	# shellcheck disable=SC2086 # several
	[ -z "$again" ] || wait_until bench $again
}

@test "every experiment writes the tables that it names, and all are drawn" {
	export PYTHONPATH=$ROOT/tests/fake-torch PYTHONDONTWRITEBYTECODE=1
	run bench
	[[ "$output" == *"this is a simulated one, and its numbers mean nothing"* ]]
	succeeds_again "$output"
	[[ "$output" != *"left out: valgrind "* ]] || rm "$WORK/results/callback.csv"
	# A simulated kernel logs no laps.
	rm "$WORK/results/quota_periods.csv"
	# A sanitizer's run-time library would have to come with python.
	! is_sanitized || rm "$WORK"/results/{faulty,network}.csv
	for file in "$WORK"/results/*.csv; do
		well_formed "$file"
	done
	cd "$WORK/results"
	while read -r file number values; do
		echo "$file.csv $number: $(column "$file.csv" "$number")"
		[ "$(column "$file.csv" "$number")" = "$values" ]
	done <<-'END'
		startup 2 green mps mps-percent none nvtaskset nvtaskset-no-mps
		launch 3 finish start submit
		account 3 off on
		registration 3 again first
		enforcement 5 1024 6144 8192
		granularity 2 green mps-percent nvtaskset
		resize 1 eager graph1 graph10 graph100 graph1000
		command 2 change list show true
		processes 2 mps mps-percent none nvtaskset
		connections 3 2 3 4 8 default
		priority 2 alone by-hand mps mps-priority none nvtaskset nvtaskset-priority
		decode_neighbour 2 alone mps mps-percent mps-priority none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap
		held_priority 2 alone mps mps-priority nvtaskset nvtaskset-ht nvtaskset-prt nvtaskset-stepping
		held_cost 2 mps nvtaskset nvtaskset-ht nvtaskset-pe nvtaskset-prt
		timegraph_response 2 mps nvtaskset-ht nvtaskset-pe nvtaskset-prt
		slots_used 2 green mps mps-percent mps-priority none nvtaskset
		pitfall2 4 yes
		properties 3 dynamic granular isolated
	END
	[ "$(column parts.csv 2 | wc -w)" -eq 16 ]
	[ "$(column kernels.csv 3 | wc -w)" -eq 38 ]
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
	left_nothing
	[ "$(grep -c '^### ' tables.md)" -ge 14 ]
	if draws; then
		for picture in startup parts launch hook enforcement-1024 granularity pitfall resize command tail decode decode_training \
			slices priority bursts preemption weights decode_priority resnet resnet_weights held_priority held_quota_spent \
			timegraph_response timegraph_rate processes \
			overlap slots kernels $(is_sanitized || echo network faulty); do
			grep -q '</svg>' "$picture.svg"
		done
	else
		[[ "$output" == *"not drawn: no python3 with matplotlib here"* ]]
	fi
}

has_rows() { # FILE
	[ -n "$(grep -v '^#' "$1" 2>/dev/null | sed 1d)" ]
}

@test "a program that dies is reported once, and the others go on" {
	BENCH_DECODE_SECONDS=6 bench decode >"$WORK/output" 2>&1 3>&- &
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

@test "a network that ends before it has inferred is a failure" {
	mkdir "$WORK/torch"
	echo 'raise RuntimeError("no such GPU")' >"$WORK/torch/nn.py"
	echo >"$WORK/torch/__init__.py"
	PYTHONPATH=$WORK run -1 bench faulty network
	[[ "$output" == *"network-nvtaskset: RuntimeError: no such GPU"* ]]
	[[ "$output" == *"faulty: done in "*", but for what FAILED"* ]]
	[[ "$output" == *"network: FAILED"* ]]
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

@test "static partitions and MIG, where they exist" {
	cat >"$WORK/nvidia-smi" <<-'END'
		#!/bin/sh
		case $1 in
		-L) printf '  MIG 3g.71gb Device 0: (UUID: MIG-aaaaaaaa-%s-bbbb-cccc-dddddddddddd)\n' 1111 2222 ;;
		*) echo GPU-01234567-89ab-cdef-0123-456789abcdef ;;
		esac
	END
	chmod +x "$WORK/nvidia-smi"
	PATH=$WORK:$PATH FAKE_MPS_STATIC=1 run -0 bench enforcement decode
	[ "$(column "$WORK/results/enforcement.csv" 2)" = \
		"green mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-no-mps" ]
	[ "$(column "$WORK/results/decode.csv" 2)" = \
		"mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap" ]
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

@test "the demo leaves nothing, and measure works with the settings that it prints" {
	[ ! -e /dev/nvidiactl ] || skip "a GPU is here, whose links stay"
	mkdir "$WORK/tmp"
	run -0 env TMPDIR="$WORK/tmp" "$ROOT/demo/run"
	[[ "$output" == *"my kernels run on TPCs 8-15 "* ]]
	# A quota that is in force.
	[[ "$output" =~ "current quota: 30ms/100ms: present for "[0-9.]+" s, suspended for "([1-9]|0\.[1-9]) ]]
	[ -z "$(ls "$WORK/tmp")" ]
	[ ! -e "$XDG_CACHE_HOME/nvtaskset" ]
	# The settings that it prints do for every command, also for this one, which writes a topology of its own.
	sed -n '/^export PATH/,/[^\\]$/p' <<<"$output" >"$WORK/settings"
	# shellcheck disable=SC2016 # the inner shell's
	run -0 env -u NVTASKSET_TOPOLOGY -u NVTASKSET_DRIVER bash -c '. "$0"; XDG_CACHE_HOME=$1 nvtaskset measure' "$WORK/settings" "$WORK"
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
		task nonsense|task: nonsense: not a kind of work
		task matmul --size 33|task: a matrix has a multiple of 32 rows, up to 16384
		env SIM_FAULTS=no-device task copy --size 1|task: error 100 (CUDA_ERROR_NO_DEVICE): cuInit(0)
		startup /nonexistent|startup: /nonexistent: No such file or directory
		env SIM_FAULTS=no-register account 1|account: kernels are not counted on this GPU
		env SIM_FAULTS=no-table hook 1|hook: error 500 (unknown): cuGetExportTable(&found, &table_id)
	END
	run -1 "$ROOT/bench/run" nonsense
	[[ "$output" == "bench: nonsense: no such experiment; there are: launch "* ]]
	BUILD=$WORK run -1 "$ROOT/bench/run"
	[[ "$output" == "bench: $WORK has no bench/task: build first (make bench does)" ]]
}

@test "a damaged table is refused, not drawn" {
	mkdir "$WORK/results"
	printf '# gpu: x\nround,mechanism,ms\n1,none,1.5\n2,none\n' >"$WORK/results/startup.csv"
	run python3 "$ROOT/bench/report/tables.py" "$WORK/results"
	[ "$status" -ne 0 ]
	[[ "$output" == *"startup.csv:4: not as many values as columns"* ]]
}
