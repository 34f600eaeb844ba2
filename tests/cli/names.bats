#!/usr/bin/env bats
# Our libcuda.so.1 has the driver's functions in the symbol table, for linkers.

load helpers

prepare() {
	needs gcc
	! is_sanitized || skip "the programs are not sanitized"
	cat >"$WORK/program.c" <<-'END'
		int cuInit(unsigned int), cuDeviceGetCount(int *);
		int main(void)
		{
			int count = 0;
			return cuInit(0) != 0 || cuDeviceGetCount(&count) != 0 || count < 1;
		}
	END
	cd "$WORK" || return
}

with_driver_alone() { # COMMAND…
	env LD_LIBRARY_PATH="$BUILD/sim" "$@"
}

@test "programs are linked with it as with the driver's, and run with and without it" {
	for library in -lcuda -l:libcuda.so.1; do
		for how in --as-needed --no-as-needed; do
			gcc program.c -o linked -L"$BUILD/lib" "-Wl,$how" $library
			[[ "$(readelf -d linked)" == *"(NEEDED)"*"[libcuda.so.1]"* ]]
			nv -t 3-5 ./linked
			nv --strict -t 3-5 ./linked
			with_driver_alone ./linked
		done
	done
	gcc program.c -o linked -L"$BUILD/sim" -l:libcuda.so.1
	nv -t 3-5 ./linked
}

@test "Triton's launchers are built with it, and run inside the partition" {
	for options in "-Wl,--as-needed -l:libcuda.so.1" "-Wl,--no-as-needed -l:libcuda.so.1" -lcuda; do
		# shellcheck disable=SC2086 # several words
		BUILD="$BUILD" run -0 nv -t 3-5 "$ROOT/tests/cli/launcher" "$WORK" $options
		[ "$output" = $'libcuda.so.1\n3-5' ]
		[ "$(with_driver_alone "$BUILD/tests/programs/play" launcher "$WORK/launcher.so" where)" = 0-65 ]
	done
}

@test "a call through a name costs one jump" {
	[ "$(uname -m)" = x86_64 ] || skip "counted on x86-64 only"
	while read -r name; do
		objdump -d --no-show-raw-insn --disassemble="$name" "$BUILD/lib/libcuda.so.1" | grep -A1 "<$name>:"
	done >instructions <<-'END'
		cuInit
		cuLaunchKernel
		cuGetProcAddress_v2
	END
	[ "$(grep -cP '\tjmp +\*0x[0-9a-f]+\(%rip\)' instructions)" -eq 3 ]
}

# The simulated driver lacks most of them, as an older driver lacks some.
@test "a name that the driver lacks is not found; a program that was linked with it gets an error" {
	cat >missing.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <string.h>
		int cuArray3DCreate(void *, void *);
		int main(void)
		{
			void *library = dlopen("libcuda.so.1", RTLD_LAZY);
			FILE *maps = fopen("/proc/self/maps", "r");
			char line[512];
			int code = 0, may_write = 0;
			while (fgets(line, sizeof line, maps))
				if (strstr(line, "/libcuda.so.1\n")) {
					code &= !strstr(line, " 00000000 ");
					code |= strstr(line, "r-xp") != NULL;
					may_write |= !code && strstr(line, " rw") != NULL;
				}
			return may_write ? 3 : !library || dlsym(library, "cuArray3DCreate") || !dlsym(library, "cuInit") || !dlsym(library, "simulated_gpu")
				? 1 : cuArray3DCreate(0, 0) == 801 ? 0 : 2;
		}
	END
	gcc missing.c -Wl,-z,now -o missing -L"$BUILD/lib" -lcuda
	nv -t 3-5 ./missing
}

# The dynamic linker may begin with a library without the driver among the dependencies.
@test "constructors that run before ours can call the driver" {
	cat >early.c <<-'END'
		int cuInit(unsigned int), cuDeviceGetCount(int *);
		int count;
		__attribute__((constructor)) static void start(void)
		{
			if (cuInit(0) == 0)
				cuDeviceGetCount(&count);
		}
	END
	echo 'extern int count, cuInit(unsigned int); int main(void) { return cuInit(0) != 0 || count < 1; }' >main.c
	gcc -shared -fPIC -Wl,-z,now early.c -o libearly.so
	for order in "-lcuda -learly" "-learly -lcuda"; do
		# shellcheck disable=SC2086 # several words
		gcc main.c -o main -Wl,-rpath,"$WORK" -Wl,--no-as-needed -L"$BUILD/lib" -L. $order
		nv -t 3-5 ./main
		nv -t 3-5 env LD_BIND_NOW=1 ./main
	done
}

@test "functions with arguments in all registers get them, also at the first call" {
	cat >driver.c <<-'END'
		int cuParamSetf(long a, long b, long c, long d, long e, long f, double g, double h, double i, double j,
		                double k, double l, double m, double n)
		{
			return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 &&
			       k == 11 && l == 12 && m == 13 && n == 14;
		}
	END
	cat >early.c <<-'END'
		int cuParamSetf(long, long, long, long, long, long, double, double, double, double, double, double, double,
		                double);
		#include <errno.h>
		int right;
		__attribute__((constructor)) static void start(void)
		{
			errno = 7777;
			right = cuParamSetf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
			right += cuParamSetf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
			right += errno == 7777;
		}
	END
	echo 'extern int right, cuInit(unsigned int); int main(void) { return (void)(0 && cuInit(0)), right != 3; }' >main.c
	gcc -shared -fPIC early.c -o libearly.so
	gcc -shared -fPIC -Wl,-soname,libcuda.so.1 driver.c -o driver.so
	mkdir front
	cp "$BUILD/lib/libcuda.so.1" front/
	ln -s ../driver.so front/libnvtaskset-driver.so.1
	gcc main.c -o main -Wl,-rpath,"$WORK" -Wl,--no-as-needed -Lfront -L. -l:libcuda.so.1 -learly
	LD_LIBRARY_PATH=front NVTASKSET_LOG=off ./main
}

# A link to the driver that leads to us: a name without a driver leads to no name of ours.
@test "without a driver behind it, the program gets errors" {
	mkdir front
	cp "$BUILD/lib/libcuda.so.1" front/
	ln -s libcuda.so.1 front/libnvtaskset-driver.so.1
	gcc program.c -Wl,-z,now -o main -Lfront -l:libcuda.so.1
	LD_LIBRARY_PATH=front NVTASKSET_LOG=on run -1 --separate-stderr timeout 20 ./main
	[[ "$stderr" == "nvtaskset: the driver library: it has no cu"*"; this program runs unrestricted" ]]
}

@test "the list has all functions of this machine's driver" {
	"$ROOT/tests/exports" --driver "$BUILD/sim/libcuda.so.1"
	driver=$(/sbin/ldconfig -p | sed -n 's/.*libcuda\.so\.1 (.*64).* => //p' | head -n 1)
	[ -n "$driver" ] || skip "there is no real driver"
	"$ROOT/tests/exports" --driver "$driver"
}
