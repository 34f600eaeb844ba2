#!/usr/bin/env bats
# --strict: no program starts or runs that cannot be kept inside its partition.
# processes: no
# takes: long
# sanitizers: no

load helpers

strict() {
	nvtaskset --mps off --strict -t 0-3 "$@"
}

# --- refused before it starts ----------------------------------------------------------------------------

@test "a driver without the callback table" {
	SIM_FAULTS=no-table refuses "the driver has no callback table (error 500); --strict lets nothing run unrestricted" \
		strict touch "$WORK/started"
	[ ! -e "$WORK/started" ]
}

@test "a driver that does not announce launches" {
	SIM_FAULTS=no-launch-events run -1 strict where 1
	[[ "$output" == "nvtaskset: the driver does not announce launches"*"; --strict lets nothing run unrestricted" ]]
}

@test "SIGCHLD ignored: children are not waited for" {
	SIM_FAULTS=slot-taken run -1 bash -c "trap '' CHLD; exec nvtaskset --mps off --strict -t 0 true"
	run -0 bash -c "trap '' CHLD; exec nvtaskset --mps off --strict -t 0 grep SigIgn /proc/self/status"
	[ "$((0x${output#SigIgn:?} >> 16 & 1))" -eq 1 ]
}

# Makes a library that is taken for the driver.
make_driver() {
	${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -x c - -o "$WORK/driver.so" "$@"
	export NVTASKSET_DRIVER=$WORK/driver.so
}

@test "a driver that cannot be loaded; that dies while it loads, or never finishes; that prints a lot, and exits" {
	make_driver -Wl,-z,now <<<'void nobody_has_this(void); void f(void) { nobody_has_this(); }'
	run -1 strict true
	[[ "$output" == "nvtaskset: the driver library cannot be loaded: "*nobody_has_this* ]]
	[ "${#lines[@]}" -eq 1 ]
	make_driver <<<'__attribute__((constructor)) static void f(void) { __builtin_trap(); }'
	refuses "our library was tested, and the test process died without giving a reason" strict true
	make_driver <<<'#include <unistd.h>
		__attribute__((constructor)) static void f(void) { for (;;) pause(); }'
	refuses "our library was tested, and the driver did not load within 10 seconds" strict true
	make_driver <<<'#include <stdio.h>
		#include <stdlib.h>
		__attribute__((constructor)) static void f(void) {
			for (int i = 0; i < 100000; i++) fputs("nonsense ", stderr);
			exit(3);
		}'
	run -1 strict true
	[ "${#lines[@]}" -eq 1 ]
	[[ "$output" == "nvtaskset: nonsense nonsense "* ]]
}

install_in() { # PREFIX
	mkdir -p "$1/bin" "$1/lib/nvtaskset"
	cp "$BUILD/nvtaskset" "$1/bin/"
	cp "$BUILD/lib/libcuda.so.1" "$BUILD/lib/libnvtaskset-audit.so" "$1/lib/nvtaskset/"
}

@test "an installed copy, and one without our audit library" {
	install_in "$WORK/usr"
	run "$WORK/usr/bin/nvtaskset" --mps off --strict -t 8 "$BUILD/tests/programs/play-rpath" where
	[ "$output" = 8 ]
	rm "$WORK/usr/lib/nvtaskset/libnvtaskset-audit.so"
	refuses "$WORK/usr/lib/nvtaskset/libnvtaskset-audit.so: --strict needs it: install nvtaskset again: No such file or directory" \
		"$WORK/usr/bin/nvtaskset" --mps off --strict -t 0 true
}

@test "a path that cannot be passed to the dynamic linker" {
	install_in "$WORK/a:b"
	run "$WORK/a:b/bin/nvtaskset" --mps off -t 8 where 1
	[[ "$output" == *"on TPCs 8 ("* ]]
	refuses "$WORK/a:b/lib/nvtaskset/libnvtaskset-audit.so: has one of : ; \$ in its name, which the dynamic linker does not take: install nvtaskset elsewhere" \
		"$WORK/a:b/bin/nvtaskset" --mps off --strict -t 8 true
}

@test "a GPU with more TPCs than its descriptors have bits" {
	export NVTASKSET_TOPOLOGY=$WORK/large
	sed "\$a\  tpc  64    9     -    64" "$ROOT/share/topologies/ada.txt" >"$NVTASKSET_TOPOLOGY"
	text="its launch descriptors cannot name all of its TPCs: --strict starts nothing there"
	refuses "GPU 0000:01:00.0: $text" strict "$BUILD/demo/where" 1
	run -0 nv -t 0-3 "$BUILD/demo/where" 1
	[[ "${lines[0]}" == "nvtaskset: the launch descriptor has no bit for some TPCs of this GPU; "* ]]
}

@test "GPUs before Hopper, and those that are too new" {
	sed 's/^  compute .*/  compute 99.0/' "$NVTASKSET_TOPOLOGY" >"$WORK/topology"
	NVTASKSET_TOPOLOGY=$WORK/topology \
		refuses "GPU 0000:00:06.0: launch descriptors of compute capability 99.0 are not known: --strict starts nothing there" strict true
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/ada.txt
	pci=$(sed -n 's/^gpu //p' "$NVTASKSET_TOPOLOGY")
	refuses "GPU $pci: before Hopper, a cooperative node of a CUDA graph that does not fit its partition is not recognised, and hangs: --strict starts nothing there" \
		strict true
}

@test "statically linked programs; nor is MPS started for them" {
	PATH=$ROOT/tests/fake-mps:$PATH refuses "$BUILD/tests/programs/nothing-static: statically linked: it does not load our library" \
		nvtaskset --strict -t 0-3 "$BUILD/tests/programs/nothing-static"
	[ ! -e "$CUDA_MPS_PIPE_DIRECTORY" ]
}

@test "programs for another machine, and of another libc" {
	# 32 bits: the class in the ELF header.
	cp "$BUILD/tests/programs/nothing" "$WORK/small"
	printf '\x01' | dd of="$WORK/small" bs=1 seek=4 conv=notrunc status=none
	run -1 strict "$WORK/small"
	[[ "$output" == "nvtaskset: $WORK/small: not a program for "*", which our library is for" ]]
	${CC:-cc} -x c - -o "$WORK/musl" -Wl,--dynamic-linker,/lib/ld-musl-x86_64.so.1 <<<'int main(void) { return 0; }'
	refuses "$WORK/musl: its dynamic linker is /lib/ld-musl-x86_64.so.1, and our library needs glibc's" strict "$WORK/musl"
}

@test "a script of a statically linked interpreter" {
	printf '#!%s\n' "$BUILD/tests/programs/nothing-static" >"$WORK/script"
	chmod +x "$WORK/script"
	refuses "$WORK/script: statically linked: it does not load our library" strict "$WORK/script"
}

# --- faults that only show later: the program ends --------------------------------------------------------

ends() { # the reason, and NAME=VALUE… for the program's environment
	local reason=$1
	shift
	refuses "$reason; --strict lets nothing run unrestricted" strict "${WITHOUT_SEGMENT[@]}" env "$@" "$BUILD/demo/where" 1
}

@test "whatever goes wrong inside the program ends it" {
	ends "the launch descriptor has an unknown version" SIM_FAULTS=bad-qmd
	ends "the launch descriptor has no bit for some TPCs of this GPU" SIM_FAULTS=narrow-qmd
	ends "another tool (a profiler or debugger) holds the driver's callback slot" SIM_FAULTS=slot-taken
	ends "NVTASKSET_TOPOLOGY=/nonexistent: No such file or directory" SIM_TOPOLOGY="$NVTASKSET_TOPOLOGY" NVTASKSET_TOPOLOGY=/nonexistent
	ends "the partition has no TPC that this GPU has" NVTASKSET_PARTITION=0000:00:06.0=200
	ends "NVTASKSET_PARTITION: 'nonsense' is not GPU=TPCs" NVTASKSET_PARTITION=nonsense
}

@test "without --strict the library ends no program" {
	for strict in -uNVTASKSET_STRICT NVTASKSET_STRICT=; do
		run -0 nv -t 0-3 env "$strict" SIM_FAULTS=bad-qmd "$BUILD/demo/where" 1
		[[ "$output" == *"kernels run"* ]]
	done
}
