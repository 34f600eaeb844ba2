#!/usr/bin/env bats
# MPS: used if it runs, started if it does not, and errors name the real reason
# processes: no

load helpers

teardown() {
	end_daemons "$WORK/mps"
	rm -rf "$WORK"
}

@test "a control daemon is started, with a message" {
	run -0 fake nvtaskset -t 0 sh -c 'echo $CUDA_DEVICE_MAX_CONNECTIONS'
	[ "${lines[0]}" = "nvtaskset: MPS: started a control daemon in $WORK/mps" ]
	[ "${lines[1]}" = 8 ]
	[ -e "$WORK/mps/running" ]
}

@test "who is started by a lower client is a usual one" {
	fake nvidia-cuda-mps-control -d 3>&-
	run -0 fake nvtaskset --mps on --priority 20 -t 0-3 nvtaskset -t 0 sh -c 'echo "now <${CUDA_MPS_CLIENT_PRIORITY-}>"'
	[[ "$output" == *"now <>" ]]
}

@test "connections: the option, then what the user set, then 8" {
	while read -r expected set options; do
		[ "$set" = - ] || export CUDA_DEVICE_MAX_CONNECTIONS=$set
		[ "$(fake nvtaskset $options -t 0 sh -c 'echo $CUDA_DEVICE_MAX_CONNECTIONS' 2>/dev/null)" = "$expected" ]
	done <<-'END'
		4 - --connections 4
		1 1
		2 1 --connections 2
		8 junk
		8 33
	END
}

# A line that names it; with --strict, COMMAND is not started.
is_limited_by() { # VARIABLE VALUE
	local line="$1=$2: MPS's own limit was seen to make products of cuBLAS wrong: unset the variable, or use --mps off"
	export "$1=$2"
	run -0 fake nvtaskset -t 0 echo ran
	[ "$output" = "nvtaskset: $line"$'\n'ran ]
	refuses "$line" fake nvtaskset --strict -t 0 true
	run -0 nvtaskset --mps off --strict -t 0 echo ran
	[ "$output" = ran ]
	unset "$1"
}

@test "MPS's own limits of SMs: a line, and --strict refuses, but not without MPS" {
	fake nvidia-cuda-mps-control -d 3>&-
	is_limited_by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE 75
	is_limited_by CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING 1
	is_limited_by CUDA_MPS_SM_PARTITION GPU-1234/abc
	CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='' run -0 fake nvtaskset --strict -t 0 echo ran
	[ "$output" = ran ]
}

# The kernel would end the writer of a longer file.
@test "a limit for files that leaves no room for an answer is a reason" {
	! is_sanitized tsan || skip "ThreadSanitizer needs a file itself"
	for mode in auto on; do # the daemon is to be started; runs
		run fake bash -c 'ulimit -f 0; "$@" 2>&1 | cat; exit "${PIPESTATUS[0]}"' bash \
			nvtaskset --mps $mode -t 0 true
		[ "$status" = 1 ]
		[[ "$output" == "nvtaskset: MPS: the limit for files (ulimit -f) leaves no room for "* ]]
		[ $mode = on ] || fake nvidia-cuda-mps-control -d 3>&-
	done
}

@test "a full server" {
	fake nvidia-cuda-mps-control -d 3>&-
	FAKE_MPS_CLIENTS=14 run fake nvtaskset -t 0 echo ran
	[ "$output" = ran ]
	FAKE_MPS_CLIENTS=15 run -1 fake nvtaskset -t 0 echo ran
	[[ "$output" =~ ^"nvtaskset: MPS: the server (pid "[0-9]+") is full: 15 clients, and 15 fit at 8 connections each; end one, or use --connections 2"$ ]]
	FAKE_MPS_CLIENTS=47 run fake nvtaskset --connections 2 -t 0 echo ran
	[ "$output" = ran ]
	FAKE_MPS_CLIENTS=48 run -1 fake nvtaskset --connections 2 -t 0 echo ran
	[[ "$output" == *"48 fit at 2 connections each; end one" ]]
}

