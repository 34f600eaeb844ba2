# Functions that the tests of the command share. They run on a simulated H200, with a fake control daemon of MPS. A file may set
# OWN_GPUS: then each of its tests has GPUs of its own; and have a function `prepare`, which begins each test.

bats_require_minimum_version 1.5.0

setup() {
	BUILD=${BUILD:-$BATS_TEST_DIRNAME/../../build}
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=$BUILD:$BUILD/demo:$PATH
	WORK=$(mktemp -d)
	# Every user must be able to read root's links to library and driver.
	chmod 755 "$WORK"
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200.txt
	export NVTASKSET_DRIVER=$BUILD/sim/libcuda.so.1
	export XDG_CACHE_HOME=$WORK XDG_RUNTIME_DIR=$WORK CUDA_MPS_PIPE_DIRECTORY=$WORK/mps
	# An audit library (--strict) leaves next to no room for ThreadSanitizer's thread-local storage.
	! is_sanitized tsan || export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=1000000
	# Before a command: runs it as a user who is not root, with a cache of its own.
	ANOTHER_USER=(setpriv --reuid 65534 --regid 65534 --clear-groups env "XDG_CACHE_HOME=$WORK/another")
	# Before a command: runs it as root of most containers, who may not look into processes with more privileges, as
	# this shell.
	LIMITED_ROOT=(setpriv "--bounding-set=-sys_ptrace,-mknod")
	unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER CUDA_DEVICE_MAX_CONNECTIONS LD_LIBRARY_PATH
	PROGRAM=
	ALL=() # all that were started
	[ -z "${OWN_GPUS-}" ] || own_gpus
	! declare -F prepare >/dev/null || prepare
}

# Use this, since "! COMMAND" only fails a test as its last line.
not() { # COMMAND…
	if "$@"; then
		echo "succeeded: $*"
		return 1
	fi
}

