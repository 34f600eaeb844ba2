#!/usr/bin/env bats
# A partition exists from the first moment and as long as the program lives, across exec, as CPU affinity does
# takes: long

load helpers
load playing

prepare() {
	PATH=$BUILD/tests/programs:$PATH
}

# Starts a script inside TPCs 0-7 that waits for let_go and then runs these lines; PROGRAM is its pid.
start_script() { # LINE…
	make_script "$WORK/script" '#!/bin/bash' 'read -r go <"$1"' "$@"
	mkfifo "$WORK/go"
	start nvtaskset --mps off -t 0-7 "$WORK/script" "$WORK/go"
}

let_go() {
	timeout 60 sh -c 'echo go >"$0"' "$WORK/go"
}

# Starts a shell inside TPCs 0-7 that runs LINE and waits for its end; `child` is the pid of the child that runs it.
start_shell_with() { # NAME LINE
	start nvtaskset --mps off -t 0-7 bash -c "$2; true"
	wait_for_child "$PROGRAM" "$1"
}

# The program goes on and ends; this is the last line that it has printed.
ends_with() { # LINE
	go_on_to_the_end
	[ "$(tail -n 1 "$WORK/output")" = "$1" ]
}

# --- the first moment ------------------------------------------------------------------------------------------------

@test "a partition can be changed as soon as the command is started" {
	for _ in $(seq 20); do
		start nvtaskset --mps off -t 0-7 where 60
		run -0 nvtaskset -tp 8-15 "$PROGRAM"
		[ "${lines[1]}" = "pid $PROGRAM's new TPC list: 8-15" ]
		stop_program
	done
	start nvtaskset --mps off -t 0-7 where 60
	nvtaskset -tp 8-15 "$PROGRAM"
	runs_on 8-15
}

@test "also before the starting shell has called exec for the command, and while the exec takes long" {
	mkfifo "$WORK/go"
	start bash -c 'read -r <"$0"; exec nvtaskset --mps off -t 0-7 where 60' "$WORK/go"
	not nvtaskset -tp 8-15 "$PROGRAM"
	echo >"$WORK/go"
	wait_for_line "my kernels"
	stop_program
	# The child of a shell, before its exec.
	{ read -r -t 0.3 <>"$WORK/never" || true; exec nvtaskset --mps off -t 0-7 where 60; } >"$WORK/output" 3>&- &
	PROGRAM=$!
	nvtaskset -tp 8-15 "$PROGRAM"
	runs_on 8-15
}

@test "a program without CUDA runs as before: its descriptors, its exit status, its output" {
	show='ls /proc/self/fd | wc -l; cat <"$0" | wc -c; ls -l /proc/self/fd | grep -c "237 -> /memfd:nvtaskset"; exit 7'
	run bash -c "$show" "$BATS_TEST_FILENAME"
	without=("${lines[@]}")
	run -7 nvtaskset --mps off -t 0-7 bash -c "$show" "$BATS_TEST_FILENAME"
	# One of its segment, and one of its group.
	[ "${lines[0]}" -eq $((without[0] + 2)) ]
	[ "${lines[1]}" = "${without[1]}" ]
	[ "${without[2]} ${lines[2]}" = "0 1" ]
}

@test "a script may have its own file as descriptor 200, and as 3" {
	start_script 'exec 200>"$1.lock" 3<"$1.lock"' 'flock 200' 'play where'
	nvtaskset -tp 8-15 "$PROGRAM"
	let_go
	wait_for_line '^8-15$'
}

# --- exec --------------------------------------------------------------------------------------------------------------

@test "a change by -p lasts over an exec, with CUDA before and after it" {
	start_playing -t 0-7 -- where wait exec where wait exec where
	nvtaskset -tp 20-23 "$PROGRAM"
	go_on
	wait_for_line '^20-23$'
	nvtaskset -tp 30 "$PROGRAM"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 30" ]
	ends_with 30
	[ ! -s "$WORK/errors" ]
}

