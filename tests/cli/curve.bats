#!/usr/bin/env bats
# nvtaskset curve, on a program whose jobs take A / TPCs + B. tests/unit/curve.c has what is computed from the times.

load helpers
OWN_GPUS=yes

has_launched() { # PID
	nvtaskset -l --json | jq -e ".processes[] | select(.pid == $1) | .kernels[]?, .restricted | select(. != null)" >/dev/null
}

# A job each 40 ms: 60 ms / TPCs + 2 ms.
start_jobs() { # OPTION…
	start nvtaskset --mps off "$@" "$BUILD/tests/programs/play" jobs 40000,60000,2000,2
	wait_until has_launched "$PROGRAM"
}

has_partition() { # LIST
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: $1" ]
}

changes() {
	not has_partition 0-39 >/dev/null
}

# Where the machine is busy, idle times may not be seen, and then it says so; or times are not the program's: so it is tried again.
tells_jobs_apart() { # the function that judges WORK/curve, OPTION…
	local try
	for try in 1 2 3 4 5; do
		if nvtaskset curve "${@:2}" "$PROGRAM" >"$WORK/curve" 2>"$WORK/errors"; then
			! "$1" || return 0
		else
			grep -q 'no jobs can be told apart' "$WORK/errors" || break
		fi
	done
	cat "$WORK"/{curve,errors}
	return 1
}

# A busy machine may leave no time for the smallest sizes.
is_of_these_jobs() {
	jq -e '.jobs.apart == "idle" and .jobs.kernels == 3' "$WORK/curve" &&
		jq -e '.points | length >= 5 and (map(.tpcs) | sort) == map(.tpcs) and .[-1].tpcs == 66' "$WORK/curve" &&
		jq -e '.points | .[0].job_ms > 2 * .[-1].job_ms and all(.jobs >= 2 and .longest_ms >= .job_ms)' "$WORK/curve" &&
		jq -e '.fit.a_ms > 20 and .fit.b_ms > 0 and .fit.worst_error >= .fit.mean_error' "$WORK/curve" &&
		python3 -c 'import sys, xml.dom.minidom as x; assert len(x.parse(sys.argv[1]).getElementsByTagName("circle")) >= 5' "$WORK/curve.svg" &&
		has_numbers_on_both_axes
}

# From 0 on the left, at most six; and the sizes below.
has_numbers_on_both_axes() {
	local count
	count=$(grep -cE '<text x="-8" y="[-0-9.]+" text-anchor="end">[0-9.e-]+</text>' "$WORK/curve.svg")
	((count >= 3 && count <= 6)) && grep -q '<text x="-8" y="4.0" text-anchor="end">0</text>' "$WORK/curve.svg" &&
		grep -q '<text x="520.0" y="18">66</text>' "$WORK/curve.svg"
}

@test "jobs are told apart, and take longer with fewer TPCs" {
	start_jobs -t 0-39
	tells_jobs_apart is_of_these_jobs --json --svg "$WORK/curve.svg"
	has_partition 0-39
	jq -e '.schema == "nvtaskset-curve/1" and .beside == null' "$WORK/curve"
	kill -0 "$PROGRAM"
}

is_text_of_these_jobs() {
	output=$(cat "$WORK/curve")
	[[ "$output" == "pid $PROGRAM on GPU 0, measured for "*$'\n'"A job: 3 kernels between two idle times, as "* ]] &&
		[[ "$output" == *"Beside a neighbour on 16 TPCs that computes:"* ]] &&
		[[ "$output" == *"Fit: "*" ms / TPCs + "*" ms; wrong by "* ]] &&
		[[ "$output" == *"Enough: "* && "$output" == *"Bound by: "* ]]
}

@test "as text; beside a neighbour" {
	start_jobs all
	tells_jobs_apart is_text_of_these_jobs --mps off --beside compute
	[ -z "$(pgrep -P "$PROGRAM")" ]
	nvtaskset -l --json | jq -e '.processes | all(.command | contains("--neighbour") | not)'
}

