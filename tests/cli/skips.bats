#!/usr/bin/env bats
# Tests that cannot run: make check says how many were skipped and why, and with MUST_WORK=1 fails where a skip can be
# avoided. And tests that fail once, or hang; and the programs built for a test.
# processes: no
# takes: long
# sanitizers: no

load helpers

# Fake tests of both kinds, each with one that is skipped for a need and one that is skipped for another reason.
make_tests() {
	mkdir "$WORK/unit"
	cc -I"$ROOT/tests" -x c - -x none -lcmocka -o "$WORK/unit/program" <<-'END'
		#include "cases.h"

		static void test_need(void **state) { (void)state; skip_because("needs a penny"); }
		static void test_other(void **state) { (void)state; skip_because("it rains"); }
		static void test_run(void **state) { (void)state; }

		int main(void)
		{
			const struct CMUnitTest tests[] = {
				cmocka_unit_test(test_need), cmocka_unit_test(test_other), cmocka_unit_test(test_run),
			};

			return cmocka_run_group_tests(tests, NULL, NULL);
		}
	END
	printf '@test "%s" {\n\t%s\n}\n' need 'skip "needs a penny"' other 'skip "it rains"' run true >"$WORK/file.bats"
}

# Runs tests as make check does, with a directory of its own for their output.
prove_tests() { # MUST_WORK, TEST…
	run env BUILD="$WORK" PERL5LIB="$ROOT/tests" MUST_WORK="$1" \
		prove --harness Harness --exec "$ROOT/tests/run" "${@:2}" 3>&-
}

@test "skipped tests are counted by their reasons, before the result" {
	make_tests
	prove_tests 0 "$WORK/unit/program" "$WORK/file.bats"
	[ "$status" -eq 0 ]
	[[ "$output" == *"Tests skipped: 4
     2 it rains
     2 needs a penny
All tests successful.
"* ]]
	[ "${lines[-1]}" = "Result: PASS" ]
}

@test "with MUST_WORK=1, a test that is skipped for a need fails" {
	make_tests
	for test in "$WORK/unit/program" "$WORK/file.bats"; do
		prove_tests 1 "$test"
		[ "$status" -ne 0 ]
		[[ "$output" == *"Tests skipped: 1
     1 it rains
"*"  Failed test:  1
"* ]]
		[ "${lines[-1]}" = "Result: FAIL" ]
		grep -q '^not ok 1 .*need # skipped with MUST_WORK=1: needs a penny$' "$WORK/tests/said/${test##*/}"
	done
}

@test "nothing is skipped without a reason" {
	printf '@test "lazy" {\n\tskip\n}\n' >"$WORK/file.bats"
	prove_tests 0 "$WORK/file.bats"
	[ "$status" -ne 0 ]
	grep -qx 'not ok 1 lazy # skipped without a reason' "$WORK/tests/said/file.bats"
	[[ "$output" == *"Tests skipped: 0
"* ]]
}

# Runs tests that fail the first time, and pass then.
run_unsteady() { # AGAIN, HOW MANY
	mkdir "$WORK/unsteady.$2"
	for i in $(seq "$2"); do
		printf '@test "unsteady" {\n\t! mkdir "%s"\n}\n' "$WORK/unsteady.$2/$i" >"$WORK/unsteady.$2/$i.bats"
	done
	run env BUILD="$WORK" JOBS=2 AGAIN="$1" "$ROOT/tests/all" "$WORK/unsteady.$2"/*.bats 3>&-
}

@test "with AGAIN=3, up to three tests that fail beside others pass if they pass alone" {
	run_unsteady 3 3
	[ "$status" -eq 0 ]
	[ "$(grep -c '^Unsteady, .*: .*/unsteady.3/[123].bats$' <<<"$output")" -eq 3 ]
	run_unsteady 3 4
	[ "$status" -ne 0 ]
	run_unsteady 0 1
	[ "$status" -ne 0 ]
	[[ "$output" == *"./1.bats:
not ok 1 unsteady"* ]]
	printf '@test "wrong" {\n\tfalse\n}\n' >"$WORK/wrong.bats"
	# The name of a test on a simulated GPU is no file's.
	for test in "$WORK/wrong.bats" "$WORK/gpu/none@h200"; do
		run ! env BUILD="$WORK" JOBS=2 AGAIN=3 "$ROOT/tests/all" "$test" 3>&-
		[[ "$output" == *"Once more, one at a time:"* ]]
		[[ "$output" != *Unsteady* ]]
	done
}

@test "tests that look at none run first, beside each other; the others one at a time" {
	for name in a b; do
		printf '@test "meets" {\n\ttouch %q\n\tfor _ in $(seq 600); do [ -e %q ] && return; sleep 0.1; done\n\tfalse\n}\n' \
			"$WORK/$name" "$WORK/$(tr ab ba <<<$name)" >"$WORK/$name.bats"
	done
	for name in c d; do
		printf '@test "is alone" {\n\t[ -e %q ] && mkdir %q\n\tsleep 0.3\n\trmdir %q\n}\n' "$WORK/b" "$WORK/alone" "$WORK/alone" >"$WORK/$name.bats"
	done
	run -0 env BUILD="$WORK" JOBS=2 LOOK_AT_NONE="$WORK/a.bats $WORK/b.bats" \
		"$ROOT/tests/all" "$WORK"/{c,a,d,b}.bats 3>&-
}

@test "a test hangs where no case ends for as long as its head says, or TEST_SECONDS" {
	printf '%s\n' "# A test" "# limit: 1" '@test "hangs" {' 'sleep 9999' '}' >"$WORK/hangs.bats"
	run ! env BUILD="$WORK" "$ROOT/tests/run" "$WORK/hangs.bats" 3>&-
	[ "${lines[-1]}" = "not ok hangs: no case has ended for 1 s" ]
	sed -i 's/^# limit: .*/# limit: 9999/' "$WORK/hangs.bats"
	TEST_SECONDS=2 run ! env BUILD="$WORK" "$ROOT/tests/run" "$WORK/hangs.bats" 3>&-
	[ "${lines[-1]}" = "not ok hangs: no case has ended for 2 s" ]
	not pgrep -f "$WORK/hangs.bats"
}

# The programs and libraries of make check, and the tests.
planned() { # ARGUMENT…
	make -s -n -C "$ROOT" BUILD="$WORK/b" run-check "$@" 3>&- |
		sed -n "s,.* -o $WORK/b/,,p; s,.*tests/all *$WORK/b/,runs ,p" | grep -v '\.o$'
}

@test "TESTS before make or behind: only the programs of a test are built, and only the test runs" {
	unset MAKEFLAGS TESTS
	diff <(planned TESTS="$WORK/b/tests/unit/qmd") - <<<"tests/unit/qmd
runs tests/unit/qmd"
	diff <(TESTS=$WORK/b/tests/unit/qmd planned) <(planned TESTS="$WORK/b/tests/unit/qmd")
	diff <(planned TESTS="$WORK/b/tests/gpu/hidden@turing" | LC_ALL=C sort) - <<<"lib/libcuda.so.1
lib/libnvtaskset-attach.so
nvtaskset
runs tests/gpu/hidden@turing
sim/libcuda.so.1
stub/libnvtaskset-driver.so.1
tests/gpu/hidden
tests/programs/libcublas.so.0"
}