@test "between an exec and CUDA, nothing is wrong; a driver loaded without our library is reported" {
	start_playing -t 0-7 -- where wait exec wait exec wait open "$BUILD/sim/libcuda.so.1" wait
	go_on
	waits 2
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-7" ]
	[[ "$(nvtaskset -l)" != *"kernels are not all counted"* ]]
	go_on
	waits 3
	nvtaskset -tp 4 "$PROGRAM"
	go_on
	waits 4
	run -3 nvtaskset -tp 5 "$PROGRAM"
	[[ "$output" == *"pid $PROGRAM: its partition is not in force: the driver was loaded without our library"* ]]
	run nvtaskset -l
	[[ "$output" == *"its partition is not in force: the driver was loaded without our library"* ]]
}

@test "the kernel may map everything at the same addresses as before the exec" {
	setarch -R true 2>/dev/null || skip "fixed addresses are not permitted"
	touch "$WORK/again" "$WORK/once-more"
	start_waiting setarch -R nvtaskset --mps off -t 0-7 play where again "$WORK/again" again "$WORK/once-more" wait where
	[ ! -e "$WORK/once-more" ]
	[ "$(readlink "/proc/$PROGRAM/fd/"* | grep -c "memfd:nvtaskset ")" -eq 1 ]
	nvtaskset -tp 9 "$PROGRAM"
	go_on
	wait_for_line '^9$'
}

# --- descriptors that a program closes -----------------------------------------------------------------------------------

@test "a program that closes all descriptors keeps a change by -p, and so do its later children" {
	start_playing -t 0-7 -- where wait closefrom 3 spawn "$WORK/child" where
	make_script "$WORK/child" '#!/bin/sh' 'play where'
	nvtaskset -tp 20-23 "$PROGRAM"
	ends_with 20-23
	[ "$(tail -n 2 "$WORK/output" | head -n 1)" = 20-23 ]
}

@test "if nobody may read its memory, its children say that they have the partition of the start" {
	needs_to_look_into_others
	# The kernel lets no user read the memory of a program whose file its user may not read.
	install -m 711 "$BUILD/tests/programs/play" "$WORK/unreadable"
	make_script "$WORK/child" '#!/bin/sh' 'play where'
	export XDG_CACHE_HOME=$WORK/cache
	install -d -o 65534 "$XDG_CACHE_HOME"
	start_waiting "${ANOTHER_USER[@]}" nvtaskset --mps off -t 0-7 "$WORK/unreadable" where wait closefrom 3 spawn "$WORK/child" ||
		skip "an unreadable program does not run here"
	nvtaskset -tp 20-23 "$PROGRAM"
	pid=$PROGRAM
	ends_with 0-7
	grep -q "the partition of pid $pid, which started this program, cannot be read: this program starts with the one" "$WORK/errors"
}

@test "a child whose descriptors were closed has its nearest ancestor's partition, or else the environment's" {
	make_script "$WORK/child" '#!/bin/sh' 'exec play closefrom 3 where'
	start_playing -t 0-7 -- wait spawn "$WORK/child"
	nvtaskset -tp 20-23 "$PROGRAM"
	ends_with 20-23
	start_playing -t 0-7 -- wait closefrom 3 exec where
	nvtaskset -tp 20-23 "$PROGRAM"
	ends_with 0-7
}

@test "a program of an inner command, whose descriptors were closed, has that command's partition and no outer one's" {
	make_script "$WORK/inner" '#!/bin/sh' 'nvtaskset --mps off -t 20-23 "$@"' 'true'
	run -0 nv -t 0-7 "$WORK/inner" "${WITHOUT_SEGMENT[@]}" where 1
	[[ "$output" == *"on TPCs 20-23 ("* ]]
}

