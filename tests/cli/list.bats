#!/usr/bin/env bats
# nvtaskset -l
# needs: bench/crowd

load helpers
load playing

# The lines of a process, with one space between columns.
lines_of() {
	nvtaskset -l | awk -v pid="$1" '$1 == pid {$1 = $1; print}'
}

@test "a program with its partition, its launches and its command" {
	start_program -t 0-7
	run -0 nvtaskset -l
	[ "$(echo "${lines[0]}" | xargs)" = "PID USER GPU TPCS GPCS LAUNCHES ENDED IN-FLIGHT UPLOADS RESTRICTED OUTSIDE MEMORY COMMAND" ]
	[[ "$(lines_of "$PROGRAM")" =~ ^$PROGRAM\ $(id -un)\ 0\ 0-7\ 0-7~\ [0-9]+\ [0-9]+\ [0-9]+\ ([0-9]+)\ ([0-9]+)\ 0\ [0-9]+K\ $BUILD/demo/where\ 600$ ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
}

# Columns 6 to 8 of a program that waits: its launches, how many have ended, how many are in flight.
kernels_of() {
	lines_of "$1" | awk '{print $6, $7, $8}'
}

@test "kernels that nobody announces are said" {
	start_playing -t 0-7 -- conditional wait
	[[ "$(kernels_of "$PROGRAM")" =~ ^([1-9][0-9]*)\ ([1-9][0-9]*)\ 0$ ]]
	[[ "$(nvtaskset -l)" == *"        1 kernel counted when it ended: graphs with conditional nodes, or that kernels launch"* ]]
	[ "$(listed kernels[0].unannounced)" = 1 ]
}

@test "a number of kernels that is not known is no number" {
	while IFS='|' read -r cause step numbers reason; do
		export "${cause?}"
		start_playing -t 0-7 -- "$step" wait
		unset "${cause%%=*}"
		[[ "$(kernels_of "$PROGRAM")" =~ ^$numbers$ ]]
		[[ "$(nvtaskset -l)" == *"        kernels are not all counted: $reason"* ]]
		[ "$cause" != NVTASKSET_ACCOUNT=off ] || not grep -q nvtaskset-counts <(readlink "/proc/$PROGRAM/fd/"*)
		stop_program
	done <<-'END'
		NVTASKSET_ACCOUNT=off|where|- - -|counting is turned off (NVTASKSET_ACCOUNT)
		SIM_FAULTS=no-register|where|[1-9][0-9]* - -|the driver did not let the GPU write the counts
		SIM_FAULTS=no-register|conditional|- - -|only the GPU knows how often a graph runs them, and it does not count
		SIM_FAULTS=incoherent|where|[1-9][0-9]* - -|this processor may not see the GPU's writes in time
		NV_COMPUTE_PROFILER_PERFWORKS_DIR=/nowhere|where|- - -|Nsight Compute runs its kernels again and again
	END
}

@test "overlaps of any number of processes are shown" {
	own_gpus
	start_program -t 0-7
	first=$PROGRAM
	start_program -t 4-11
	second=$PROGRAM
	pids=$(printf '%s\n' "$first" "$second" | sort -n | xargs)
	run nvtaskset -l
	[[ "$output" == *"processes ${pids% *} and ${pids#* } share TPCs 4-7 of GPU 0"* ]]
	start_program -t 6,20
	pids=$(printf '%s\n' "$first" "$second" "$PROGRAM" | sort -n | xargs)
	run nvtaskset -l
	[[ "$output" == *" share TPCs 4-5,7 of GPU 0"* ]]
	[[ "$output" == *"processes $(awk '{print $1 ", " $2 " and " $3}' <<<"$pids") share TPCs 6 of GPU 0"* ]]
}

@test "a shell and its children are no overlap" {
	own_gpus
	start nvtaskset --mps off -t 0-7 bash -c '"$0" 60; true' "$BUILD/demo/where"
	runs_on 0-7
	run nvtaskset -l
	pkill -P "$PROGRAM"
	[[ "$output" == *"$PROGRAM "* ]]
	[[ "$output" != *share* ]]
}

@test "a program on two GPUs has a line for each, and its counters once" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	start_program -t -G 0:0-3 -G 1:4-7
	mapfile -t lines < <(lines_of "$PROGRAM")
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" =~ ^$PROGRAM\ [^\ ]+\ 0\ 0-3\ [^\ ]+\ [0-9]+\ [0-9]+\ [0-9]+\ [0-9]+\ [0-9]+\ 0\  ]]
	[[ "${lines[1]}" =~ ^$PROGRAM\ [^\ ]+\ 1\ 4-7\ [^\ ]+\ 0\ 0\ 0\ -\ -\ -\ .*where\ 600$ ]]
	# A GPU that CUDA hides here has no number.
	export CUDA_VISIBLE_DEVICES=1
	mapfile -t lines < <(lines_of "$PROGRAM")
	[[ "${lines[0]}" =~ ^$PROGRAM\ [^\ ]+\ 0000:00:06.0\ 0-3\  ]]
	[[ "${lines[1]}" =~ ^$PROGRAM\ [^\ ]+\ 0\ 4-7\  ]]
}

# They are one command's. One that was just forked may be in none yet.
crowd_is_there() {
	nvtaskset -l >"$WORK/list"
	[ "$(grep -c 'crowd 300' "$WORK/list")" -ge 300 ] && grep -q '^group of [0-9]*: 30[01] processes, ' "$WORK/list"
}

@test "hundreds of programs, none of them missed" {
	own_gpus
	start nvtaskset --mps off -t 0-7 "$BUILD/bench/crowd" 300 libcuda.so.1
	wait_until crowd_is_there
	awk '/crowd 300/ {print $1}' "$WORK/list" >"$WORK/pids"
	[ "$(wc -l <"$WORK/pids")" -eq 300 ]
	sort -nuc "$WORK/pids"
	# They share on purpose.
	run ! grep -q share "$WORK/list"
	# More than there are letters.
	[ "$(nvtaskset -T | grep -c '^ ?  .*crowd 300')" -eq 248 ]
}

@test "no process has a partition: only the heading" {
	needs_namespaces --pid --fork --mount-proc
	run -0 unshare --pid --fork --mount-proc "$BUILD/nvtaskset" -l
	[ "$output" = "PID USER GPU TPCS GPCS LAUNCHES ENDED IN-FLIGHT UPLOADS RESTRICTED OUTSIDE COMMAND" ]
}

@test "without a topology, partitions are listed all the same" {
	start_program -t 0-7
	export NVTASKSET_TOPOLOGY=$WORK/none
	[[ "$(lines_of "$PROGRAM" 2>"$WORK/stderr")" =~ ^$PROGRAM\ [^\ ]+\ 0000:00:06.0\ 0-7\ -\  ]]
	[[ "$(cat "$WORK/stderr")" == "nvtaskset: "*"none"*"; GPCs are not shown" ]]
}

@test "control characters in a command line do not reach the terminal; UTF-8 is shown where the locale is UTF-8" {
	start_named $'60\e[2J\x9b\nnew \u00e9t\u00e9 \u6f22 \u202egpj \xc3\x28'
	LC_ALL=C run nvtaskset -l
	[[ "$output" == *"where 60?[2J??new ?t? ? ?gpj ?("* ]]
	LC_ALL=C.UTF-8 run nvtaskset -l
	[[ "$output" == *$'where 60\ufffd[2J\ufffd\ufffdnew \u00e9t\u00e9 \u6f22 \ufffdgpj \ufffd('* ]]
}

@test "a closed pipe ends it without a message; a full disk with a reason" {
	bash -c 'nvtaskset -l 2>"$1" | true' - "$WORK/stderr"
	[ ! -s "$WORK/stderr" ]
	# If the caller ignores SIGPIPE, as some do, a closed pipe is an error like any other.
	run bash -c 'trap "" PIPE; exec 4> >(true); wait $!; nvtaskset -l >&4; echo "status $?" >&2'
	[ "$output" = $'nvtaskset: standard output: Broken pipe\nstatus 1' ]
	# The program is there so that files are opened, which would take the place of one that is closed.
	start_program -t 0-7
	for view in -l -T "-l --json" "-T --json" "-l --watch=0.1" "-T --json --watch=0.1" metrics "top --once --delay 0.1" "top --json --delay 0.1"; do
		refuses "standard output: No space left on device" timeout 60 bash -c "nvtaskset $view >/dev/full"
		refuses "standard output: Bad file descriptor" timeout 60 bash -c "nvtaskset $view >&-"
	done
}

@test "another user's processes are left out, and views say so where that matters" {
	needs_another_user
	start_program -t 0-7
	for view in -l -T "top --once --delay 0.1"; do
		run -0 "${ANOTHER_USER[@]}" "$BUILD/nvtaskset" $view
		[[ "$output" != *"$PROGRAM"* ]]
		[ "${lines[-1]}" = "Programs that you may not look at, those of other users, are not shown." ]
	done
	"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" -l --json | jq -e .processes
	start_as own "${ANOTHER_USER[@]}" "$BUILD/nvtaskset" --mps off -t 8-9 "$BUILD/demo/where" 600
	for view in -l -T "top --once --delay 0.1"; do
		run -0 "${ANOTHER_USER[@]}" "$BUILD/nvtaskset" $view
		[[ "$output" == *"$own"* ]]
		case $view in
		-T) [[ "$output" == *"may not look at"* ]] ;;
		*) [[ "$output" != *"may not look at"* ]] ;;
		esac
	done
	refuses "pid $PROGRAM: belongs to another user, or does not let itself be inspected" \
		"${ANOTHER_USER[@]}" "$BUILD/nvtaskset" top --once "$PROGRAM"
}

