#!/usr/bin/env bats
# --lend and --borrow: stored, shown, refused, and in force between two programs. What launches do is in tests/gpu/gate.c.

load helpers
load playing

@test "at the start: they imply MPS and say so; shown by -p, -l, top and --json" {
	start_side_by_side --lend --borrow=8-15 -t 0-7 -- context wait
	grep -qx 'nvtaskset: --lend, --borrow: under MPS, TPCs are lent (--mps auto)' "$WORK/errors"
	[ "$(given lend)" = 2ms ]
	[ "$(given borrow)" = 8-15 ]
	nvtaskset -l | grep -qE '^        lend 2ms, borrow 8-15(:|$)'
	[ "$(listed lend_us) $(listed borrow) $(listed borrowed)" = "2000 8-15 " ]
	nvtaskset top --once --delay 0.2 >"$WORK/page"
	grep -qE ' LENDING ' "$WORK/page"
	grep -qE "^ *$PROGRAM .* lends 0, borrows 0 " "$WORK/page"
}

@test "live: given, changed, each for itself, and ended" {
	start_side_by_side --mps auto -t 0-7 -- context wait
	[ -z "$(given lend)$(given borrow)" ]
	nvtaskset -p --lend=500us "$PROGRAM"
	[ "$(given lend)" = 500us ]
	nvtaskset -p --borrow "$PROGRAM"
	[ "$(given lend) $(given borrow)" = "500us all" ]
	nvtaskset -p --lend=0 "$PROGRAM"
	[ "$(given lend)" = off ]
	nvtaskset -p --lend "$PROGRAM"
	nvtaskset -tp --lend=off 8-9 "$PROGRAM"
	[ "$(given lend) $(given borrow)" = "off all" ]
	nvtaskset -p --borrow=off "$PROGRAM"
	[ "$(given borrow)" = off ]
	[ "$(listed lend_us) $(listed borrow)" = "0 off" ]
}

@test "for a group, and for those to come" {
	start_side_by_side --mps auto --group "lenders$$" -t 0-7 -- context wait
	nvtaskset -p --group "lenders$$" --lend=3ms --borrow=0-3
	[ "$(given lend) $(given borrow)" = "3ms 0-3" ]
	nvtaskset -p --group "lenders$$" | grep -qx "group lenders$$'s current lend: 3ms"
}

@test "refused: what is no limit or no TPCs, and where programs take turns" {
	for text in x "" 2 99us 1001ms -1ms "2 ms"; do
		refuses "--lend=$text: must be 100us-1s, such as 2ms, or 'off'" nvtaskset "--lend=$text" -t 0-7 true
	done
	refuses "--borrow=: an empty list: name at least one TPC" nvtaskset --borrow= -t 0-7 true
	refuses "--lend: TPCs are lent under MPS only; leave it out, or use --mps on" nvtaskset --mps off --lend -t 0-7 true
	refuses "--borrow: TPCs are lent under MPS only; leave it out, or use --mps on" nvtaskset --mps off --borrow -t 0-7 true
	start_playing -t 0-7 -- context wait
	refuses "pid $PROGRAM: --lend: TPCs are lent under MPS only, and this program takes turns; start it with --mps on" \
		nvtaskset -p --lend "$PROGRAM"
}

says() { # PATTERN, of -l
	nvtaskset -l | grep -qE "$1"
}

borrows() { # SET
	says "^        borrows TPCs $1 now"
}

# Between two launches, nothing is lent.
is_lent_in_json() {
	nvtaskset -l --json >"$WORK/json"
	[ "$(jq -r ".processes[] | select(.pid == $lender) | .lent" "$WORK/json")" = 8-15 ] &&
		[ "$(jq -r ".processes[] | select(.pid == $PROGRAM) | .borrowed" "$WORK/json")" = 8-15 ]
}

is_drawn() {
	nvtaskset -T >"$WORK/picture"
	[ "$(grep -oE '[0-9]+ [A-Za-z]\+' "$WORK/picture" | wc -l)" = 8 ] &&
		grep -qx ' +  lent, and in use by others now' "$WORK/picture" &&
		grep -qE "^ . +$lender .* lends 8 +" "$WORK/picture" && grep -qE "^ . +$PROGRAM .* borrows 8 " "$WORK/picture"
}

is_in_top() {
	nvtaskset top --once --delay 0.2 | grep -qE "^ *$lender .* lends 8 "
}

@test "two programs: all views say what is lent now" {
	start_side_by_side --mps auto --lend=1s -t 8-15 -- context wait
	local lender=$PROGRAM
	start_side_by_side --mps auto --borrow -t 0-7 -- context busy wait
	wait_until says '^        borrows TPCs 8-15 now'
	wait_until says '^        others use TPCs 8-15 now'
	wait_until says '^        borrowed [0-9.]+ TPC-seconds; 0 launches'
	wait_until is_lent_in_json
	wait_until is_drawn
	wait_until is_in_top
	nvtaskset metrics >"$WORK/metrics"
	grep -qE "^nvtaskset_borrowed_tpc_seconds_total\{pid=\"$PROGRAM\",.*lender=\"$lender\"\} [0-9.]+\$" "$WORK/metrics"
	[ "$(listed "loans | length == 1 and .[0].pid == $lender and .[0].tpc_us > 0")" = true ]
	nvtaskset -p --borrow=off "$PROGRAM"
	wait_until not borrows '.*'
}

# The lender launches a kernel while the other one's are in its TPCs, which it has been lending since a second later than its last
# launch. Where this machine has no time for us, nothing may be known.
sees_the_wait() {
	nvtaskset top --json --once --delay 2 >"$WORK/json" &
	local watcher=$!
	sleep 1.3
	kill -USR1 "$lender"
	wait "$watcher"
	[ "$(jq ".processes[] | select(.pid == $lender) | .gpus[0].waited_seconds > 0" "$WORK/json")" = true ]
}

sleeps_of() { # PID
	cat "/proc/$1/task"/*/status | grep voluntary
}

# No thread of the program has woken.
rests() { # PID
	local before
	before=$(sleeps_of "$1")
	sleep 0.3
	[ "$(sleeps_of "$1")" = "$before" ]
}

@test "two programs: an idle lender is edited, alone and with its group" {
	start_side_by_side --mps auto --group "lenders$$" --lend=1s -t 8-15 -- context wait
	local lender=$PROGRAM
	start_side_by_side --mps auto --borrow -t 0-7 -- context busy wait
	wait_until borrows 8-15
	wait_until rests "$lender"
	nvtaskset -tp 10-15 "$lender"
	wait_until borrows 10-15
	wait_until rests "$lender"
	nvtaskset -tp --group "lenders$$" 12-15
	wait_until borrows 12-15
	nvtaskset -p --lend=off "$lender"
	wait_until not borrows '.*'
}

@test "two programs: how long the lender waited at most, and what took too long" {
	local steps=(context wait)
	for _ in {1..100}; do steps+=(where wait); done
	start_side_by_side --mps auto --lend=1s -t 8-15 -- "${steps[@]}"
	local lender=$PROGRAM
	start_side_by_side --mps auto --borrow -t 0-7 -- context busy wait
	wait_until sees_the_wait
	[ "$(jq ".processes[] | select(.pid == $PROGRAM) | .gpus[0].waited_seconds" "$WORK/json")" = null ]
	nvtaskset top --json --once --delay 0.5 "$PROGRAM" | jq -e '.kernels | map(.overruns >= 0) | all' >/dev/null
	nvtaskset top --json --once --delay 0.5 "$lender" | jq -e '.kernels | map(.overruns == null) | all' >/dev/null
}
