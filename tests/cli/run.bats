#!/usr/bin/env bats
# nvtaskset SET COMMAND

load helpers

@test "a program runs on the TPCs of a mask, of a list, of a chip GPC with its singletons, and of the whole GPU" {
	for set in 0xff=0-7 "-t 0-9,12,20-30:2=0-9,12,20,22,24,26,28,30" "-g 1=0,8,16,24,62-65" all=0-65; do
		run -0 nv ${set%=*} "$BUILD/tests/programs/play" where
		[ "$output" = "${set#*=}" ]
	done
}

@test "standard streams, arguments and the exit status are the program's" {
	run -7 bash -c 'echo in | nvtaskset --mps off -t 0 sh -c "cat; echo \$0 \$1 >&2; exit 7" a "b c" 2>&1'
	[ "${lines[0]}" = in ]
	[ "${lines[1]}" = "a b c" ]
}

@test "options between SET and the command are nvtaskset's, up to a word that is no option" {
	[ "$(nvtaskset -n 25% --strategy distributed --dry-run true)" = "$(nvtaskset -n --strategy distributed --dry-run 25%)" ]
	[ "$(nvtaskset 0-7 --dry-run -t --mps off -- -p -l)" = 0-7 ]
	run nvtaskset -t 3-5 --mps off where 1
	[[ "$output" == *"on TPCs 3-5 ("* ]]
	start_program -t 0-7
	nvtaskset 8-15 -tp "$PROGRAM"
	[ "$(nvtaskset -p "$PROGRAM" -t)" = "pid $PROGRAM's current TPC list: 8-15" ]
}

@test "a command that does not exist: 127; one that cannot be run: 126" {
	run -127 nv -t 0 /nonexistent/program
	[ "$output" = "nvtaskset: /nonexistent/program: No such file or directory" ]
	run -127 nv -t 0 /etc/passwd/program
	run -126 nv -t 0 /etc/passwd
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

@test "the driver is found by LD_LIBRARY_PATH, and a toolkit's stub and our own library are not taken for it; ours comes first" {
	mkdir -p "$WORK/stubs" "$WORK/ours" "$WORK/driver"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/stubs/"
	cp "$BUILD/lib/libcuda.so.1" "$WORK/ours/"
	cp "$BUILD/sim/libcuda.so.1" "$WORK/driver/"
	unset NVTASKSET_DRIVER
	LD_LIBRARY_PATH=/nonexistent:$WORK/stubs:$WORK/ours:$WORK/driver run nv -v -t 7 where 1
	[[ "$output" == *"driver: $WORK/driver/libcuda.so.1"* ]]
	[[ "$output" == *"on TPCs 7 ("* ]]
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
		with_small_stack nvtaskset $what
	done
	unset NVTASKSET_TOPOLOGY # a measured topology, or the kernel driver's
	with_small_stack nvtaskset --mps off -t 3 true
}

@test "a stack of 16 KiB is enough to look at programs" {
	! is_sanitized || skip "sanitizers need more"
	small=(env -i "PATH=$PATH" "NVTASKSET_TOPOLOGY=$NVTASKSET_TOPOLOGY" "NVTASKSET_DRIVER=$NVTASKSET_DRIVER"
		prlimit --stack=16384)
	"${small[@]}" true || skip "needs a loader that does with 16 KiB"
	start_program -t 3
	for what in -l -l -l -l -l -l -l -l -l -l -T "top --once --delay 0.1" metrics "-p $PROGRAM"; do
		"${small[@]}" nvtaskset $what
	done
}
