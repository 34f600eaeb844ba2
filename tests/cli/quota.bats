#!/usr/bin/env bats
# --quota: at the start, live, shown and refused
# takes: long
# sanitizers: address thread

load helpers
load playing

is_used() {
	[[ "$(current quota)" =~ present\ for\ [0-9.]+\ s,\ suspended\ for\ ([0-9.]+)\ s$ ]] && [ "${BASH_REMATCH[1]}" != 0.0 ]
}

is_held() {
	[[ "$(current quota)" =~ on\ the\ GPUs\ for\ [0-9.]+\ s,\ held\ back\ for\ ([0-9.]+)\ s\ \([0-9]+\ launch ]] && [ "${BASH_REMATCH[1]}" != 0.0 ]
}

has_thread() {
	grep -qx nvtaskset /proc/"$PROGRAM"/task/*/comm
}

is_refused() { # QUOTA REASON
	run nvtaskset -p --quota "$1" "$PROGRAM"
	[ "$status" -eq 3 ] && [[ "$output" == *"nvtaskset: pid $PROGRAM: $2"* ]]
}

@test "at the start: in force, shown with what was used; it implies --mps off and says so" {
	start_as_usual --quota 30% -t 0-7 -- busy wait
	grep -qx 'nvtaskset: --quota: without MPS, programs take turns on the GPU (--mps off)' "$WORK/errors"
	wait_until is_used
	[[ "$(current quota)" == "30ms/100ms: present for "* ]]
	nvtaskset -l | grep -q "^        quota 30ms/100ms: present for "
	[ "$(listed 'quota | [.run_us, .period_us, .limits, .in_force]')" = "[30000,100000,true,true]" ]
	nvtaskset top --once --delay 0.2 | grep -qE "^ *$PROGRAM .* 30ms/100ms "
	[ "$(nvtaskset top --once --delay 0.2 --json | jq -c ".processes[] | select(.pid == $PROGRAM) | .quota | [.run_us, .in_force]")" = \
		"[30000,true]" ]
}

@test "a sandbox that lets no scheduling be chosen: it is in force" {
	start_waiting nvtaskset --mps off --quota 30% -t 0-7 "$BUILD/tests/programs/refuse" sched_setscheduler \
		"$BUILD/tests/programs/play" busy wait
	wait_until is_used
	[ ! -s "$WORK/errors" ]
}

@test "live, without a SET: given, changed and lifted" {
	start_playing -t 0-7 -- busy wait
	[ -z "$(current quota)" ]
	not has_thread
	run -0 nvtaskset -p --quota 5ms/20ms "$PROGRAM"
	[ "${lines[0]}" = "pid $PROGRAM's current TPC mask: ff" ]
	[[ "${lines[1]}" == "pid $PROGRAM's new quota: 5ms/20ms: "* ]]
	wait_until is_used
	has_thread
	run -0 nvtaskset -tp --quota 50% 8-9 "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	[[ "${lines[2]}" == "pid $PROGRAM's new quota: 50ms/100ms: present for "* ]]
	for text in max off; do
		nvtaskset -p --quota 30% "$PROGRAM"
		nvtaskset -p --quota "$text" "$PROGRAM"
		[[ "$(current quota)" == "max: present for "* ]]
	done
	wait_until not has_thread
}

@test "a program that uses managed memory is not suspended: changed, and not in force" {
	start_playing -t 0-7 -- managed busy wait
	wait_until is_refused 30% "the program uses managed memory"
}

# The thread has a stack of 512 KiB. The simulated GPU ends a program where it lacks memory itself: then once more.
lacks_room_for_the_thread() {
	local size
	start_playing -t 0-7 -- busy wait
	size=$(sed -n 's/^VmSize:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$PROGRAM/status")
	prlimit --pid "$PROGRAM" --as=$(((size + 400) * 1024))
	for quota in 30% 40%; do
		until is_refused "$quota" "no thread could be made in the program: it is not suspended"; do
			kill -0 "$PROGRAM" 2>/dev/null || return 1
			sleep 0.05
		done
	done
}

@test "a limit leaves no room for the thread: the program says so once, and -p each time" {
	! is_sanitized || skip "sanitizers need more"
	wait_until lacks_room_for_the_thread
	# It may have ended since.
	[ "$(grep -v '^simulated GPU: ' "$WORK/errors")" = "nvtaskset: quota, priority and weight are not in force: no thread could be made in the program: it is not suspended" ]
}

@test "a client of MPS: its launches are held back, and it says so" {
	start_side_by_side --mps auto --quota 30% -t 0-7 -- busy wait
	not grep -q 'without MPS' "$WORK/errors"
	wait_until is_held
	nvtaskset -l | grep -q "^        quota 30ms/100ms: on the GPUs for "
	[ "$(listed 'quota | [.run_us, .in_force, .state, .held > 0]')" = \
		'[30000,true,"it is in force: launches are held back, since the program is a client of MPS",true]' ]
	nvtaskset top --once --delay 0.2 | grep -qE "^ *$PROGRAM .* 30ms/100ms "
}

launched() {
	listed 'kernels[0].launches'
}

has_launched_since() { # LAUNCHES
	[ "$(launched)" -gt "$1" ]
}

# In a program that is started so.
obeys_when_started_by() { # WRAPPER…
	local before mode
	for mode in "auto is_held" "off is_used"; do
		fake start nvtaskset --mps "${mode% *}" --quota 30% -t 0-7 "$@" "$BUILD/tests/programs/play" busy wait
		waits 1
		wait_until "${mode#* }"
		# More than can be in flight.
		before=$(launched)
		wait_until has_launched_since $((before + 100))
		stop_program
	done
}

@test "a program that replaces the C library's clock keeps to the kernel's" {
	! is_sanitized || skip "a sanitizer replaces it, too"
	for time in "TIME_RATE=1" "TIME_AHEAD=3600" "TIME_AHEAD=-600" "TIME_RATE=10"; do
		obeys_when_started_by env "$time" LD_PRELOAD="$BUILD/tests/programs/another-time.so"
	done
}

@test "a program in a time namespace keeps to the host's clock" {
	unshare --time --monotonic=86400 true 2>/dev/null || skip "needs root, and a kernel with time namespaces"
	obeys_when_started_by unshare --time --monotonic=86400
}

@test "refused: what is no quota" {
	for text in x 30 30% % 30ms/ /100ms 30ms/100 30x 30ms/100xx -5% 0x1e% 1e2% 0x1ems 1e1ms/1e2ms 1.2.3%; do
		[ "$text" = 30% ] ||
			refuses "--quota $text: must be RUN[/PERIOD], such as 30% or 30ms/100ms, or 'max'" nvtaskset --quota "$text" -t 0-7 true
	done
	refuses "--quota 30ms/20s: the period must be 1ms-10s" nvtaskset --quota 30ms/20s -t 0-7 true
	refuses "--quota 0.1%: less than 1ms of the time in each period; --quota 1%/1s has longer periods" \
		nvtaskset --quota 0.1% -t 0-7 true
	refuses "--quota 30ms/20ms: more time than the period has" nvtaskset --quota 30ms/20ms -t 0-7 true
}

@test "a program that was started without us, and may be a client of MPS: held back" {
	mkdir "$WORK/mps"
	touch "$WORK/mps/control"
	CUDA_MPS_PIPE_DIRECTORY=$WORK/mps LD_LIBRARY_PATH=$BUILD/sim start_waiting "$BUILD/tests/programs/play" busy wait
	[ "$(uname -m)" = x86_64 ] || skip "attaching works on x86-64 only"
	nvtaskset --attach -tp 0-7 "$PROGRAM" || skip "attaching is not possible here"
	nvtaskset -p --quota 30% "$PROGRAM"
	wait_until is_held
}

four_have_launched() {
	[ "$(nvtaskset -l --json | jq "[.processes[] | select(.uploads > 0 and (.command | contains(\"$WORK/split\")))] | length")" = 4 ]
}

# A group has one share (tests/unit/rules, tests/unit/given): so all must be in it.
@test "nobody gains by splitting: after fork, exec, setsid and a double fork, all share one quota and one weight" {
	local play="$BUILD/tests/programs/play busy wait $WORK/split"
	start nvtaskset --mps off --quota 30% --weight 200 -t 0-7 bash -c "$play & setsid $play & (setsid $play &) & exec $play"
	wait_until four_have_launched
	nvtaskset -l --json >"$WORK/json"
	run jq -c --arg name "$WORK/split" '[.processes[] | select(.uploads > 0 and (.command | contains($name)))] | map(.group.id) as $ids | [length, ($ids | unique | length),
		(map([.quota.run_us, .quota.period_us, .rank.weight]) | unique)]' "$WORK/json"
	[ "$output" = "[4,1,[[30000,100000,200]]]" ]
	pkill -KILL -f "$WORK/split"
}

# --- groups ------------------------------------------------------------------------------------------------------------

# A member that is busy all the time, from here on.
start_member() { # NAME, options and SET
	start_as "$1" nvtaskset --mps off "${@:2}" "$BUILD/tests/programs/play" busy wait
}

teardown() {
	kill -KILL "${ALL[@]}" 2>/dev/null || true
	wait
	rm -rf "$WORK"
}

has_launched() { # PID
	[ "$(listed "uploads > 0" "$1")" = true ]
}

is_aside_for() { # PID US
	[ "$(listed quota.aside_us "$1")" -ge "$2" ]
}

@test "a running group is given a quota, which its members share; shown, changed and lifted; before, a change leaves a member's alone" {
	start_member first --group "q$$" -t 0-7
	start_member second --group "q$$" -t 0-7
	wait_until has_launched "$first"
	wait_until has_launched "$second"
	[ "$(nvtaskset -p --group "q$$")" = "group q$$'s current TPC mask: ff" ]
	nvtaskset -p --quota 40% "$second"
	nvtaskset -tp --group "q$$" 0-7
	[[ "$(current quota "$second")" == "40ms/100ms: "* ]]
	run -0 nvtaskset -p --group "q$$" --quota 800ms/10s
	[ "${lines[0]}" = "group q$$'s current TPC mask: ff" ]
	[ "${lines[1]}" = "group q$$'s new quota: 800ms/10s" ]
	wait_until is_aside_for "$first" 10000
	wait_until is_aside_for "$second" 10000
	[ "$(nvtaskset -p --group "q$$" --json | jq -c '[.group.quota.run_us, .processes[].quota.run_us]')" = "[800000,800000,800000]" ]
	run nvtaskset -tp --group "q$$" --quota max 8-9
	[ "${lines[1]}" = "group q$$'s new TPC list: 8-9" ]
	[ "${lines[2]}" = "group q$$'s new quota: max" ]
	PROGRAM=$first
	wait_until not has_thread
}
