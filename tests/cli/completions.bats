#!/usr/bin/env bats
# Completion in bash, zsh and fish
# processes: no
# limit: 600
# takes: long
# sanitizers: no

load helpers
load playing

# What bash offers for the words of a command line, the last of which is being typed.
offers() {
	# shellcheck source=/dev/null
	source "$ROOT/tools/completions/nvtaskset.bash"
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_nvtaskset
	printf '%s\n' "${COMPREPLY[@]}"
}

# Every option of the man page, except those that only a word has.
documented_options() {
	sed 's/\\-/-/g' "$ROOT/tools/man/nvtaskset.1" | grep -oE -- '(^|[^-a-z])--[a-z]+(-[a-z]+)*' | grep -oE -- '--.*' | sort -u
}

@test "bash: every option" {
	documented_options | grep -vxE -e '--(force|delay|once|format|output|beside|kernels|svg|apply|check|seconds|terminal|pool)' >"$WORK/expected"
	offers nvtaskset -- | sort -u | diff "$WORK/expected" -
	run offers nvtaskset --st
	[ "$output" = "--strategy
--strict" ]
}

# What a shell offers after a line.
in_bash() { # LINE
	local words
	read -ra words <<<"$1"
	[[ "$1" != *" " ]] || words+=("")
	offers "${words[@]}"
}

in_zsh() { # LINE
	timeout 60 "$BATS_TEST_DIRNAME/zsh_offers" "$ROOT/tools/completions" "$1"
}

in_fish() { # LINE; without its descriptions
	fish --no-config -c "source '$ROOT/tools/completions/nvtaskset.fish'; complete -C '$1'" | cut -f 1
}

# Programs of others, whose pids have at least three digits, come and go. What is typed of a list may be repeated.
offered() { # SHELL LINE
	"in_$1" "$2" | grep -vxE '[0-9]{3,}' | sed 's/^0-7,//' | sort -u | xargs
}

@test "words, sets, values, commands: the same in the three shells" {
	shells=bash
	for shell in zsh fish; do
		! command -v "$shell" >/dev/null || shells+=" $shell"
	done
	[ "$shells" = "bash zsh fish" ] || [ "${MUST_WORK:-0}" = 0 ]
	mkdir "$WORK/empty"
	cd "$WORK/empty"
	while IFS='|' read -r line expected; do
		for shell in $shells; do
			[ "$(offered "$shell" "$line")" = "$expected" ] || {
				echo "$shell: $line: $(offered "$shell" "$line")"
				false
			}
		done
	done <<-'END'
		nvtaskset m|measure metrics mps
		nvtaskset top --o|--once
		nvtaskset tr|trace
		nvtaskset trace --s|--seconds
		nvtaskset metrics --format |openmetrics prometheus
		nvtaskset metrics --format p|prometheus
		nvtaskset --st|--strategy --strict
		nvtaskset --mps |auto off on
		nvtaskset --strategy |distributed packed
		nvtaskset --priority 8|80
		nvtaskset -G |0 all
		nvtaskset -t 6|6 60 61 62 63 64 65
		nvtaskset -t 0-7,6|6 60 61 62 63 64 65
		nvtaskset -tG 0 0-7,6|6 60 61 62 63 64 65
		nvtaskset -gp |0 1 2 3 4 5 6 7
		nvtaskset --gpc-list |0 1 2 3 4 5 6 7
		nvtaskset -l m|
		nvtaskset -p m|
		nvtaskset -T m|
		nvtaskset -Tv s|
		nvtaskset --topology s|
		nvtaskset -G 0:3-5 measur|
		nvtaskset -G 0000:00:06.0 measu|measure
		nvtaskset -T --watch=2 --js|--json
		nvtaskset mps st|status stop
		nvtaskset mps stop --f|--force
		nvtaskset mps --connections 1|1 16
		nvtaskset -v system e|enable
		nvtaskset system --d|--dry-run
		nvtaskset -t 0-7 nvtaskse|nvtaskset
		nvtaskset -t 0-7 -- nvtaskse|nvtaskset
		nvtaskset --mps off -tG 0 0-7 nvtaskse|nvtaskset
		nvtaskset -G 0:3-5 nvtaskse|nvtaskset
		nvtaskset 3 nvtaskse|nvtaskset
		nvtaskset -n 25% --st|--strategy --strict
		nvtaskset -n 25% --strategy d|distributed
		nvtaskset -n 25% --strategy packed nvtaskse|nvtaskset
		nvtaskset -t 0-7 ls --st|
	END
}

@test "bash: what it splits, and what cannot stand there" {
	# As bash splits the line.
	[ "$(offers nvtaskset -G 0 : 3-5 measur | grep -x measure)" = "" ]
	[ "$(offers nvtaskset -G 0000 : 3b : 00.0 measu)" = measure ]
	[ "$(offers nvtaskset -T --watch = 2 --js)" = --json ]
	for line in "-tG 0000:3b:00.0:3 measur" "-G 0 -t m" "-t 0-7 mps sto"; do
		[ "$(offers nvtaskset $line | grep -xE 'mps|system|measur|measure|top|metrics|stop')" = "" ]
	done
}

@test "bash: programs with a partition" {
	start_program -t 0-7
	run offers nvtaskset -p "$PROGRAM"
	[[ "$output" == *"$PROGRAM"* ]]
	[[ "$(offers nvtaskset top "")" == *"$PROGRAM"* ]]
	run offers nvtaskset -tp 8-15 ""
	[[ " ${lines[*]} " == *" $PROGRAM "* ]]
}

@test "bash, fish: how often something happened is no program" {
	SIM_FAULTS=bad-qmd start_playing -t 0-7 -- where wait
	[[ "$(nvtaskset -l)" == *" 1 time: "* ]]
	[ -z "$(offers nvtaskset -p "" | grep -x 1)" ]
	[[ "$(offers nvtaskset -p "")" == *"$PROGRAM"* ]]
	needs fish
	[ -z "$(in_fish 'nvtaskset -p ' | grep -x 1)" ]
}

@test "bash: COMMAND's own completion, from its place in the line" {
	_command_offset() {
		COMPREPLY=("$1")
	}
	[ "$(offers nvtaskset -t 0-7 ls "")" = 3 ]
	[ "$(offers nvtaskset -t 0-7 -- ls "")" = 4 ]
	[ "$(offers nvtaskset -n 25% --strategy distributed ls -p "")" = 5 ]
	[ "$(offers nvtaskset --mps off -tG 0 0-7 ls -p "")" = 6 ]
	[ "$(offers nvtaskset -G 0:3-5 ls "")" = 3 ]
	[ "$(offers nvtaskset -G 0 : 3-5 ls "")" = 5 ]
}

@test "every option is offered, where it makes sense" {
	for words in "" mps system cdi measure top trace metrics curve plan; do
		nvtaskset --complete $words -- | cut -f 1
	done | sort -u >"$WORK/offered"
	documented_options | diff - "$WORK/offered"
	[ "$(nvtaskset --complete -p --fo)" = "" ]
	[ "$(nvtaskset --complete --frob --mp)" = "" ]
	[[ "$(nvtaskset --complete metrics --output "")" = :files ]]
	not nvtaskset --complete
}

@test "zsh, fish: behind another word" {
	needs zsh
	needs fish
	for line in 'sudo nvtaskset mps sto' 'true; nvtaskset mps sto' "$BUILD/nvtaskset mps sto" 'nvtaskset -v mps sto'; do
		[ "$(offered zsh "$line")" = stop ]
	done
	for line in 'true; nvtaskset mps sto' "$BUILD/nvtaskset mps sto" 'nvtaskset -v mps sto'; do
		[ "$(offered fish "$line")" = stop ]
	done
	[ "$(offered zsh 'nvtaskset -t 0-7 -- nvtaskset --st')" = "--strategy --strict" ]
	[ "$(offered fish 'nvtaskset -t 0-7 nvtaskset top --on')" = --once ]
	# Behind sudo: fish completes programs that exist, and knows sudo from its own files.
	make_script "$WORK/sudo" '#!/bin/sh'
	[ "$(PATH=$WORK:$PATH XDG_CONFIG_HOME=$WORK XDG_DATA_HOME=$WORK \
		fish -c "source '$ROOT/tools/completions/nvtaskset.fish'; complete -C 'sudo nvtaskset mps sto'" | cut -f 1 | sort -u)" = stop ]
	start_program -t 0-7
	[[ " $(in_fish 'nvtaskset -tp 8-15 ' | xargs) " == *" $PROGRAM "* ]]
	[[ "$(in_fish 'nvtaskset -t 8-15 ')" != *"$PROGRAM"* ]]
}
