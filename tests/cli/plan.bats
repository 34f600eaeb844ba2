#!/usr/bin/env bats
# nvtaskset plan: its file, what it prints, --apply and --check. tests/unit/plan.c has the planning.

load helpers
OWN_GPUS=yes

play=tests/programs/play
curve='{"points": [{"tpcs": 2, "job_ms": 40}, {"tpcs": 8, "job_ms": 12}, {"tpcs": 32, "job_ms": 6}, {"tpcs": 66, "job_ms": 5}]}'

tasks() { # TASK…: in JSON; a curve is "@"
	local list
	list=$(printf ', %s' "$@")
	echo "{\"tasks\": [${list:2}]}" | sed "s|\"@\"|$curve|g" >"$WORK/tasks.json"
}

# All that a test has started.
teardown() {
	stop_program
	nvtaskset -l --json | jq ".processes[] | select(.partitions[]?.bus_id == \"$GPU\") | .pid" | xargs -r kill
	rm -rf "$WORK"
}

start_in() { # NAME OPTION…
	start_as "$1" nvtaskset --mps off "${@:2}" "$BUILD/$play" where wait
	wait_until grep -q waiting "$WORK/$1"
}

# A job of one kernel each so many µs.
start_jobs() { # PERIOD
	start nvtaskset --mps off all "$BUILD/$play" jobs "$1,60000,2000,1"
	wait_until eval "nvtaskset -p $PROGRAM >/dev/null 2>&1"
}

@test "a name reaches no terminal with what that obeys" {
	tasks '{"name": "a\u202eb\u001b[2J", "command": ["./camera"], "period_ms": 20, "curve": "@"}'
	run -0 nvtaskset plan "$WORK/tasks.json"
	[[ "${lines[2]}" == $'a\ufffdb\ufffd[2J         '[0-9\ ]* ]]
	tasks '{"name": "a\u202eb\u001b[2J", "command": ["./camera"], "curve": "@"}'
	refuses 'task a???b?[2J: needs one of period_ms, per_second and best_effort' nvtaskset plan "$WORK/tasks.json"
}

@test "sizes, places and commands" {
	tasks '{"name": "camera", "command": ["./camera"], "period_ms": 20, "deadline_ms": 13, "critical": true, "curve": "@"}' \
		'{"name": "decode", "command": ["./decode"], "per_second": 20, "curve": "@"}' \
		'{"name": "train", "command": ["./train"], "best_effort": true}'
	run -0 nvtaskset plan "$WORK/tasks.json"
	[ "${lines[0]}" = "GPU 0: 10 of 66 TPCs for 2 deadlines, 56 left" ]
	words='  nvtaskset --mps auto -G 0'
	[[ "${lines[2]}" =~ ^camera\ +8\ +12.000\ +12.600\ +12.600\ +13.000"$words"\ -t\ [0-9,-]+\ COMMAND$ ]]
	[[ "${lines[3]}" =~ ^decode\ +2\ +40.000\ +42.000\ +42.000\ +50.000"$words"\ --lend=4000us\ -t\ [0-9,-]+\ COMMAND$ ]]
	[[ "${lines[4]}" =~ ^train\ +56\ +-\ +-\ +-\ +-"$words"\ --borrow\ -t\ [0-9,-]+\ COMMAND$ ]]
	[[ "$output" == *"10 by the heuristic, 10 by a search of all ways."* ]]
	# Nobody's TPCs twice.
	[ "$(nvtaskset plan --json "$WORK/tasks.json" | jq -r '.tasks[].tpc_list' | tr ',' '\n' | awk -F- '{for (i = $1; i <= $NF; i++) print i}' | sort | uniq -d)" = "" ]
}

@test "a curve has 16 points at most" {
	for most in 16 17; do
		curve=$(jq -nc "{points: [range($most) | {tpcs: (. + 1), job_ms: (20 - .)}]}")
		tasks '{"name": "camera", "command": ["./camera"], "period_ms": 20, "curve": "@"}'
		[ "$most" = 17 ] || nvtaskset plan "$WORK/tasks.json"
	done
	refuses "curve: point 16: needs tpcs, more than the one before, and job_ms; there are at most 16" \
		nvtaskset plan "$WORK/tasks.json"
}

