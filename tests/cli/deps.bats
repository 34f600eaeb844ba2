#!/usr/bin/env bats
# tools/deps installs missing packages, or names them. The tests run it on a made-up machine; nothing is really
# installed.
# processes: no
# sanitizers: no

load helpers

# A machine with these commands, and an ordinary user.
prepare() {
	mkdir "$WORK/bin" "$WORK/headers"
	unset COMPILE
	log=$WORK/log
	: >"$log"
	command_is apt-get "echo \"\$0 \$*\" | sed 's|.*/||' >>'$log'" 'test ! -e "$0-fails"'
	command_is id "echo 1000"
	for command in env sed; do
		ln -s "$(command -v "$command")" "$WORK/bin/"
	done
}

command_is() { # NAME, and the lines of its script
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$WORK/bin/$1"
	chmod 755 "$WORK/bin/$1"
}

# A compiler with these headers, whatever the real machine has.
has_compiler() { # HEADER…
	local name=${COMPILE:-cc}
	command_is "${name%% *}" 'read -r _ header' 'header=${header#<}' "test -e '$WORK/headers/'\${header%>}"
	for header in "$@"; do
		: >"$WORK/headers/$header"
	done
}

has_commands() {
	for command in "$@"; do
		command_is "$command"
	done
}

has_all() {
	has_compiler stdlib.h jansson.h cmocka.h
	has_commands make prove pgrep bats jq python3 pkg-config
}

# sudo runs a command if it needs no password; a terminal on which one could be typed is not there.
has_sudo() { # free (needs no password), or not
	command_is sudo "asks=$1" "case \$1 in
		-n) [ \$asks = free ] || { echo 'sudo: a password is required' >&2; exit 1; } ;;
		*) echo sudo >>'$log'; exec \"\$@\" ;;
		esac"
}

deps() {
	PATH=$WORK/bin run "$ROOT/tools/deps" "$@" </dev/null
}

gives_nothing() {
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ ! -s "$log" ]
}

# tools/deps fails with these lines and no others, and has installed nothing.
gives_up() { # LINE…
	printf '%s\n' "$@" | diff - <(echo "$output")
	[ "$status" -eq 1 ]
	[ ! -s "$log" ]
}

installs() { # PACKAGES, and how often through sudo
	[ "$status" -eq 0 ]
	printf '%s\n' "apt-get -q update" "apt-get install -y --no-install-recommends $1" | diff - <(grep -v '^sudo$' "$log")
	[ "$(grep -c '^sudo$' "$log")" -eq "${2:-0}" ]
}

to_build="libc6-dev make libjansson-dev"
to_test="$to_build libcmocka-dev perl procps bats jq python3 pkg-config"

@test "nothing is missing: no output, for any user" {
	has_all
	for what in build tests; do
		deps "$what"
		gives_nothing
	done
}

@test "to build, a compiler, its headers, make and jansson are enough" {
	has_compiler stdlib.h jansson.h
	has_commands make
	deps build
	gives_nothing
	deps tests
	gives_up "deps: missing packages: libcmocka-dev perl procps bats jq python3 pkg-config" \
		"deps: as an administrator: apt-get update && apt-get install -y --no-install-recommends libcmocka-dev perl procps bats jq python3 pkg-config"
}

@test "each thing that is missing is noticed" {
	has_all
	for pair in stdlib.h=libc6-dev jansson.h=libjansson-dev cmocka.h=libcmocka-dev make=make prove=perl pgrep=procps bats=bats \
		jq=jq python3=python3 pkg-config=pkg-config; do
		mv "$WORK"/*/"${pair%=*}" "$WORK/away"
		deps tests
		[ "${lines[0]}" = "deps: missing packages: ${pair#*=}" ]
		has_all
	done
}

@test "the compiler that was asked for" {
	has_compiler stdlib.h jansson.h
	has_commands make
	export COMPILE="clang -DTEXT='\"two words\"'"
	deps build
	# Without a compiler, it depends on this machine which headers are.
	[[ "${lines[0]}" =~ ^"deps: missing packages: clang"( |$) ]]
	has_compiler
	deps build
	gives_nothing
	COMPILE=/opt/cc deps build
	gives_up "deps: /opt/cc: no such compiler"
}

@test "sudo that needs no password, and root: installs" {
	has_compiler
	has_sudo free
	deps build
	installs "$to_build" 2
	command_is id "echo 0"
	: >"$log"
	deps tests
	installs "$to_test"
}

@test "no sudo, or one that would ask for a password without a terminal: two lines for the administrator" {
	has_compiler
	for asks in '' typed; do
		[ -z "$asks" ] || has_sudo "$asks"
		deps build
		gives_up "deps: missing packages: $to_build" \
			"deps: as an administrator: apt-get update && apt-get install -y --no-install-recommends $to_build"
	done
}

@test "not Debian" {
	has_compiler
	command_is id "echo 0"
	rm "$WORK/bin/apt-get"
	deps build
	gives_up "deps: missing packages, by Debian's names: $to_build; install them with your package manager"
}

@test "a clone's packages need git" {
	[ -e "$ROOT/.git" ] || skip "this is no clone"
	has_all
	deps packages
	[[ "${lines[0]}" == *" git dpkg-dev debhelper dh-python lintian rpm libslurm-dev" ]]
}

@test "make stops when deps fails, before it builds anything" {
	for command in make mkdir find rm sh awk dirname sort; do
		ln -s "$(command -v "$command")" "$WORK/bin/"
	done
	# make install would refuse first where the user may not write to the usual PREFIX.
	make=(env -u MAKEFLAGS -u MAKELEVEL -u CC make -j2 -C "$ROOT" BUILD="$WORK/build" PREFIX="$WORK")
	for goal in all demo check install; do
		PATH=$WORK/bin run ! "${make[@]}" "$goal" </dev/null
		[ "$(grep -c '^deps: ' <<<"$output")" -eq 2 ]
		[ "$(grep -vcE '^(deps: |make: (Entering|Leaving) directory )' <<<"$output")" -eq 1 ]
		[ ! -e "$WORK/build" ]
	done
}
