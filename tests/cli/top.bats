#!/usr/bin/env bats
# nvtaskset top: on terminals, and elsewhere. tests/unit/top.c has what is shown, and every key.
# takes: long

load helpers
OWN_GPUS=yes
load playing

headings=$'GPU TPCS \e[1;4mBUSY%'

# The last frame that was drawn, without sequences.
last_frame() {
	local frames=${OUTPUT%$'\e[?2026l'*}
	sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g; s/\r//g; s/ *$//' <<<"${frames##*$'\e[H'}"
}

# --- once --------------------------------------------------------------------------------------------------------------

# Where this machine is too busy to compare the clocks, another look does; or to look for as long as it was told to.
tells_how_much() {
	local pid user gpu tpcs busy tpc rate in_flight time memory command
	nvtaskset top --once --delay 0.5 >"$WORK/page"
	read -r pid user gpu tpcs busy tpc rate in_flight time memory command < <(grep "^ *$PROGRAM " "$WORK/page")
	about="$pid $user $gpu $tpcs $command"
	# Eight of 66 TPCs.
	[ "$(head -n 1 "$WORK/page" | sed 's/[0-9]* program.*, over/N programs, over/')" = "nvtaskset top: N programs, over 0.5 s" ] &&
		[ "$(sed 's/M$/000000/; s/\..*//' <<<"$rate")" -gt 0 ] &&
		[[ "$in_flight" =~ ^[0-9]+$ && "$time" =~ ^0:0[0-9]\.[0-9][0-9]$ ]] &&
		awk -v busy="$busy" -v tpc="$tpc" 'BEGIN {exit !(busy > 0 && busy <= 100.1 && tpc > 0 && tpc <= busy * 8 / 66 + 0.1)}' &&
		grep -qE "^GPU 0 \[($PROGRAM)?=*\|? *\] +[0-9.]+% NVIDIA H200$" "$WORK/page" &&
		! grep -q "^Times that are not known: " "$WORK/page"
}

@test "a page: who uses which GPU, and how much" {
	start_playing -t 0-7 -- where launch wait
	wait_until tells_how_much || {
		cat "$WORK/page"
		return 1
	}
	grep -qE '^ *PID USER .*COMMAND$' "$WORK/page"
	[ "$about" = "$PROGRAM $(id -un) 0 0-7 $BUILD/tests/programs/play where launch wait" ]
}

# Whether the page has this mark behind the program's BUSY%.
top_marks() { # PID MARK
	nvtaskset top --once --delay 0.5 >"$WORK/page"
	[ "$(awk -v pid="$1" -v mark="[0-9][$2]\$" '$1 == pid {print $5 ~ mark}' "$WORK/page")" = 1 ]
}

list_marks() { # PID MARK
	nvtaskset -l --busy | grep -qE "^ *$1 .* [0-9.]+$2 "
}

# On a busy machine, a number may not be known at first.
@test "who shares TPCs; who takes turns" {
	start_playing -t 0-7 -- where launch wait
	first=$PROGRAM
	start_playing -t 7-15 -- where launch wait
	wait_until top_marks "$first" '*'
	wait_until top_marks "$PROGRAM" '*'
	grep -q "^[*]: shares TPCs, " "$WORK/page"
	stop_program
	kill "$first"
	SIM_FAULTS=time-slices start_playing -t 0-7 -- where launch wait
	wait_until top_marks "$PROGRAM" p
	grep -q "^p: present, not busy: " "$WORK/page"
	wait_until list_marks "$PROGRAM" p
}

@test "without a terminal, and on a dumb one: one page" {
	run -0 timeout 60 bash -c 'nvtaskset top --delay 0.1 | cat'
	[ "$(grep -c COMMAND <<<"$output")" -eq 1 ]
	[[ "$output" != *$'\e'* ]]
	for name in dumb ''; do
		TERM_NAME=$name on_terminal 80x24 -- nvtaskset top --delay 0.1
		[ "$output" = "status 0, terminal as before" ]
		[ "$(grep -c COMMAND <<<"$OUTPUT")" -eq 1 ]
		[[ "$OUTPUT" != *$'\e'* ]]
	done
	on_terminal 80x24 -- env -u TERM nvtaskset top --delay 0.1
	[ "$output" = "status 0, terminal as before" ]
	[[ "$OUTPUT" != *$'\e'* ]]
}

# A busy machine may leave a program no time for a kernel while somebody looks.
sees_kernels() {
	nvtaskset top --once --delay 0.5 "$PROGRAM" >"$WORK/page"
	nvtaskset top --json --once --delay 0.5 "$PROGRAM" >"$WORK/json"
	grep -qE '^ *100\.0 .*[0-9][um]s .* where$' "$WORK/page" && jq -e '.kernels[0]' "$WORK/json" >/dev/null
}

# Of some ms each: where a machine is busy, the clocks are not known well enough for shorter ones.
@test "the kernels of one program" {
	start_playing -t 0-7 -- busy wait
	wait_until sees_kernels
	grep -qE '^TIME% +TOTAL INSTANCES +TIMED +AVG +MED +MIN +MAX +STDDEV NAME$' "$WORK/page"
	[ "$(jq -r '.kernels[0] | keys | join(" ")' "$WORK/json")" = \
		"average_ns deviation_ns instances max_ns median_ns min_ns name overruns share timed total_ns" ]
	[ "$(jq '.kernels[0] | .name == "where" and .instances > 0 and .timed <= .instances and .min_ns > 0 and .median_ns >= .min_ns' "$WORK/json")" = true ]
	[ "$(jq -c .why_no_kernels "$WORK/json")" = null ]
}