@test "no neighbour on another GPU, where CUDA hides the program's" {
	own_gpus h200-x2
	start_jobs -t -G 0:0-39
	CUDA_VISIBLE_DEVICES=1 refuses "--beside: CUDA hides GPU $GPU from a neighbour (CUDA_VISIBLE_DEVICES)" \
		nvtaskset curve --mps off --beside compute "$PROGRAM"
}

@test "the partition is given back, also where the command is killed" {
	start_jobs -t 0-39
	for signal in INT TERM KILL; do
		nvtaskset curve --kernels 3 "$PROGRAM" 3>&- >"$WORK/output" &
		curve=$!
		wait_until changes
		# A signal to all commands does not end the child.
		[ "$signal" != KILL ] || pkill -TERM -P "$curve" keeps-partition
		kill "-$signal" "$curve"
		wait "$curve" || true
		wait_until has_partition 0-39
	done
}

@test "a signal that is ignored stays ignored" {
	start_jobs -t 0-39
	(trap '' HUP && exec nvtaskset curve --kernels 3 "$PROGRAM") 3>&- >"$WORK/output" &
	curve=$!
	wait_until changes
	kill -HUP "$curve"
	wait "$curve"
}

has_neighbour() {
	nvtaskset -l --json | jq -e '.processes | any(.command | contains("--neighbour"))' >/dev/null
}

@test "killed at any moment, it leaves the partition as it was, and no neighbour" {
	local after
	start_jobs -t 0-39
	mkfifo "$WORK/pipe"
	for after in 0 0.02 0.05 0.1 0.2 0.4 0.7; do
		nvtaskset curve --mps off --kernels 3 "$PROGRAM" 3>&- 5>"$WORK/pipe" >"$WORK/output" 2>"$WORK/errors" &
		curve=$!
		exec 6<"$WORK/pipe"
		sleep "$after"
		kill -KILL "$curve"
		wait "$curve" || true
		# The child that gives back has ended when nobody has the write end of this pipe any more.
		timeout 600 cat <&6
		exec 6<&-
		has_partition 0-39
	done
	nvtaskset curve --mps off --kernels 3 --beside compute "$PROGRAM" 3>&- >"$WORK/output" 2>&1 &
	curve=$!
	wait_until has_neighbour
	kill -KILL "$curve"
	wait "$curve" || true
	wait_until has_partition 0-39
	wait_until not has_neighbour
	kill -0 "$PROGRAM"
}

# It stops where the lock has been taken (F_OFD_SETLK is 37, F_WRLCK 1) for the second size.
@test "killed while it holds the lock, it leaves the partition as it was" {
	needs gdb
	[ "$(uname -m)" = x86_64 ] || skip "registers of x86-64"
	start_jobs -t 0-39
	gdb -batch -ex 'catch syscall fcntl' -ex 'condition 1 $rsi == 37 && *(short *)$rdx == 1' -ex 'ignore 1 5' -ex run \
		-ex "shell nvtaskset -tp '$PROGRAM'" -ex kill --args "$BUILD/nvtaskset" curve --mps off --kernels 3 "$PROGRAM" \
		3>&- >"$WORK/gdb" 2>&1
	grep -q 'returned from syscall fcntl' "$WORK/gdb"
	not grep -q 'TPC list: 0-39' "$WORK/gdb"
	wait_until has_partition 0-39
}

@test "a program that ends meanwhile" {
	start_jobs -t 0-39
	nvtaskset curve --kernels 3 --json "$PROGRAM" 3>&- >"$WORK/output" 2>"$WORK/errors" &
	curve=$!
	wait_until changes
	kill -KILL "$PROGRAM"
	wait "$PROGRAM" || true
	not wait "$curve"
	[ "$(cat "$WORK/errors")" = "nvtaskset: pid $PROGRAM: has ended" ]
	[ ! -s "$WORK/output" ]
	PROGRAM=
}

@test "progress is shown on a terminal, and nowhere else" {
	start_jobs -t 0-39
	on_terminal 100x40 see "nvtaskset: " see " TPCs, size " see $' s)\r' see $'\r\e[K' see "pid $PROGRAM on" -- \
		nvtaskset curve --kernels 3 "$PROGRAM"
	[ "$output" = "status 0, terminal as before" ]
	[[ "${OUTPUT##*$'\e[K'}" == "pid $PROGRAM on GPU"* ]]
	run -0 --separate-stderr nvtaskset curve --kernels 3 "$PROGRAM"
	[ -z "$stderr" ]
}

