# Programs with which it is tried what mechanisms share: bench/spans, which launch at the same moment, and programs
# that may be ended by another one's fault.

# Under a mechanism, with so many streams; ready when it was awaited.
start_spans() { # NAME MECHANISM PART STREAMS
	start "$1" "$2" "$3" spans "$BENCH_WORK/launches" "$4"
}

# Has all of them launch at the same time, and waits until they have done it: fails if one has ended.
launch_together() { # "KERNELS STREAMS BLOCKS THREADS MS" NAME…
	echo "$1" >"$BENCH_WORK/launches"
	take_turn 0 "${@:2}"
}

# Prints the blocks of these programs' last turns: STREAM,KERNEL,BLOCK,SM,BEGIN,END.
blocks_of() { # NAME…
	local name
	for name in "$@"; do
		turn_lines "$name"
	done
}

# Prints how many blocks of these programs there were at the same time in their last turns, at most. In turns on the
# GPU, a block counts from its begin to its end, though it is not always there.
at_once() { # NAME…
	blocks_of "$@" | awk -F, '{print $5, 1; print $6, -1}' | sort -k1,1n -k2,2n |
		awk '{blocks += $2; if (blocks > most) most = blocks} END {print most + 0}'
}

# Ends a program that another one may have ended: its exit status is this function's, and no failure of the experiment.
dismiss() { # NAME
	local result=0
	kill -TERM "${task_pids[$1]}" 2>/dev/null || true
	for _ in $(seq 100); do
		kill -0 "${task_pids[$1]}" 2>/dev/null || break
		sleep 0.05
	done
	kill -KILL "${task_pids[$1]}" 2>/dev/null || true
	wait "${task_pids[$1]}" 2>/dev/null || result=$?
	unset "task_pids[$1]"
	return $result
}

# Whether a program starts under the mechanism and works; and if not, a new MPS server, for those that follow.
works_again() { # MECHANISM
	local result=0
	(BENCH_PREFIX="timeout --foreground --kill-after=5 10" under "$1" first task compute --samples 1) \
		>"$BENCH_WORK/again.out" 2>"$BENCH_WORK/again.err" || result=1
	[ $result = 0 ] || renew_mps "$1"
	return $result
}

renew_mps() { # MECHANISM
	case $1 in
	none | mig | nvtaskset-no-mps) ;;
	mps-static)
		CUDA_MPS_PIPE_DIRECTORY=$BENCH_STATIC stop_mps
		rm -f "$BENCH_WORK"/static-*
		CUDA_MPS_PIPE_DIRECTORY=$BENCH_STATIC start_mps -S
		;;
	*)
		stop_mps
		start_mps
		;;
	esac
}