@test "in a sandbox that refuses statx or memfd_create, a program keeps a change by -p, and one descriptor" {
	for call in statx memfd_create; do
		start_waiting nvtaskset --mps off -t 0-7 bash -c "nvtaskset -tp 20-23 \$\$ >/dev/null; exec \"\$@\"" bash refuse $call \
			play where wait where
		[ "$(head -n 1 "$WORK/output")" = 20-23 ]
		[ "$(readlink "/proc/$PROGRAM/fd/"* | grep -c "memfd:nvtaskset ")" -eq 1 ]
		ends_with 20-23
	done
	# Nor does -p there say that the program has closed a file.
	start_program -t 0-7
	refuses "pid $PROGRAM: which files of it are in memory cannot be seen without the system call statx" \
		refuse statx nvtaskset -p "$PROGRAM"
}

@test "without /proc a program starts with the partition of the start, says so, and can be changed" {
	needs_namespaces -m
	ASAN_OPTIONS=detect_leaks=0 start_playing -t 0-7 -- proc where wait where
	grep -q "cannot be read without /proc: this program starts with the one given to nvtaskset" "$WORK/errors"
	nvtaskset -tp 20-23 "$PROGRAM"
	ends_with 20-23
	ASAN_OPTIONS=detect_leaks=0 run -1 nvtaskset --strict --mps off -t 0-7 play proc where
	[[ "$output" == *"cannot be read without /proc; --strict lets nothing run unrestricted" ]]
}

# --- children that share a partition -------------------------------------------------------------------------------------

@test "a child that has not loaded CUDA has its parent's partition; -p on it names the parent" {
	start_shell_with sleep 'sleep 60'
	refuses "pid $child: shares the partition of pid $PROGRAM until it loads CUDA; change that one, or give this one its own with --attach" \
		nvtaskset -tp 9 "$child"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-7" ]
	kill -KILL "$PROGRAM"
	wait "$PROGRAM" 2>/dev/null || true
	PROGRAM=$child
	refuses "pid $child: shares an ancestor's partition until it loads CUDA; give this one its own with --attach" \
		nvtaskset -tp 9 "$child"
	[ "$(nvtaskset --dry-run --strategy distributed -n 58)" = 8-65 ]
}

says_in_a_container_what_its_user_sees() {
	local owner
	start unshare -pf --mount-proc "$BUILD/nvtaskset" --mps off -t 0-7 bash -c 'sleep 60; true'
	wait_for_child "$PROGRAM" bash
	owner=$child
	wait_for_child "$owner" sleep
	refuses "pid $child: shares the partition of pid $owner until it loads CUDA; change that one, or give this one its own with --attach" \
		nvtaskset -tp 9 "$child"
	pkill -KILL -P "$PROGRAM"
}

@test "in a container, the message has the pids that its user sees" {
	needs_namespaces -pf --mount-proc
	says_in_a_container_what_its_user_sees
}

@test "root who may not look into a program says so" {
	needs_root
	start_program -t 0-7
	"${LIMITED_ROOT[@]}" ls "/proc/$PROGRAM/fd" >/dev/null
	! "${LIMITED_ROOT[@]}" readlink "/proc/$PROGRAM/exe" || skip "root has no more rights here than in a container"
	said="pid $PROGRAM: belongs to another user, or does not let itself be inspected"
	refuses "$said" "${LIMITED_ROOT[@]}" "$BUILD/nvtaskset" -p "$PROGRAM"
	refuses "$said" "${LIMITED_ROOT[@]}" "$BUILD/nvtaskset" -tp 9 "$PROGRAM"
	runs_on 0-7
}

# The container's first process has the same pid.
@test "also if the first process of the machine may not be read" {
	needs_namespaces -pf --mount-proc
	run unshare -pf --mount-proc --kill-child bash -c '"$@"; exit $?' bash "${LIMITED_ROOT[@]}" bash -ec \
		"$(declare -p BUILD WORK; declare -f empty_output start wait_until find_child wait_for_child without_hidden refuses says_in_a_container_what_its_user_sees)
		if readlink /proc/1/ns/pid; then exit 2; fi
		says_in_a_container_what_its_user_sees" 3>&-
	[ "$status" -ne 2 ] || skip "root has no more rights here than in a container"
	[ "$status" -eq 0 ]
}