@test "beside a neighbour: the longest time counts, and a job is expected in the middle" {
	curve=${curve%\}}', "points_beside": [{"tpcs": 2, "job_ms": 80}, {"tpcs": 8, "job_ms": 18}, {"tpcs": 32, "job_ms": 10}, {"tpcs": 66, "job_ms": 9}]}'
	task='{"name": "camera", "command": ["./camera"], "period_ms": 40, "deadline_ms": 19, "curve": "@"}'
	tasks "$task" "${task/camera/other}"
	[ "$(nvtaskset plan --json "$WORK/tasks.json" | jq -c '.tasks[0] | [.tpcs, .job_ms, .longest_ms]')" = '[8,15,18.9]' ]
	# Alone on the GPU, it has none.
	tasks "${task/19/13}"
	[ "$(nvtaskset plan --json "$WORK/tasks.json" | jq -c '.tasks[0] | [.tpcs, .job_ms, .longest_ms]')" = '[8,12,12.6]' ]
}

@test "who shares a partition has a priority, the shorter deadline a higher one" {
	local name list=()
	start_in other -t 0-55
	for name in 1 2 3 4 5 6 7 8; do
		list+=("{\"name\": \"$name\", \"command\": [\"./$name\"], \"period_ms\": 200, \"deadline_ms\": 10$name, \"curve\": \"@\", \"launch_ms\": 0.5}")
	done
	tasks "${list[@]/'"8", "command"'/'"8", "critical": true, "command"'}"
	run -0 nvtaskset plan --json "$WORK/tasks.json"
	jq -e '.merges > 0 and .used_tpcs <= 10 and .searched_tpcs <= .fewest_tpcs and .fewest_tpcs <= .used_tpcs' <<<"$output"
	jq -e '.tasks | all(.response_ms <= .deadline_ms) and any(.others > 0) and .[7].critical and .[7].others == 0' <<<"$output"
	jq -e '[.tasks[] | select(.others > 0)] | group_by(.tpc_list)[] | sort_by(.deadline_ms) | map(.priority) | . == (sort | reverse)' <<<"$output"
}

@test "what is impossible: which task, by how much, what would have to give" {
	tasks '{"name": "camera", "command": ["./camera"], "period_ms": 20, "deadline_ms": 5, "curve": "@"}'
	refuses "task camera: takes 5.250 ms with all 66 TPCs that are free, 0.250 ms more than its deadline" nvtaskset plan "$WORK/tasks.json"
	tasks '{"name": "a", "command": ["./a"], "period_ms": 20, "deadline_ms": 7, "critical": true, "curve": "@"}' \
		'{"name": "b", "command": ["./b"], "period_ms": 20, "deadline_ms": 7, "critical": true, "curve": "@"}' \
		'{"name": "c", "command": ["./c"], "period_ms": 20, "deadline_ms": 7, "critical": true, "curve": "@"}'
	run ! nvtaskset plan "$WORK/tasks.json"
	[[ "$output" =~ ^"nvtaskset: the deadlines need 72 TPCs, 6 more than are free; they would fit if task "[abc]" had "[0-9.]+" ms instead of 7.000 ms"$ ]]
	# With other programs on the GPU, less is free.
	start_in other -t 0-63
	tasks '{"name": "camera", "command": ["./camera"], "period_ms": 20, "deadline_ms": 13, "curve": "@"}'
	refuses "task camera: takes 42.000 ms with all 2 TPCs that are free, 29.000 ms more than its deadline" nvtaskset plan "$WORK/tasks.json"
}

