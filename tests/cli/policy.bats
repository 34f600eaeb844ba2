#!/usr/bin/env bats
# --policy: stored, shown and refused. Whether it is obeyed is tested elsewhere.

load helpers
load playing

# "ht,ae", as it is shown now.
policy() {
	nvtaskset -p "$PROGRAM" | sed -n "s/^pid $PROGRAM's current policy: //p"
}

listed() { # [PID]
	nvtaskset -l --json | jq -r ".processes[] | select(.pid == ${1:-$PROGRAM}) | .policy"
}

# Under MPS, of which a fake daemon runs. As start_playing, without --mps off.
start_side_by_side() { # options and SET -- steps
	local options steps
	take_steps "$@"
	empty_output
	PATH=$BATS_TEST_DIRNAME/../fake-mps:$PATH nvtaskset "${options[@]}" "$BUILD/tests/programs/play" "${steps[@]}" \
		>"$WORK/output" 2>"$WORK/errors" 3>&- &
	PROGRAM=$!
	waits 1
}

NEEDS="nothing is held back without a quota or a priority; give one with it"

@test "at the start: it implies MPS and says so; shown by -p, -l, top and --json" {
	start_side_by_side --policy ht,ae --quota 30% --priority 80 -t 0-7 -- context wait
	grep -qx 'nvtaskset: --policy: under MPS, launches are held back (--mps auto)' "$WORK/errors"
	not grep -q 'without MPS' "$WORK/errors"
	[ "$(policy)" = ht,ae ]
	nvtaskset -l | grep -qE '^        quota 30ms/100ms, priority 80, policy ht,ae(:|$)'
	[ "$(listed)" = ht,ae ]
	[ "$(nvtaskset -p --json "$PROGRAM" | jq -r '.processes[0].policy')" = ht,ae ]
	nvtaskset top --once --delay 0.2 >"$WORK/page"
	grep -qE ' PRIO +POLICY ' "$WORK/page"
	grep -qE "^ *$PROGRAM .* \(?ht,ae\)? " "$WORK/page"
	[ "$(nvtaskset top --once --delay 0.2 --json | jq -r ".processes[] | select(.pid == $PROGRAM) | .policy")" = ht,ae ]
}

@test "where --mps is given, nothing is said; half of a policy, and two options that are one" {
	start_side_by_side --mps auto --policy ae --quota 30% -t 0-7 -- context wait
	not grep -qE 'policy|without MPS' "$WORK/errors"
	[ "$(policy)" = ae ]
	stop_program
	start_side_by_side --policy prt --policy ae --policy pe --priority 0 -t 0-7 -- context wait
	[ "$(policy)" = prt,pe ]
	[ "$(listed)" = prt,pe ]
	[ "$(nvtaskset --dry-run --memory 2G --policy ae --quota 30% -t 0-7)" = 0-7 ]
}

@test "live: given with what it needs, and changed, each half for itself" {
	start_side_by_side -t 0-7 -- context wait
	refuses "pid $PROGRAM: --policy: $NEEDS" nvtaskset -p --policy ht "$PROGRAM"
	refuses "pid $PROGRAM: --policy: $NEEDS" nvtaskset -tp --policy ht --quota max 8-9 "$PROGRAM"
	[ -z "$(policy)" ]
	[ "$(listed)" = null ]
	run nvtaskset -p --policy ht --priority 20 "$PROGRAM"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "${lines[1]}" =~ ^"pid $PROGRAM's new priority: 20"(:.*)?$ ]]
	[ "${lines[2]}" = "pid $PROGRAM's new policy: ht" ]
	run nvtaskset -tp --policy ae 8-9 "$PROGRAM"
	[ "$status" -eq 0 ]
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	[[ "${lines[2]}" =~ ^"pid $PROGRAM's current priority: 20"(:.*)?$ ]]
	[ "${lines[3]}" = "pid $PROGRAM's new policy: ht,ae" ]
	nvtaskset -p --policy prt "$PROGRAM"
	[ "$(policy)" = prt,ae ]
	nvtaskset -tp 0-3 "$PROGRAM"
	[ "$(policy)" = prt,ae ]
}

