# Programs with which it is tried what mechanisms share: bench/spans, which takes turns when it is told to, and programs
# that may be ended by another one's fault.

declare -A turns_files turns_taken

# Under a mechanism, with so many streams; ready when it was awaited.
start_spans() { # NAME MECHANISM PART STREAMS
	local file=$BENCH_WORK/$1.turns descriptor
	rm -f "$file"
	mkfifo "$file"
	# Open for reading, too, so that nobody waits for the other one.
	exec {descriptor}<>"$file"
	turns_files[$1]=$descriptor turns_taken[$1]=0
	start "$1" "$2" "$3" spans "$file" "$4"
}

# Has all of them launch at the same time, and waits until they have done it: fails if one has ended.
take_turn() { # "KERNELS STREAMS BLOCKS THREADS MS" NAME…
	local what=$1 begin name
	shift
	begin=$(awk "BEGIN {printf \"%.6f\", $(date +%s.%N) + $(pick 0.06 0)}")
	for name in "$@"; do
		turns_taken[$name]=$((turns_taken[$name] + 1))
		echo "$begin $what" >&"${turns_files[$name]}"
	done
	for name in "$@"; do
		until has_taken "$name"; do
			kill -0 "${task_pids[$name]}" 2>/dev/null || break
			sleep 0.005
		done
		has_taken "$name" || return 1
	done
}

has_taken() { # NAME
	(($(grep -c '^done$' "$BENCH_WORK/$1.out") >= turns_taken[$1]))
}

# Prints the blocks of these programs' last turns: STREAM,KERNEL,BLOCK,SM,BEGIN,END.
blocks_of() { # NAME…
	local name
	for name in "$@"; do
		awk -v taken="${turns_taken[$name]}" '
			$0 == "done" {turn++}
			turn == taken - 1 && /,/' "$BENCH_WORK/$name.out"
	done
}

# Prints how many blocks of these programs there were at the same time in their last turns, at most. In turns on the
# GPU, a block counts from its begin to its end, though it is not always there.
at_once() { # NAME…
	blocks_of "$@" | awk -F, '{print $5, 1; print $6, -1}' | sort -k1,1n -k2,2n |
		awk '{blocks += $2; if (blocks > most) most = blocks} END {print most + 0}'
}

# Fails with a reason if one has not ended well.
end_spans() { # NAME…
	local name descriptor
	for name in "$@"; do
		descriptor=${turns_files[$name]:-}
		[ -n "$descriptor" ] || continue
		echo end >&"$descriptor"
		exec {descriptor}>&-
		unset "turns_files[$name]"
	done
	finish "$@"
}

# Ends a program that another one may have ended: its exit status is this function's, and no failure of the experiment.
dismiss() { # NAME
	local result=0
	kill -TERM "${task_pids[$1]}" 2>/dev/null || true
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