@test "where no TPC is left, best effort gets a quota, or is refused" {
	start_in other -t 0-62
	task='{"name": "decode", "command": ["./decode"], "period_ms": 40, "curve": "@"}'
	tasks "$task" '{"name": "train", "command": ["./train"], "best_effort": true, "launch_ms": 1}'
	run -0 nvtaskset plan "$WORK/tasks.json"
	grep -qE '^decode +3 .*  nvtaskset --mps auto -G 0 --lend=5533us -t 63-65 COMMAND$' <<<"$output"
	grep -qE '^train +3 .*  nvtaskset --mps auto -G 0 --quota 2ms/10ms -t 63-65 COMMAND$' <<<"$output"
	# Two of them have it together.
	tasks "$task" '{"name": "train", "command": ["./train"], "best_effort": true, "launch_ms": 0.5}' \
		'{"name": "index", "command": ["./index"], "best_effort": true, "launch_ms": 0.5}'
	[ "$(nvtaskset plan --json "$WORK/tasks.json" | jq -c '[.tasks[].quota_us]')" = '[0,1000,1000]' ]
	tasks "$task" '{"name": "train", "command": ["./train"], "best_effort": true}'
	refuses "task train: no TPC is left for it, and no deadline leaves time for a quota; its longest launch is not known (launch_ms)" \
		nvtaskset plan "$WORK/tasks.json"
}

@test "--apply changes and starts all" {
	start_in first -t 0-65
	tasks '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}' \
		'{"name": "second", "command": ["'"$BUILD/$play"'", "where", "wait"], "period_ms": 20, "deadline_ms": 13, "curve": "@"}'
	run -0 nvtaskset plan --mps off "$WORK/tasks.json"
	grep -qE "^first .* -tp [0-9,-]+ $first$" <<<"$output"
	grep -qE '^second .* -t [0-9,-]+ COMMAND$' <<<"$output"
	nvtaskset plan --mps off --apply --json "$WORK/tasks.json" >"$WORK/plan.json"
	second=$(jq '.tasks[1].pid' "$WORK/plan.json")
	[ "$(list_of "$first")" = "$(jq -r '.tasks[0].tpc_list' "$WORK/plan.json")" ]
	[ "$(list_of "$second")" = "$(jq -r '.tasks[1].tpc_list' "$WORK/plan.json")" ]
}

@test "--apply that cannot be reported is made, and has an exit status of its own" {
	start_in first -t 0-9
	tasks '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}'
	for option in --json --; do
		nvtaskset -tp 0-9 "$first"
		run -3 bash -c "nvtaskset plan --mps off --apply $option '$WORK/tasks.json' >/dev/full"
		[ "$output" = "nvtaskset: standard output: No space left on device; the change has been made" ]
		[ "$(list_of "$first")" != 0-9 ]
	done
	run -1 bash -c "nvtaskset plan --mps off '$WORK/tasks.json' >/dev/full"
	[ "$output" = "nvtaskset: standard output: No space left on device" ]
}

@test "--apply does all or nothing" {
	start_in first -t 0-9
	tasks '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}' \
		'{"name": "second", "command": ["sleep", "1000"], "period_ms": 20, "deadline_ms": 13, "curve": "@"}' \
		'{"name": "third", "command": ["/no/such"], "period_ms": 20, "deadline_ms": 13, "curve": "@"}'
	refuses "/no/such: No such file or directory" nvtaskset plan --mps off --apply "$WORK/tasks.json"
	[ "$(list_of "$first")" = 0-9 ]
	only_first() {
		nvtaskset -l --json | jq -e "[.processes[] | select(.partitions[]?.bus_id == \"$GPU\") | .pid] | . == [$first]" >/dev/null
	}
	wait_until only_first
}

@test "--apply fails: what a command has started ends with it" {
	make_script "$WORK/parent" '#!/bin/sh' "sleep 1000 & echo \$! >'$WORK/child'" wait
	tasks '{"name": "first", "command": ["'"$WORK/parent"'"], "period_ms": 50, "curve": "@"}' \
		'{"name": "second", "command": ["/no/such"], "period_ms": 2000, "curve": "@"}'
	# The shell may be ended before the start of sleep.
	fails_late() {
		: >"$WORK/child"
		refuses "/no/such: No such file or directory" nvtaskset plan --mps off --apply "$WORK/tasks.json"
		[ -s "$WORK/child" ]
	}
	wait_until fails_late
	wait_until not kill -0 "$(cat "$WORK/child")"
}