# Whether the build is sanitized by tsan or asan; without an argument, by either.
is_sanitized() {
	local by=${BUILD##*/}
	[[ "$by" =~ ^[at]san$ && "$by" = "${1:-$by}" ]]
}

# A program that a test needs, and that every machine can be given (tests/run).
needs() { # COMMAND
	command -v "$1" >/dev/null || skip "needs $1"
}

needs_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# Another user must be able to read this tree; in root's home, nobody else can.
needs_another_user() {
	needs_root
	mkdir "$WORK/another"
	chown 65534 "$WORK/another"
	"${ANOTHER_USER[@]}" test -x "$BUILD/nvtaskset" || skip "no other user gets at the build directory"
}

# Namespaces of the kinds that these options of unshare make: only root may, and in a container not even root.
needs_namespaces() {
	needs_root
	unshare "$@" true 2>/dev/null || skip "namespaces are not permitted"
}

# Another user, whose processes root may look into: by the capability SYS_PTRACE, which root does not have in every container.
needs_to_look_into_others() {
	needs_another_user
	(($(sed -n 's/^CapEff:[[:blank:]]*/0x/p' /proc/self/status) >> 19 & 1)) || skip "root may not look into others' processes here"
}

needs_attach() {
	[ "$(uname -m)" = x86_64 ] || skip "processes can be attached to on x86-64 only, so far"
}

teardown() {
	stop_program
	kill "${ALL[@]}" 2>/dev/null || true
	rm -rf "$WORK"
}

# The TPCs of its partition.
list_of() { # PID
	nvtaskset -tp "$1" | sed 's/.*: //'
}

# GPUs of this test's own: programs of other tests do not run on them. GPU is the first one's bus id.
# shellcheck disable=SC2120 # some tests pass one
own_gpus() { # [TOPOLOGY]
	local domain
	domain=$(printf '%08x' $((1 << 31 | (BASHPID & 0x7fff) << 16 | RANDOM)))
	sed "s/^gpu 0000:/gpu $domain:/" "$ROOT/share/topologies/${1:-h200}.txt" >"$WORK/gpus.txt"
	export NVTASKSET_TOPOLOGY=$WORK/gpus.txt
	GPU=$(sed -n 's/^gpu //p' "$WORK/gpus.txt" | head -n 1)
}

# make, on our source and this build.
in_source() { # ARGUMENT…
	make -s --no-print-directory -C "$ROOT" BUILD="$BUILD" "$@" 3>&-
}

# Runs the command without MPS, since most tests are not about MPS.
nv() {
	nvtaskset --mps off "$@"
}

# Under MPS, of which a fake daemon runs, or is started.
fake() { # COMMAND…
	PATH=$BATS_TEST_DIRNAME/../fake-mps:$PATH "$@"
}

# Ends the fake daemons whose pipes are there, however long they would live on.
end_daemons() { # DIRECTORY
	# shellcheck disable=SC2046 # many words
	kill $(pgrep -f "^$1/nvidia-cuda-mps-control") 2>/dev/null || true
}

# Waits until the command succeeds; on a busy machine that may take long.
wait_until() { # COMMAND…
	local end=$((SECONDS + 60))
	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "waited in vain: $*"
			return 1
		fi
		sleep 0.05
	done
}

find_child() { # PID [NAME]
	child=$(pgrep -P "$1" ${2:+"$2"})
}

# Waits until the process has a child, of this name if there is one; then `child` is its pid. Name it, unless the process has said
# something before: as long as it is bats's copy of the shell, it has children of its own now and then.
wait_for_child() { # PID [NAME]
	wait_until find_child "$@"
}

# Makes a script of these lines.
make_script() { # FILE LINE…
	printf '%s\n' "${@:2}" >"$1"
	chmod +x "$1"
}

# Call this before a program is started in the background: its shell empties the file as well, but perhaps after our
# first look, and then the output of an earlier program would count.
empty_output() {
	: >"$WORK/output"
}

# Starts it in the background; PROGRAM is its pid, WORK/output and WORK/errors are what it prints.
start() { # COMMAND…
	empty_output
	"$@" >"$WORK/output" 2>"$WORK/errors" 3>&- &
	PROGRAM=$!
	ALL+=($!)
}

# Starts another beside it, which prints something; NAME is its pid, WORK/NAME and WORK/NAME.errors are what it prints.
start_as() { # NAME COMMAND…
	: >"$WORK/$1"
	"${@:2}" >"$WORK/$1" 2>"$WORK/$1.errors" 3>&- &
	printf -v "$1" %s $!
	ALL+=($!)
	wait_until [ -s "$WORK/$1" ]
}

# Starts a CUDA program inside a partition and waits until it has launched; PROGRAM is its pid.
start_program() { # options and SET
	start_program_by nvtaskset --mps off "$@"
}

# Not by nv: the process in the background would be a shell around it.
start_program_by() { # COMMAND…
	start "$@" "$BUILD/demo/where" "${SECONDS_AND_NAME-600}"
	wait_until [ -s "$WORK/output" ]
}

# The same on TPCs 0-3 with this argument, which lists show; it begins with a number of seconds.
start_named() { # ARGUMENT
	SECONDS_AND_NAME=$1 start_program -t 0-3
}

# Waits until the program has printed such a line.
wait_for_line() { # PATTERN
	wait_until grep -q "$1" "$WORK/output" || {
		cat "$WORK"/{output,errors}
		return 1
	}
}

# Starts a program that says that it waits; PROGRAM is its pid, WORK/output its output.
start_waiting() { # COMMAND…
	start "$@"
	wait_for_line waiting
}

stop_program() {
	[ -z "$PROGRAM" ] || { kill "$PROGRAM" && wait "$PROGRAM"; } 2>/dev/null || true
	PROGRAM=
}

# Runs the command on a terminal of this size, with these steps; OUTPUT has what it wrote, `output` how it ended.
on_terminal() {
	TERM=${TERM_NAME-xterm-256color} LC_ALL=C.UTF-8 run "$BATS_TEST_DIRNAME/on_terminal" "$1" "$WORK/screen" "${@:2}"
	OUTPUT=$(cat "$WORK/screen")
}

last_is_on() { # TPCs
	[[ "$(grep 'on TPCs' "$WORK/output" | tail -n 1)" == *"on TPCs $1 ("* ]]
}

# Waits until the program prints that its kernels run there.
runs_on() { # TPCs
	wait_until last_is_on "$1" || {
		tail -n 3 "$WORK/output"
		return 1
	}
}

# Before a program in a partition: closes the descriptors that came through the exec, of its segment and of its group, so
# that the environment counts.
WITHOUT_SEGMENT=(bash -c 'exec 237>&- 238>&-; exec "$@"' bash)

# Standard error without the line of -n about programs of further users (tests/run).
without_hidden() { # FILE
	sed '/^nvtaskset: -n: programs that you may not look at, those of other users, may have the same TPCs$/d' "$1"
}

# Runs the command, which must refuse with this reason, in one line on standard error, and exit 1.
refuses() {
	local reason=$1 status=0
	shift
	"$@" >"$WORK/stdout" 2>"$WORK/stderr" || status=$?
	echo "status $status; stderr: $(cat "$WORK/stderr")"
	[ "$status" -eq 1 ]
	[ ! -s "$WORK/stdout" ]
	[ "$(without_hidden "$WORK/stderr")" = "nvtaskset: $reason" ]
}
