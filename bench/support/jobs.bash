# A job of two programs under all mechanisms, live peers among them (bench/jobs). The programs of a mechanism start once, at rest, and
# take turns (turns.bash); nvtaskset's clients of MPS are one pair, which is set up anew for each turn: others at rest, with a priority
# or with TPCs that they do not lend, would be seen by the law of the gate.
#
#   BENCH_MODES   what this pair is set up to in turn (fixed, lend-LIMIT for LIMIT 2ms and others, follow, nvtaskset-stepping, …)
#   BENCH_PEERS   a directory outside of this repository with the commands xsched.sh and hami.sh, built from their own sources; these
#                 peers are left out without it
#
# An experiment has start_job MECHANISM, which starts first-MECHANISM and rest-MECHANISM, and share and measure of turns.bash.
. "$(dirname "${BASH_SOURCE[0]}")/pytorch.bash"

modes="fixed lend-2ms follow shared nvtaskset-stepping"
all_mechanisms="none xsched hami mps mps-priority mps-percent mps-static nvtaskset-priority nvtaskset"

# Starts all pairs and waits for them; leaves a turn of each for each LOAD, and of each program alone, in `turns`.
start_jobs() { # LOAD…
	turns=() loads=("$@")
	add_turns alone-first
	add_turns alone-rest
	# shellcheck disable=SC2086
	start_all $all_mechanisms
}

start_programs() { # MECHANISM
	local modes_of_it=$1 mode
	start_job "$1"
	[ "$1" != nvtaskset ] || modes_of_it=${BENCH_MODES-$modes}
	for mode in $modes_of_it; do
		add_turns "$mode"
	done
}

add_turns() { # MECHANISM
	local load
	for load in "${loads[@]}"; do
		turns+=("$1 $load")
	done
}

# The programs of a turn, in the variables first and rest.
find_programs() { # MECHANISM [NAME]
	local name=${2:-first}
	first=$name-$1 rest=rest-$1
	case $1 in
	alone-first) first=$name-none rest= ;;
	alone-rest) first='' rest=rest-none ;;
	mps-priority) first=$name-mps ;;
	fixed | lend-* | follow | shared | nvtaskset-stepping | nvtaskset-prt) first=$name-nvtaskset rest=rest-nvtaskset ;;
	esac
}

# Those at rest would keep their TPCs from one that borrows: so all lend.
let_all_lend() { # LIMIT
	local name
	for name in "${!task_pids[@]}"; do
		[[ $name != *-nvtaskset ]] || give "$name" "--lend=$1"
	done
}

place() { # PRIORITY LIST PRIORITY LIST: of the first and of the rest
	give "$first" --priority "$1" -t "$2"
	give "$rest" --priority "$3" -t "$4"
}

# What a mode is while its programs work.
begin_mode() { # MECHANISM
	local all_list=0-$((total_tpcs - 1))
	case $1 in
	lend-*)
		let_all_lend "${1#lend-}"
		give "$first" --borrow
		give "$rest" --borrow
		;;
	follow)
		python3 "$BENCH_ROOT/bench/support/follow.py" "${task_pids[$first]}" "$first_list" "${task_pids[$rest]}" "$rest_list" "$all_list" &
		follower=$!
		;;
	shared) place 50 "$all_list" 50 "$all_list" ;;
	nvtaskset-stepping) place 80 "$first_list" 20 "$all_list" ;;
	nvtaskset-prt) place 80 "$all_list" 20 "$all_list" ;;
	esac
}

end_mode() { # MECHANISM
	case $1 in
	lend-*)
		give "$first" --borrow=off
		give "$rest" --borrow=off
		let_all_lend off
		;;
	follow)
		kill "$follower" || true
		wait "$follower" || true
		;;
	shared | nvtaskset-stepping | nvtaskset-prt) place 50 "$first_list" 50 "$rest_list" ;;
	esac
}

open_states() { # EXPERIMENT
	open_csv "$1_state" round,mechanism,load,power,clock,temperature
	states=$csv
}

# Products are limited by power, so each turn's power, clock and temperature are noted.
note_state() { # ROUND MECHANISM LOAD
	[ -z "${BENCH_SIMULATED:-}" ] || return 0
	nvidia-smi --query-gpu=power.draw,clocks.sm,temperature.gpu --format=csv,noheader,nounits -i "$BENCH_GPU" | tr -d ' ' |
		csv=$states rows "$@"
}

# Lets the two work for so long. Fails if one cannot.
work_together() { # ROUND SECONDS MECHANISM LOAD
	local result=0 noting
	begin_mode "$3"
	(sleep "$(awk "BEGIN {print 0.1 + $2 / 2}")" && note_state "$1" "$3" "$4") &
	noting=$!
	# shellcheck disable=SC2086
	take_turn "$2" $first $rest || result=1
	wait $noting
	end_mode "$3"
	return $result
}
