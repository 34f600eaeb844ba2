#!/usr/bin/env bats
# Programs written for libsmctrl: inside nvtaskset and without it, with the shared library and with the archive in the
# program. tests/gpu/smctrl.c tests where their kernels run.

load helpers

prepare() {
	SMCTRL=$BUILD/tests/programs/smctrl
	export LD_LIBRARY_PATH=$BUILD/sim
}

runs_as_documented() {
	[ "${lines[*]}" = "default: TPCs 0 other: TPCs 0-4 urgent: TPCs 5-8 next: TPCs 10-11 urgent: TPCs 5-8" ]
}

@test "without nvtaskset" {
	run -0 "$SMCTRL"
	runs_as_documented
	run -0 "$SMCTRL-static"
	runs_as_documented
}

@test "a program that was linked with the original, and one that opens libsmctrl.so by name" {
	local program
	readelf -d "$SMCTRL-original" | grep -q 'NEEDED.*\[libsmctrl\.so\]'
	for program in "$SMCTRL-original" "$SMCTRL-opens"; do
		LD_LIBRARY_PATH=$BUILD/sim:$BUILD run -0 "$program"
		runs_as_documented
		LD_LIBRARY_PATH=$BUILD run -0 nv all "$program"
		runs_as_documented
	done
}

@test "a newly linked program finds the library by its versioned name, and needs versioned symbols" {
	readelf -d "$BUILD/tests/programs/smctrl" | grep -q 'NEEDED.*\[libsmctrl\.so\.0\]'
	nm -D "$BUILD/tests/programs/smctrl" | grep -q ' U libsmctrl_set_next_mask@LIBSMCTRL_0\.1$'
}

@test "the partition overrules the masks" {
	run nv -t 3-10 "$SMCTRL"
	[ "${lines[*]}" = "default: TPCs 3-10 other: TPCs 3-4 urgent: TPCs 5-8 next: TPCs 10 urgent: TPCs 5-8" ]
}

shows_own_mask() {
	shown=$(nvtaskset -l --json | jq ".processes[] | select(.pid == $PROGRAM)")
	[[ "$shown" == *own_mask* ]]
}

@test "a launch whose mask is overruled did not run outside" {
	start nvtaskset --mps off -t 10-12 "$SMCTRL" 1000000000
	wait_until shows_own_mask
	[ "$(jq '.reasons[] | select(.reason == "own_mask") | .times > 0' <<<"$shown")" = true ]
	[ "$(jq .outside <<<"$shown")" = 0 ]
}

has_no_effect() { # reason
	[ "${lines[0]}" = "nvtaskset: $1; libsmctrl's masks have no effect" ]
	[ "${lines[1]}" = "default: TPCs 0-65" ]
	[ "${#lines[@]}" -eq 6 ]
}

@test "a driver that does not announce launches: the program runs, and one line says so" {
	SIM_FAULTS=no-table run "$SMCTRL"
	has_no_effect "the driver has no callback table (error 500)"
	SIM_FAULTS=no-launch-events run "$SMCTRL"
	has_no_effect "the driver does not announce launches (error 801)"
	SIM_FAULTS=no-table NVTASKSET_LOG=off run "$SMCTRL"
	[ "${lines[0]}" = "default: TPCs 0-65" ]
	# Inside nvtaskset, its library says why, and libsmctrl that its masks have no effect.
	run nv -t 3 env SIM_FAULTS=no-table "$SMCTRL"
	[ "${lines[0]}" = "nvtaskset: the driver has no callback table (error 500); this program runs unrestricted" ]
	[ "${lines[1]}" = "nvtaskset: nvtaskset's library in this program cannot see launches; libsmctrl's masks have no effect" ]
	[ "${lines[2]}" = "default: TPCs 0-65" ]
}

@test "launches with unknown descriptors run unrestricted, and that is said" {
	SIM_FAULTS=bad-qmd run -0 "$SMCTRL"
	[[ "$output" == *"nvtaskset: the launch descriptor has an unknown version; launches run unrestricted"* ]]
	[[ "$output" == *"default: TPCs 0-65"* ]]
}

@test "no driver: the library loads, and says what is missing" {
	cat >"$WORK/program.c" <<-END
		#include <errno.h>
		#include <libsmctrl.h>
		#include <stdio.h>
		int main(void)
		{
			uint32_t count = 7;

			errno = EDOM;
			if (libsmctrl_is_init() || errno != EDOM)
				return 2;

			printf("%d\n", libsmctrl_set_global_mask(1));
			printf("%d\n", libsmctrl_set_next_mask(1));
			printf("%d\n", libsmctrl_get_tpc_info_cuda(&count, 0));
			return libsmctrl_validate_stream_mask(NULL, 0, 1, true) == -1 && count == 7 ? 0 : 1;
		}
	END
	! is_sanitized || skip "another compiler's program"
	cc -I"$ROOT/include" "$WORK/program.c" -L"$BUILD" -lsmctrl -Wl,-rpath,"$BUILD" -o "$WORK/program"
	! ldconfig -p | grep -q libcuda.so.1 || skip "there is a driver here"
	run -0 env -u LD_LIBRARY_PATH "$WORK/program"
	[[ "${lines[0]}" == "nvtaskset: the driver library: libcuda.so.1: cannot open shared object file"*"; libsmctrl's masks have no effect" ]]
	[ "${lines[*]:1}" = "95 95 19" ]
}

@test "the header compiles as C++, too" {
	needs c++
	printf '#include <libsmctrl.h>\nint main() { uint128_t m; return libsmctrl_make_mask_ext(&m, 0, 1); }\n' >"$WORK/program.cc"
	! is_sanitized || skip "another compiler's program"
	c++ -Wall -Wextra -Wpedantic -Werror -I"$ROOT/include" "$WORK/program.cc" "$BUILD/libsmctrl.a" -ldl -lpthread -o "$WORK/program"
	"$WORK/program"
}
