#!/usr/bin/env bats
# The interface that other programs are linked with: names, versions, sonames, layouts (docs/reference/compatibility.md).
# processes: no
# sanitizers: no

load helpers

@test "the libraries export what the list says, and nothing else" {
	"$ROOT/tests/exports"
}

declared() { # LIBRARY
	grep -oE "\b$1_[a-z_]+\(" "$ROOT/include/${1/#smctrl/libsmctrl}.h" | tr -d '(' | sort -u
}

exported() { # LIBRARY
	sed -nE "s/^$1\.so\.0 T ([^@]*)@@.*/\1/p" "$ROOT/tests/exports.list" | sort
}

@test "the list has exactly what the headers declare" {
	diff <(declared nvtaskset) <(exported libnvtaskset)
	diff <(declared libsmctrl) <(exported libsmctrl)
}

archived() { # FILE
	nm --defined-only --extern-only "$BUILD/$1" | sed -n 's/^.* [A-Z] //p' | sort
}

@test "the archives have exactly what the headers declare" {
	! is_sanitized || skip "sanitizers have names of their own"
	diff <(declared nvtaskset) <(archived api/libnvtaskset.a)
	diff <(declared libsmctrl) <(archived libsmctrl.a)
}

@test "structs have the layout that older programs were built with" {
	! is_sanitized || skip "the same without"
	cat >"$WORK/layout.c" <<-'END'
		#include <libsmctrl.h>
		#include <nvtaskset.h>

		_Static_assert(sizeof(struct nvtaskset_error) == 320, "error");
		_Static_assert(sizeof(struct nvtaskset_set) == 32, "set");
		_Static_assert(NVTASKSET_UNKNOWN == UINT64_MAX && NVTASKSET_LOOK_MS == 50, "numbers of times");
		_Static_assert(NVTASKSET_TPCS_MAX == 256 && NVTASKSET_SET_TEXT == 1024 && NVTASKSET_REASONS_MAX == 16, "limits");
		_Static_assert(NVTASKSET_ERROR_SHARED == 15 && NVTASKSET_DISTRIBUTED == 1, "numbers");
	END
	# Each with its least size, since those with a member of that name may grow at their end, and where its members are.
	while read -r struct size members; do
		echo "_Static_assert(sizeof(struct nvtaskset_$struct) >= $size, \"$struct\");"
		for member in $members; do
			echo "_Static_assert(offsetof(struct nvtaskset_$struct, ${member%=*}) == ${member#*=}, \"$struct.$member\");"
		done
	done >>"$WORK/layout.c" <<-'END'
		error 320 code=312 system_error=316
		gpu 176 bus_id=8 name=40 uuid=104 compute_major=152 compute_minor=156 tpc_count=160 sms_per_tpc=164 gpc_limit=168
		counters 160 restricted=8 unrestricted=16 refreshed=24 reasons=32
		kernels 56 launched=8 ended=16 in_flight=24 unannounced=32 gaps=40 launched_is_known=48 ended_is_known=52
		quota 48 run_us=8 period_us=12 in_force=16 state=20 present_us=24 aside_us=32 bounded=40
		rank 48 priority=8 weight=12 in_force=16 state=20 present_us=24 aside_us=32 bounded=40
		times 80 elapsed_ns=8 span_ns=16 busy_ns=24 tpc_ns=32 error_ns=40 timed=48 lost=56 gaps=64 is_known=72 is_presence=76
		function 80 name=8 instances=16 timed=24 total_ns=32 average_ns=40 median_ns=48 min_ns=56 max_ns=64 deviation_ns=72
	END
	[ "$(grep -c offsetof "$WORK/layout.c")" -eq 54 ]
	${CC:-cc} -std=c11 -Wall -Werror -I"$ROOT/include" -fsyntax-only "$WORK/layout.c"
}
