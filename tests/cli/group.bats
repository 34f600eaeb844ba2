#!/usr/bin/env bats
# --group: processes that have one partition
# takes: long

load helpers

prepare() {
	mkdir "$WORK/groups"
}

# Starts a program whose pid is then in the variable NAME, and its output in WORK/NAME.
start_in() { # NAME, options and SET
	start_as "$1" nvtaskset --mps off "${@:2}" "$BUILD/demo/where" 60
}

# The same of one that closes all descriptors, and says when it waits.
start_closing() { # NAME, options and SET
	start_as "$1" nvtaskset --mps off "${@:2}" "$BUILD/tests/programs/play" where closefrom 3 wait where
	wait_until grep -q waiting "$WORK/$1"
}

teardown() {
	kill "${ALL[@]}" 2>/dev/null || true
	wait
	rm -rf "$WORK"
	[ ! -d "${CGROUP:-}" ] || rmdir "$CGROUP"
}

is_on() { # NAME TPCs
	[[ "$(tail -n 1 "$WORK/$1")" == *"on TPCs $2 ("* ]]
}

come_to() { # TPCs NAME…
	local name
	for name in "${@:2}"; do
		wait_until is_on "$name" "$1" || {
			echo "$name: $(tail -n 1 "$WORK/$name")"
			return 1
		}
	done
}

# --- by name -----------------------------------------------------------------------------------------------------------

