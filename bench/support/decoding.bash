# Decoding of a language model in a quarter of the GPU, beside a neighbour in the rest (PyTorch). An experiment has:
#
#   share TURN                        see turns.bash
#   measure_decoding NEIGHBOUR NAME
#   decode_options                    of decode.py, if any
. "$(dirname "${BASH_SOURCE[0]}")/pytorch.bash"

# BENCH_DECODE_SECONDS: how long is measured in all. Start and end take some 20 s, the changes of turns another 45.
# BENCH_ROUNDS: the number of rounds. Eight are enough for intervals.
seconds=${BENCH_DECODE_SECONDS:-$(pick 400 1)} rounds=${BENCH_ROUNDS:-$(pick 8 1)}
split_gpu packed 25%
decode_options=()

start_programs() { # MECHANISM
	# Only its neighbours have a lower priority.
	[ "$1" = mps-priority ] || start_program "decode-$1" "$1" first decode.py "${decode_options[@]}"
	start_program "$neighbour-$1" "$1" rest batch.py "$neighbour"
	add_turns "$1"
	[ "$1" != nvtaskset ] || add_turns nvtaskset-distributed nvtaskset-overlap
	[ "$1" != nvtaskset-priority ] || add_turns by-hand
}

add_turns() { # MECHANISM…
	local mechanism
	for mechanism in "$@"; do
		turns+=("$mechanism alone" "$mechanism $neighbour")
	done
}

# The programs of these are those of another one, in another partition.
programs_of() { # MECHANISM
	case $1 in
	nvtaskset-distributed | nvtaskset-overlap) echo nvtaskset ;;
	*) echo "$1" ;;
	esac
}

# Moves the programs of nvtaskset to where this turn wants them, while they rest.
place() { # MECHANISM NEIGHBOUR
	local decode=$first_list
	case $1 in
	nvtaskset) ;;
	nvtaskset-distributed)
		split_gpu distributed 25%
		decode=$first_list
		;;
	nvtaskset-overlap) decode=0-$((total_tpcs - 1)) ;;
	*) return 0 ;;
	esac
	give decode-nvtaskset -t "$decode"
	[ "$2" = alone ] || give "$2-nvtaskset" -t "$rest_list"
	split_gpu packed 25%
}

# The mechanism `alone` is a neighbour on the whole GPU without the decoding.
measure() { # ROUND SECONDS MECHANISM NEIGHBOUR
	local programs decode beside
	programs=$(programs_of "$3")
	decode=decode-$programs beside=$4-$programs
	[ "$3" != by-hand ] || decode=decode-none beside=$4-nvtaskset-priority
	[ "$3" != mps-priority ] || decode="decode-mps"
	place "$3" "$4"
	[ "$3" != alone ] || decode='' beside=$4-none
	[ "$4" != alone ] || beside=
	# shellcheck disable=SC2086
	take_turn "$2" $beside $decode || return 0
	[ -z "$decode" ] || turn_samples "$decode" | csv=$decode_csv rows "$1" "$3" "$4"
	[ -z "$beside" ] || turn_samples "$beside" | csv=$neighbour_csv rows "$1" "$3" "$4"
}

# All that there are. PyTorch's green contexts have so many SMs, never the rest: those of two programs would begin at the
# same SM.
measure_decoding_with_all() { # NEIGHBOUR NAME
	echo "  left out: green: a program of PyTorch cannot have what another's green context leaves" >&2
	measure_decoding "$@" none mps mps-priority mps-percent mps-static mig nvtaskset nvtaskset-no-mps
}

# Into NAME.csv and NAME_neighbour.csv.
measure_decoding() { # NEIGHBOUR NAME MECHANISM…
	local turns=()
	neighbour=$1
	open_csv "$2" round,mechanism,neighbour,us
	decode_csv=$csv
	open_csv "$2_neighbour" round,mechanism,neighbour,us
	neighbour_csv=$csv
	add_turns alone
	take_all_turns "${@:3}"
}