# Not even its parent may look at a process that has ended. Here `sleep` is such a parent, which never waits for it.
@test "where all programs are one's own, nothing is said to be missing" {
	needs_another_user
	needs_namespaces -p
	cat >"$WORK/script" <<-'END'
		bash -c 'bash -c "until grep -qx sleep /proc/\$PPID/comm; do sleep 0.1; done" & echo $! >&4; exec sleep 60' 4>"$1/ended" &
		until grep -qs "^State:.Z" "/proc/$(cat "$1/ended")/status"; do sleep 0.1; done
		! ls "/proc/$(cat "$1/ended")/fd" && nvtaskset -l && nvtaskset -T
	END
	run -0 timeout 60 unshare -pf --mount-proc --kill-child "${ANOTHER_USER[@]}" bash "$WORK/script" "$WORK/another"
	[[ "$output" == *"PID USER"*"GPU 0, NVIDIA H200"* ]]
	[[ "$output" != *"not shown"* ]]
}

# Where this machine has no time for one of us, it may be unknown for once, or nothing.
look_how_busy() {
	column=$(nvtaskset -l --busy | awk -v pid="$PROGRAM" 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == "BUSY%") at = i} $1 == pid {print $at}')
	awk -v busy="$column" 'BEGIN {exit !(busy ~ /^[0-9.]+$/ && busy > 0)}'
}

@test "--busy: how busy the GPUs are" {
	own_gpus
	start_program -t 0-7
	wait_until look_how_busy
	awk -v busy="$column" 'BEGIN {exit !(busy <= 100.1)}'
	[[ "$(nvtaskset -l | head -n 1)" != *BUSY* ]]
}
