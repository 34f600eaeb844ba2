#!/usr/bin/env bats
# nvtaskset trace: the file for viewers, and the lines on a terminal. tests/unit/trace.c has bounds and hostile times.
# takes: long

load helpers
OWN_GPUS=yes
load playing


has_begun() {
	[ -s "$WORK/trace" ]
}

record() { # OPTION or PID…
	export WORK
	nvtaskset trace -o "$WORK/trace" "$@" >"$WORK/said" 2>&1 3>&- &
	recorder=$!
	ALL+=("$recorder")
	wait_until has_begun
}

# The recording goes on until the file has such an event.
wait_for_event() { # FILTER
	wait_until has_event "$1" || {
		tail -n 3 "$WORK/trace"
		return 1
	}
}

# A file that is being written has no end yet, and perhaps half a line.
has_event() { # FILTER
	sed -n 's/^,\{0,1\}\({.*}\),\{0,1\}$/\1/p' "$WORK/trace" >"$WORK/lines"
	jq -e -n "[inputs | select($1)] | length > 0" "$WORK/lines" >/dev/null
}

end_recording() {
	kill -INT "$recorder"
	wait "$recorder"
	jq -e 'type == "array"' "$WORK/trace" >/dev/null
}

# How many events the whole file has.
events() { # FILTER
	jq "[.[] | select($1)] | length" "$WORK/trace"
}

# In the whole file.
name_of() { # PID
	jq -r ".[] | select(.name == \"process_name\" and .pid == $1) | .args.name" "$WORK/trace"
}

kernel_of() { # PID
	echo ".ph == \"X\" and .cat == \"kernel\" and .pid == $1"
}

@test "kernels with their names, TPCs, grids and times, and no kernel twice; Ctrl-C ends the file well" {
	start_playing -t 0-7 -- where wait where where where wait
	record
	go_on
	waits 2
	wait_for_event "$(kernel_of "$PROGRAM")"
	end_recording
	grep -qE "^nvtaskset: $WORK/trace: [0-9]+ events, 0 kernels dropped, [0-9.]+ MB$" "$WORK/said"
	[ "$(events "$(kernel_of "$PROGRAM")")" -eq 3 ]
	right='.name == "where" and .args.tpcs == 8 and .args.grid == [528, 1, 1] and .ts >= 0 and .dur >= 0'
	[ "$(events "$(kernel_of "$PROGRAM") and $right")" -eq 3 ]
	# The first begins at a time guessed from its launch.
	jq -e "[.[] | select($(kernel_of "$PROGRAM"))][0].args.begin | startswith(\"not known exactly\")" "$WORK/trace"
	[[ "$(name_of "$PROGRAM")" = "$BUILD/tests/programs/play where "* ]]
	[ "$(events '.name == "end" and .args.dropped_kernels == 0')" -eq 1 ]
}

# A bar of a track begins where the bar in front has ended, or later: viewers drop others.
no_bar_overlaps() {
	jq -e '[.[] | select(.ph == "X" and .cat != "node")] | group_by(.tid) | all(. as $bars |
		all(range(1; length); $bars[.].ts >= $bars[. - 1].ts + $bars[. - 1].dur - 0.0011))' "$WORK/trace"
}

@test "two programs, and how many TPCs they keep busy" {
	start_playing -t 0-7 -- busy wait
	first=$PROGRAM
	start_playing -t 8-19 -- busy wait
	record
	wait_for_event '.name == "busy TPCs" and .args.TPCs == 20'
	wait_for_event "$(kernel_of "$first")"
	wait_for_event "$(kernel_of "$PROGRAM")"
	end_recording
	no_bar_overlaps
	[ "$(events '.name == "busy TPCs" and (.args.TPCs < 0 or .args.TPCs > 20)')" -eq 0 ]
	[ "$(events '.name == "process_name" and .args.name == "GPU 0 NVIDIA H200"')" -eq 1 ]
	kill "$first"
}