@test "--apply fails at the last of those that run: the others have what they had" {
	local name
	start_in first -t 0-9
	start_in second --priority 30 -t 10-19
	nvtaskset -p "$first" >"$WORK/before"
	nvtaskset -p "$second" >>"$WORK/before"
	sleep 1000 3>&- &
	third=$!
	tasks '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}' \
		'{"name": "second", "pid": '"$second"', "period_ms": 20, "deadline_ms": 13, "curve": "@"}' \
		'{"name": "new", "command": ["'"$BUILD/$play"'", "where", "wait"], "period_ms": 20, "deadline_ms": 13, "curve": "@"}' \
		'{"name": "third", "pid": '"$third"', "period_ms": 50, "curve": "@"}'
	run ! nvtaskset plan --mps off --apply "$WORK/tasks.json"
	[[ "$output" == "nvtaskset: pid $third: "* ]]
	nvtaskset -p "$first" >"$WORK/after"
	nvtaskset -p "$second" >>"$WORK/after"
	diff "$WORK/before" "$WORK/after"
	nvtaskset -l --json | jq -e "[.processes[] | select(.partitions[]?.bus_id == \"$GPU\") | .pid] | sort == ([$first, $second] | sort)"
}

# While it starts one after the other, those that were started before end with it.
@test "--apply is killed meanwhile: nothing of it stays" {
	local list=() number
	start_in first -t 0-9
	for ((number = 0; number < 60; number++)); do
		list+=("{\"name\": \"$number\", \"command\": [\"$BUILD/$play\", \"where\", \"wait\"], \"period_ms\": 2000, \"curve\": \"@\"}")
	done
	tasks '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}' "${list[@]}"
	await_children() { # COUNT
		local children=()
		while [ "${#children[@]}" -lt "$1" ]; do
			read -ra children <"/proc/$apply/task/$apply/children" || [ -d "/proc/$apply" ]
		done
	}
	is_as_before() {
		nvtaskset -l --json | jq -e "[.processes[] | select(.partitions[]?.bus_id == \"$GPU\") | .pid] == [$first]" >/dev/null &&
			[ "$(list_of "$first")" = 0-9 ]
	}
	for number in 1 2 5 20; do
		nvtaskset plan --mps off --apply --json "$WORK/tasks.json" 3>&- >"$WORK/output" 2>"$WORK/errors" &
		apply=$!
		await_children "$number"
		kill -KILL "$apply"
		not wait "$apply"
		[ ! -s "$WORK/output" ]
		wait_until is_as_before
	done
}

# Both work on the first one: CUDA's simulation has no other order.
@test "a plan is for one GPU" {
	own_gpus h200-x2
	start_in first -t 0-9
	tasks '{"name": "new", "command": ["./new"], "period_ms": 50, "curve": "@"}' '{"name": "first", "pid": '"$first"', "period_ms": 50, "curve": "@"}'
	refuses "task first: pid $first works on GPU 0, and a plan is for one GPU: this one is for GPU 1 (-G)" nvtaskset plan -G 1 --apply "$WORK/tasks.json"
	refuses "one GPU at a time (-G)" nvtaskset plan -G all "$WORK/tasks.json"
	refuses "-G: 'plan' takes no SET" nvtaskset plan -G 0:ff "$WORK/tasks.json"
	[ "$(list_of "$first")" = 0-9 ]
	nvtaskset plan "$WORK/tasks.json"
}