@test "a file for the picture that cannot be written" {
	# Of a program without jobs, it would say just that if it measured first.
	start_waiting nvtaskset --mps off -t 0-39 "$BUILD/tests/programs/play" context wait
	refuses "$WORK/none/curve.svg: No such file or directory" nvtaskset curve --svg "$WORK/none/curve.svg" "$PROGRAM"
	stop_program
	start_jobs -t 0-39
	# Full only when it is written: the curve is printed all the same.
	run -1 --separate-stderr nvtaskset curve --kernels 3 --json --svg /dev/full "$PROGRAM"
	[ "$stderr" = "nvtaskset: /dev/full: No space left on device" ]
	jq -e '.points | length > 0' <<<"$output"
	# What was there stays if nothing is measured.
	echo old >"$WORK/curve.svg"
	not nvtaskset curve --svg "$WORK/curve.svg" $$
	[ "$(cat "$WORK/curve.svg")" = old ]
	not nvtaskset curve --svg "$WORK/new.svg" $$
	[ ! -e "$WORK/new.svg" ]
}

@test "a partition that somebody else has changed meanwhile stays" {
	start_jobs -t 0-39
	nvtaskset curve --kernels 3 "$PROGRAM" 3>&- >"$WORK/output" 2>"$WORK/errors" &
	curve=$!
	wait_until changes
	nvtaskset -tp 3-4 "$PROGRAM" >"$WORK/changed"
	not wait "$curve"
	cat "$WORK/errors"
	[ "$(cat "$WORK/errors")" = "nvtaskset: pid $PROGRAM: somebody else has changed its partition meanwhile" ]
	has_partition 3-4
}

# As a program of the foreground: bash has SIGINT ignored in the background.
start_curve() {
	env --default-signal nvtaskset curve --kernels 3 "$PROGRAM" 3>&- >"$WORK/output" 2>"$WORK/errors" &
	curve=$!
	wait_until changes
}

@test "a quota that somebody else gives meanwhile stays, and the partition is given back" {
	start_jobs -t 0-39
	start_curve
	nvtaskset -p --quota 90ms/100ms "$PROGRAM"
	kill "$curve"
	wait "$curve" || true
	wait_until has_partition_and_quota
}

has_partition_and_quota() {
	run -0 nvtaskset -tp "$PROGRAM"
	[ "${lines[0]}" = "pid $PROGRAM's current TPC list: 0-39" ] &&
		[[ "${lines[1]}" == "pid $PROGRAM's current quota: 90ms/100ms"* ]]
}

@test "where the child that gives back was killed, a signal gives back, too" {
	start_jobs -t 0-39
	for signal in INT TERM; do
		start_curve
		pkill -KILL -P "$curve" keeps-partition
		kill "-$signal" "$curve"
		status=0
		wait "$curve" || status=$?
		[ "$status" -eq $((128 + $(kill -l "$signal"))) ]
		has_partition 0-39
	done
}

@test "a partition that cannot be given back: the command that does so is named" {
	start_jobs -t 0-39
	start_curve
	cat >"$WORK/lock.py" <<-'END'
		import fcntl, glob, os, struct, sys, time
		for path in glob.glob(f"/proc/{sys.argv[1]}/fd/*"):
		    if os.readlink(path) == "/memfd:nvtaskset (deleted)":
		        file = os.open(path, os.O_RDWR)
		        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)) # F_OFD_SETLK
		print("locked", flush=True)
		time.sleep(1000)
	END
	start_as locker python3 "$WORK/lock.py" "$PROGRAM"
	not wait "$curve"
	kill "$locker"
	wait "$locker" || true
	grep -q "^nvtaskset: pid $PROGRAM: its partition could not be given back; do so by nvtaskset -G " "$WORK/errors"
	not has_partition 0-39
	bash -c "$(sed 's/.* do so by //' "$WORK/errors")"
	has_partition 0-39
}