@test "who was given none has no line" {
	start_side_by_side --mps auto --priority 20 -t 0-7 -- context wait
	not grep -q policy <(nvtaskset -p "$PROGRAM")
	not grep -q policy <(nvtaskset -l)
	not grep -q POLICY <(nvtaskset top --once --delay 0.2)
	[ "$(listed)" = null ]
}

@test "children start with their parent's; -a changes both" {
	start_side_by_side --policy ht --priority 40 -t 0-7 -- fork context wait
	child=$(pgrep -P "$PROGRAM")
	[ "$(listed "$child")" = ht ]
	nvtaskset -ap --policy ae "$PROGRAM"
	[ "$(listed)" = ht,ae ]
	[ "$(listed "$child")" = ht,ae ]
	kill "$child"
}

@test "a group: who joins has the group's; shown and changed, live" {
	start_side_by_side --group "r$$" --mps auto -t 0-7 -- context wait
	refuses "--group r$$: --policy: $NEEDS" nvtaskset -p --group "r$$" --policy ht
	nvtaskset -p --group "r$$" --policy ht --priority 80
	[ "$(listed)" = ht ]
	PATH=$BATS_TEST_DIRNAME/../fake-mps:$PATH nvtaskset --group "r$$" -t 0-7 "$BUILD/tests/programs/play" context wait \
		>"$WORK/second" 2>&1 3>&- &
	second=$!
	wait_until grep -q waiting "$WORK/second"
	[ "$(listed "$second")" = ht ]
	run nvtaskset -p --group "r$$" --policy ae
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[1]}" = "group r$$'s current priority: 80" ]
	[ "${lines[2]}" = "group r$$'s new policy: ht,ae" ]
	[ "$(listed)" = ht,ae ]
	[ "$(nvtaskset -p --group "r$$" --json | jq -c '[.group.policy, .processes[].policy]')" = '["ht,ae","ht,ae","ht,ae"]' ]
	nvtaskset -p --policy pe "$second"
	[ "$(listed "$second")" = ht,pe ]
	[ "$(listed)" = ht,ae ]
	kill "$second"
}

@test "refused: what is no policy, and two of one kind" {
	for text in x "" "," HT h "ht," ",ae" "ht,x" "ht ae" fifo; do
		refuses "--policy $text: must be prt or ht, pe or ae, or one of each, such as ht,ae" \
			nvtaskset --policy "$text" --quota 30% -t 0-7 true
	done
	refuses "--policy prt,ht: prt and ht say who goes first: choose one" nvtaskset -p --policy prt,ht 1
	refuses "--policy ht,ae,ht: prt and ht say who goes first: choose one" nvtaskset --policy ht,ae,ht -t 0-7 true
	refuses "--policy ae,ht,pe: pe and ae say how a quota is kept: choose one" nvtaskset --policy ae,ht,pe -t 0-7 true
	refuses "--policy: not with -l; only with a SET and with -p" nvtaskset --policy ht -l
	refuses "--policy: only with a SET and with -p" nvtaskset top --policy ht
}

@test "refused: where nothing is held back" {
	for options in "" "--weight 200" "--quota max" "--mps on" "--mps auto --weight 200"; do
		# shellcheck disable=SC2086 # several words
		refuses "--policy: $NEEDS" nvtaskset --policy ht $options -t 0-7 true
	done
	refuses "--policy: launches are held back under MPS only; leave it out, or use --mps on" \
		nvtaskset --mps off --policy ht --priority 80 -t 0-7 true
	refuses "--weight: clients of MPS take no turns that could be shared; use it with --mps off, or give it a partition's size" \
		nvtaskset --policy ht --priority 80 --weight 200 -t 0-7 true
}

@test "refused: a program, or a member of a group, that takes turns" {
	local refusal="--policy: launches are held back under MPS only, and this program takes turns; start it with --mps on"
	start_playing --group "r$$" --priority 80 -t 0-7 -- context wait
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --policy ht "$PROGRAM"
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --policy ht --quota 30% "$PROGRAM"
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --group "r$$" --policy ae
	[ "$(listed)" = null ]
	[ "$(nvtaskset -l --json | jq ".processes[] | select(.pid == $PROGRAM) | .quota")" = null ]
}