# It is idle for most of the time: on a busy machine too, that is longer than what is between the kernels of a job.
@test "--check compares and counts" {
	start_jobs 100000
	points='{"points": [{"tpcs": 2, "job_ms": 32}, {"tpcs": 10, "job_ms": 8}, {"tpcs": 66, "job_ms": 3}]}'
	tasks '{"name": "jobs", "pid": '"$PROGRAM"', "period_ms": 40, "deadline_ms": 15, "curve": '"$points"'}'
	is_applied() {
		nvtaskset plan --mps off --apply --check 2 --json "$WORK/tasks.json" |
			jq -e '.applied and .tasks[0].check.jobs >= 10 and .tasks[0].check.job_ms > 2' >/dev/null
	}
	wait_until is_applied
	run -0 nvtaskset plan --mps off --check 1 "$WORK/tasks.json"
	[[ "$output" == *"Checked for 1 s."* ]]
	on_terminal 100x40 see "nvtaskset: watching the programs for 2 s (1 s)" see $'\r\e[K' see "Checked for 2 s." -- \
		nvtaskset plan --mps off --check 2 "$WORK/tasks.json"
	[ "$output" = "status 0, terminal as before" ]
	# With two TPCs it takes 32 ms.
	nvtaskset -tp 7-8 "$PROGRAM" >/dev/null
	tasks '{"name": "jobs", "pid": '"$PROGRAM"', "period_ms": 1000, "deadline_ms": 15, "curve": '"$points"'}'
	# A busy machine hides idle times, and jobs without these are one: so it is asked again.
	is_late() {
		nvtaskset plan --mps off --check 2 --json "$WORK/tasks.json" |
			jq -e '.tasks[0].check | .jobs > 10 and .missed > 0.8 * .jobs' >/dev/null
	}
	wait_until is_late
	tasks '{"name": "jobs", "command": ["./jobs"], "period_ms": 40, "curve": "@"}'
	refuses "task jobs: does not run; --apply starts it" nvtaskset plan --check 1 "$WORK/tasks.json"
}

# The curve says half of what a job takes: with 3 TPCs, 11 ms instead of 22. Idle times are long here as well.
@test "--apply --check plans anew with what was measured" {
	start_jobs 100000
	tasks '{"name": "jobs", "pid": '"$PROGRAM"', "period_ms": 100, "deadline_ms": 15, "curve":
		{"points": [{"tpcs": 2, "job_ms": 16}, {"tpcs": 10, "job_ms": 4}, {"tpcs": 66, "job_ms": 1.5}]}}' \
		'{"name": "rest", "command": ["'"$BUILD/$play"'", "where", "wait"], "best_effort": true}'
	[ "$(nvtaskset plan --mps off --json "$WORK/tasks.json" | jq '.tasks[0].tpcs, .rounds')" = $'3\n0' ]
	learns() {
		nvtaskset plan --mps off --apply --check 2 --json "$WORK/tasks.json" >"$WORK/plan.json"
		kill "$(jq '.tasks[1].pid' "$WORK/plan.json")"
		jq -e '.rounds > 0 and (.tasks[0] | .tpcs >= 5 and .job_ms > 4 and .response_ms <= 15 and .check.missed < .check.jobs / 2)' "$WORK/plan.json"
	}
	wait_until learns
	[ "$(list_of "$PROGRAM")" = "$(jq -r '.tasks[0].tpc_list' "$WORK/plan.json")" ]
	# What cannot be met stays as it was planned, and is shown.
	tasks '{"name": "jobs", "pid": '"$PROGRAM"', "period_ms": 100, "deadline_ms": 2, "curve":
		{"points": [{"tpcs": 2, "job_ms": 1}, {"tpcs": 66, "job_ms": 0.5}]}}'
	stays() {
		run --separate-stderr nvtaskset plan --mps off --apply --check 1 "$WORK/tasks.json"
		[[ "$status" = 3 && "$output" == *"Checked for 1 s."* ]] &&
			[[ "$stderr" =~ ^"nvtaskset: task jobs: takes "[0-9.]+" ms with all 66 TPCs that are free, "[0-9.]+" ms more than its deadline"$ ]]
	}
	wait_until stays
}

