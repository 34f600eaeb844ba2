#!/usr/bin/env bats
# --priority and --weight: stored, shown and refused. Whether they are obeyed is tested elsewhere.
# sanitizers: address thread

load helpers
load playing

ranks() { # [PID]
	listed "rank | [.priority, .weight]" "$@"
}

@test "at the start: shown by -p, -l, top and --json; it implies --mps off and says so" {
	start_as_usual --priority 80 --weight 200 -t 0-7 -- context wait
	grep -qx 'nvtaskset: --priority, --weight: without MPS, programs take turns on the GPU (--mps off)' "$WORK/errors"
	[ "$(given priority)" = 80 ]
	[ "$(current weight)" = 200 ]
	[ -z "$(current quota)" ]
	nvtaskset -l | grep -qE '^        priority 80, weight 200(:|$)'
	[ "$(ranks)" = "[80,200]" ]
	[ "$(listed 'rank | keys_unsorted | join(" ")')" = "priority weight in_force state present_us aside_us bounded held" ]
	[ "$(listed quota)" = null ]
	[ "$(nvtaskset -p --json "$PROGRAM" | jq -c '.processes[0].rank | [.priority, .weight]')" = "[80,200]" ]
	nvtaskset top --once --delay 0.2 >"$WORK/page"
	grep -qE ' PRIO +WEIGHT ' "$WORK/page"
	grep -qE "^ *$PROGRAM .* \(?80\)? +\(?200\)? " "$WORK/page"
	nvtaskset top --once --delay 0.2 "$PROGRAM" | grep -qE "^ *$PROGRAM .* \(?80\)? +\(?200\)? "
	[ "$(nvtaskset top --once --delay 0.2 --json | jq -c ".processes[] | select(.pid == $PROGRAM) | .rank | [.priority, .weight]")" = \
		"[80,200]" ]
}

@test "live, without a SET and with one: given and changed, each for itself" {
	start_playing -t 0-7 -- context wait
	run -0 nvtaskset -p --priority 20 "$PROGRAM"
	[ "${lines[0]}" = "pid $PROGRAM's current TPC mask: ff" ]
	[[ "${lines[1]}" =~ ^"pid $PROGRAM's new priority: 20"(:.*)?$ ]]
	[ "${#lines[@]}" -eq 2 ]
	run -0 nvtaskset -tp --weight 300 8-9 "$PROGRAM"
	[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-9" ]
	[[ "${lines[2]}" =~ ^"pid $PROGRAM's current priority: 20"(:.*)?$ ]]
	[ "${lines[3]}" = "pid $PROGRAM's new weight: 300" ]
	nvtaskset -p --priority 50 "$PROGRAM"
	[ "$(ranks)" = "[50,300]" ]
	nvtaskset -tp 0-3 "$PROGRAM"
	[ "$(ranks)" = "[50,300]" ]
}

@test "who was given none has no line" {
	start_playing -t 0-7 -- context wait
	run nvtaskset -p "$PROGRAM"
	[ "${#lines[@]}" -eq 1 ]
	not grep -qE '^        (priority|weight)' <(nvtaskset -l)
	not grep -qE 'PRIO|WEIGHT' <(nvtaskset top --once --delay 0.2)
	[ "$(listed rank)" = null ]
}

@test "children start with their parent's; -a changes both" {
	start_playing --priority 40 -t 0-7 -- fork context wait
	child=$(pgrep -P "$PROGRAM")
	[ "$(ranks "$child")" = "[40,null]" ]
	nvtaskset -ap --priority 60 --weight 20 "$PROGRAM"
	[ "$(ranks)" = "[60,20]" ]
	[ "$(ranks "$child")" = "[60,20]" ]
	kill "$child"
}

@test "a group: who joins has the group's; shown and changed, live" {
	start_playing --group "r$$" --priority 80 -t 0-7 -- context wait
	start_as second nvtaskset --mps off --group "r$$" -t 0-7 "$BUILD/tests/programs/play" context wait
	[ "$(ranks "$second")" = "[80,null]" ]
	run nvtaskset -p --group "r$$"
	[ "${lines[1]}" = "group r$$'s current priority: 80" ]
	run -0 nvtaskset -p --group "r$$" --weight 300
	[ "${lines[0]}" = "group r$$'s current TPC mask: ff" ]
	[ "${lines[1]}" = "group r$$'s current priority: 80" ]
	[ "${lines[2]}" = "group r$$'s new weight: 300" ]
	[ "$(ranks "$second")" = "[80,300]" ]
	[ "$(ranks)" = "[80,300]" ]
	[ "$(nvtaskset -p --group "r$$" --json | jq -c '[.group.rank, .group.quota, .processes[].rank.weight]')" = \
		'[{"priority":80,"weight":300},null,300,300]' ]
	nvtaskset -p --weight 7 "$second"
	[ "$(ranks "$second")" = "[80,7]" ]
	[ "$(ranks)" = "[80,300]" ]
	nvtaskset -tp --group "r$$" --priority 10 8-9
	[ "$(ranks)" = "[10,300]" ]
	[ "$(ranks "$second")" = "[10,300]" ]
}

@test "refused: what is neither, where there are no turns, and where nobody is started" {
	for text in 100 -1 x "" 1.5 0x10 99999999999999999999; do
		refuses "--priority $text: must be 0-99" nvtaskset --priority "$text" -t 0-7 true
	done
	for text in 0 10001 -1 x "" 1e3; do
		refuses "--weight $text: must be 1-10000" nvtaskset -p --weight "$text" 1
	done
	for options in "--mps on" "--mps auto --priority 80" "--mps on --quota 30%" "--lend --priority 80" --lend; do
		refuses "--weight: clients of MPS take no turns that could be shared; use it with --mps off, or give it a partition's size" \
			nvtaskset $options --weight 200 -t 0-7 true
	done
}

@test "with MPS, it has MPS's own priority from the start on" {
	own() { # options
		PATH=$BATS_TEST_DIRNAME/../fake-mps:$PATH nvtaskset --mps auto "$@" -t 0-7 sh -c 'echo "${CUDA_MPS_CLIENT_PRIORITY-none}"' \
			2>/dev/null 3>&-
	}
	[ "$(own)" = none ]
	[ "$(own --quota 30%)" = none ]
	[ "$(own --priority 49)" = 1 ]
	[ "$(own --priority 50)" = 0 ]
	[ "$(CUDA_MPS_CLIENT_PRIORITY=1 own --priority 99)" = 0 ]
	[ "$(CUDA_MPS_CLIENT_PRIORITY=1 own)" = 1 ]
}

@test "a process that may be a client of MPS: a priority, no weight" {
	mkdir "$WORK/mps"
	touch "$WORK/mps/control"
	start_playing -t 0-7 env "CUDA_MPS_PIPE_DIRECTORY=$WORK/mps" -- context wait
	refuses "pid $PROGRAM: --weight: clients of MPS take no turns that could be shared; start it with --mps off, or give it a partition's size" \
		nvtaskset -p --weight 200 "$PROGRAM"
	refuses "pid $PROGRAM: --weight: clients of MPS take no turns that could be shared; start it with --mps off, or give it a partition's size" \
		nvtaskset -tp --priority 80 --weight 200 8-9 "$PROGRAM"
	[ "$(ranks)" = "[null,null]" ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-7" ]
	run -0 nvtaskset -p --priority 80 "$PROGRAM"
	[[ "$output" != *"nvtaskset:"* ]]
	[ "$(ranks)" = "[80,null]" ]
}
