#!/usr/bin/env bats
# A SET with TPCs of another program: a line names that program.

load helpers

prepare() {
	PATH=$BATS_TEST_DIRNAME/../fake-mps:$PATH
	export FAKE_MPS_LINGER=600
	start_as other nvtaskset -t 8-23 where 600
}

# The line, and nothing else on standard error.
names_other() { # TPCS COMMAND…
	run -0 --separate-stderr "${@:2}"
	echo "$stderr"
	[ "$stderr" = \
		"nvtaskset: TPCs $1 of GPU 0 are also in the partition of pid $other (where); -n chooses free ones" ]
}

names_nobody() { # COMMAND…
	run -0 --separate-stderr "$@"
	echo "$stderr"
	[ -z "$stderr" ]
}

@test "a new SET, and a changed one" {
	names_other 16-23 nvtaskset -t 16-40 true
	start_as moved nvtaskset -t 0-7 where 600
	names_other 8-9 nvtaskset -tp 0-9 "$moved"
	names_nobody nvtaskset -tp 0-7 "$moved"
	names_nobody nvtaskset -p "$moved"
	[ "$(list_of "$moved")" = 0-7 ]
}

@test "not where sharing is meant" {
	names_nobody nvtaskset all true
	names_nobody nvtaskset -t 0-65 true
	names_nobody nvtaskset --mps auto --priority 80 -t 8-9 true
	names_nobody nvtaskset --mps auto --quota 50% -t 8-9 true
	names_nobody nvtaskset --mps auto --lend -t 8-9 true
	run -0 nvtaskset -n 4 true
	[[ "$output" != *"also in"* ]]
	names_nobody nvtaskset --mps off -t 8-9 true
	nvtaskset -p --borrow "$other"
	names_nobody nvtaskset -t 8-9 true
	nvtaskset -p --borrow=off --priority 20 "$other"
	names_nobody nvtaskset -t 8-9 true
	nvtaskset -p all "$other"
	names_nobody nvtaskset -t 8-9 true
}

@test "not of a program without MPS" {
	stop_program
	kill "$other"
	start_as other nvtaskset --mps off -t 8-23 where 600
	names_nobody nvtaskset -t 8-9 true
	names_nobody nvtaskset -tp 0-9 "$other"
}

@test "not of the own family and group" {
	start_as family nvtaskset -t 30-39 bash -c 'where 600 & echo $!; wait'
	wait_until grep -q 'on TPCs' "$WORK/family"
	wait_until grep -qxE '[0-9]+' "$WORK/family"
	child=$(grep -xE '[0-9]+' "$WORK/family")
	names_nobody nvtaskset -tp 30-35 "$child"
	names_nobody nvtaskset -atp 32-39 "$family"
	names_nobody nvtaskset -t 40-45 nvtaskset -t 40-41 true
	names_nobody nvtaskset -t 40-45 bash -c 'nvtaskset -t 40-41 true; true'
	start_as outer nvtaskset -t 56-63 bash -c 'nvtaskset -t 60-61 where 600; true'
	names_nobody nvtaskset -tp 60-61 "$outer"
	start_as first nvtaskset --group g -t 50-55 where 600
	names_nobody nvtaskset --group g -t 50-55 true
	names_nobody nvtaskset --group "$first" -tp 51-55
	names_other 20-23 nvtaskset --group g -tp 20-29
}

# The first block of code behind a line of a page. Programs are ours, in the background; $! is the first.
typed() { # PAGE LINE
	awk -v from="$2" '$0 ~ from {on = 1} on && /^```/ {if (inside++) exit; next} inside' "$ROOT/$1" |
		sed -E 's/ +#.*//; s/^\$ //; /nvtaskset (-l|top)$/d; s/\$!/$first/
			s/(python3 infer.py|\.\/infer|\.\/batch)( &)?$/where 600 \& has_started $!; : "${first:=$!}"/'
}

has_started() { # PID
	until nvtaskset -p "$1"; do sleep 0.1; done
}

@test "README and guide do not break their own partitions" {
	kill "$other"
	for page in "65 README.md ." "0-3 docs/guide.md Find.the.size" "0 docs/guide.md Protect.a.service$"; do
		start_as other nvtaskset -t "${page%% *}" where 600
		typed ${page#* } >"$WORK/commands"
		grep -q 'where 600' "$WORK/commands"
		export -f has_started
		bash -e "$WORK/commands" >"$WORK/output" 2>"$WORK/errors" 3>&-
		cat "$WORK"/{commands,errors}
		not grep "also in" "$WORK/errors"
		nvtaskset -l --json | jq -r '.processes[].pid' | xargs -r kill
		wait_until eval '[ "$(nvtaskset -l --json | jq ".processes | length")" = 0 ]'
	done
}

@test "of very many processes, the latest are looked at" {
	names_other 8-9 nvtaskset -t 8-9 true
	start perl -e '$| = 1; setpgrp; $SIG{TERM} = sub { kill KILL => -$$ };
		for (1 .. 1001) { fork // die or exec "sleep", 600 } print "started\n"; sleep 600'
	wait_for_line started
	names_nobody nvtaskset -t 8-9 true
	start_as latest nvtaskset -t 40-47 where 600
	run -0 --separate-stderr nvtaskset -t 40 true
	[[ "$stderr" == *"pid $latest (where)"* ]]
}

@test "files of programs do not stay open" {
	for _ in {1..12}; do
		nvtaskset -t 40-47 sleep 600 2>/dev/null 3>&- &
		ALL+=($!)
	done
	wait_until eval '[ "$(nvtaskset -l --json | jq ".processes | length")" = 13 ]'
	names_other 16-23 prlimit --nofile=20 nvtaskset -t 16-23 true
}
