# A task that needs little of the GPU, beside a loop that saturates it. Their kernels have one wave of blocks, as those of
# a persistent kernel: two on each SM for the loop, so that no other block finds room, and one for the task.
#
# Lengths are those of the whole GPU, an H100's or H200's; how long kernels were is what was measured of each loop alone.

split_gpu packed 50%
loop_blocks=$(pick $((2 * total_tpcs * sms_per_tpc)) 8)
task_blocks=$(pick $((total_tpcs * sms_per_tpc)) 8)
TASK_ROUNDS=308 # 10 µs

# Of kernels with two blocks on each SM (see bench/programs/task.c).
rounds_of() { # MS
	awk "BEGIN {print int($1 * 15400)}"
}

start_loop() { # NAME MECHANISM PART MS
	start_task "$1" "$2" "$3" compute --size "$loop_blocks" --rounds "$(rounds_of "$4")" --in-flight
}

# A kernel of 10 µs every so often.
start_periodic() { # NAME MECHANISM PART US [ARGUMENT…]
	start_task "$1" "$2" "$3" compute --size "$task_blocks" --rounds $TASK_ROUNDS --period "$(pick "$4" 0)" "${@:5}"
}

# Lets a task and a loop, or one of them where the other's name is empty, work together, and adds a row for each sample:
# with these columns, whose it is, and the µs.
work_together() { # SECONDS TASK LOOP COLUMN…
	# shellcheck disable=SC2086
	take_turn "$1" $2 $3 || return 0
	[ -z "$2" ] || turn_samples "$2" | rows "${@:4}" task
	[ -z "$3" ] || turn_samples "$3" | rows "${@:4}" loop
}

# Which programs work in the turn "MECHANISM MS". `alone` is one by itself: a loop, or the task where the length is `nothing`.
# With client priorities, only the loop is another one.
task_of() { # MECHANISM MS
	case $1,$2 in
	alone,nothing) echo task-none ;;
	alone,*) ;;
	by-hand,*) echo task-none ;;
	mps-priority,*) echo task-mps ;;
	*) echo "task-$1" ;;
	esac
}

loop_of() { # MECHANISM MS
	case $1,$2 in
	alone,nothing) ;;
	alone,*) echo "loop-none-$2" ;;
	by-hand,*) echo "loop-nvtaskset-priority-$2" ;;
	*) echo "loop-$1-$2" ;;
	esac
}

# Starts a loop for each of WEIGHTS, such as 100-200-400, by `START NAME MECHANISM PART ARGUMENT…`.
start_weighted() { # WEIGHTS START ARGUMENT…
	local number=0 weight
	for weight in ${1//-/ }; do
		number=$((number + 1))
		"$2" "loop-$1-$number" nvtaskset-weight "$weight" "${@:3}"
	done
}

# How many samples there are in each tenth of a second: rows of MS,COUNT.
in_tenths() {
	awk '{us += $1; bin = int(us / 1e5); count[bin]++}
		END {for (i = 0; i <= bin; i++) print i * 100 "," count[i] + 0}'
}

# Lets these loops work together, and adds what each did in each tenth of a second. One that did nothing has a row, too.
measure_weights() { # ROUND SECONDS WEIGHTS
	local number=0 weight names=()
	for weight in ${3//-/ }; do
		number=$((number + 1))
		names+=("loop-$3-$number")
	done
	take_turn "$2" "${names[@]}" || return 0
	number=0
	for weight in ${3//-/ }; do
		number=$((number + 1))
		[ -n "$(turn_samples "loop-$3-$number")" ] || echo "  $3: program $number finished nothing" >&2
		turn_samples "loop-$3-$number" | in_tenths | rows "$1" "$3" "$number" "$weight"
	done
}
