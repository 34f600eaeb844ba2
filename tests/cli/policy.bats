#!/usr/bin/env bats
# --policy: stored, shown and refused. Whether it is obeyed is tested elsewhere.
# sanitizers: address thread

load helpers
load playing

NEEDS="nothing is held back without a quota or a priority; give one with it"

@test "at the start: it implies MPS and says so; shown by -p, -l, top and --json" {
	start_side_by_side --policy ht,pe --quota 30% --priority 80 -t 0-7 -- context wait
	grep -qx 'nvtaskset: --policy: under MPS, launches are held back (--mps auto)' "$WORK/errors"
	not grep -q 'without MPS' "$WORK/errors"
	[ "$(current policy)" = ht,pe ]
	nvtaskset -l | grep -qE '^        quota 30ms/100ms, priority 80, policy ht,pe(:|$)'
	[ "$(listed policy)" = ht,pe ]
	[ "$(nvtaskset -p --json "$PROGRAM" | jq -r '.processes[0].policy')" = ht,pe ]
	nvtaskset top --once --delay 0.2 >"$WORK/page"
	grep -qE ' PRIO +POLICY ' "$WORK/page"
	grep -qE "^ *$PROGRAM .* \(?ht,pe\)? " "$WORK/page"
	[ "$(nvtaskset top --once --delay 0.2 --json | jq -r ".processes[] | select(.pid == $PROGRAM) | .policy")" = ht,pe ]
}

@test "where --mps is given, nothing is said; half of a policy, and two options that are one" {
	start_side_by_side --mps auto --policy pe --quota 30% -t 0-7 -- context wait
	not grep -qE 'policy|without MPS' "$WORK/errors"
	[ "$(current policy)" = pe ]
	stop_program
	start_side_by_side --policy prt --policy ht --policy pe --priority 0 -t 0-7 -- context wait
	[ "$(current policy)" = ht,pe ]
	[ "$(listed policy)" = ht,pe ]
	[ "$(nvtaskset --dry-run --memory 2G --policy pe --quota 30% -t 0-7)" = 0-7 ]
}

@test "live: given with what it needs, and changed, each half for itself" {
	start_side_by_side -t 0-7 -- context wait
	refuses "pid $PROGRAM: --policy: $NEEDS" nvtaskset -p --policy ht "$PROGRAM"
	refuses "pid $PROGRAM: --policy: $NEEDS" nvtaskset -tp --policy ht --quota max 8-9 "$PROGRAM"
	[ -z "$(current policy)" ]
	[ "$(listed policy)" = null ]
	run -0 nvtaskset -p --policy ht --priority 20 "$PROGRAM"
	[[ "${lines[1]}" =~ ^"pid $PROGRAM's new priority: 20"(:.*)?$ ]]
	[ "${lines[2]}" = "pid $PROGRAM's new policy: ht" ]
	run -0 nvtaskset -tp --policy pe 8-9 "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	[[ "${lines[2]}" =~ ^"pid $PROGRAM's current priority: 20"(:.*)?$ ]]
	[ "${lines[3]}" = "pid $PROGRAM's new policy: ht,pe" ]
	nvtaskset -p --policy prt "$PROGRAM"
	[ "$(current policy)" = prt,pe ]
	nvtaskset -tp 0-3 "$PROGRAM"
	[ "$(current policy)" = prt,pe ]
}

@test "refused: what is no policy, two of one kind, and where nothing is held back" {
	for text in x "" "," HT h "ht," ",pe" "ht,x" "ht pe" fifo ae "ht,ae"; do
		refuses "--policy $text: must be prt, ht or pe, or one of prt and ht with pe, such as ht,pe" \
			nvtaskset --policy "$text" --quota 30% -t 0-7 true
	done
	refuses "--policy prt,ht: prt and ht say who goes first: choose one" nvtaskset -p --policy prt,ht 1
	refuses "--policy ht,pe,ht: prt and ht say who goes first: choose one" nvtaskset --policy ht,pe,ht -t 0-7 true
	refuses "--policy pe,ht,pe: pe is there twice" nvtaskset --policy pe,ht,pe -t 0-7 true
	for options in "" "--weight 200" "--quota max" "--mps on" "--mps auto --weight 200"; do
		refuses "--policy: $NEEDS" nvtaskset --policy ht $options -t 0-7 true
	done
	refuses "--policy: launches are held back under MPS only; leave it out, or use --mps on" \
		nvtaskset --mps off --policy ht --priority 80 -t 0-7 true
}

@test "refused: a program, or a member of a group, that takes turns" {
	local refusal="--policy: launches are held back under MPS only, and this program takes turns; start it with --mps on"
	start_playing --group "r$$" --priority 80 -t 0-7 -- context wait
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --policy ht "$PROGRAM"
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --policy ht --quota 30% "$PROGRAM"
	refuses "pid $PROGRAM: $refusal" nvtaskset -p --group "r$$" --policy pe
	[ "$(listed policy)" = null ]
	[ "$(listed quota)" = null ]
}
