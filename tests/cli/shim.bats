#!/usr/bin/env bats
# The library inside the program: whatever goes wrong, the program runs unrestricted, and one line says why.
# needs: bench/launches

load helpers

where_unrestricted() { # the reason, and NAME=VALUE… for the program's environment
	local reason=$1
	shift
	run -0 nv -t 0-3 "${WITHOUT_SEGMENT[@]}" env "$@" "$BUILD/demo/where" 1
	[ "${lines[0]}" = "nvtaskset: $reason" ]
	[[ "${lines[1]}" == *"on TPCs 0-65 ("* ]]
	[ "${#lines[@]}" -eq 2 ]
}

@test "a driver that does not let us see launches, and garbage in the environment" {
	where_unrestricted "the driver has no callback table (error 500); this program runs unrestricted" SIM_FAULTS=no-table
	where_unrestricted "the driver's callback table is shorter than any that we know; this program runs unrestricted" \
		SIM_FAULTS=short-table
	where_unrestricted "another tool (a profiler or debugger) holds the driver's callback slot; this program runs unrestricted until it leaves" \
		SIM_FAULTS=slot-taken
	where_unrestricted "NVTASKSET_PARTITION: 'nonsense' is not GPU=TPCs; this program runs unrestricted" \
		NVTASKSET_PARTITION=nonsense
	# Silenced:
	run -0 nv -t 0-3 env NVTASKSET_LOG=off SIM_FAULTS=no-table "$BUILD/demo/where" 1
	[ "${#lines[@]}" -eq 1 ]
}

@test "a module whose kernels can launch kernels: the program runs; the module is reported and counted" {
	SIM_FAULTS=device-runtime start_program -t 0-3
	runs_on 0-3
	run nvtaskset -l
	[[ "$output" == *"kernels of a module can launch kernels, which are not restricted"* ]]
	run nv -t 0-3 env SIM_FAULTS=device-runtime "$BUILD/demo/where" 1
	[ "${lines[0]}" = "nvtaskset: kernels of a module can launch kernels, which are not restricted" ]
}

# Only the simulated GPU and the command get the topology file. The program has none, and there is no kernel driver to
# ask.
told_by_the_command() { # COMMAND…
	SIM_TOPOLOGY=$WORK/known.txt NVTASKSET_TOPOLOGY=$WORK/known.txt nv -t 0-3 env -u NVTASKSET_TOPOLOGY "$@"
}

@test "the command passes the topology to the program, which then does not ask the kernel driver" {
	! compgen -G "/var/cache/nvtaskset/*.txt" || skip "root has measured a GPU here"
	sed 's/^  compute/  uuid GPU-01234567-89ab-cdef-0123-456789abcdef\n&/' "$NVTASKSET_TOPOLOGY" >"$WORK/known.txt"
	run -0 told_by_the_command "$BUILD/bench/launches" 3
	[ "$output" = "" ]
	run told_by_the_command sh -c 'NVTASKSET_GPUS=$(echo "$NVTASKSET_GPUS" | sed s/GPU-0/GPU-1/) exec "$@"' sh "$BUILD/bench/launches" 3
	[[ "${lines[0]}" == "nvtaskset: no NVIDIA GPU: /dev/nvidiactl is not there"*"; this program runs unrestricted" ]]
	run told_by_the_command env NVTASKSET_GPUS=nonsense "$BUILD/bench/launches" 3
	[[ "${lines[0]}" == "nvtaskset: no NVIDIA GPU: /dev/nvidiactl is not there"*"; this program runs unrestricted" ]]
}

@test "no topology inside the program" {
	run -0 nv -t 0-3 env SIM_TOPOLOGY="$NVTASKSET_TOPOLOGY" NVTASKSET_TOPOLOGY=/nonexistent "$BUILD/bench/launches" 3
	[ "${lines[0]}" = "nvtaskset: NVTASKSET_TOPOLOGY=/nonexistent: No such file or directory; this program runs unrestricted" ]
	[ "${lines[1]}" = "nvtaskset: the GPU's topology is unknown; launches run unrestricted" ]
	[ "${#lines[@]}" -eq 2 ]
}

# The library has something to warn of, but descriptor 2 is by then a file of the program's own: FILE, in its steps.
warns_nobody() { # the status, options of nvtaskset, the program and its steps
	local expected=$1 file=$WORK/theirs
	shift
	rm -f "$file"
	run env SIM_FAULTS=bad-qmd nvtaskset --mps off "${@//FILE/$file}"
	[ "$status" -eq "$expected" ]
	[[ "$output" != *nvtaskset:* ]]
	[ -e "$file" ]
	[ ! -s "$file" ]
}

@test "descriptor 2 may be a file of the program's: nothing is written to it" {
	needed=$BUILD/tests/programs/play-needed
	warns_nobody 0 -t 0-3 "$needed" data FILE where
	warns_nobody 0 -t 0-3 "$needed" output FILE where
	# The program opens the file before it loads the library.
	warns_nobody 0 -t 0-3 "$BUILD/tests/programs/play" data FILE where
	warns_nobody 1 --strict -t 0-3 "$needed" output FILE where
	warns_nobody 1 --strict -t 0-3 "$BUILD/tests/programs/play" data FILE where
	warns_nobody 0 -t 0-3 sh -c '"$@" 2>&-' sh "$needed" output FILE where
	# Also if standard error was a file on the same file system.
	warns_nobody 0 -t 0-3 sh -c '"$@" 2>"$0"' "$WORK/log" "$needed" output FILE where
}

