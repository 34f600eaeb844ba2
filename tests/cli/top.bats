#!/usr/bin/env bats
# nvtaskset top: on terminals, and elsewhere. tests/unit/top.c has what is shown, and every key.

load helpers
load playing

enter=$'\e[?1049h\e[?25l\e[?7l'
leave=$'\e[?7h\e[?25h\e[?1049l'
headings=$'PID USER GPU TPCS \e[1;4mBUSY%'

# Runs the command on a terminal of this size, with these steps; OUTPUT has what it wrote, `output` how it ended.
on_terminal() {
	TERM=${TERM_NAME-xterm-256color} LC_ALL=C.UTF-8 \
		run "$BATS_TEST_DIRNAME/on_terminal" "$1" "$WORK/screen" "${@:2}"
	echo "$output"
	OUTPUT=$(cat "$WORK/screen")
}

# The last frame that was drawn, without sequences.
last_frame() {
	local frames=${OUTPUT%$'\e[?2026l'*}
	sed 's/\x1b\[[?0-9;]*[a-zA-Z]//g; s/\r//g; s/ *$//' <<<"${frames##*$'\e[H'}"
}

# --- once --------------------------------------------------------------------------------------------------------------

@test "a page: who uses which GPU, and how much" {
	own_gpus
	start_playing -t 0-7 -- where launch wait
	# Where this machine is too busy to compare the clocks, another look does.
	for _ in {1..20}; do
		nvtaskset top --once --delay 0.5 >"$WORK/page"
		grep -q "^Times that are not known: " "$WORK/page" || break
	done
	[ "$(head -n 1 "$WORK/page" | sed 's/[0-9]* program.*, over/N programs, over/')" = "nvtaskset top: N programs, over 0.5 s" ]
	grep -qE '^GPU 0 \[.*NVIDIA H200$' "$WORK/page"
	grep -qE '^ *PID USER .*COMMAND$' "$WORK/page"
	read -r pid user gpu tpcs busy tpc rate in_flight time command < <(grep "^ *$PROGRAM " "$WORK/page")
	[ "$pid $user $gpu $tpcs $command" = "$PROGRAM $(id -un) 0 0-7 $BUILD/tests/programs/play where launch wait" ]
	[ "$(sed 's/M$/000000/; s/\..*//' <<<"$rate")" -gt 0 ]
	[[ "$in_flight" =~ ^[0-9]+$ ]]
	# Eight of 66 TPCs.
	awk -v busy="$busy" -v tpc="$tpc" 'BEGIN {exit !(busy > 0 && busy <= 100.1 && tpc > 0 && tpc <= busy * 8 / 66 + 0.1)}'
	[[ "$time" =~ ^0:0[0-9]\.[0-9][0-9]$ ]]
	grep -qE "^GPU 0 \[($PROGRAM)?=*\|? *\] +[0-9.]+% NVIDIA H200$" "$WORK/page"
	not grep -q "^Times that are not known: " "$WORK/page"
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
	own_gpus
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
	own_gpus
	run timeout 60 bash -c 'nvtaskset top --delay 0.1 | cat'
	[ "$status" -eq 0 ]
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

@test "what is not known is a dash" {
	own_gpus
	SIM_FAULTS=no-register start_playing -t 0-7 -- where wait
	nvtaskset top --once --delay 0.1 "$PROGRAM" >"$WORK/page"
	read -r _ _ _ _ busy tpc rate in_flight time _ < <(grep "^ *$PROGRAM " "$WORK/page")
	[ "$busy $tpc $rate $in_flight $time" = "- - - - -" ]
	grep -q "^Times that are not known: the driver did not let the GPU write the times\.$" "$WORK/page"
	nvtaskset top --json --once --delay 0.1 "$PROGRAM" >"$WORK/json"
	[ "$(jq -r '.processes[0].gpus[0].why_no_times' "$WORK/json")" = "the driver did not let the GPU write the times" ]
	[ "$(jq -c '.processes[0].gpus[0] | [.busy, .tpc_share, .kernels_per_second, .in_flight, .busy_seconds]' "$WORK/json")" = \
		"[null,null,null,null,null]" ]
}

@test "times that are not measured are not 0" {
	own_gpus
	NVTASKSET_ACCOUNT=off start_program -t 0-7
	nvtaskset top --json --once --delay 0.1 "$PROGRAM" >"$WORK/json"
	[ "$(jq -r '.processes[0].gpus[0].why_no_times' "$WORK/json")" = "counting is turned off (NVTASKSET_ACCOUNT)" ]
	[ "$(jq -c '.processes[0].gpus[0] | [.busy, .tpc_share, .busy_seconds]' "$WORK/json")" = "[null,null,null]" ]
}

# A shell hands its partition on to what it starts, which then stands for it.
@test "a shell that has started programs is not one of them" {
	own_gpus
	empty_output
	nvtaskset --mps off -t 0-7 sh -c "'$BUILD/demo/where' 60; true" >"$WORK/output" 3>&- &
	PROGRAM=$!
	wait_until [ -s "$WORK/output" ]
	nvtaskset top --once --delay 0.1 >"$WORK/page"
	child=$(pgrep -P "$PROGRAM" where)
	grep -q "^ *$child " "$WORK/page"
	not grep -q "^ *$PROGRAM " "$WORK/page"
	kill "$child"
}

@test "one program" {
	own_gpus
	start_program -t 0-7
	first=$PROGRAM
	start_program -t 8-15
	run nvtaskset top --once --delay 0.1 "$PROGRAM"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "nvtaskset top: pid $PROGRAM, over 0.1 s" ]
	[ "$(grep -c "/demo/where" <<<"$output")" -eq 1 ]
	[ "$(nvtaskset top --json --once --delay 0.1 "$PROGRAM" | jq -c '[.processes[].pid]')" = "[$PROGRAM]" ]
	kill "$first"
}