@test "-n for a process: TPCs of its former partition, which its children share, count as its own" {
	own_gpus
	start nvtaskset --mps off -t 0-7 bash -c 'sleep 60 & exec nvtaskset --mps off -t 9 sleep 61'
	wait_until eval '[ "$(list_of "$PROGRAM")" = 9 ]'
	wait_for_child "$PROGRAM" sleep
	refuses "pid $child: shares the partition of pid $PROGRAM until it loads CUDA; change that one, or give this one its own with --attach" \
		nvtaskset -tp 9 "$child"
	run nvtaskset -np 66 "$PROGRAM"
	[ "${lines[-1]}" = "pid $PROGRAM's new TPC list: 0-65" ]
	kill "$child"
}

@test "--attach gives a partition to a process that has another user's" {
	needs_another_user
	needs_attach
	start_waiting nvtaskset --mps off -t 0-7 "${ANOTHER_USER[@]}" "$BUILD/tests/programs/play" wait
	run -0 "${ANOTHER_USER[@]}" nvtaskset --attach -tp 9 "$PROGRAM"
	[ "${lines[-1]}" = "pid $PROGRAM's new TPC list: 9" ]
}

@test "a shared partition stays as it was when its owner took another one and ended" {
	mkfifo "$WORK/go"
	start_waiting nvtaskset --mps off -t 0-7 bash -c "play wait where & read -r go <'$WORK/go'; exec nvtaskset --mps off -t 9 true"
	wait_for_child "$PROGRAM" play
	nvtaskset -tp 20-23 "$PROGRAM"
	let_go
	wait "$PROGRAM"
	PROGRAM=$child
	refuses "pid $child: shares an ancestor's partition until it loads CUDA; give this one its own with --attach" \
		nvtaskset -tp 9 "$child"
	kill -USR1 "$child"
	wait_for_line '^20-23$'
}

@test "--attach gives a child a partition of its own, which it keeps when it loads CUDA" {
	needs_attach
	start_shell_with play "play wait where wait >'$WORK/output'"
	wait_for_line waiting
	files=$(ls "/proc/$child/fd" | wc -l)
	run -0 nvtaskset --attach -tp 9 "$child"
	[ "${lines[0]}" = "pid $child's current TPC list: 0-7" ]
	[ "${lines[1]}" = "pid $child's new TPC list: 9" ]
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 0-7" ]
	[ "$(ls "/proc/$child/fd" | wc -l)" -eq $((files + 1)) ]
	# Other users may only read it.
	for file in "/proc/$child/fd/"*; do
		[[ "$(readlink "$file")" != /memfd:nvtaskset* ]] || [ "$(stat -L -c %a "$file")" = 644 ]
	done
	# Once is enough.
	nvtaskset --attach -tp 10 "$child"
	[ "$(ls "/proc/$child/fd" | wc -l)" -eq $((files + 1)) ]
	run -3 nvtaskset -tp 11 "$PROGRAM"
	kill -USR1 "$child"
	wait_for_line '^10$'
	kill -USR1 "$child"
}

opens_the_child() { # PID
	readlink "/proc/$1/fd/"* | grep -qx "/proc/$child"
}

@test "--attach gives a child a single partition, however many commands do so at once" {
	needs_attach
	start_shell_with sleep 'sleep 60'
	# The commands look at the child before the lock, and wait for the lock.
	exec 8<"/proc/$child"
	flock 8
	for tpc in 1 2 3; do
		nvtaskset --attach -tp "$tpc" "$child" >/dev/null 3>&- 8<&- &
		others[tpc]=$!
	done
	for tpc in 1 2 3; do
		wait_until opens_the_child "${others[tpc]}"
	done
	exec 8<&-
	for tpc in 1 2 3; do
		wait "${others[tpc]}"
	done
	# The parent's and the child's own.
	[ "$(readlink "/proc/$child/fd/"* | grep -c '^/memfd:nvtaskset ')" -eq 2 ]
	pkill -P "$PROGRAM"
}