@test "two commands join by a name, and one change is for both, and for who comes later" {
	start_in a --group "g$$" -t 0-7
	start_in b --group "g$$" -t 0-7
	start_in other --group "h$$" -t 20
	[ ! -s "$WORK/b.errors" ]
	run nvtaskset -tp --group "g$$" 8-15
	[ "$status $output" = "0 group g$$'s current TPC list: 0-7
group g$$'s new TPC list: 8-15" ]
	come_to 8-15 a b
	[ "$(list_of "$a") $(list_of "$b") $(list_of "$other")" = "8-15 8-15 20" ]
	start_in c --group "g$$" -t 8-15
	[ "$(list_of "$c")" = 8-15 ]
	[ "$(nvtaskset -tp --group "$c")" = "group $c's current TPC list: 8-15" ]
}

@test "a command without descriptors for the group refuses, and the process stays in the group" {
	start_in a --group "g$$" -t 0-7
	for limit in 4 5 6 7 8 9 10; do
		run bash -c "exec 3>&-; ulimit -n $limit; nvtaskset -tp 0-1 $a"
		echo "limit $limit: $output"
		[ "$status" = 0 ] || [[ "$status $output" == "1 nvtaskset: pid $a: "*": Too many open files" ]]
		nvtaskset -tp --group "g$$" 8-15
		[ "$(list_of "$a")" = 8-15 ]
	done
	[ "$status" = 0 ]
	come_to 8-15 a
}

@test "a file of one's own in a mount that is read-only says so" {
	needs_namespaces -m
	in_file job nvtaskset --mps off -t 0-7 true
	job=$WORK/groups/job
	mounted=(unshare -m sh -c 'mount --bind -o ro "$0" "$0" && exec "$@"' "$WORK/groups")
	[ "$("${mounted[@]}" nvtaskset -tp --group "$job")" = "group $job's current TPC list: 0-7" ]
	refuses "the group's file is on a file system that is read-only" "${mounted[@]}" nvtaskset -tp --group "$job" 0
}

# Without room for the search, the command would start beside the group, or would find no group.
@test "a command without descriptors for the search of a name refuses, and starts nothing" {
	start_in a --group "g$$" -t 0-7
	export ASAN_OPTIONS=detect_leaks=0 # the search for leaks needs descriptors
	for limit in 4 5 6 7 8 9 10 11 12; do
		for command in "--mps off --group g$$ -t 0-3 true" "-tp --group g$$"; do
			run bash -c "exec 3>&-; ulimit -n $limit; nvtaskset $command"
			echo "limit $limit: $output"
			[ "$status" = 0 ] || [[ "$status $output" == "1 nvtaskset: "*": Too many open files" ]]
			[ "$status" = 1 ] || [[ "$output" == *"0-7"* ]]
		done
	done
	[ "$status" = 0 ]
}

@test "a program whose limit of descriptors was lowered after the start stays in the group" {
	start_in a --group "g$$" -t 0-7
	start_as lowered nvtaskset --mps off --group "g$$" -t 0-7 \
		bash -c 'ulimit -n 200; "$@"; true' bash "$BUILD/demo/where" 60
	wait_for_child "$lowered" where
	ALL+=("$child")
	nvtaskset -tp --group "g$$" 8-15
	come_to 8-15 a lowered
	[ "$(list_of "$child")" = 8-15 ]
	[ ! -s "$WORK/lowered.errors" ]
}

@test "who joins gets what the group has, and is told so" {
	start_in a --group "g$$" -t 0-7
	start_in b --group "g$$" -t 30
	[ "$(cat "$WORK/b.errors")" = "nvtaskset: group g$$ has TPCs 0-7 of GPU 0, and so has COMMAND; to change all of it: -p --group" ]
	come_to 0-7 b
	start_in c --group "g$$" -n 4
	come_to 0-7 c
	start_in d --group "g$$" all
	come_to 0-7 d
	[ ! -s "$WORK/d.errors" ]
	refuses "TPC 66: this GPU has TPCs 0-65" nv --group "g$$" -t 66 true
	refuses "'garbage': not a number of TPCs such as 20 or 57%" nv --group "g$$" -n garbage true
	refuses "67 TPCs: this GPU has 66" nv --group "g$$" -n 67 true
}

# The kernel would end a process that makes a longer file.
@test "a limit for files that leaves no room for a turn is a reason" {
	! is_sanitized tsan || skip "ThreadSanitizer needs a file itself"
	for turn in "--group g$$ -t 0" "-n 4"; do
		run bash -c 'ulimit -f 0; "$@" 2>&1 | cat; exit "${PIPESTATUS[0]}"' bash nvtaskset --mps off $turn true
		[ "$status $output" = "1 nvtaskset: ${turn%% *}: no shared memory: it takes 16 bytes, and the limit for files (ulimit -f) is 0" ]
	done
}

@test "a command's process tree is a group, also when its first process has gone" {
	: >"$WORK/tree"
	nvtaskset --mps off -t 0-7 bash -c '"$0" 60 >"$1" & echo $! >"$2"' "$BUILD/demo/where" "$WORK/tree" "$WORK/pid" 3>&-
	tree=$(cat "$WORK/pid")
	ALL+=("$tree")
	wait_until [ -s "$WORK/tree" ]
	[ "$(nvtaskset -tp --group "$tree" 5 | tail -n 1)" = "group $tree's new TPC list: 5" ]
	come_to 5 tree
}

@test "children that come later, and their children, have it from their first moment" {
	start nvtaskset --mps off --group "g$$" -t 0-7 bash -c 'until [ -e "$1" ]; do sleep 0.05; done; bash -c "\"\$0\" 60; true" "$0"' \
		"$BUILD/demo/where" "$WORK/go"
	wait_until nvtaskset -tp --group "g$$" 8-15
	touch "$WORK/go"
	runs_on 8-15
	# What it has started shows its group, not what the environment says.
	nvtaskset -tp --group "g$$" 30-31
	runs_on 30-31
	pkill -P "$PROGRAM" -f where || pkill -f "$BUILD/demo/where 60"
}

# Each runs where the group was at one moment, and from the last change on, there; those that go on running, too.
@test "200 programs of a tree, started in any way while the group changes" {
	programs=200
	# Neither the edits nor the programs run away from the others; the last fifth waits for the last edit.
	make_script "$WORK/worker" '#!/bin/bash' 'count=$1' 'for i in $(seq "$count"); do' \
		'	until [ -e "$WORK/last" ] || { [ $((i * 5)) -le $((count * 4)) ] &&' \
		'		[ $((i * 20)) -le $((count * (4 + $(wc -l <"$WORK/edits")))) ]; }; do' \
		'		sleep 0.01' \
		'	done' \
		'	[ -e "$WORK/last" ] && when=after || when=before' \
		'	case $((i % 20)) in' \
		'	0) "$PLAY" where wait where >"$WORK/long.$BASHPID.$i" & echo $! >>"$WORK/pids"; continue ;;' \
		'	[1-4]) set -- "$PLAY" where ;;' \
		'	[5-9]) set -- "$PLAY" fork where ;;' \
		'	1[0-4]) set -- "$PLAY" exec where ;;' \
		'	*) set -- bash -c "\"$PLAY\" where; true" ;;' \
		'	esac' \
		'	echo "$when $("$@")"' \
		'done'
	: >"$WORK/edits"
	export WORK PLAY=$BUILD/tests/programs/play
	start nvtaskset --mps off --group "g$$" -t 0-7 bash -c '"$WORK/worker" "$0" & "$WORK/worker" "$0" & wait' $((programs / 2))
	wait_until nvtaskset -tp --group "g$$"
	while [ "$(wc -l <"$WORK/output")" -lt $((programs * 2 / 3)) ]; do
		for set in 20-27 40-43 10,12,14 0-7; do
			nvtaskset -tp --group "g$$" "$set"
			echo "$set" >>"$WORK/edits"
		done >"$WORK/changed"
	done
	nvtaskset -tp --group "g$$" 50-55
	touch "$WORK/last"
	wait "${ALL[0]}"
	sort "$WORK/output" | uniq -c
	mapfile -t long <"$WORK/pids"
	ALL+=("${long[@]}")
	[ "${#long[@]}" -eq $((programs / 20)) ]
	for file in "$WORK"/long.*; do
		wait_until grep -q waiting "$file"
	done
	kill -USR1 "${long[@]}"
	for file in "$WORK"/long.*; do
		wait_until grep -q '^50-55$' "$file"
	done
	[ $(($(wc -l <"$WORK/output") + ${#long[@]})) -eq "$programs" ]
	not grep -Evx '(before|after) (0-7|20-27|40-43|10,12,14|50-55)' "$WORK/output"
	[ "$(grep -c '^after' "$WORK/output")" -gt $((programs / 10)) ]
	[ -z "$(grep '^after' "$WORK/output" | grep -v ' 50-55$')" ]
	# They were started while all of them were in force.
	[ "$(sort -u "$WORK/output" | grep -c before)" -ge 4 ]
}

@test "nested: a command in a group starts its own, or joins another" {
	start_in a --group "g$$" -t 0-7
	start_in b --group "h$$" -t 0-7 nvtaskset --mps off -t 20-21
	start_in c --group "h$$" -t 0-7 nvtaskset --mps off --group "g$$" -t 0-7
	nvtaskset -tp --group "g$$" 8-15
	come_to 8-15 a c
	[ "$(list_of "$b")" = 20-21 ]
	# Nobody is left in it.
	refuses "--group h$$: no program that you may look at is in it" nvtaskset -tp --group "h$$"
	[ "$(find /proc/"$c"/fd -lname '*nvtaskset-group*' -exec stat -Lc %i {} + | sort -u | wc -l)" -eq 1 ]
}

@test "names that are none, groups that are not there" {
	for name in -x .x 12 'a b' 'a/b' "$(printf 'x%.0s' $(seq 64))" $'a\nb'; do
		shown=${name/$'\n'/?}
		refuses "--group ${shown:0:40}: a name has letters, digits and ._:@+-, at most 63, and is no number alone" \
			nv --group="$name" -t 0 true
	done
	refuses "--group: an empty name" nv --group= -t 0 true
	refuses "--group: a program is in one group at a time: choose one" nv --group a --group b -t 0 true
	refuses "--group nobody$$: no program that you may look at is in it" nvtaskset -tp --group "nobody$$" 0-7
	refuses "--group a b: not a group's name, nor a process id, nor the path of a file (with /)" nvtaskset -tp --group "a b" 0-7
	refuses "pid 4194304: no such process" nvtaskset -tp --group 4194304 0-7
	refuses "'12': a group has no PID, as in 'nvtaskset -tp --group g 0-7'" nvtaskset -tp --group g 0-7 12
	refuses "-a: not with --group: name a process instead" nvtaskset -atp --group g 0-7
}

@test "another user's group is not joined, and not changed; root changes it" {
	needs_to_look_into_others
	start_as theirs "${ANOTHER_USER[@]}" nvtaskset --mps off --group "g$$" -t 0-7 "$BUILD/demo/where" 60
	start_in mine --group "g$$" -t 20
	come_to 20 mine
	nvtaskset -tp --group "g$$" 21
	come_to 21 mine
	[ "$("${ANOTHER_USER[@]}" nvtaskset -tp --group "g$$")" = "group g$$'s current TPC list: 0-7" ]
	nvtaskset -tp --group "$theirs" 9
	come_to 9 theirs
	[ "$(list_of "$mine")" = 21 ]
}

@test "a program that has become another user obeys its former user's group no more" {
	needs_another_user
	rights=+setuid,+setgid
	start_as theirs "${ANOTHER_USER[@]}" nvtaskset --mps off --group "g$$" -t 0-7 "$BUILD/demo/where" 60
	come_to 0-7 theirs
	start_as other setpriv --inh-caps="$rights" --ambient-caps="$rights" "${ANOTHER_USER[@]:1}" \
		nvtaskset --mps off --group "g$$" -t 0-7 setpriv --reuid 65533 --regid 65533 --clear-groups \
		"$BUILD/tests/programs/play" where wait where
	wait_until grep -q waiting "$WORK/other"
	"${ANOTHER_USER[@]}" nvtaskset -tp --group "g$$" 9
	come_to 9 theirs
	kill -USR1 "$other"
	wait "$other"
	[ "$(xargs <"$WORK/other")" = "0-7 waiting 0-7" ]
}

@test "a program that has closed its descriptors still obeys; nothing is left when all have ended" {
	start_in a --group "g$$" -t 0-7
	start_closing b --group "g$$" -t 0-7
	nvtaskset -tp --group "g$$" 8-15
	kill -USR1 "$b"
	wait "$b"
	[ "$(tail -n 1 "$WORK/b")" = 8-15 ]
	kill "$a"
	wait "$a" || true
	refuses "--group g$$: no program that you may look at is in it" nvtaskset -tp --group "g$$"
}

# A page that nobody has open is out of reach, although programs obey it; a file has a path.
@test "when all have closed it, a group by name is out of reach, and one with a file is not" {
	start_closing by_name --group "g$$" -t 0-7
	in_file job start_closing by_file -t 0-7
	refuses "--group g$$: no program that you may look at is in it" nvtaskset -tp --group "g$$" 8-15
	refuses "pid $by_name: has closed the file of its partition, which is out of reach until the program makes its next CUDA context" \
		nvtaskset -tp --group "$by_name" 8-15
	# Another group of that name begins.
	start_in b --group "g$$" -t 20
	nvtaskset -tp --group "g$$" 21
	come_to 21 b
	nvtaskset -tp --group "$WORK/groups/job" 8-15
	kill -USR1 "$by_name" "$by_file"
	wait "$by_name" "$by_file"
	[ "$(tail -n 1 "$WORK/by_name") $(tail -n 1 "$WORK/by_file")" = "0-7 8-15" ]
}

@test "a program whose segment's descriptor was closed before its exec is in its group" {
	start_in a --group "g$$" -t 0-7
	# Its segment's descriptor is gone, and its group's is not.
	start_in b --group "g$$" -t 0-7 bash -c 'nvtaskset -tp --group "$$" 8-15 >&2; exec 237>&-; exec "$@"' bash
	come_to 8-15 a b
}

@test "a child that gets a partition of its own by --attach stays in the group" {
	needs_attach
	! is_sanitized || skip "not with a sanitizer"
	start nvtaskset --mps off --group "g$$" -t 0-7 bash -c '"$0" 60; true' "$(command -v sleep)"
	wait_for_child "$PROGRAM" sleep
	ALL+=("$child")
	wait_until nvtaskset -tp --group "g$$"
	nvtaskset --attach -tp 2-3 "$child"
	[ "$(list_of "$child")" = 2-3 ]
	nvtaskset -tp --group "g$$" 8-15
	[ "$(list_of "$child")" = 8-15 ]
}

# --- by a file ---------------------------------------------------------------------------------------------------------

each_of() { # a list of TPCs
	tr ',' '\n' <<<"$1" | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }'
}

in_file() { # NAME of the file, and a command
	local file=$1
	shift
	NVTASKSET_GROUP_FILE=$WORK/groups/$file "$@"
}

@test "a file: the first command chooses for all, what others of the directory have is taken" {
	in_file job-1 start_in a -n 8
	in_file job-1 start_in b all
	in_file job-2 start_in c -n 8
	first=$(list_of "$a")
	[ "$(list_of "$b")" = "$first" ]
	[ "$(list_of "$c")" != "$first" ]
	kill "$a" "$b" "$c"
	wait "$a" "$b" "$c" || true
	# The processes have ended; what they had is their manager's, until it removes the files.
	run -1 in_file job-3 nvtaskset --mps off -n 51 true
	[ "$(nvtaskset -tp --group "$WORK/groups/job-1")" = "group $WORK/groups/job-1's current TPC list: $first" ]
	rm "$WORK/groups/job-1"
	in_file job-3 nvtaskset --mps off -n 58 true
}

@test "a file: a COMMAND that is not there, and a driver that is not, give it no partition" {
	run -127 in_file job nvtaskset --mps off -n 60 "$WORK/none"
	[ "$output" = "nvtaskset: $WORK/none: No such file or directory" ]
	run -126 in_file job nvtaskset --mps off -n 60 "$WORK"
	PATH=$PATH:/dev/null not in_file job nvtaskset --mps off -n 60 no-such-command
	NVTASKSET_DRIVER=/no/such/driver run -1 in_file job nvtaskset --mps off -n 60 true
	in_file other nvtaskset --mps off -n 20 true
	in_file job nvtaskset --mps off -t 0-7 true
}

@test "a file of another version: nothing is chosen beside it, since it has TPCs; what is no group's takes nothing" {
	in_file old nvtaskset --mps off -t 0-59 true
	echo nonsense >"$WORK/groups/text"
	head -c 8192 /dev/zero >"$WORK/groups/zeros"
	printf '\377' | dd of="$WORK/groups/old" bs=1 seek=8 conv=notrunc status=none
	refuses "old: a group of another version: use the nvtaskset that made it" in_file new nv -n 3 true
	rm "$WORK/groups/old"
	in_file new nvtaskset --mps off -n 60 true
}

@test "a file: -p --group changes it before there is a process, and after; by path, by name, by pid" {
	in_file job nvtaskset --mps off -t 0-7 true
	nvtaskset -tp --group "$WORK/groups/job" 8-15
	in_file job start_in a all
	come_to 8-15 a
	in_file job start_in b -t 9
	come_to 9 b
	nvtaskset -tp --group job 20-27
	come_to 20-27 a b
	nvtaskset -tp --group "$a" 30-31
	come_to 30-31 a b
	# -n claims, also where the path is a relative one.
	in_file other nvtaskset --mps off -t 0-7,40-65 true
	cd "$WORK"
	refuses "--group job: -n needs the path of its file, in whose directory TPCs are claimed" nvtaskset -np --group job 32
	nvtaskset -np --group groups/job 32
	come_to 8-39 a b
	refuses "33 TPCs: of this GPU's 66 only 32 are free: 8-39" nvtaskset -np --group groups/job 33
}

@test "a file fences: neither -p nor a command inside leads out, and -n chooses inside" {
	in_file job nvtaskset --mps off -t 8-15 true
	in_file job start_in a all
	refuses "pid $a: its group has TPCs 8-15 only, and its manager alone can change that" nvtaskset -tp 7-9 "$a"
	nvtaskset -tp 9-10 "$a"
	come_to 9-10 a
	refuses "its group has TPCs 8-15 only, and its manager alone can change that" in_file job nv -t 0-7 true
	in_file job start_in b -n 3
	in_file job start_in c -n 3
	# What is left of it: 8 and 11 to 15.
	[ "$(each_of "$(list_of "$b"),$(list_of "$c")" | sort -n | tr '\n' ' ')" = "8 11 12 13 14 15 " ]
	refuses "--group x: this program was started in the group of a file (NVTASKSET_GROUP_FILE), which it cannot leave" \
		in_file job nv --group x -t 8 true
	# Also where the environment was cleared: the descriptor leads there.
	refuses "its group has TPCs 8-15 only, and its manager alone can change that" \
		in_file job nv all env -u NVTASKSET_GROUP_FILE "$BUILD/nvtaskset" --mps off -t 0-7 true
}

# Its root is on a file system that is mounted nowhere in it, so mountinfo has no line of that.
in_plain_chroot() { # COMMAND…
	mkdir "$WORK/mounted"
	unshare -m bash -ec '
		mount -t tmpfs tmpfs "$1"
		root=$1/root
		mkdir -p "$root/groups"
		for place in /*; do
			if [ -L "$place" ]; then
				cp -a "$place" "$root/"
			elif [ -d "$place" ]; then
				mkdir "$root$place"
				mount --rbind "$place" "$root$place"
			fi
		done
		umount -l "$root$1"
		exec chroot "$root" "${@:2}"' bash "$WORK/mounted" "$@"
}

@test "a file fences also in a chroot whose root is no mount point" {
	needs_namespaces -m
	run in_plain_chroot bash -ec '
		export NVTASKSET_GROUP_FILE=/groups/job
		nvtaskset --mps off -t 8-15 "$1" 60 >/groups/output &
		until [ -s /groups/output ]; do sleep 0.05; done
		nvtaskset -tp 7-9 $! || true
		nvtaskset -tp $!
		kill $!' bash "$BUILD/demo/where"
	[[ "${lines[0]}" == "nvtaskset: pid "*": its group has TPCs 8-15 only, and its manager alone can change that" ]]
	[[ "${lines[1]}" == "pid "*"'s current TPC list: 8-15" ]]
}

# Such a command knows the file by a descriptor only, and so not the directory in which TPCs are claimed.
@test "a file without a partition gets none from a command that has lost its path" {
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	nvtaskset --mps off -t 0 true # makes the links to the library
	in_python 'make(sys.argv[1])' "$WORK/groups/empty"
	make_script "$WORK/inside" '#!/bin/sh' 'exec env -u NVTASKSET_GROUP_FILE nvtaskset --mps off -n 66 true'
	run in_file empty env LD_LIBRARY_PATH="$(dirname "$WORK"/nvtaskset/*/libcuda.so.1)" "$BUILD/tests/programs/play" where vfork "$WORK/inside"
	[ "$output" = "0-65
nvtaskset: its group has no partition yet, and gets one from a command that finds the path of its file in NVTASKSET_GROUP_FILE" ]
}

@test "a file: without nvtaskset, a program with the library and the path obeys; one that has lost its environment, too" {
	in_file job nvtaskset --mps off -t 8-15 true
	in_file job start_in a all env -u NVTASKSET_GROUP_FILE -u NVTASKSET_PARTITION -u NVTASKSET_PID
	come_to 8-15 a
	nvtaskset -tp --group "$WORK/groups/job" 20
	come_to 20 a
	rm "$WORK/groups/job"
	come_to 20 a
}

# Both groups have changed as often: their numbers are the same.
@test "a file: named for a child of another group, it is in force from the child's first moment" {
	in_file job nvtaskset --mps off -t 8-15 true
	make_script "$WORK/child" '#!/bin/sh' "NVTASKSET_GROUP_FILE=$WORK/groups/job where 1" 'true'
	# However often either group was changed: the child's is not taken for the other one that was changed as often.
	start_in a --group "g$$" -t 0-7
	for _ in 1 2 3; do
		nvtaskset -tp --group "g$$" 0-7
		run -0 nvtaskset --mps off --group "g$$" -t 0-7 "$WORK/child"
		[[ "$output" == *"on TPCs 8-15 ("* ]]
	done
}

@test "a file that is none, or not to be trusted" {
	cd "$WORK/groups"
	in_file job nvtaskset --mps off -t 0 true
	ln -s job link
	mkfifo fifo
	head -c 8192 /dev/urandom >garbage
	truncate -s 1T huge
	: >empty
	cp job open
	chmod 666 open
	mkdir directory
	for file in fifo garbage huge empty directory; do
		run -1 in_file "$file" nvtaskset --mps off -t 0 true
		[[ "$output" == "nvtaskset: NVTASKSET_GROUP_FILE: $WORK/groups/$file: not a group"* ]]
		run -1 nvtaskset -tp --group "$WORK/groups/$file" 0
	done
	refuses "NVTASKSET_GROUP_FILE: $WORK/groups/link: a symbolic link: name the group's file itself" in_file link nv -t 0 true
	refuses "NVTASKSET_GROUP_FILE: $WORK/groups/open: others can write there" in_file open nv -t 0 true
	refuses "NVTASKSET_GROUP_FILE: $WORK/groups/12: the file's name is the group's: letters, digits and ._:@+-, at most 63, and no number alone" \
		in_file 12 nv -t 0 true
	refuses "NVTASKSET_GROUP_FILE: job2: not an absolute path, or too long" env NVTASKSET_GROUP_FILE=job2 nvtaskset --mps off -t 0 true
	# A program that finds it in its environment says so, and runs; one that finds a good one obeys.
	run nvtaskset --mps off -t 5 "${WITHOUT_SEGMENT[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/garbage" "$BUILD/tests/programs/play" where
	[ "$output" = "nvtaskset: NVTASKSET_GROUP_FILE: $WORK/groups/garbage: not a group: this program does not obey that group
5" ]
	run nvtaskset --mps off -t 5 "${WITHOUT_SEGMENT[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" "$BUILD/tests/programs/play" where
	[ "$output" = 0 ]
	# Garbage in the directory takes nothing.
	in_file other nvtaskset --mps off -n 60 true
}

@test "a file of another user, a directory that is not writable" {
	needs_another_user
	in_file job nvtaskset --mps off -t 0-7 true
	chown 12345 "$WORK/groups/job"
	refuses "NVTASKSET_GROUP_FILE: $WORK/groups/job: belongs to another user" \
		"${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" nvtaskset --mps off -t 0 true
	# No more does root's program.
	run nvtaskset --mps off -t 5 "${WITHOUT_SEGMENT[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" "$BUILD/tests/programs/play" where
	[ "$output" = "nvtaskset: NVTASKSET_GROUP_FILE: $WORK/groups/job: belongs to another user: this program does not obey that group
5" ]
	rm "$WORK/groups/job"
	refuses "NVTASKSET_GROUP_FILE: $WORK/groups/new: its directory, in which TPCs are claimed: Permission denied" \
		"${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/new" nvtaskset --mps off -n 3 true
	# A file of root's that has a partition needs no more.
	in_file job nvtaskset --mps off -t 4-7 true
	[ "$("${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" nvtaskset --mps off all "$BUILD/tests/programs/play" where)" = 4-7 ]
	refuses "the group belongs to user 0, who alone can change it" \
		"${ANOTHER_USER[@]}" nvtaskset -tp --group "$WORK/groups/job" 0
	# Root does not map what another user could make shorter.
	start_as theirs "${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/another/theirs" nvtaskset --mps off -t 0-7 "$BUILD/demo/where" 60
	[ "$(nvtaskset -tp --group "$theirs")" = "group $theirs's current TPC list: 0-7" ]
	refuses "the group belongs to user 65534, who alone can change it" nvtaskset -tp --group "$theirs" 0
}

@test "a file: a full disk leaves nothing, and no group is hurt that is there already" {
	needs_namespaces -m
	run unshare -m bash -c 'cd "$0/groups" && mount -t tmpfs -o mode=755,size=8k none . && cd . && cd "$0/groups" &&
		NVTASKSET_GROUP_FILE=$0/groups/job nvtaskset --mps off -t 0 true; ls -A; mount -o remount,size=48k "$0/groups"
		export NVTASKSET_GROUP_FILE=$0/groups/job; nvtaskset --mps off -t 0-7 true && df --output=avail . | tail -n 1
		nvtaskset -tp --group "$0/groups/job" 8 | tail -n 1; NVTASKSET_GROUP_FILE=$0/groups/more nvtaskset --mps off -t 0 true; ls -A' "$WORK"
	no_room="a group cannot be written: No space left on device"
	[ "$output" = "nvtaskset: NVTASKSET_GROUP_FILE: $no_room
.nvtaskset-lock
    0
group $WORK/groups/job's new TPC list: 8
nvtaskset: NVTASKSET_GROUP_FILE: $no_room
.nvtaskset-lock
job" ]
}

# As with docker run -v /run/jobs/job:/job: other claims are in a directory that is not to be seen here.
@test "a file that was mounted without its directory claims nothing, and all else goes" {
	needs_namespaces -m
	mkdir "$WORK/container"
	in_file job nvtaskset --mps off -t 0-7 true
	: >"$WORK/container/job"
	export NVTASKSET_GROUP_FILE=$WORK/container/job
	in_container=(unshare -m bash -c 'mount --bind "$0/groups/job" "$0/container/job" && "$@"' "$WORK")
	[ "$("${in_container[@]}" nvtaskset --mps off all "$BUILD/tests/programs/play" where)" = 0-7 ]
	"${in_container[@]}" nvtaskset -tp --group "$WORK/container/job" 8-15
	refuses "$WORK/container/job: was removed, or mounted without its directory, in which TPCs are claimed" \
		"${in_container[@]}" nvtaskset -np --group "$WORK/container/job" 20
}

# As with podman and enroot: nobody's are all files that are not the user's, root's too.
@test "a file of root's in a container of a user's own, where root has no name" {
	needs_another_user
	user=(setpriv --reuid 65533 --regid 65533 --clear-groups) # nobody is 65534
	"${user[@]}" unshare --user --map-root-user --mount true 2>/dev/null || skip "namespaces of users are not permitted"
	mkdir "$WORK/root"
	in_file job nvtaskset --mps off -t 8-15 true
	make_script "$WORK/container" '#!/bin/bash' 'mount -t tmpfs none "$WORK/root" && cd "$WORK/root"' \
		'for directory in /*; do' \
		'	if [ -L "$directory" ]; then cp -P "$directory" .' \
		'	elif [ -d "$directory" ]; then mkdir ".$directory" && mount --rbind "$directory" ".$directory"; fi' \
		'done' 'exec chroot . "$@"'
	export WORK
	for mapped in --map-root-user "--map-current-user --keep-caps"; do
		# shellcheck disable=SC2206 # several words
		in_container=("${WITHOUT_SEGMENT[@]}" "${user[@]}" unshare --user $mapped --mount "$WORK/container")
		[ "$("${in_container[@]}" stat -c %u / "$WORK/groups/job" | sort -u | wc -l)" = 2 ]
		nvtaskset -tp --group "$WORK/groups/job" 8-15
		start_in a -t 5 "${in_container[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job"
		come_to 8-15 a
		nvtaskset -tp --group "$WORK/groups/job" 20
		come_to 20 a
		refuses "NVTASKSET_GROUP_FILE: /$(cut -d / -f 2 <<<"$WORK"): belongs to another user" \
			"${in_container[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" "$BUILD/nvtaskset" --mps off all true
	done
}

# Whoever may write to a file can end those that have it mapped, by SIGBUS: members obey only files of root and of
# themselves, and the command copies what belongs to others.
@test "a file that its user makes shorter all the time ends nobody else's command" {
	needs_to_look_into_others
	chown 65534 "$WORK/groups"
	start_waiting "${ANOTHER_USER[@]}" env NVTASKSET_GROUP_FILE="$WORK/groups/job" nvtaskset --mps off -t 0-7 "$BUILD/tests/programs/play" where wait
	theirs=$PROGRAM
	cp "$WORK/groups/job" "$WORK/whole"
	chmod 644 "$WORK/whole"
	start "${ANOTHER_USER[@]}" bash -c 'while :; do : >"$0/groups/job"; cat "$0/whole" >"$0/groups/job"; done' "$WORK"
	for i in $(seq 30); do
		for command in "-l" "-tp $theirs" "-tp --group $theirs" "-tp --group $WORK/groups/job" "-tp --group job" \
			"--mps off -n 1 true"; do
			status=0
			nvtaskset $command >"$WORK/answer" 2>&1 || status=$?
			[ "$status" -le 1 ] || { echo "$command: status $status"; cat "$WORK/answer"; false; }
		done
	done
}

@test "-l sums each group; its members share TPCs on purpose" {
	own_gpus
	start_in a --group "g$$" -t 0-7
	start_in b --group "g$$" -t 0-7
	start_in other -t 4-5
	run nvtaskset -l
	[[ "$output" =~ (^|$'\n')"group g$$: 2 processes, "[0-9]+" launches, "[0-9]+" ended, "[0-9]+" in flight, 0 outside"($'\n'|$) ]]
	# Only those that share with somebody else are named.
	[ "$(grep -c share <<<"$output")" -eq 1 ]
	[[ "$output" == *"processes $a, $b and $other share TPCs 4-5 of GPU "* ]]
	run nvtaskset -l --json
	[ "$(jq -c --arg name "g$$" '.groups[] | select(.name == $name) | [.pids, .is_file, .launches >= .ended, .outside]' <<<"$output")" = \
		"[[$a,$b],false,true,0]" ]
	[ "$(jq --argjson pid "$a" '(.processes[] | select(.pid == $pid)).group.id as $id | .groups[] | select(.id == $id).pids | length' <<<"$output")" -eq 2 ]
	[ "$(jq -c --argjson pid "$other" '.processes[] | select(.pid == $pid).group.name' <<<"$output")" = null ]
	run nvtaskset -tp --group "g$$" --json 9
	[ "$(jq -c '.group | [.name, .partitions[0].tpcs, .partitions[0].before.tpc_list]' <<<"$output")" = "[\"g$$\",[9],\"0-7\"]" ]
	[ "$(jq -c '[.processes[] | .partitions[0].tpc_list, .partitions[0].before.tpc_list]' <<<"$output")" = '["9","0-7","9","0-7"]' ]
}

# --- by the job's control group ------------------------------------------------------------------------------------------

# Makes the control group CGROUP, of version 2 or of a hierarchy of version 1.
make_cgroup() {
	local top
	needs_root
	for top in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
		[ -w "$top/cgroup.procs" ] && mkdir "$top/nvtaskset-$$" 2>/dev/null || continue
		CGROUP=$top/nvtaskset-$$
		return
	done
	skip "control groups cannot be made here"
}

in_python() { # what to do with a group, ARGUMENT…
	NVTASKSET_LIBRARY=$BUILD/api/libnvtaskset.so.0 PYTHONPATH=$ROOT/tools/python python3 -c "import nvtaskset, sys; nvtaskset.Group.$1" "${@:2}"
}

@test "a file: a process that has lost environment and descriptors is found by the job's control group" {
	needs_root
	! is_sanitized || skip "a sanitizer's run-time library must come with python"
	make_cgroup
	in_python 'make(sys.argv[1], sys.argv[2])[0] = "8-15"' "$WORK/groups/job" "/nvtaskset-$$"
	start_in stray -t 20
	start_in stranger -t 21
	echo "$stray" >"$CGROUP/cgroup.procs"
	nvtaskset -tp --group "$WORK/groups/job" 30-31
	come_to 30-31 stray
	[ "$(list_of "$stranger")" = 21 ]
}
