#!/usr/bin/env bats
# The interface that other programs are linked with: names, versions, sonames, layouts (docs/compatibility.md).

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

@test "structs have the layout that older programs were built with" {
	! is_sanitized || skip "the same without"
	cat >"$WORK/layout.c" <<-'END'
		#include <libsmctrl.h>
		#include <nvtaskset.h>

		#define IS_AT(type, member, place) \
			_Static_assert(offsetof(struct nvtaskset_##type, member) == (place), #type "." #member)
		#define IS_LARGE(type, bytes) _Static_assert(sizeof(struct nvtaskset_##type) >= (bytes), #type)

		_Static_assert(sizeof(struct nvtaskset_error) == 320, "error");
		IS_AT(error, code, 312);
		IS_AT(error, system_error, 316);
		_Static_assert(sizeof(struct nvtaskset_set) == 32, "set");
		IS_LARGE(gpu, 176); /* those with a size may grow at their end */
		IS_AT(gpu, bus_id, 8);
		IS_AT(gpu, name, 40);
		IS_AT(gpu, uuid, 104);
		IS_AT(gpu, compute_major, 152);
		IS_AT(gpu, compute_minor, 156);
		IS_AT(gpu, tpc_count, 160);
		IS_AT(gpu, sms_per_tpc, 164);
		IS_AT(gpu, gpc_limit, 168);
		IS_LARGE(counters, 160);
		IS_AT(counters, restricted, 8);
		IS_AT(counters, unrestricted, 16);
		IS_AT(counters, refreshed, 24);
		IS_AT(counters, reasons, 32);
		IS_LARGE(kernels, 56);
		IS_AT(kernels, launched, 8);
		IS_AT(kernels, ended, 16);
		IS_AT(kernels, in_flight, 24);
		IS_AT(kernels, unannounced, 32);
		IS_AT(kernels, gaps, 40);
		IS_AT(kernels, launched_is_known, 48);
		IS_AT(kernels, ended_is_known, 52);
		IS_LARGE(quota, 48);
		IS_AT(quota, run_us, 8);
		IS_AT(quota, period_us, 12);
		IS_AT(quota, in_force, 16);
		IS_AT(quota, state, 20);
		IS_AT(quota, present_us, 24);
		IS_AT(quota, aside_us, 32);
		IS_AT(quota, bounded, 40);
		IS_LARGE(rank, 48);
		IS_AT(rank, priority, 8);
		IS_AT(rank, weight, 12);
		IS_AT(rank, in_force, 16);
		IS_AT(rank, state, 20);
		IS_AT(rank, present_us, 24);
		IS_AT(rank, aside_us, 32);
		IS_AT(rank, bounded, 40);
		IS_LARGE(times, 80);
		IS_AT(times, elapsed_ns, 8);
		IS_AT(times, span_ns, 16);
		IS_AT(times, busy_ns, 24);
		IS_AT(times, tpc_ns, 32);
		IS_AT(times, error_ns, 40);
		IS_AT(times, timed, 48);
		IS_AT(times, lost, 56);
		IS_AT(times, gaps, 64);
		IS_AT(times, is_known, 72);
		IS_AT(times, is_presence, 76);
		IS_LARGE(function, 80);
		IS_AT(function, name, 8);
		IS_AT(function, instances, 16);
		IS_AT(function, timed, 24);
		IS_AT(function, total_ns, 32);
		IS_AT(function, average_ns, 40);
		IS_AT(function, median_ns, 48);
		IS_AT(function, min_ns, 56);
		IS_AT(function, max_ns, 64);
		IS_AT(function, deviation_ns, 72);
		_Static_assert(NVTASKSET_UNKNOWN == UINT64_MAX && NVTASKSET_LOOK_MS == 50, "numbers of times");
		_Static_assert(NVTASKSET_TPCS_MAX == 256 && NVTASKSET_SET_TEXT == 1024 && NVTASKSET_REASONS_MAX == 16, "limits");
		_Static_assert(NVTASKSET_ERROR_SHARED == 15 && NVTASKSET_DISTRIBUTED == 1, "numbers");
	END
	"${CC:-cc}" -std=c11 -Wall -Werror -I"$ROOT/include" -fsyntax-only "$WORK/layout.c"
}
