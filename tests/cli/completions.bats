#!/usr/bin/env bats
# Completion in bash, zsh and fish

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
	documented_options | grep -vxE -e '--(force|delay|once|format|output)' >"$WORK/expected"
	offers nvtaskset -- | sort -u | diff "$WORK/expected" -
	run offers nvtaskset --st
	[ "$output" = "--strategy
--strict" ]
}

@test "bash: words, and their arguments" {
	run offers nvtaskset ""
	[ "$output" = "$(printf '%s\n' all top metrics mps system measure)" ]
	run offers nvtaskset m
	[ "$output" = "$(printf '%s\n' metrics mps measure)" ]
	run offers nvtaskset mps st
	[ "$output" = "$(printf '%s\n' status stop)" ]
	run offers nvtaskset mps stop --f
	[ "$output" = --force ]
	run offers nvtaskset -v system e
	[ "$output" = enable ]
	[ "$(offers nvtaskset -p m)" = "" ]
	[ "$(offers nvtaskset -t 0-7 mps sto | grep -x stop)" = "" ]
	run offers nvtaskset mps stop ""
	[ "$output" = "$(printf '%s\n' --force -h --help)" ]
	run offers nvtaskset system enable ""
	[ "$output" = "$(printf '%s\n' --dry-run -v --verbose -h --help)" ]
	run offers nvtaskset mps --connections 1
	[ "$output" = "$(printf '%s\n' 1 16)" ]
	run offers nvtaskset top --o
	[ "$output" = --once ]
	run offers nvtaskset --priority 8
	[ "$output" = 80 ]
	run offers nvtaskset -p --policy h
	[ "$output" = "$(printf '%s\n' ht ht,ae)" ]
	run offers nvtaskset -p --weight 1
	[ "$output" = 100 ]
	run offers nvtaskset metrics --format p
	[ "$output" = prometheus ]
}

@test "bash: no words where none can stand" {
	for line in "-p m" "-l m" "-T m" "-Tv s" "--list s" "--topology s" "-G 0:3-5 measur" "-tG 0000:3b:00.0:3 measur" "-G 0 -t m"; do
		# shellcheck disable=SC2086 # several words
		[ "$(offers nvtaskset $line | grep -xE 'mps|system|measure|top|metrics')" = "" ]
	done
	[ "$(offers nvtaskset -G 0000:3b:00.0 measu)" = measure ]
	# As bash splits the line.
	[ "$(offers nvtaskset -G 0 : 3-5 measur | grep -x measure)" = "" ]
	[ "$(offers nvtaskset -G 0000 : 3b : 00.0 measu)" = measure ]
	[ "$(offers nvtaskset -T --watch = 2 --js)" = --json ]
}

@test "bash: TPCs and GPCs of this GPU, after the part of a list that is typed" {
	run offers nvtaskset -t 6
	[ "$output" = "$(printf '%s\n' 6 60 61 62 63 64 65)" ]
	run offers nvtaskset -t 0-7,6
	[ "$output" = "$(printf '0-7,%s\n' 6 60 61 62 63 64 65)" ]
	run offers nvtaskset --gpc-list ""
	[ "$output" = "$(seq 0 7)" ]
	run offers nvtaskset -tG 0 65
	[ "$output" = 65 ]
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
	[ -z "$(fish_offers 'nvtaskset -p ' | grep -x 1)" ]
}