@test "also in a PID namespace, where the child has another pid" {
	needs_namespaces --pid --fork --mount-proc
	start_waiting nvtaskset --mps off -t 0-7 unshare --pid --fork --mount-proc --kill-child bash -c "play wait where; true"
	wait_for_child "$PROGRAM" bash
	wait_for_child "$child" play
	PROGRAM=$child # a signal ends it, and the others end with it
	nvtaskset --attach -tp 9 "$child"
	# This is the owner's pid, by which a process recognizes its own segment.
	for file in "/proc/$child/fd/"*; do
		[[ "$(readlink "$file")" != "/memfd:nvtaskset "* ]] || owners+=" $(od -An -tu8 -j16 -N8 "$file" | tr -d ' ')"
	done
	[[ "$owners " == *" $(awk '/^NSpid/ { print $NF }' "/proc/$child/status") "* ]]
	kill -USR1 "$child"
	wait_for_line '^9$'
}

@test "if its limits leave no room, --attach says so, and the child lives" {
	needs_attach
	start_shell_with sleep 'sleep 60'
	prlimit --pid "$child" --fsize=4096:unlimited
	run -1 nvtaskset --attach -tp 9 "$child"
	[[ "$output" == "nvtaskset: pid $child: may write files of 4096 bytes at most (RLIMIT_FSIZE), and a partition has "*": run 'prlimit --pid $child --fsize=unlimited'" ]]
	prlimit --pid "$child" --fsize=unlimited --nofile=3
	run -1 nvtaskset --attach -tp 9 "$child"
	[[ "$output" == "nvtaskset: pid $child: it cannot be given a partition: Too many open files" ]]
	kill -0 "$child"
	pkill -P "$PROGRAM"
}

@test "a child gets its own segment when it loads CUDA, with its parent's partition of that moment" {
	start_script 'play where wait where'
	nvtaskset -tp 8-15 "$PROGRAM"
	let_go
	wait_for_line waiting
	wait_for_child "$PROGRAM" play
	run -3 nvtaskset -tp 3 "$PROGRAM"
	[ "$(nvtaskset -tp "$child")" = "pid $child's current TPC list: 8-15" ]
	nvtaskset -tp 4 "$child"
	[ "$(nvtaskset -tp "$PROGRAM")" = "pid $PROGRAM's current TPC list: 3" ]
	kill -USR1 "$child"
	wait "$PROGRAM"
	PROGRAM=
	[ "$(tail -n 1 "$WORK/output")" = 4 ]
}

@test "a worker with fewer privileges cannot change the partition that it has from its parent" {
	needs_another_user
	# Tries on an inherited segment all that only the owner's user may do. Then it keeps every lock that a reader can have.
	cat >"$WORK/attack.py" <<-'END'
		import fcntl, mmap, os, struct, time
		def name(n):
		    path = "/proc/self/fd/%d" % n
		    return os.readlink(path) if os.path.lexists(path) else ""
		def attempt(what, how, *arguments):
		    try:
		        return how(*arguments), print(what, "worked")
		    except OSError:
		        pass
		found = [n for n in range(1024) if "memfd:nvtaskset (" in name(n)]
		for n in found:
		    path = "/proc/self/fd/%d" % n
		    attempt("lock", fcntl.flock, n, fcntl.LOCK_EX | fcntl.LOCK_NB)
		    attempt("open to write", os.open, path, os.O_WRONLY)
		    attempt("open", os.open, path, os.O_RDWR)
		    reader = os.open(path, os.O_RDONLY)
		    for file in n, reader:
		        attempt("write", os.pwrite, file, b"x", 0)
		        attempt("map", mmap.mmap, file, 4096)
		        attempt("seal", fcntl.fcntl, file, 1033, 8)
		    fcntl.flock(reader, fcntl.LOCK_EX)
		    fcntl.fcntl(reader, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)) # F_OFD_SETLK
		    fcntl.lockf(os.open(path, os.O_RDONLY), fcntl.LOCK_SH)
		print("tried", len(found), flush=True)
		time.sleep(60)
	END
	start nvtaskset --mps off -t 0-7 bash -c '"$@"; true' bash "${ANOTHER_USER[@]}" python3 "$WORK/attack.py"
	wait_for_line tried
	[ "$(cat "$WORK/output")" = "tried 1" ]
	for list in 9 10-12; do
		[ "$(nvtaskset -tp "$list" "$PROGRAM" | tail -n 1)" = "pid $PROGRAM's new TPC list: $list" ]
	done
	pkill -P "$PROGRAM"
}