@test "files that are wrong" {
	while IFS='|' read -r text reason; do
		printf '%b\n' "$text" | sed "s|\"@\"|$curve|g" >"$WORK/tasks.json"
		run ! nvtaskset plan "$WORK/tasks.json"
		[[ "$output" == "nvtaskset: "*"$reason"* && "${#lines[@]}" = 1 ]] || {
			echo "$text: $output"
			false
		}
	done <<-'END'
		{|tasks.json: line 2: the file ends in the middle of a value
		{"tasks": x}|tasks.json: line 1: not JSON
		{"tasks": [], "tasks": []}|tasks.json: line 1: a member that its object has already
		{"tasks": []} {}|tasks.json: line 1: there is something behind the document's end
		{"tasks": "\xff"}|tasks.json: line 1: not UTF-8
		{"tasks": [1e999]}|tasks.json: line 1: a number that is too large
		[]|tasks.json: must be an object with the member 'tasks'
		{"margin": true, "tasks": []}|tasks.json: margin must be a number
		{"tasks": []}|needs 1 to 64 tasks
		{"tasks": [], "more": 1}|tasks.json: 'more': there is no such member
		{"tasks": [3]}|task number 1: must be an object with the member 'name'
		{"tasks": [{"name": 3}]}|task number 1: name must be a text
		{"tasks": [{"name": "a", "pid": "1"}]}|task a: pid must be a whole number
		{"tasks": [{"name": "a", "critical": 1}]}|task a: critical must be true or false
		{"tasks": [{"name": "a", "pid": 1, "speed": 3}]}|task a: 'speed': there is no such member
		{"tasks": [{"name": "a", "period_ms": 3}]}|task a: needs a command or a pid
		{"tasks": [{"name": "a", "pid": 1, "command": ["b"], "period_ms": 3}]}|task a: needs a command or a pid
		{"tasks": [{"name": "a", "command": ["b", 3], "period_ms": 3}]}|task a: command must be an array
		{"tasks": [{"name": "a", "pid": 1}]}|task a: needs one of period_ms, per_second and best_effort
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "per_second": 3}]}|task a: needs one of
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "deadline_ms": 4}]}|task a: its deadline must not be later
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3}]}|task a: has no curve; 'nvtaskset curve --json PID' measures one
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "curve": "none.json"}]}|none.json: No such
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "curve": {"points": []}}]}|curve: has no points
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "curve": {"points": [{"tpcs": 0, "job_ms": 3}]}}]}|curve: point 0:
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "curve": {"points": [{"tpcs": 3, "job_ms": 3}, {"tpcs": 3, "job_ms": 2}]}}]}|curve: point 1:
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 1e-7, "curve": "@"}]}|task a: its deadline must be 1 ns or longer
		{"tasks": [{"name": "a", "pid": 1, "per_second": 1e13, "curve": "@"}]}|task a: its deadline must be 1 ns or longer
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "deadline_ms": -1, "curve": "@"}]}|task a: deadline_ms: -1: a time must be above 0
		{"tasks": [{"name": "a", "pid": 1, "period_ms": -5, "curve": "@"}]}|task a: period_ms: -5: a time must be above 0
		{"tasks": [{"name": "a", "pid": 1, "per_second": 0, "curve": "@"}]}|task a: per_second: 0: a rate must be above 0
		{"tasks": [{"name": "a", "command": ["b"], "pid": -5, "period_ms": 3, "curve": "@"}]}|task a: pid must be a number of a process
		{"tasks": [{"name": "a", "pid": 4294967297, "period_ms": 3, "curve": "@"}]}|task a: pid must be a number of a process
		{"tasks": [{"name": "a", "pid": 1, "period_ms": 3, "curve": "@"}, {"name": "b", "pid": 1, "period_ms": 3, "curve": "@"}]}|task b: has the pid of task a
		{"margin": 1e300, "tasks": [{"name": "a", "command": ["b"], "period_ms": 3, "curve": "@"}]}|task a: its curve has no size
	END
	refuses "plan: no FILE; try 'nvtaskset plan --help'" nvtaskset plan
	refuses "'--apply': options come before FILE; try 'nvtaskset plan --help'" nvtaskset plan "$WORK/tasks.json" --apply
}

@test "the example" {
	run -0 nvtaskset plan "$ROOT/examples/tasks.json"
	[ "${lines[0]}" = "GPU 0: 16 of 66 TPCs for 2 deadlines, 50 left" ]
}
