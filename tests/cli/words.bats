#!/usr/bin/env bats
# The words of the command, and what --help says.
# sanitizers: no

load helpers

@test "the help fits into 40 lines of 80 columns, and so does each word's" {
	for words in "" top trace curve plan metrics mps system cdi measure; do
		run -0 nvtaskset $words --help
		[ "$(wc -l <<<"$output")" -le 40 ]
		[ -z "$(printf '%s\n' "${lines[@]}" | awk 'length > 80')" ]
		[[ "${lines[0]}" == "Usage: nvtaskset ${words:-[options]}"* ]]
	done
}

@test "every word that the help names has a help of its own" {
	named=$(nvtaskset --help | sed -n '/^Words/,/^$/s/^ \([a-z]*\) .*/\1/p')
	[ "$named" = "$(printf '%s\n' top trace curve plan metrics mps system cdi measure)" ]
	for word in $named; do
		[ "$(nvtaskset "$word" -h)" != "$(nvtaskset -h)" ]
		[ "$(nvtaskset -v "$word" --help)" = "$(nvtaskset "$word" --help)" ]
	done
	[ "$(nvtaskset mps stop --force --help)" = "$(nvtaskset mps --help)" ]
}

@test "each word says of its options what they do there" {
	[[ "$(nvtaskset plan --help)" == *$'\n     --json             the plan as a JSON document\n'* ]]
	[[ "$(nvtaskset curve --help)" == *"the curve as a JSON document, which 'plan' reads"* ]]
	[[ "$(nvtaskset top --help)" == *"     --json             a JSON document on a line for each look"* ]]
	[[ "$(nvtaskset metrics --help)" != *cdi* && "$(nvtaskset cdi --help)" != *metrics* ]]
	[[ "$(nvtaskset system --help)" != *SET* ]]
	[[ "$(nvtaskset measure --help)" != *"or 'all'"* ]]
	[[ "$(nvtaskset cdi --help)" == *" --gpu GPU[:SET]"* ]]
	for word in curve plan trace measure; do
		[[ "$(nvtaskset $word --help)" == *" --gpu GPU "* ]]
	done
	for word in top curve plan metrics mps system measure; do
		[[ "$(nvtaskset $word --help)" != *"one for each look"* ]]
	done
}

@test "a mask stays a mask, and a command's name a command" {
	[ "$(nv --dry-run bc)" = "2-5,7" ]
	[ "$(nv --dry-run fade)" = "1-4,6-7,9,11-15" ]
	[ "$(nv all echo mps)" = mps ]
	printf '#!/bin/sh\necho "$0 $*"\n' >"$WORK/system"
	chmod +x "$WORK/system"
	[ "$(PATH=$WORK:$PATH nv -t 0-7 system enable)" = "$WORK/system enable" ]
	[ "$(PATH=$WORK:$PATH nv -G 0:ff system enable)" = "$WORK/system enable" ]
	refuses "'mps': a number was expected" nv -t mps true
}

@test "an option that a word does not take is refused, wherever it stands" {
	refuses "--force: only with 'mps stop'" nvtaskset mps --force
	refuses "--force: only with 'mps stop'" nvtaskset --force mps
	refuses "--hide: only with a COMMAND and 'cdi add'" nvtaskset mps --hide stop
	refuses "--dry-run: only with a COMMAND, -p SET, 'system enable' and 'cdi add'" nvtaskset system disable --dry-run
	refuses "-p, -l, -T and words such as 'mps': choose one" nvtaskset measure -l
	refuses "--once: only with 'top'" nvtaskset metrics --once
	refuses "-d: not with -l; only with 'top'" nvtaskset --delay 2 -l
	refuses "-o: only with 'trace', 'metrics', 'cdi', 'cdi add' and 'cdi remove'" nvtaskset top --output file
	refuses "--format: only with 'metrics'" nvtaskset --format prometheus -t 0 true
}

@test "an error about a word's arguments names the word's help" {
	refuses "'go': not one of its words; try 'nvtaskset mps --help'" nvtaskset mps go
	refuses "'stop': not one of its words; try 'nvtaskset measure --help'" nvtaskset measure stop
	refuses "'enable': not one of its words; try 'nvtaskset system --help'" nvtaskset system enable enable
	refuses "--frob: unknown option; try 'nvtaskset system --help'" nvtaskset system --frob
	refuses "'1': not one of its words; try 'nvtaskset metrics --help'" nvtaskset metrics 1
	refuses "--connections: needs a value; try 'nvtaskset mps --help'" nvtaskset mps --connections
}

# Both spellings give the same answer. On a machine without NVIDIA's driver and MPS, that is an error.
@test "the former spellings still work, and are documented nowhere" {
	export PATH=$BUILD:/usr/bin:/bin CUDA_MPS_PIPE_DIRECTORY=$WORK/mps
	as_a_user=()
	[ "$(id -u)" != 0 ] || as_a_user=("${ANOTHER_USER[@]}")
	for pair in "mps:--mps-status" "mps stop:--mps-stop" "mps stop --force:--force --mps-stop" "system enable:--enable-system" \
		"system disable:--disable-system" "measure -G 9:--measure -G 9"; do
		run "${as_a_user[@]}" nvtaskset ${pair%%:*}
		now=$output
		run -1 "${as_a_user[@]}" nvtaskset ${pair#*:}
		[ "$output" = "$now" ]
	done
	for former in --measure --mps-status --mps-stop --enable-system --disable-system; do
		not grep -rnF -e "$former" -e "${former//-/\\-}" "$ROOT/tools/man" "$ROOT/tools/completions" \
			"$ROOT/tools/nvtaskset/cli/help.c" "$ROOT/README.md" "$ROOT/docs" "$ROOT/SECURITY.md" "$ROOT/include"
	done
}
