# What every experiment starts with. bench/run runs them: the environment is its.
set -euo pipefail
LEFT_OUT=77 # the exit status of an experiment that this machine cannot do
INCOMPLETE=3 # of one that did all but a part, whose reasons it told

# A part that fails does not keep an experiment from the others.
failures=0
note_failure() {
	failures=$((failures + 1))
}
trap '[ $? != 0 ] || [ $failures = 0 ] || exit $INCOMPLETE' EXIT
support=$(dirname "${BASH_SOURCE[0]}")
. "$support/mps.bash"
. "$support/mechanisms.bash"
. "$support/results.bash"
. "$support/tasks.bash"
