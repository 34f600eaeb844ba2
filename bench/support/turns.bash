# Programs take turns, by signals (support/conversation.h). Those whose turn it is not are at rest: they wait, and the GPU has
# nothing to do for them. So programs with and without MPS may exist beside each other, and never work at the same time; where
# all exist from the beginning of an experiment, mechanisms alternate in short turns, and each program starts only once.
#
# A turn is "MECHANISM NEIGHBOUR". The experiment has:
#
#   share TURN            prints how much of the time a turn gets, as a whole number; all get the same without it; 0: it is left out
#   measure ROUND SECONDS MECHANISM NEIGHBOUR

share() { # TURN
	echo 1
}

# Programs that start at the same time may share a static partition, so it is made before. Fails if no room is left.
make_partitions() { # MECHANISM
	local part
	[ "$1" = mps-static ] || return 0
	for part in first rest; do
		[ -n "$(CUDA_MPS_PIPE_DIRECTORY=$BENCH_STATIC static_partition "$part")" ] || {
			echo "  $1: there is no room for the partition '$part'" >&2
			note_failure
			return 1
		}
	done
}

# Measures each turn once in each round.
take_turns() { # ROUNDS SECONDS TURN…
	local rounds=$1 seconds=$2 shares=0 turn taken=()
	for turn in "${@:3}"; do
		[ "$(share "$turn")" = 0 ] || taken+=("$turn")
		shares=$((shares + $(share "$turn")))
	done
	cases() {
		printf '%s\n' "${taken[@]}"
	}
	length_of() {
		awk "BEGIN {print $seconds * $(share "$1") / $shares / $rounds}"
	}
	measure_rounds "$rounds"
}

# Starts the programs of those of these mechanisms that the machine has, by start_programs MECHANISM, and waits until they are ready:
# all at once, since each takes seconds. Leaves the mechanisms in `mechanisms`.
start_all() { # MECHANISM…
	local mechanism
	mapfile -t mechanisms < <(available "$@")
	for mechanism in "${mechanisms[@]}"; do
		if make_partitions "$mechanism"; then start_programs "$mechanism"; fi
	done
	await_all
}

# The same, and lets them take `turns`, to which start_programs adds, in `rounds` and `seconds`.
take_all_turns() { # MECHANISM…
	start_all "$@"
	take_turns "$rounds" "$seconds" "${turns[@]}"
}

declare -A turn_began # at which line of a program's output

# Lets these programs work, from the same moment. Fails if one cannot; a failure that was reported before is not reported again.
begin() { # NAME…
	local name
	for name in "$@"; do
		[ -n "${task_pids[$name]:-}" ] || return 1
		turn_began[$name]=$(wc -l <"$BENCH_WORK/$name.out")
	done
	signal USR1 "$@"
}

# Lets them rest, and waits until they do.
end() { # NAME…
	local name result=0
	signal USR2 "$@"
	for name in "$@"; do
		for _ in $(seq 1000); do
			! is_at_rest "$name" || break
			kill -0 "${task_pids[$name]}" 2>/dev/null || break
			sleep 0.02
		done
		is_at_rest "$name" || {
			give_up "$name"
			result=1
		}
	done
	return $result
}

signal() { # SIGNAL NAME…
	local name pids=()
	for name in "${@:2}"; do
		pids+=("${task_pids[$name]}")
	done
	kill "-$1" "${pids[@]}" || true
}

# Lets these programs work together for so long. What they do until all of them work is discarded.
take_turn() { # SECONDS NAME…
	begin "${@:2}" || return 1
	sleep "$(pick 0.15 0.01)"
	signal USR1 "${@:2}"
	sleep "$1"
	end "${@:2}"
}

# The same of programs that were started for this turn alone, which ends them.
take_only_turn() { # SECONDS NAME…
	local result=0
	{ await "${@:2}" && take_turn "$@"; } || result=1
	stop "${@:2}" || result=1
	return $result
}

is_at_rest() { # NAME
	[ "$(wc -l <"$BENCH_WORK/$1.out")" -gt "${turn_began[$1]}" ] && [ "$(tail -n 1 "$BENCH_WORK/$1.out")" = rest ]
}

# Ends a program that takes no more turns.
give_up() { # NAME
	if kill -KILL "${task_pids[$1]}" 2>/dev/null; then
		echo "the program did not rest" >>"$BENCH_WORK/$1.err"
	fi
	! finish "$1" || complain "$1"
}

# Changes what nvtaskset gives to a program at rest, if it runs. What is to be in force at its next launch is reported as not yet in
# force (3).
give() { # NAME ARGUMENT…
	local status=0
	[ -n "${task_pids[$1]:-}" ] || return 0
	nvtaskset -p "${@:2}" "${task_pids[$1]}" >/dev/null 2>"$BENCH_WORK/give.err" || status=$?
	case $status in
	0 | 3) ;;
	*)
		echo "  $1: $(head -n 1 "$BENCH_WORK/give.err")" >&2
		note_failure
		;;
	esac
}

# How many samples a second its last turn had, to the table `rates`: by the whole turn, since pauses lie in no sample.
add_rate() { # SECONDS NAME COLUMN…
	turn_samples "$2" | wc -l | awk -v seconds="$1" '{print $1 / seconds}' | csv=$rates rows "${@:3}"
}

# What a program printed in its last turn, and the samples of it.
turn_lines() { # NAME
	tail -n "+$((turn_began[$1] + 1))" "$BENCH_WORK/$1.out" | sed '/^rest$/d'
}

turn_samples() { # NAME
	turn_lines "$1" | sed -n "1,$(pick '$' 5)p"
}
