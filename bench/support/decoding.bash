# Decoding of a language model in a quarter of the GPU, beside a neighbour in the rest (PyTorch). An experiment has:
#
#   share TURN                        how much of the time a turn gets; 0: it is none (see turns.bash)
#   measure_decoding NEIGHBOUR NAME
. "$(dirname "${BASH_SOURCE[0]}")/turns.bash"

# BENCH_DECODE_SECONDS: how long is measured in all. Start and end take some 20 s, the changes of turns another 45. Eight
# rounds, for intervals.
seconds=${BENCH_DECODE_SECONDS:-$(pick 400 1)} rounds=$(pick 8 1)
split_gpu packed 25%

has_torch() {
	python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null
}

if [ -z "${BENCH_SIMULATED:-}" ] && ! has_torch; then
	echo "  left out: decode: there is no PyTorch" >&2
	exit "$LEFT_OUT"
fi

# Up to 3 programs of 5 mechanisms are clients of one MPS server, which has room for 48 of so many connections. Each
# program uses one stream.
export CUDA_DEVICE_MAX_CONNECTIONS=2
# The first line that a failed program leaves is the reason.
export PYTHONWARNINGS=ignore

# A simulated GPU takes no time: there, any work will do.
start_program() { # NAME MECHANISM PART PROGRAM…
	if [ -n "${BENCH_SIMULATED:-}" ]; then
		start_task "$1" "$2" "$3" compute --size 8 --at-rest
	else
		start "$1" "$2" "$3" python3 "$BENCH_ROOT/bench/$4" "${@:5}" --at-rest
	fi
}

start_programs() { # MECHANISM
	# Only its neighbours have a lower priority.
	[ "$1" = mps-priority ] || start_program "decode-$1" "$1" first decode.py
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
	move "decode-nvtaskset" "$decode"
	[ "$2" = alone ] || move "$2-nvtaskset" "$rest_list"
	split_gpu packed 25%
}

move() { # NAME LIST
	[ -z "${task_pids[$1]:-}" ] || nvtaskset -tp "$2" "${task_pids[$1]}" >/dev/null || note_failure
}

# The mechanism `alone` is a neighbour on the whole GPU without the decoding.
measure() { # ROUND SECONDS MECHANISM NEIGHBOUR
	local programs decode beside
	programs=$(programs_of "$3")
	decode=decode-$programs beside=$4-$programs
	[ "$3" != mps-priority ] || decode="decode-mps"
	place "$3" "$4"
	[ "$3" != alone ] || decode='' beside=$4-none
	[ "$4" != alone ] || beside=
	# shellcheck disable=SC2086
	take_turn "$2" $beside $decode || return 0
	[ -z "$decode" ] || turn_samples "$decode" | csv=$decode_csv rows "$1" "$3" "$4"
	[ -z "$beside" ] || turn_samples "$beside" | csv=$neighbour_csv rows "$1" "$3" "$4"
}

# The turns that get a share.
turns_of() { # MECHANISM
	local turn
	for turn in "$1 alone" "$1 $neighbour"; do
		[ "$(share "$turn")" = 0 ] || turns+=("$turn")
	done
}

# Into NAME.csv and NAME_neighbour.csv.
measure_decoding() { # NEIGHBOUR NAME
	local mechanisms mechanism name turns=()
	neighbour=$1
	open_csv "$2" round,mechanism,neighbour,us
	decode_csv=$csv
	open_csv "$2_neighbour" round,mechanism,neighbour,us
	neighbour_csv=$csv
	# PyTorch's green contexts have so many SMs, never the rest: those of two programs would begin at the same SM.
	echo "  left out: green: a program of PyTorch cannot have what another's green context leaves" >&2
	mapfile -t mechanisms < <(available none mps mps-priority mps-percent mps-static mig nvtaskset nvtaskset-no-mps)
	turns_of alone
	for mechanism in "${mechanisms[@]}"; do
		make_partitions "$mechanism" || continue
		start_programs "$mechanism"
		turns_of "$mechanism"
		[ "$mechanism" != nvtaskset ] || turns_of nvtaskset-distributed
		[ "$mechanism" != nvtaskset ] || turns_of nvtaskset-overlap
	done
	for name in "${!task_pids[@]}"; do
		await "$name" || true
	done
	take_turns "$rounds" "$seconds" "${turns[@]}"
}
