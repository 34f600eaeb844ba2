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

# Whether there is time for more rounds; says so if not.
has_time() { # SECONDS-SINCE-THE-START
	[ "$SECONDS" -ge "$1" ] || return 0
	echo "  no more rounds after $1 s" >&2
	return 1
}

# Adds a row for each line that a command prints, with these first columns; no row if it fails.
rows_of() { # COLUMN,COLUMN… COMMAND…
	if "${@:2}" >"$BENCH_WORK/printed"; then
		rows "$1" <"$BENCH_WORK/printed"
	else
		note_failure
	fi
}
