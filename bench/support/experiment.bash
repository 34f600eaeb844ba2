# What every experiment starts with. bench/run runs them: the environment is its.
set -euo pipefail
LEFT_OUT=77 # the exit status of an experiment that this machine cannot do
support=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source-path=SCRIPTDIR
{
	. "$support/mps.bash"
	. "$support/mechanisms.bash"
	. "$support/results.bash"
	. "$support/tasks.bash"
}
