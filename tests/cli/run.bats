#!/usr/bin/env bats
# nvtaskset SET COMMAND

bats_require_minimum_version 1.5.0
load helpers

@test "a program runs on the TPCs of a mask" {
	start_program 0xff
	runs_on 0-7
}

@test "a program runs on the TPCs of a list" {
	start_program -t 0-9,12,20-30:2
	runs_on 0-9,12,20,22,24,26,28,30
}

@test "a program runs on the TPCs of a chip GPC, singletons included" {
	start_program -g 1
	runs_on 0,8,16,24,62-65
}

@test "a program runs on the whole GPU" {
	start_program all
	runs_on 0-65
}

@test "standard streams, arguments and the exit status are the program's" {
	run bash -c 'echo in | nvtaskset --mps off -t 0 sh -c "cat; echo \$0 \$1 >&2; exit 7" a "b c" 2>&1'
	[ "$status" -eq 7 ]
	[ "${lines[0]}" = in ]
	[ "${lines[1]}" = "a b c" ]
}

@test "the program has the pid of the command: nvtaskset calls exec" {
	run bash -c 'echo $$; exec nvtaskset --mps off -t 0 sh -c "echo \$\$"'
	[ "${lines[0]}" = "${lines[1]}" ]
}

@test "options after the command are the command's" {
	run nv -t 0 echo -p -t --help
	[ "$output" = "-p -t --help" ]
}

@test "a command that does not exist: 127; one that cannot be run: 126" {
	run -127 nv -t 0 /nonexistent/program
	[ "$output" = "nvtaskset: /nonexistent/program: No such file or directory" ]
	run -127 nv -t 0 /etc/passwd/program
	run -126 nv -t 0 /etc/passwd
}

@test "children get the partition of their parent" {
	run nv -t 3-5 sh -c "where 1"
	[ "$status" -eq 0 ]
	[[ "$output" == *"on TPCs 3-5 ("* ]]
}

@test "nvtaskset under nvtaskset: the inner partition is in force" {
	run nv -t 3-5 nvtaskset --mps off -t 7 where 1
	[[ "$output" == *"on TPCs 7 ("* ]]
	[[ "$output" != *"3-5"* ]]
	# The inner program also has none of the outer one's other settings.
	# shellcheck disable=SC2016 # for that shell
	[ "$(nv --hide --on-misfit fail -t 3-5 nvtaskset --mps off -t 7 sh -c 'echo "${NVTASKSET_HIDE-} ${NVTASKSET_ON_MISFIT-}"')" = " " ]
}

@test "an LD_LIBRARY_PATH with the driver's directory comes after ours" {
	mkdir "$WORK/driver"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/driver/"
	unset NVTASKSET_DRIVER
	LD_LIBRARY_PATH=/nonexistent:$WORK/driver run nv -v -t 7 where 1
	[[ "$output" == *"driver: $WORK/driver/libcuda.so.1"* ]]
	[[ "$output" == *"on TPCs 7 ("* ]]
}

@test "empty entries of LD_LIBRARY_PATH, which mean the current directory, stay where they are" {
	local first path
	for path in :/x /x: /x::/y : :: '/x;' '/x;:'; do
		run env LD_LIBRARY_PATH="$path" nvtaskset --mps off -t 7 sh -c \
			'printenv LD_LIBRARY_PATH; nvtaskset --mps off -t 8 printenv LD_LIBRARY_PATH'
		echo "$path: $output"
		first=${lines[0]%%:*}
		[ "${lines[0]}" = "$first:${path//;/:}" ]
		[ "${lines[1]}" = "${lines[0]}" ]
	done
	LD_LIBRARY_PATH='' run nv -t 7 printenv LD_LIBRARY_PATH
	[ "$output" = "$first" ]
	LD_LIBRARY_PATH=$first: run nv -t 7 printenv LD_LIBRARY_PATH
	[ "$output" = "$first::" ]
	# As a program sees the variable.
	mkdir "$WORK/here"
	${CC:-cc} -shared -x c -o "$WORK/here/libmine.so" - <<<''
	${CC:-cc} -x c -o "$WORK/here/program" - -Wl,--no-as-needed -L"$WORK/here" -lmine <<<'int main(void) { return 0; }'
	cd "$WORK/here"
	LD_LIBRARY_PATH=/x: nv -t 7 ./program
}