@test "bad arguments" {
	refuses "pid 'x': not a process id" nvtaskset top x
	refuses "pid '0': not a process id" nvtaskset top 0
	refuses "pid 999999999: no such process" nvtaskset top 999999999
	refuses "pid $$: has not loaded CUDA" nvtaskset top $$
	refuses "'2': one argument too many; try 'nvtaskset top --help'" nvtaskset top 1 2
	refuses "'--once': options come before PID; try 'nvtaskset top --help'" nvtaskset top 1 --once
	for delay in 0 0.05 -1 x nan inf 86401 ''; do
		refuses "--delay $delay: must be 0.1-86400 seconds" nvtaskset top --delay "$delay"
	done
	refuses "--watch: only with -l, -T and 'metrics'" nvtaskset top --watch
	refuses "--frob: unknown option; try 'nvtaskset top --help'" nvtaskset top --frob
}

# Three documents; a busy machine may leave the program no time for a kernel between two looks.
has_rates() {
	timeout 60 bash -c 'nvtaskset top --json --delay 0.2 | head -n 3' >"$WORK/json"
	rates=$(jq -c "$mine | .gpus[0].kernels_per_second" "$WORK/json")
	[ "$(jq -s 'any(. != null and . > 0)' <<<"$rates")" = true ]
}

@test "--json: a document on a line for each look, until nobody reads any more" {
	start_playing -t 0-7 -- where launch wait
	mine=".processes[] | select(.pid == $PROGRAM)"
	wait_until has_rates
	[ "$(wc -l <"$WORK/json")" -eq 3 ]
	[ "$(jq -c 'type == "number" and . >= 0' <<<"$rates" | xargs)" = "true true true" ]
	[ "$(jq -r .schema "$WORK/json" | sort -u)" = nvtaskset-top/2 ]
	[ "$(jq ".span_seconds > 0.1" "$WORK/json" | sort -u)" = true ]
	[ "$(head -n 1 "$WORK/json" | jq -r 'keys_unsorted | join(" ")')" = "schema time_ms span_seconds processes kernels why_no_kernels" ]
	[ "$(head -n 1 "$WORK/json" | jq -r "$mine | keys_unsorted | join(\" \")")" = "pid uid user command not_in_force quota rank lend_us borrow memory_limit_bytes gpus" ]
	[ "$(head -n 1 "$WORK/json" | jq -r "$mine | .gpus[0] | keys | join(\" \")")" = \
		"bus_id busy busy_error busy_seconds gpu in_flight kernels_per_second memory_bytes memory_limit_bytes presence tpc_list tpc_share waited_seconds why_no_times" ]
	[ "$(head -n 1 "$WORK/json" | jq -c "$mine | .gpus[0] | [.gpu, .bus_id, .tpc_list, .presence]")" = "[0,\"$GPU\",\"0-7\",false]" ]
}

# --- on a terminal -----------------------------------------------------------------------------------------------------

# As by Ctrl-S.
@test "a signal ends it also where the terminal takes nothing" {
	for signal in INT=2 TERM=15; do
		on_terminal 80x24 see "$headings" type $'\x13' quiet signal "${signal%=*}" -- nvtaskset top --delay 0.1
		[ "$output" = "signal ${signal#*=}, terminal as before" ]
	done
}

@test "keys" {
	start_program -t 0-7
	on_terminal 300x24 see "$headings" type T see $'\e[1;4mTIME' type '>' see $'\e[1;4mMEMORY' type '>' see $'\e[1;4mCOMMAND' type $'\e[17~' see $'\e[1;4mPID' \
		type P see "$headings" type '?' see "Any key goes back" type x see "demo/where" \
		type /WHERE see "Search: WHERE_" type $'\r' see $'\e[1m' see "q quit" \
		type unobody see "nobody_" see-not "demo/where" type $'\e' see "demo/where" \
		type Z see ", paused" type Z see-not ", paused" \
		type k see "kill PID ends a program" type x see "demo/where" type $'\e[21~' -- nvtaskset top -d 1000
	[ "$output" = "status 0, terminal as before" ]
}

# Whether the last frame, after a pause in which another program has ended, tells how busy the program is: a busy machine may leave no
# time to measure that for once.
is_busy_after_pause() {
	local first
	stop_program
	start_playing -t 0-7 -- where wait watched
	go_on
	first=$PROGRAM
	start_program -t 8-15
	on_terminal 300x24 see "play where" type Z see ", paused, nothing is measured" ended "$first" \
		type Z see "1 program, over" see "1 program, over" see "1 program, over" see "demo/where" type q -- nvtaskset top --delay 0.3
	busy=$(last_frame | sed -n 's/^ *'"$PROGRAM"' [^ ]* *[^ ]* *[^ ]* *\([^ ]*\) .*/\1/p')
	[ "$busy" != - ]
}

@test "paused, it measures nothing; afterwards it goes on" {
	wait_until is_busy_after_pause
	[ "$output" = "status 0, terminal as before" ]
	[[ "$busy" =~ ^[0-9.]+$ ]]
}

@test "one program on the screen, until it has ended" {
	start_program -t 0-7
	on_terminal 100x24 see "pid $PROGRAM, over" see "INSTANCES" end "$PROGRAM" see "pid $PROGRAM has ended" type q -- \
		nvtaskset top --delay 0.1 "$PROGRAM"
	[ "$output" = "status 0, terminal as before" ]
}
