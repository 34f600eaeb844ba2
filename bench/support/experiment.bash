# What every experiment starts with. bench/run runs them: the environment is its.
set -euo pipefail
LEFT_OUT=77  # the exit status of an experiment that this machine cannot do
INCOMPLETE=3 # of one that did all but a part, whose reasons it told

# A part that fails does not keep an experiment from the others.
failures=0
note_failure() {
	failures=$((failures + 1))
}

# However it ends, it leaves none of its programs.
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

# Adds a row for each line that a command prints, with these first columns; none where it fails.
rows_of() { # COLUMN,COLUMN… COMMAND…
	if "${@:2}" >"$BENCH_WORK/printed"; then
		rows "$1" <"$BENCH_WORK/printed"
	else
		note_failure
	fi
}