@test "the kernels of one program" {
	own_gpus
	start_program -t 0-7
	nvtaskset top --once --delay 0.5 "$PROGRAM" >"$WORK/page"
	grep -qE '^TIME% +TOTAL INSTANCES +TIMED +AVG +MED +MIN +MAX +STDDEV NAME$' "$WORK/page"
	[[ "$(tail -n 1 "$WORK/page")" =~ ^\ *100\.0\ .*[0-9]us\ .*\ where$ ]]
	nvtaskset top --json --once --delay 0.5 "$PROGRAM" >"$WORK/json"
	[ "$(jq -r '.kernels[0] | keys_unsorted | join(" ")' "$WORK/json")" = \
		"name instances timed share total_ns average_ns median_ns min_ns max_ns deviation_ns predicted unpredicted predicted_ns error" ]
	[ "$(jq '.kernels[0] | .name == "where" and .instances > 0 and .timed <= .instances and .min_ns > 0 and .median_ns >= .min_ns' "$WORK/json")" = true ]
	[ "$(jq -c '[.why_no_kernels, .predictions, (.kernels[0] | .predicted, .unpredicted, .predicted_ns, .error)]' "$WORK/json")" = \
		"[null,null,null,null,null,null]" ]
}

@test "what a program has predicted of its launches" {
	own_gpus
	start_program -t 0-7
	# Whoever looks gets the names of functions.
	nvtaskset top --once --delay 0.5 "$PROGRAM" >"$WORK/page"
	"$BUILD/tests/programs/predict" "$PROGRAM" where
	nvtaskset top --once --delay 0.5 "$PROGRAM" >"$WORK/page"
	grep -qE '^TIME% .* STDDEV PREDICTED ERROR% NAME$' "$WORK/page"
	grep -qE '^ *100\.0 .* +2\.0us +25\.0 where$' "$WORK/page"
	grep -qE '^ *- +- +- +- .* \(graph 0x55d0\)$' "$WORK/page"
	[ "$(tail -n 1 "$WORK/page")" = "Predicted: 50 launches, wrong by 25.0%; of 3 more nothing was known." ]
	nvtaskset top --json --once --delay 0.5 "$PROGRAM" >"$WORK/json"
	[ "$(jq -c '.kernels | map([.name, .predicted, .unpredicted, .predicted_ns, .error])' "$WORK/json")" = \
		'[["where",10,1,2000,0.25],["(graph 0x55d0)",0,2,null,null]]' ]
	[ "$(jq -c '.kernels[1] | [.instances, .timed, .share, .total_ns, .average_ns]' "$WORK/json")" = "[null,null,null,null,null]" ]
	[ "$(jq -c .predictions "$WORK/json")" = '{"predicted":50,"unpredicted":3,"predicted_ns":120,"error":0.25}' ]
	# Of all programs, nothing of that.
	not grep -q PREDICTED <(nvtaskset top --once --delay 0.1)
}