@test "--mps on needs a running daemon; --mps off keeps the program away from it" {
	refuses "MPS: no control daemon runs in $WORK/mps; start it with 'nvidia-cuda-mps-control -d', or use --mps auto" \
		fake nvtaskset --mps on -t 0 true
	fake nvidia-cuda-mps-control -d 3>&-
	run fake nvtaskset --mps on -t 0 echo ran
	[ "$output" = ran ]
	run nvtaskset --mps off -t 0 sh -c 'echo $CUDA_MPS_PIPE_DIRECTORY'
	[ "$output" = /dev/null ]
}

@test "MPS is not installed" {
	[ ! -x /usr/bin/nvidia-cuda-mps-control ] && [ ! -x /usr/local/nvidia/bin/nvidia-cuda-mps-control ] ||
		skip "MPS is installed"
	refuses "MPS: nvidia-cuda-mps-control is neither on PATH nor where NVIDIA installs it; put it on PATH; --mps off runs without MPS" \
		nvtaskset -t 0 true
	# These start no program that could do without MPS.
	for words in "mps" "mps stop"; do
		refuses "MPS: nvidia-cuda-mps-control is neither on PATH nor where NVIDIA installs it; put it on PATH" nvtaskset $words
		CUDA_MPS_PIPE_DIRECTORY=/dev/null refuses \
			"MPS: CUDA_MPS_PIPE_DIRECTORY is /dev/null, which keeps programs away from MPS; unset it" nvtaskset $words
	done
}

@test "the daemon does not start, cannot be asked, or does not answer" {
	FAKE_MPS=no-start refuses \
		"MPS: the control daemon does not start: Failed to create the log directory; --mps off runs without MPS" \
		fake nvtaskset -t 0 true
	FAKE_MPS=forbidden refuses \
		"MPS: the control daemon in $WORK/mps cannot be asked: Failed to connect: Permission denied; --mps off runs without MPS" \
		fake nvtaskset -t 0 true
	# With the patience that the command has; unit/mps_ask.c has those that die.
	FAKE_MPS=hang run -1 fake nvtaskset -t 0 true
	[[ "$output" == "nvtaskset: MPS: the control daemon in $WORK/mps does not answer: "* ]]
}

@test "nothing of MPS is touched when the set is wrong" {
	refuses "TPC 66: this GPU has TPCs 0-65" fake nvtaskset -t 66 true
	[ ! -e "$WORK/mps/running" ]
}

@test "--mps-status: whose daemon it is, and how many more clients fit" {
	FAKE_MPS_LINGER=600 fake nvtaskset -t 0 true 3>&-
	daemon=$(cat "$WORK/mps/nvidia-cuda-mps-control.pid")
	FAKE_MPS_SERVER=$$ FAKE_MPS_CLIENTS=3 run fake nvtaskset mps status
	kill "$daemon"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "control daemon: in $WORK/mps, pid $daemon of user $(id -un), started by nvtaskset" ]
	[ "${lines[1]}" = "server: pid $$" ]
	[ "${lines[2]}" = "clients: 3; 12 more fit at 8 connections each" ]
	FAKE_MPS_SERVER=$$ FAKE_MPS_CLIENTS=3 run fake nvtaskset mps status --connections 2
	[[ "$output" == *"clients: 3; 45 more fit at 2 connections each" ]]
}

@test "--mps-status: another user's daemon, without a server; no daemon at all" {
	FAKE_MPS_LINGER=600 fake nvidia-cuda-mps-control -d 3>&-
	run fake nvtaskset mps status
	kill "$(cat "$WORK/mps/nvidia-cuda-mps-control.pid")"
	[[ "${lines[0]}" == *", not started by nvtaskset" ]]
	[ "${lines[1]}" = "server: none yet; it comes with the first client" ]
	echo quit | fake nvidia-cuda-mps-control || true
	refuses "MPS: no control daemon runs in $WORK/mps" fake nvtaskset mps status
	# A process that has the pid of a daemon that has ended.
	fake nvtaskset -t 0 true 3>&-
	for pid in $$ garbage; do
		echo "$pid" >"$WORK/mps/nvidia-cuda-mps-control.pid"
		run fake nvtaskset mps status
		[ "${lines[0]}" = "control daemon: in $WORK/mps" ]
	done
}