@test "bash: values of options" {
	run offers nvtaskset --mps o
	[ "$output" = "on
off" ]
	run offers nvtaskset --strategy ""
	[ "$output" = "packed
distributed" ]
	run offers nvtaskset -G ""
	[ "$output" = "all
0" ]
}

@test "bash: after SET, commands" {
	for line in "-t 0-7" "-t 0-7 --" "--mps off -tG 0 0-7" "-G 0:3-5" "-G 0:3-5 --" 3; do
		# shellcheck disable=SC2086 # several words
		run offers nvtaskset $line nvtaskse
		[[ "$output" == *nvtaskset* ]]
	done
	# COMMAND's options are not ours.
	[ "$(offers nvtaskset 3 ls -p "")" = "" ]
}

@test "bash: COMMAND's own completion, from its place in the line" {
	_command_offset() {
		COMPREPLY=("$1")
	}
	[ "$(offers nvtaskset -t 0-7 ls "")" = 3 ]
	[ "$(offers nvtaskset -t 0-7 -- ls "")" = 4 ]
	[ "$(offers nvtaskset --mps off -tG 0 0-7 ls -p "")" = 6 ]
	[ "$(offers nvtaskset -G 0:3-5 ls "")" = 3 ]
	[ "$(offers nvtaskset -G 0 : 3-5 ls "")" = 5 ]
}

@test "the three shells know the same options" {
	documented_options >"$WORK/help"
	grep -oE -- "'?--[a-z-]+|,--[a-z-]+" "$ROOT/tools/completions/_nvtaskset" | grep -oE -- '--[a-z-]+' | sort -u >"$WORK/zsh"
	sed -n 's/^complete .* -l \([a-z-]*\).*/--\1/p' "$ROOT/tools/completions/nvtaskset.fish" | sort -u >"$WORK/fish"
	diff "$WORK/help" "$WORK/zsh"
	diff "$WORK/help" "$WORK/fish"
}

@test "zsh accepts its file" {
	needs zsh
	zsh -n "$ROOT/tools/completions/_nvtaskset"
}

@test "zsh: sets, words, values, commands" {
	needs zsh
	while IFS='|' read -r line expected; do
		echo "$line"
		timeout 60 "$BATS_TEST_DIRNAME/zsh_offers" "$ROOT/tools/completions" "$line" >"$WORK/offers"
		diff <(tr ' ' '\n' <<<"$expected" | grep . | sort) "$WORK/offers"
	done <<-'END'
		nvtaskset m|measure metrics mps
		nvtaskset top --o|--once
		nvtaskset metrics --format |openmetrics prometheus
		nvtaskset --st|--strategy --strict
		nvtaskset --mps |auto off on
		nvtaskset -G |0 all
		nvtaskset -tG 0 0-7,6|6 60 61 62 63 64 65
		nvtaskset -gp |0 1 2 3 4 5 6 7
		nvtaskset -l m|
		nvtaskset -p m|
		nvtaskset -G 0000:00:06.0 measu|measure
		nvtaskset mps st|status stop
		nvtaskset -v system en|enable
		sudo nvtaskset mps sto|stop
		true; nvtaskset mps sto|stop
		/usr/bin/nvtaskset mps sto|stop
		nvtaskset -t 0-7 nvtaskse|nvtaskset
		nvtaskset -t 0-7 -- nvtaskse|nvtaskset
		nvtaskset -G 0:3-5 nvtaskse|nvtaskset
		nvtaskset -t 0-7 -- nvtaskset --st|--strategy --strict
	END
}

@test "fish accepts its file" {
	needs fish
	fish -n "$ROOT/tools/completions/nvtaskset.fish"
}

# What fish offers after this line, without its descriptions.
fish_offers() { # LINE
	fish --no-config -c "source '$ROOT/tools/completions/nvtaskset.fish'; complete -C '$1'" | cut -f 1
}

@test "fish: sets, values, programs, commands" {
	needs fish
	[ "$(fish_offers 'nvtaskset -t 6')" = "$(printf '%s\n' 6 60 61 62 63 64 65)" ]
	[ "$(fish_offers 'nvtaskset -t 0-7,6')" = "$(printf '0-7,%s\n' 6 60 61 62 63 64 65)" ]
	[ "$(fish_offers 'nvtaskset --gpc-list ')" = "$(seq 0 7)" ]
	[ "$(fish_offers 'nvtaskset --st')" = "$(printf -- '--%s\n' strategy strict)" ]
	[ "$(fish_offers 'nvtaskset m')" = "$(printf '%s\n' measure metrics mps)" ]
	[ "$(fish_offers 'nvtaskset top --o')" = --once ]
	[ "$(fish_offers 'nvtaskset metrics --format p')" = prometheus ]
	[ "$(fish_offers 'nvtaskset mps st')" = "$(printf '%s\n' status stop)" ]
	[ "$(fish_offers 'nvtaskset system --d')" = --dry-run ]
	for line in 'true; nvtaskset mps sto' '/usr/bin/nvtaskset mps sto' 'nvtaskset -v mps sto'; do
		[ "$(fish_offers "$line")" = stop ]
	done
	# Behind sudo: fish completes programs that exist, and knows sudo from its own files.
	make_script "$WORK/sudo" '#!/bin/sh'
	[ "$(PATH=$WORK:$PATH XDG_CONFIG_HOME=$WORK XDG_DATA_HOME=$WORK \
		fish -c "source '$ROOT/tools/completions/nvtaskset.fish'; complete -C 'sudo nvtaskset mps sto'" | cut -f 1 | sort -u)" = stop ]
	[ "$(fish_offers 'nvtaskset mps stop ')" = "" ]
	[ "$(fish_offers 'nvtaskset -G 0000:00:06.0 measu')" = measure ]
	[ "$(fish_offers 'nvtaskset -l ')" = "" ]
	for line in '-p m' '-T m' '-G 0:3-5 measur' '-t measur'; do
		[ "$(fish_offers "nvtaskset $line" | grep -xE 'mps|measure')" = "" ]
	done
	[ "$(fish_offers 'nvtaskset -G 0:3-5 nvtaskse')" = nvtaskset ]
	[ "$(fish_offers 'nvtaskset -t 0-7 -- nvtaskse')" = nvtaskset ]
	[ "$(fish_offers 'nvtaskset --strategy ')" = "$(printf '%s\n' distributed packed)" ]
	[ "$(fish_offers 'nvtaskset -tG 0 0-7 nvtaskse')" = nvtaskset ]
	start_program -t 0-7
	[[ " $(fish_offers 'nvtaskset -tp 8-15 ' | xargs) " == *" $PROGRAM "* ]]
	[[ "$(fish_offers 'nvtaskset -t 8-15 ')" != *"$PROGRAM"* ]]
}