@test "a program that ends between two looks" {
	own_gpus
	start_program -t 0-7
	nvtaskset top --json --delay 0.2 "$PROGRAM" >"$WORK/json" 3>&- &
	top=$!
	wait_until grep -q "\"pid\":$PROGRAM," "$WORK/json"
	stop_program
	wait_until grep -q '"processes":\[\]' "$WORK/json"
	kill "$top"
	[ "$(head -n 1 "$WORK/json" | jq '.processes | length')" = 1 ]
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
	refuses "--watch: only with -l and -T" nvtaskset top --watch
	refuses "--frob: unknown option; try 'nvtaskset top --help'" nvtaskset top --frob
}

@test "another user's program" {
	needs_another_user
	needs_to_look_into_others
	own_gpus
	chmod 644 "$WORK/gpus.txt"
	start_program -t 0-7
	"${ANOTHER_USER[@]}" nvtaskset top --once --delay 0.1 >"$WORK/page"
	not grep -q "^ *$PROGRAM " "$WORK/page"
	[ "$(tail -n 1 "$WORK/page")" = "Programs that you may not look at, those of other users, are not shown." ]
	run "${ANOTHER_USER[@]}" nvtaskset top --once "$PROGRAM"
	[ "$status" -eq 1 ]
	[[ "$output" == "nvtaskset: pid $PROGRAM: "* ]]
}

@test "standard output that cannot be written" {
	run bash -c 'nvtaskset top --once --delay 0.1 2>&1 >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == *"nvtaskset: standard output: No space left on device" ]]
	run bash -c 'nvtaskset top --json --delay 0.1 2>&1 >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == *"nvtaskset: standard output: No space left on device" ]]
	run timeout 60 bash -c 'nvtaskset top --once 2>&1 >&-'
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
}

# --- JSON --------------------------------------------------------------------------------------------------------------