@test "a toolkit's stub, our own library and a text file are not taken for the driver" {
	mkdir -p "$WORK/stubs" "$WORK/ours" "$WORK/driver"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/stubs/"
	cp "$BUILD/lib/libcuda.so.1" "$WORK/ours/"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/driver/"
	unset NVTASKSET_DRIVER
	LD_LIBRARY_PATH=$WORK/stubs:$WORK/ours:$WORK/driver run nv -v -t 7 true
	[[ "$output" == *"driver: $WORK/driver/libcuda.so.1"* ]]
}

@test "the library directory belongs to the user, and is made once" {
	(umask 0 && nv -t 0 true)
	nv -t 0 true
	[ "$(stat -c %a "$WORK/nvtaskset")" = 755 ]
	[ "$(find "$WORK/nvtaskset" -name libcuda.so.1 | wc -l)" -eq 1 ]
	# A link that has another target by now is made anew.
	link=$(find "$WORK/nvtaskset" -name libcuda.so.1)
	ln -sf /nonexistent "$link"
	nv -t 0 true
	[ "$(realpath "$link")" = "$(realpath "$BUILD/lib/libcuda.so.1")" ]
}

# trust.bats has the tests of root's directory.
@test "the library directory outlives the session where that is possible" {
	local user=()
	if [ "$(id -u)" -eq 0 ]; then
		needs_another_user
		user=("${ANOTHER_USER[@]}")
	fi
	HOME=$WORK/another/home
	"${user[@]}" mkdir -p "$HOME" "$WORK/another/run"
	started() {
		"${user[@]}" env -u XDG_CACHE_HOME XDG_RUNTIME_DIR="$WORK/another/run" nvtaskset --mps off -t 0 true
	}
	started
	compgen -G "$HOME/.cache/nvtaskset/*/libcuda.so.1"
	rm -r "$HOME/.cache" && touch "$HOME/.cache"
	started
	compgen -G "$WORK/another/run/nvtaskset/*/libcuda.so.1"
	rm -r "$WORK/another/run/nvtaskset" "$HOME/.cache"
	"${user[@]}" mkdir -m 777 "$HOME/.cache"
	started
	compgen -G "$WORK/another/run/nvtaskset/*/libcuda.so.1"
	[ -z "$(ls "$HOME/.cache")" ]
}

@test "programs without CUDA run as without nvtaskset" {
	run nv -t 0 echo fine
	[ "$status" -eq 0 ]
	[ "$output" = fine ]
}

# 64 KiB, including arguments and environment.
with_small_stack() {
	(ulimit -s 64 && exec "$@")
}

@test "a small stack is enough, for the command and the library" {
	! is_sanitized || skip "sanitizers need more"
	export SIM_TOPOLOGY=$NVTASKSET_TOPOLOGY
	run with_small_stack nvtaskset --mps off -t 3 where 1
	[[ "$output" == *"on TPCs 3 ("* ]]
	with_small_stack nvtaskset --mps off --strict -t 3 true
	with_small_stack nvtaskset --mps off -n 2 true
	for what in -l -T "-l --json" "-T --json" measure; do
		# shellcheck disable=SC2086
		with_small_stack nvtaskset $what
	done
	unset NVTASKSET_TOPOLOGY # a measured topology, or the kernel driver's
	with_small_stack nvtaskset --mps off -t 3 true
}

@test "two GPUs, each with its own set, in one command" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	run nv -v -t -G 0:0-3 -G 1:8-9 true
	[ "$status" -eq 0 ]
	[[ "$output" == *"4 of 66 TPCs: 0-3"* ]]
	[[ "$output" == *"TPCs: 8-9"* ]]
}

@test "help and version go to standard output" {
	run bash -c 'nvtaskset --help 2>/dev/null'
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == "Usage: nvtaskset"* ]]
	run bash -c 'nvtaskset -V 2>/dev/null'
	[ "$status" -eq 0 ]
	[[ "$output" == "nvtaskset "[0-9]* ]]
}

@test "a closed standard output is noticed" {
	run bash -c 'nvtaskset --help >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == *"standard output"* ]]
}