@test "a partition and its change" {
	start_playing -t 0-7 -- busy wait
	record "$PROGRAM"
	wait_for_event '.ph == "B" and .name == "GPU 0: TPCs 0-7"'
	nvtaskset -tp 0-3 "$PROGRAM" >/dev/null
	wait_for_event '.ph == "B" and .name == "GPU 0: TPCs 0-3"'
	nvtaskset -p --quota 50% "$PROGRAM" >/dev/null
	wait_for_event '.ph == "B" and .args.quota.run_us == 50000'
	end_recording
	[ "$(jq -c "[.[] | select(.ph == \"B\" or .ph == \"E\") | .ph] | join(\"\")" "$WORK/trace")" = '"BEBEBE"' ]
}

@test "a launch waits for its quota, and is suspended in turns" {
	start_side_by_side --mps auto --quota 20% -t 0-7 -- busy wait
	record "$PROGRAM"
	wait_for_event '.ph == "b" and .name == "a launch waits: the quota is spent"'
	end_recording
	kill "$PROGRAM"
	start_playing --quota 20% -t 0-7 -- busy wait
	record "$PROGRAM"
	wait_for_event '.ph == "b" and .name == "suspended"'
	end_recording
	# The program runs for 20 ms of each 100.
	jq -e '[.[] | select(.name == "suspended")] | .[1].ts - .[0].ts > 1000' "$WORK/trace"
}

@test "what one program borrows of another one, and no more" {
	start_side_by_side --mps auto --lend=1s -t 8-15 -- context wait
	lender=$PROGRAM
	start_side_by_side --mps auto --borrow -t 0-7 -- context busy wait
	record
	wait_for_event ".pid == $PROGRAM and .name == \"GPU 0: TPCs borrowed of $lender\" and .args.TPCs == 8"
	nvtaskset -p --borrow=off "$PROGRAM"
	wait_for_event ".pid == $PROGRAM and .name == \"GPU 0: TPCs borrowed of $lender\" and .args.TPCs == 0"
	end_recording
	[ "$(events ".pid == $lender and .name == \"GPU 0: TPCs lent to $PROGRAM\" and .args.TPCs == 8")" -ge 1 ]
	kill "$lender"
}

@test "without a file: standard output, for --seconds" {
	start_playing -t 0-7 -- busy wait
	timeout 60 nvtaskset trace --seconds 0.5 "$PROGRAM" 2>"$WORK/said" | jq -e 'length > 1'
	grep -q "^nvtaskset: standard output: " "$WORK/said"
}

@test "a recording of named programs ends with them, and has their last kernels" {
	start_playing -t 0-7 -- where wait where where where
	record "$PROGRAM"
	program=$PROGRAM
	go_on_to_the_end
	wait "$recorder"
	dropped=$(jq '.[-1].args.dropped_kernels' "$WORK/trace")
	[ $(($(events "$(kernel_of "$program")") + dropped)) -eq 3 ]
}

@test "-G: programs and kernels on this GPU only" {
	own_gpus h200-x2
	start_playing -t 0-7 -- busy wait
	record -G 0
	wait_for_event "$(kernel_of "$PROGRAM")"
	end_recording
	nvtaskset trace -G 1 --seconds 0.5 >"$WORK/trace"
	[ "$(events 'true')" -eq 2 ]
}

@test "what another user's program is called does not leave its place in the file" {
	start_named '600 "},\{[`$'
	record
	wait_for_event ".name == \"process_name\" and .pid == $PROGRAM"
	end_recording
	[ "$(name_of "$PROGRAM")" = "$BUILD/demo/where 600 \"},\\{[\`\$" ]
}

@test "bad arguments" {
	refuses "pid 'x': not a process id" nvtaskset trace x
	refuses "pid 999999999: no such process" nvtaskset trace 999999999
	refuses "pid $$: has not loaded CUDA" nvtaskset trace $$
	refuses "pid '-o': not a process id" nvtaskset trace $$ -o file
	for seconds in 0 -1 x nan 86401 ''; do
		refuses "--seconds $seconds: must be 0.1-86400 seconds" nvtaskset trace --seconds "$seconds"
	done
	refuses "--terminal and -o: one draws, one writes: choose one" nvtaskset trace --terminal -o "$WORK/file"
	refuses "GPU 9: CUDA sees one GPU here, number 0" nvtaskset trace -G 9
	refuses "-G: 'trace' takes no SET" nvtaskset trace -G 0:ff
	refuses "--seconds: only with 'trace'" nvtaskset top --seconds 1
	refuses "--terminal: only with 'trace'" nvtaskset top --terminal
	[ ! -e "$WORK/file" ]
}

@test "a file that cannot be written" {
	refuses "$WORK/nowhere/file: No such file or directory" nvtaskset trace -o "$WORK/nowhere/file"
	refuses "$WORK: Is a directory" nvtaskset trace -o "$WORK"
	refuses "/dev/full: No space left on device" nvtaskset trace -o /dev/full
	on_terminal 80x24 -- nvtaskset trace
	[[ "$output" == "status 1, "* ]]
	[[ "$OUTPUT" == *"standard output is a terminal: add -o FILE, or --terminal"* ]]
}

sleeps() { # PID
	grep -q '^Name:[[:blank:]]*nvtaskset$' "/proc/$1/status" && grep -q '^State:[[:blank:]]*S' "/proc/$1/status"
}

# Again and again: before the opening, SIGINT is ignored in the background of a shell.
is_ended() { # SIGNAL PID
	kill -s "$1" "$2" 2>/dev/null || true
	! kill -0 "$2" 2>/dev/null
}

are_ended() {
	local signal
	for signal in INT TERM HUP; do
		"$BUILD/nvtaskset" trace -o "$WORK/pipe" 2>"$WORK/said" 3>&- 7<&- &
		recorder=$!
		ALL+=("$recorder")
		wait_until sleeps "$recorder"
		wait_until is_ended $signal "$recorder"
	done
}

@test "a pipe that nobody reads: a signal ends the opening, and the writing" {
	mkfifo "$WORK/pipe"
	are_ended
	exec 7<>"$WORK/pipe"
	dd if=/dev/zero of="$WORK/pipe" oflag=nonblock bs=4096 2>/dev/null || true
	are_ended
	exec 7>&-
}

@test "a limit for files that leaves no room for the file is a reason" {
	! is_sanitized tsan || skip "ThreadSanitizer needs a file itself"
	run bash -c 'ulimit -f 0; "$@" 2>&1 | cat; exit "${PIPESTATUS[0]}"' bash \
		nvtaskset trace -o "$WORK/file" --seconds 0.1
	[ "$status $output" = "1 nvtaskset: $WORK/file: File too large" ]
}

@test "another user's program is refused" {
	needs_another_user
	start_program -t 0-3
	chmod 644 "$WORK/gpus.txt"
	refuses "pid $PROGRAM: belongs to another user, or does not let itself be inspected" \
		"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" trace "$PROGRAM"
}

# --- --terminal ------------------------------------------------------------------------------------------------

draws() { # PATTERN
	grep -qE "$1" "$WORK/drawn"
}

@test "--terminal draws who works where, until a signal" {
	start_playing -t 0-7 -- busy wait
	first=$PROGRAM
	start_playing -t 8-15 -- where wait
	: >"$WORK/drawn"
	nvtaskset trace --terminal "$first" "$PROGRAM" >"$WORK/drawn" 3>&- &
	recorder=$!
	ALL+=("$recorder")
	wait_until draws '^  AAAAbbbb\.{25}   play +[0-9]+/s   play +0/s$'
	kill -TERM "$recorder"
	wait "$recorder"
	[ "$(head -n 1 "$WORK/drawn")" = "A line is 0.4 s: a place for every two TPCs, and kernels a second." ]
	grep -q "^  A play $first  A on lent TPCs  a idle$" "$WORK/drawn"
	kill "$first"
}

@test "--terminal ends with --seconds, and has colours on a terminal only" {
	start_playing -t 0-7 -- busy wait
	on_terminal 80x24 -- nvtaskset trace --terminal --seconds 1
	[ "$output" = "status 0, terminal as before" ]
	[[ "$OUTPUT" == *$'\e[48;5;'* ]]
	run -0 nvtaskset trace --terminal --seconds 1
	[[ "$output" != *$'\e'* ]]
}
