#!/usr/bin/env bats
# What README and docs say was measured is what bench/data says
# processes: no
# takes: long
# sanitizers: no

load helpers

@test "statistics, queries, and numbers in texts" {
	PYTHONDONTWRITEBYTECODE=1 run -0 python3 "$ROOT/tests/python/report.py"
}

@test "every number of README and docs is in the data" {
	run -0 python3 "$ROOT/bench/report/texts.py" --check
}