has_printed_or_ended() {
	[ -s "$WORK/curve.json" ] || ! kill -0 "$curve" 2>/dev/null
}

# On a busy machine, it may say that no jobs can be told apart.
starts_command() {
	nvtaskset curve --mps off --json "$BUILD/tests/programs/play" where jobs 40000,60000,2000,1 3>&- >"$WORK/curve.json" 2>"$WORK/errors" &
	curve=$!
	wait_until has_printed_or_ended
	[ -s "$WORK/curve.json" ] && jq -e ".points | length > 0" "$WORK/curve.json" || {
		pkill -P "$curve"
		wait "$curve"
		return 1
	}
}

@test "a COMMAND; what it prints is not in the way" {
	wait_until starts_command
	grep -qx '0-65' "$WORK/errors"
	PROGRAM=$(jq .pid "$WORK/curve.json")
	[ "$(ps -o ppid= -p "$PROGRAM" | tr -d ' ')" = "$curve" ]
	has_partition 0-65
	kill "$PROGRAM"
	wait "$curve"
	PROGRAM=
}

has_ended() { # PID…
	not kill -0 "$@" 2>/dev/null
}

@test "a COMMAND ends with all that it has started where the command is interrupted or killed" {
	local signal start=(sh -c 'sleep 1000 & echo $$ $! >"$0"; exec "$@"' "$WORK/pids" "$BUILD/tests/programs/play")
	for signal in INT TERM KILL; do
		: >"$WORK/pids"
		env --default-signal nvtaskset curve --mps off --kernels 3 "${start[@]}" jobs 40000,60000,2000,2 3>&- \
			>"$WORK/output" 2>&1 &
		curve=$!
		wait_until [ -s "$WORK/pids" ]
		read -r PROGRAM child <"$WORK/pids"
		ALL+=("$PROGRAM" "$child")
		# In the second size, at the latest.
		wait_until eval '[[ "$(list_of $PROGRAM 2>/dev/null)" = ?* && "$(list_of $PROGRAM)" != 0-65 ]]'
		kill "-$signal" "$curve"
		not wait "$curve"
		wait_until has_ended "$PROGRAM"
		wait_until has_ended "$child"
	done
	PROGRAM=
}

@test "a COMMAND that cannot be measured ends with all that it has started" {
	run -1 nvtaskset curve --mps off --kernels 3 sh -c 'sleep 1000 & echo $! >"$0"; exec "$@"' "$WORK/pids" \
		"$BUILD/tests/programs/play" where
	child=$(cat "$WORK/pids")
	ALL+=("$child")
	wait_until has_ended "$child"
}

@test "a program that is never idle needs the number of kernels" {
	start nvtaskset --mps off all "$BUILD/tests/programs/play" busy wait
	wait_until has_launched "$PROGRAM"
	run -0 nvtaskset curve --json --kernels 4 "$PROGRAM"
	jq -e '.jobs.apart == "kernels" and .jobs.kernels == 4 and .points[-1].job_ms > 1' <<<"$output"
}

@test "what cannot be measured" {
	refuses "curve: no PID and no COMMAND; try 'nvtaskset curve --help'" nvtaskset curve
	refuses "pid 1: options come before PID" nvtaskset curve 1 --json || refuses "'--json': options come before PID; try 'nvtaskset curve --help'" nvtaskset curve 1 --json
	refuses "--beside noise: must be one of: memory compute" nvtaskset curve --beside noise 1
	refuses "--kernels 0: must be 1-1000000" nvtaskset curve --kernels 0 1
	refuses "/no/such: No such file or directory" nvtaskset curve --mps off /no/such
	refuses "'1': too many words" nvtaskset curve --mps off -G "$(printf '1 %.0s' {1..30})" true
	refuses "-t: only with a COMMAND, -p and 'cdi add'" nvtaskset curve -t "$$"
	refuses "-G: 'curve' takes no SET" nvtaskset curve -G 0:ff "$$"
	start_jobs -t 0-39
	refuses "pid $PROGRAM: fewer than two jobs of 1000000 kernels in 1.0 s; take a smaller --kernels" \
		nvtaskset curve --kernels 1000000 "$PROGRAM"
	has_partition 0-39
}
