#!/usr/bin/env bats
# What other users' programs offer to those who look at them: it costs a bounded time, and is believed of themselves only.
# sanitizers: address thread

load helpers
OWN_GPUS=yes

prepare() {
	chmod 644 "$WORK/gpus.txt"
	needs_to_look_into_others
}

# Starts a hostile program of another user, whose pid is then in `hostile`.
play() { # TRICK ARGUMENT…
	local status=0
	start_as hostile "${ANOTHER_USER[@]}" sh -c 'exec "$@" 2>&1' sh "$BUILD/tests/programs/hostile" "$@"
	if ! grep -q ready "$WORK/hostile"; then
		wait "$hostile" || status=$?
		[ "$status" != 77 ] || skip "not permitted here: $(cat "$WORK/hostile")"
		cat "$WORK/hostile"
		false
	fi
}

# First the programs that others may wait for: then these end, too.
teardown() {
	kill -KILL "${ALL[@]}" 2>/dev/null || true
	wait
	rm -rf "$WORK"
}

is_gone() { # PID
	! kill -0 "$1" 2>/dev/null
}

# It ends, though only the time that a test may take bounds how soon. A command that the kernel does not let end would keep
# bats waiting: so it is in the background.
ends() { # COMMAND…
	start "$@"
	wait_until is_gone "$PROGRAM" || {
		echo "does not end: $*"
		return 1
	}
}

all_end() {
	local command
	for command in "-l" "-T" "metrics" "top --once --delay 0.1" "--mps off --dry-run -n 3" "-p --group x$$" \
		"--mps off -t 0-3 true" "-p $hostile"; do
		ends nvtaskset $command
	done
}

@test "a group's file on a file system that does not answer keeps nobody" {
	mknod -m 666 "$WORK/another/fuse" c 10 229 2>/dev/null || skip "devices cannot be made here"
	play silent "$WORK/another"
	all_end
	nvtaskset -l | grep -q "$hostile "
}

@test "an environment of any size, or that is not there, keeps nobody" {
	play environ 1024
	all_end
	play unmapped
	all_end
}

start_root() { # options and SET
	start_as root nvtaskset --mps off "$@" "$BUILD/demo/where" 60
}

group_file_of() { # PID
	local file
	for file in /proc/"$1"/fd/*; do
		[[ "$(readlink "$file")" != *nvtaskset-group* ]] || echo "$file"
	done
}

@test "who says that he is in another user's group changes neither that nor its sums" {
	start_root --group "g$$" -t 0-3
	play claim "$(stat -L -c %d "$(group_file_of "$root")")" "$(stat -L -c %i "$(group_file_of "$root")")"
	refuses "pid $hostile: is in no group of its user's that can be reached" nvtaskset -tp --group "$hostile" 60
	[ "$(nvtaskset -tp --group "g$$")" = "group g$$'s current TPC list: 0-3" ]
	nvtaskset -l | grep -q "group g$$: 1 process,"
	[ "$(nvtaskset -l --json | jq -c --argjson pid "$hostile" '.groups[] | select(.pids | index($pid))')" = "" ]
}

@test "who reads the file of root's group is not counted among its processes, nor the way to it" {
	mkdir "$WORK/groups"
	export NVTASKSET_GROUP_FILE=$WORK/groups/job
	start_root -t 0-3
	unset NVTASKSET_GROUP_FILE
	play read "$WORK/groups/job"
	refuses "pid $hostile: is in no group of its user's that can be reached" nvtaskset -tp --group "$hostile" 60
	[ "$(nvtaskset -tp --group "$WORK/groups/job")" = "group $WORK/groups/job's current TPC list: 0-3" ]
	nvtaskset -l | grep -q "group job (root's): 1 process,"
	[ "$(nvtaskset -l --json | jq -c --argjson pid "$root" '.groups[] | select(.pids | index($pid)).pids')" = "[$root]" ]
}

# Waited for one after the other, they would keep others for minutes.
@test "locks that are never given back keep nobody, nor names without end" {
	play lock 60
	all_end
	nvtaskset top --once --delay 0.1 | grep -q "another process keeps its partition locked"
	NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200.txt nvtaskset trace --seconds 0.2 >"$WORK/trace"
	jq -e 'any(.name // "" | startswith("another process keeps its partition locked"))' "$WORK/trace"
	play names
	all_end
}

@test "a partition that is damaged, and its reason" {
	play damaged
	all_end
	refuses "pid $hostile: its segment is damaged" nvtaskset top --once "$hostile"
	refuses "pid $hostile: its segment is damaged" nvtaskset trace "$hostile"
}

# The formats of metrics forbid two samples with the same labels.
@test "two partitions of one GPU are no partition, and no two samples of one metric" {
	play twice "${GPU%%:*}"
	nvtaskset metrics >"$WORK/metrics"
	[ "$(grep -v '^#' "$WORK/metrics" | sed 's/ [^ ]*$//' | sort | uniq -d)" = "" ]
	refuses "pid $hostile: its segment is damaged" nvtaskset top --once "$hostile"
	all_end
}

@test "a group of another user's makes no name of one's own mean several" {
	start_root --group "g$$" -t 0-3
	start_as theirs "${ANOTHER_USER[@]}" nvtaskset --mps off --group "g$$" -t 4-7 "$BUILD/demo/where" 60
	[ "$(nvtaskset -tp --group "g$$")" = "group g$$'s current TPC list: 0-3" ]
}