@test "errno does not change, also if a warning cannot be written" {
	[ "$(nv -t 0-3 env SIM_FAULTS=bad-qmd "$BUILD/tests/programs/play-needed" errno where 2>/dev/full)" = 0-65 ]
}

# Runs a program that gets a warning. Descriptor 9 is a pipe, and becomes standard error.
warns_into_pipe() { # options of nvtaskset, and steps
	env --default-signal=PIPE SIM_FAULTS=bad-qmd timeout 60 nvtaskset --mps off -t 0-3 "$@" 2>&9
}

@test "standard error may be a pipe without a reader: a warning ends no program, and takes no signal of the program's" {
	local play=$BUILD/tests/programs/play
	mkfifo "$WORK/pipe"
	exec 8<>"$WORK/pipe" 9>"$WORK/pipe" 8<&-
	run -0 warns_into_pipe "$play" errno where
	[ "$output" = 0-65 ]
	run -0 warns_into_pipe "$play" signal
	run -1 warns_into_pipe --strict "$play" where
	# The program's own line ends the program as before.
	run -141 warns_into_pipe sh -c '"$@" >&2' sh "$play" where
}

@test "standard error may be a full pipe: a warning does not wait for a reader" {
	mkfifo "$WORK/pipe"
	exec 8<>"$WORK/pipe" 9>"$WORK/pipe"
	not dd if=/dev/zero of="$WORK/pipe" bs=4096 oflag=nonblock
	run -0 warns_into_pipe "$BUILD/tests/programs/play" errno where
	[ "$output" = 0-65 ]
	# After a reader has made room, the next warning is written.
	dd if="$WORK/pipe" of="$WORK/read" bs=4096 count=1
	run -0 warns_into_pipe "$BUILD/tests/programs/play" where
	exec 9>&-
	dd if="$WORK/pipe" iflag=nonblock bs=4096 2>"$WORK/errors" | grep -qa "nvtaskset: .*unknown version"
}

@test "standard error may be a file: warnings go there as long as it is standard error" {
	local log=$WORK/log
	for redirect in '2>"$0"' '2>>"$0"' '2>"$0" 1>&2'; do
		rm -f "$log"
		nv -t 0-3 env SIM_FAULTS=bad-qmd sh -c "\"\$@\" $redirect" "$log" "$BUILD/tests/programs/play-needed" where
		[ "$(grep -c "^nvtaskset: .*unknown version" "$log")" -eq 1 ]
	done
}

@test "the libraries need only libc, and that inside the program the driver" {
	for library in lib/libcuda.so.1=libnvtaskset-driver.so.1,libc.so.6 api/libnvtaskset.so.0=libc.so.6; do
		[ "$(readelf -d "$BUILD/${library%=*}" | sed -n 's/.*Shared library: \[\(.*\)\]/\1/p' | grep -v san | paste -sd ,)" = "${library#*=}" ]
	done
}

@test "the code of a launch lies on one page" {
	! is_sanitized || skip "a sanitizer puts things in between"
	for library in "$BUILD/lib/libcuda.so.1" "$BUILD/lib/libnvtaskset-attach.so"; do
		pages=$(nm "$library" | sed -nE 's/ . (on_event|launch_upload|disable_in_[a-z_]*)$//p' | cut -c1-13 | sort -u | wc -l)
		[ "$pages" -eq 1 ]
	done
}

# glibc aligns the thread-local storage of a library that is opened later only as much as its own
# control block of a thread: 64 bytes on x86-64; 16 on aarch64 (32 from glibc 2.35 on).
is_placed() { # the greatest alignment, and the library
	local most=$1 alignment
	alignment=$(readelf -lW "$2" | awk '$1 == "TLS" { print $NF }')
	[ $((alignment)) -le "$most" ] || { echo "$2: thread-local storage aligned to $alignment" && false; }
}

@test "the dynamic linker can place our thread-local storage" {
	most=16
	[ "$(uname -m)" != x86_64 ] || most=64
	for library in lib/libcuda.so.1 lib/libnvtaskset-attach.so lib/libnvtaskset-audit.so libsmctrl.so.0 api/libnvtaskset.so.0; do
		is_placed "$most" "$BUILD/$library"
	done
}

@test "the dynamic linker can place our thread-local storage, on aarch64" {
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no compiler for aarch64"
	env -u MAKEFLAGS make -s -j2 -C "$ROOT" BUILD="$WORK/aarch64" SANITIZE= CC=aarch64-linux-gnu-gcc CFLAGS=-O1 \
		"$WORK/aarch64/lib/libcuda.so.1" "$WORK/aarch64/libsmctrl.so.0" 3>&-
	is_placed 16 "$WORK/aarch64/lib/libcuda.so.1"
	is_placed 16 "$WORK/aarch64/libsmctrl.so.0"
}
