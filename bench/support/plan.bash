# The plan of an experiment with tasks, as `nvtaskset plan` makes it: their curves, their deadlines, and the plan that holds.
#
# An experiment starts its `tasks` before, and says in `parts` for how many TPCs of 66 the deadline of each is made. Its period is in
# BENCH_WORK/TASK.period. `beside` names the neighbour beside which curves are measured as well, or nothing.

checked=$BENCH_OUT/plan-check.json # the plan as it was checked last

plan() { # WORD ARGUMENT…
	python3 "$BENCH_ROOT/bench/support/plan.py" "$@"
}

# Of each task alone. A simulated GPU takes no time for one. A command that hangs is ended.
measure_curve() { # TASK
	local curve=$BENCH_WORK/$1.json status=0
	if [ -n "${BENCH_SIMULATED:-}" ]; then
		echo '{"points": [{"tpcs": 3, "job_ms": 9}, {"tpcs": 8, "job_ms": 5}, {"tpcs": 20, "job_ms": 3}, {"tpcs": 66, "job_ms": 2}]}' >"$curve"
	else
		begin "$1"
		sleep 0.5
		timeout --foreground 40 nvtaskset curve --json ${beside:+--beside "$beside"} "${task_pids[$1]}" >"$curve" || status=1
		end "$1" || status=1
		cp "$curve" "$BENCH_OUT/plan-curve-$1.json"
	fi
	[ $status = 0 ] && plan points "$1" "$curve" | rows
}

# A task whose curve cannot be measured is left out.
measure_curves() {
	local task measured=''
	open_csv plan_curve task,beside,tpcs,us
	for task in $tasks; do
		if measure_curve "$task"; then
			measured="$measured $task"
		else
			echo "  $task: has no curve, and is left out" >&2
			note_failure
		fi
	done
	tasks=$measured
}

make_deadlines() { # MARGIN
	local task words=()
	for task in $tasks; do
		words+=("$task=$((parts[$task] * total_tpcs / 66 > 0 ? parts[$task] * total_tpcs / 66 : 1))=${task_pids[$task]}")
	done
	plan tasks "$BENCH_WORK" "$1" "${words[@]}"
	cp "$BENCH_WORK/tasks.json" "$BENCH_OUT/plan-tasks.json"
}

apply_plan() { # [ARGUMENT…]: prints it
	timeout --foreground 60 nvtaskset plan --apply --json "$@" "$BENCH_WORK/tasks.json"
}

# Jobs as the command sees them, from the first launch to the last one's end: what the plan predicts. The largest reserve that fits.
check_plan() {
	local percent
	for percent in $(seq 24 -2 0); do
		make_deadlines "$(printf 0.%02d "$percent")"
		apply_plan >"$BENCH_OUT/plan.json" && break
	done
	# shellcheck disable=SC2086 # several words
	begin $tasks
	sleep "$(pick 1 0.1)"
	# 3: it did not hold, and no other one is possible.
	apply_plan --check "$(pick 8 0.5)" >"$checked" || [ $? = 3 ] || note_failure
	# shellcheck disable=SC2086
	end $tasks || note_failure
	open_csv plan_predicted task,tpcs,what,us
	[ ! -s "$checked" ] || plan predicted "$checked" | rows
}