@test "--json: a document on a line for each look, until nobody reads any more" {
	own_gpus
	start_playing -t 0-7 -- where launch wait
	run timeout 60 bash -c 'nvtaskset top --json --delay 0.2 | head -n 3'
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 3 ]
	printf '%s\n' "${lines[@]}" >"$WORK/json"
	mine=".processes[] | select(.pid == $PROGRAM)"
	[ "$(jq -r .schema "$WORK/json" | sort -u)" = nvtaskset-top/1 ]
	[ "$(jq "$mine | .gpus[0].kernels_per_second > 0" "$WORK/json" | sort -u)" = true ]
	[ "$(jq ".span_seconds > 0.1" "$WORK/json" | sort -u)" = true ]
	[ "$(head -n 1 "$WORK/json" | jq -r 'keys_unsorted | join(" ")')" = "schema time_ms span_seconds processes kernels why_no_kernels predictions" ]
	[ "$(head -n 1 "$WORK/json" | jq -r "$mine | keys_unsorted | join(\" \")")" = "pid uid user command not_in_force quota rank policy gpus" ]
	[ "$(head -n 1 "$WORK/json" | jq -r "$mine | .gpus[0] | keys_unsorted | join(\" \")")" = \
		"gpu bus_id tpc_list kernels_per_second in_flight busy busy_error tpc_share busy_seconds presence why_no_times" ]
	[ "$(head -n 1 "$WORK/json" | jq -c "$mine | .gpus[0] | [.gpu, .bus_id, .tpc_list, .presence]")" = "[0,\"$GPU\",\"0-7\",false]" ]
}

# --- on a terminal -----------------------------------------------------------------------------------------------------

@test "the alternate screen is entered and left, and 'q' ends it" {
	own_gpus
	start_program -t 0-7
	on_terminal 300x24 see "demo/where" see "demo/where" type q -- nvtaskset top --delay 0.1
	[ "$output" = "status 0, terminal as before" ]
	[[ "$OUTPUT" == "$enter"*"$leave" ]]
	# Every frame is written over the one before, at once.
	[[ "$OUTPUT" != *$'\e[2J'* ]]
	[ "$(grep -o $'\e\[?2026h' <<<"$OUTPUT" | wc -l)" -eq "$(grep -o $'\e\[?2026l' <<<"$OUTPUT" | wc -l)" ]
	last_frame >"$WORK/frame"
	[ "$(wc -l <"$WORK/frame")" -eq 24 ]
	[[ "$(tail -n 1 "$WORK/frame")" == "q quit  ? help"* ]]
}

@test "after any signal that ends it, the terminal is as it was" {
	for signal in INT=2 QUIT=3 HUP=1 TERM=15; do
		on_terminal 80x24 see "$headings" signal "${signal%=*}" -- nvtaskset top --delay 0.1
		[ "$output" = "signal ${signal#*=}, terminal as before" ]
		[[ "$OUTPUT" == "$enter"*"$leave" ]]
	done
	on_terminal 80x24 see "$headings" type $'\x03' -- nvtaskset top --delay 1000
	[ "$output" = "signal 2, terminal as before" ]
}

@test "stopped and continued" {
	on_terminal 80x24 see "$headings" type $'\x1a' stopped continue see "$enter" see "$headings" type q -- nvtaskset top --delay 1000
	[ "$output" = $'stopped, terminal as before\nstatus 0, terminal as before' ]
}

@test "the terminal goes away" {
	on_terminal 80x24 see "$headings" hang-up -- nvtaskset top --delay 1000
	[ "$output" = "status 1, terminal gone" ]
}

@test "keys" {
	own_gpus
	start_program -t 0-7
	on_terminal 300x24 see "$headings" type T see $'\e[1;4mTIME' type '>' see $'\e[1;4mCOMMAND' type $'\e[17~' see $'\e[1;4mPID' \
		type P see "$headings" type '?' see "Any key goes back" type x see "demo/where" \
		type /WHERE see "Search: WHERE_" type $'\r' see $'\e[1m' see "q quit" \
		type unobody see "nobody_" see-not "demo/where" type $'\e' see "demo/where" \
		type Z see ", paused" type Z see-not ", paused" type q -- nvtaskset top --delay 1000
	[ "$output" = "status 0, terminal as before" ]
}

@test "paused, it takes no more looks" {
	own_gpus
	start_program -t 0-7
	gone=$PROGRAM
	on_terminal 300x24 see "demo/where" type Z see ", paused" end "$gone" see "demo/where" see "demo/where" see "demo/where" \
		type Z see "0 programs" type q -- nvtaskset top --delay 0.1
	[ "$output" = "status 0, terminal as before" ]
}

@test "paused, it measures nothing; afterwards it goes on" {
	own_gpus
	start_playing -t 0-7 -- where wait watched
	go_on
	first=$PROGRAM
	start_program -t 8-15
	on_terminal 300x24 see "play where" type Z see ", paused, nothing is measured" ended "$first" \
		type Z see "1 program, over" see "1 program, over" see "1 program, over" see "demo/where" type q -- nvtaskset top --delay 0.3
	[ "$output" = "status 0, terminal as before" ]
	busy=$(last_frame | sed -n 's/^ *'"$PROGRAM"' [^ ]* *[^ ]* *[^ ]* *\([^ ]*\) .*/\1/p')
	[[ "$busy" =~ ^[0-9.]+$ ]]
}

@test "one program on the screen, until it has ended" {
	own_gpus
	start_program -t 0-7
	on_terminal 100x24 see "pid $PROGRAM, over" see "INSTANCES" end "$PROGRAM" see "pid $PROGRAM has ended" type q -- \
		nvtaskset top --delay 0.1 "$PROGRAM"
	[ "$output" = "status 0, terminal as before" ]
}

@test "every size of the window" {
	own_gpus
	start_program -t 0-7
	on_terminal 80x24 see "$PROGRAM " size 40x6 see "PID GPU" size 20x1 see "PID COMMAND" size 300x50 see "NVIDIA H200" type q -- \
		nvtaskset top --delay 1000
	[ "$output" = "status 0, terminal as before" ]
	last_frame >"$WORK/frame"
	[ "$(wc -l <"$WORK/frame")" -eq 50 ]
}

@test "NO_COLOR" {
	own_gpus
	start_program -t 0-7
	NO_COLOR=1 on_terminal 300x24 see "demo/where" type q -- nvtaskset top --delay 0.1
	[[ "$OUTPUT" != *$'\e[3'* ]]
	[[ "$OUTPUT" != *$'\e[4'* ]]
	[[ "$OUTPUT" == *$'\e[7m'* ]]
}