@test "--mps-stop ends the daemon that nvtaskset started" {
	FAKE_MPS_LINGER=600 fake nvtaskset -t 0 true 3>&-
	run -0 fake nvtaskset mps stop
	[ "$output" = "stopped the control daemon in $WORK/mps" ]
	[ ! -e "$WORK/mps/running" ]
	refuses "MPS: no control daemon runs in $WORK/mps" fake nvtaskset mps stop
	FAKE_MPS_LINGER=600 fake nvtaskset -t 0 true 3>&-
	run -3 fake bash -c 'nvtaskset mps stop >/dev/full'
	[ "$output" = "nvtaskset: standard output: No space left on device; the change has been made" ]
	[ ! -e "$WORK/mps/running" ]
}

@test "--mps-stop leaves other users' daemons and clients alone, unless forced" {
	FAKE_MPS_LINGER=600 fake nvidia-cuda-mps-control -d 3>&-
	daemon=$(cat "$WORK/mps/nvidia-cuda-mps-control.pid")
	refuses "MPS: nvtaskset did not start the control daemon in $WORK/mps (pid $daemon); --force stops it" \
		fake nvtaskset mps stop
	echo 0 >"$WORK/mps/nvidia-cuda-mps-control.pid"
	refuses "MPS: who started the control daemon in $WORK/mps cannot be seen; --force stops it" fake nvtaskset mps stop
	echo "$daemon" >"$WORK/mps/nvidia-cuda-mps-control.pid"
	[ -e "$WORK/mps/running" ]
	fake nvtaskset mps stop --force
	[ ! -e "$WORK/mps/running" ]
	FAKE_MPS_LINGER=600 fake nvtaskset -t 0 true 3>&-
	FAKE_MPS_CLIENTS=2 refuses "MPS: 2 programs use it; end them first, or stop it and them with --force" \
		fake nvtaskset mps stop
	[ -e "$WORK/mps/running" ]
	# Other users' clients, too: process 1 is no server of this user's, or is taken for one that does not exist.
	FAKE_MPS_SERVER=0 FAKE_MPS_CLIENTS=2 refuses "MPS: 2 programs use it; end them first, or stop it and them with --force" \
		fake nvtaskset mps stop
	[ -e "$WORK/mps/running" ]
	FAKE_MPS_CLIENTS=2 fake nvtaskset mps stop --force
	[ ! -e "$WORK/mps/running" ]
}

@test "--mps-stop: another user's daemon" {
	FAKE_MPS_LINGER=600 fake nvtaskset -t 0 true 3>&-
	FAKE_MPS=private refuses "MPS: the control daemon in $WORK/mps belongs to another user: ask that user, or root" \
		fake nvtaskset mps stop
	fake nvtaskset mps stop
}

# --- interface 3 ----------------------------------------------------------------------------------------------------------

