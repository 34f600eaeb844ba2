# The beginning of every experiment. bench/run runs it and sets its environment.
set -euo pipefail
LEFT_OUT=77  # the exit status of an experiment that this machine cannot run
INCOMPLETE=3 # the exit status of one that could not do a part, and said why

# If a part fails, an experiment goes on with the others.
failures=0
note_failure() {
	failures=$((failures + 1))
}

# However an experiment ends, it leaves none of its programs.
leave() {
	local status=$?
	stop "${!task_pids[@]}" || true
	[ $status != 0 ] || [ $failures = 0 ] || status=$INCOMPLETE
	exit $status
}
trap leave EXIT

support=$(dirname "${BASH_SOURCE[0]}")
. "$support/mps.bash"
. "$support/mechanisms.bash"
. "$support/results.bash"
. "$support/tasks.bash"
. "$support/turns.bash"

# Measures all cases once in each round, in random order: measure ROUND CASE for each line of `cases ROUND`.
# What would begin later than so many seconds after the experiment did is left out, and said; so are all later rounds. Not to be
# called in a condition: a failure in measure would not end the experiment then. BENCH_FIRST_ROUND: the number of the first one,
# where a run goes on with another.
measure_rounds() { # ROUNDS [SECONDS]
	local round cases case left_out=0
	for round in $(seq "${BENCH_FIRST_ROUND:-1}" $((${BENCH_FIRST_ROUND:-1} + $1 - 1))); do
		mapfile -t cases < <(cases "$round" | shuf)
		for case in "${cases[@]}"; do
			if [ "$SECONDS" -ge "${2:-1000000}" ]; then
				left_out=$((left_out + 1))
			else
				# shellcheck disable=SC2046,SC2086 # several words
				measure "$round" $(length_of "$case") $case
			fi
		done
		[ $left_out = 0 ] || {
			echo "  round $round: $left_out of ${#cases[@]} cases left out: no time" >&2
			return 0
		}
	done
}

# What is measured in a round: by default, these mechanisms.
cases() { # ROUND
	printf '%s\n' "${mechanisms[@]}"
}

# Where cases are turns (turns.bash), how long one is; else nothing.
length_of() { # CASE
	:
}

# What comes first fills caches, and leaves no row.
warm_up() { # COMMAND…
	local csv=/dev/null
	"$@"
}

# Adds a row for each line that a command prints, with these first columns; no row if it fails.
rows_of() { # COLUMN,COLUMN… COMMAND…
	if "${@:2}" >"$BENCH_WORK/printed"; then
		rows "$1" <"$BENCH_WORK/printed"
	else
		note_failure
	fi
}