@test "a program that becomes another user starts with the change by -p, not with its environment's partition" {
	needs_to_look_into_others
	mkfifo "$WORK/go"
	for clean in "" "env -u NVTASKSET_PARTITION -u NVTASKSET_PID"; do
		start nvtaskset --mps off -t 0-7 bash -c "read -r go <'$WORK/go'; exec ${ANOTHER_USER[*]} $clean $BUILD/tests/programs/play wait where"
		nvtaskset -tp 20-23 "$PROGRAM"
		let_go
		wait_for_line waiting
		# Until it loads CUDA, root can change it.
		refuses "pid $PROGRAM: has another user's partition until it loads CUDA; give it its own with --attach" \
			"${ANOTHER_USER[@]}" nvtaskset -tp 5 "$PROGRAM"
		nvtaskset -tp 24-27 "$PROGRAM"
		ends_with 24-27
		[ ! -s "$WORK/errors" ]
	done
}

@test "two processes with the same pid, in nested containers, have a partition each" {
	needs_namespaces -pf --mount-proc
	start_waiting unshare -pf --mount-proc "$BUILD/nvtaskset" --mps off -t 0-7 \
		unshare -pf --mount-proc "$BUILD/tests/programs/play" where wait where
	wait_for_child "$PROGRAM"
	outer=$child
	wait_for_child "$outer"
	inner=$child
	run -3 nvtaskset -tp 20-23 "$outer"
	[ "$(nvtaskset -tp "$inner")" = "pid $inner's current TPC list: 0-7" ]
	kill -USR1 "$inner"
	wait "$PROGRAM"
	PROGRAM=
	[ "$(tail -n 1 "$WORK/output")" = 0-7 ]
}

@test "a program that becomes another user can be changed by that user" {
	needs_another_user
	start_playing -t 0-7 -- wait
	stop_program
	start_waiting nvtaskset --mps off -t 0-7 "${ANOTHER_USER[@]}" "$BUILD/tests/programs/play" where wait where
	[ "$("${ANOTHER_USER[@]}" nvtaskset -tp 9 "$PROGRAM" | tail -n 1)" = "pid $PROGRAM's new TPC list: 9" ]
	ends_with 9
	[ ! -s "$WORK/errors" ]
}

# --- limits --------------------------------------------------------------------------------------------------------------

# No limit ends the program, and it runs inside its partition.
runs_inside_under() { # a limit: the arguments of bash's ulimit
	run -0 bash -c "ulimit $*; exec nvtaskset --mps off -t 0-7 play where"
	[ "${lines[-1]}" = 0-7 ]
}

@test "limits: without room for a segment, the partition is in force, and cannot be changed" {
	runs_inside_under -f 8
	[[ "$output" == *"the limit for files (ulimit -f) is 8192; the partition of this program is in force, and cannot be changed"* ]]
	[ "$(grep -c "cannot be changed" <<<"$output")" -eq 1 ]
	# ThreadSanitizer writes a file of its own, which this limit would stop.
	is_sanitized tsan || runs_inside_under -f 0
}

@test "limits: others" {
	is_sanitized && skip "a sanitizer needs more"
	runs_inside_under -l 0
	runs_inside_under -u 1000
	runs_inside_under -s 256
	runs_inside_under -d 65536
	runs_inside_under -v 1000000
}