@test "interface 3 is recognised: what cannot be seen is said, and --strict does not start" {
	export FAKE_MPS_PROTOCOL=3
	FAKE_MPS_LINGER=600 fake nvidia-cuda-mps-control -d 3>&-
	# More than would fit by the older interface.
	FAKE_MPS_CLIENTS=60 run -0 fake nvtaskset --mps on -t 0 echo ran
	[ "$output" = "nvtaskset: MPS: the control daemon in $WORK/mps speaks interface 3: whether a limit of its servers and namespaces is in force for COMMAND cannot be seen
ran" ]
	refuses "MPS: the control daemon in $WORK/mps speaks interface 3, which has limits for servers and namespaces: whether one is in force for COMMAND cannot be seen, so --strict does not start it" \
		fake nvtaskset --strict -t 0-3 true
	mkdir "$WORK/cdi"
	refuses "MPS: the control daemon in $WORK/mps speaks interface 3: whether a limit of its namespaces is in force cannot be seen, so --strict makes no such device" \
		fake nvtaskset cdi add --output "$WORK/cdi/nvtaskset.json" --strict -t 0-3 infer
	FAKE_MPS_SERVER=$$ FAKE_MPS_CLIENTS=3 run fake nvtaskset mps status
	[ "${lines[1]}" = "server: pid $$" ]
	[ "${lines[2]}" = "clients: 3; by interface 3: how many more fit, and which limits they get, is not known" ]
	[ "${lines[3]}" = "clients of all users on all GPUs: 4" ]
	fake nvtaskset mps stop --force
	[ ! -e "$WORK/mps/running" ]
}

@test "interface 3: the directory of a namespace, and one that also answers the older questions" {
	FAKE_MPS_PROTOCOL=3 FAKE_MPS_LINGER=600 fake nvidia-cuda-mps-control -d 3>&-
	mkdir -p "$WORK/mps/training/batch"
	touch "$WORK"/mps/training/{,batch/}control
	for directory in mps/training mps/training/batch; do
		CUDA_MPS_PIPE_DIRECTORY=$WORK/$directory run -0 fake nvtaskset --mps on -t 0 printenv CUDA_MPS_PIPE_DIRECTORY
		[[ "${lines[0]}" == "nvtaskset: MPS: the control daemon in $WORK/$directory speaks interface 3: "* ]]
		[ "${lines[1]}" = "$WORK/$directory" ]
	done
	rm -r "$WORK/mps/training/batch"
	# It has servers, so its table is not all that there is.
	FAKE_MPS_PROTOCOL=3 run fake nvtaskset mps status
	[[ "$output" == *"by interface 3: "* ]]
}

@test "interface 3 is not taken for spoken where the older daemon has no server yet" {
	FAKE_MPS_LINGER=600 fake nvidia-cuda-mps-control -d 3>&-
	run -0 fake nvtaskset --strict --mps on -t 0 echo ran
	[ "$output" = ran ]
	run fake nvtaskset mps status
	[[ "$output" != *"interface 3"* ]]
}

@test "interface 3: the directory of root's daemon" {
	needs_namespaces -m
	[ ! -e /tmp/nvidia-mps/control ] || skip "MPS runs here"
	export -f fake
	export BATS_TEST_DIRNAME BUILD FAKE_MPS_PROTOCOL=3 FAKE_MPS_LINGER=1
	unset CUDA_MPS_PIPE_DIRECTORY
	run -0 unshare -m bash -euc 'mount -t tmpfs none /run
		CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps fake nvidia-cuda-mps-control -d
		export CUDA_MPS_PIPE_DIRECTORY=
		fake nvtaskset --mps on -t 0 printenv CUDA_MPS_PIPE_DIRECTORY' 3>&-
	[ "${lines[-1]}" = /run/nvidia-mps ]
}

has_connections_line() { # 0 or 1
	[ "$(nvtaskset -l | grep -c ' to MPS: ')" -eq "$1" ]
}

@test "-l names a client of MPS that has more streams than connections" {
	load playing
	start_side_by_side --connections 3 -t 0-7 -- streams 3 wait streams 1 wait stream-ends wait \
		streams 9 context-ends streams 2 wait
	has_connections_line 0
	go_on && waits 2
	line='4 streams and 3 connections to MPS: streams that wait for each other may hang (--connections)'
	nvtaskset -l | grep -qx " *$line"
	go_on && waits 3
	has_connections_line 0
	go_on && waits 4
	has_connections_line 0
	go_on_to_the_end
	start_playing -t 0-7 -- streams 40 wait
	has_connections_line 0
}
