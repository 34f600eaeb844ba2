# Decoding of a language model in a quarter of the GPU, beside a neighbour in the rest (PyTorch). An experiment has:
#
#   share TURN                        how much of the time a turn gets; 0: it is none (see turns.bash)
#   measure_decoding NEIGHBOUR NAME
#   decode_options                    of decode.py, if any
. "$(dirname "${BASH_SOURCE[0]}")/pytorch.bash"

# BENCH_DECODE_SECONDS: how long is measured in all. Start and end take some 20 s, the changes of turns another 45. Eight
# rounds, for intervals.
seconds=${BENCH_DECODE_SECONDS:-$(pick 400 1)} rounds=$(pick 8 1)
split_gpu packed 25%
decode_options=()

start_programs() { # MECHANISM
	# Only its neighbours have a lower priority.
	[ "$1" = mps-priority ] || start_program "decode-$1" "$1" first decode.py "${decode_options[@]}"
	start_program "$neighbour-$1" "$1" rest batch.py "$neighbour"
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

# The turns that get a share.
turns_of() { # MECHANISM
	local turn
	for turn in "$1 alone" "$1 $neighbour"; do
		[ "$(share "$turn")" = 0 ] || turns+=("$turn")
	done
}

# Into NAME.csv and NAME_neighbour.csv.
measure_decoding() { # NEIGHBOUR NAME MECHANISM…
	local mechanisms mechanism turns=()
	neighbour=$1
	open_csv "$2" round,mechanism,neighbour,us
	decode_csv=$csv
	open_csv "$2_neighbour" round,mechanism,neighbour,us
	neighbour_csv=$csv
	mapfile -t mechanisms < <(available "${@:3}")
	turns_of alone
	for mechanism in "${mechanisms[@]}"; do
		make_partitions "$mechanism" || continue
		start_programs "$mechanism"
		turns_of "$mechanism"
		[ "$mechanism" != nvtaskset ] || turns_of nvtaskset-distributed
		[ "$mechanism" != nvtaskset ] || turns_of nvtaskset-overlap
		[ "$mechanism" != nvtaskset-priority ] || turns_of by-hand
	done
	take_all_turns
}
