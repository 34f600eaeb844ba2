#!/usr/bin/env bats
# --json, as another program reads it. docs/reference/json.md promises each member that is tested here.

load helpers
OWN_GPUS=yes
load playing

# The object has these members, in any order.
has_members() { # FILTER NAMES
	[ "$(jq -r "$1 | keys[]" "$WORK/json")" = "$(tr ' ' '\n' <<<"$2" | LC_ALL=C sort)" ]
}

ask() {
	jq -r "$@" "$WORK/json"
}

set_members="tpcs tpc_list tpc_mask gpcs gpcs_in_part"
process_members="pid uid user command group not_in_force kernels uploads restricted outside graph_nodes_refreshed reasons lent borrowed loans borrowed_tpc_us overruns workload"

# The numbers of a program that launches are read one after the other: they may differ for once.
all_are_outside() {
	nvtaskset -l --json >"$WORK/json"
	[ "$(ask "$mine | .outside == .uploads and .reasons[0].times == .uploads")" = true ]
}

row_has_all_outside() {
	nvtaskset -l | awk -v pid="$PROGRAM" '$1 == pid {found = $9 > 0 && $10 == 0 && $11 == $9} END {exit !found}'
}

@test "-l" {
	SIM_FAULTS=bad-qmd start_program -t 0,8,16,24,62-65,1
	begin=$(date +%s)
	nvtaskset -l --json >"$WORK/json"
	has_members . "schema time_ms processes overlaps groups"
	[ "$(ask .schema)" = nvtaskset-list/4 ]
	[ "$(ask ".time_ms / 1000 | floor | . >= $begin and . <= $(date +%s)")" = true ]
	mine=".processes[] | select(.pid == $PROGRAM)"
	has_members "$mine" "$process_members partitions quota rank lend_us borrow memory_limit_bytes"
	[ "$(ask "$mine | .user")" = "$(id -un)" ]
	[ "$(ask "$mine | .uid")" = "$(id -u)" ]
	[ "$(ask "$mine | .command")" = "$BUILD/demo/where 600" ]
	[ "$(ask "$mine | .not_in_force")" = null ]
	[ "$(ask "$mine | .uploads > 0 and .restricted == 0")" = true ]
	has_members "$mine | .reasons[0]" "reason text times"
	[ "$(ask "$mine | .reasons[0] | .reason")" = unknown_qmd ]
	nvtaskset -l | grep -qE '^ +[0-9]+ times?: the launch descriptor has an unknown version'
	wait_until all_are_outside
	wait_until row_has_all_outside
	has_members "$mine | .partitions[0]" "gpu bus_id $set_members"
	[ "$(ask -c "$mine | .partitions[0] | [.gpu, .bus_id, .tpcs, .tpc_list, .tpc_mask, .gpcs, .gpcs_in_part]")" = \
		"[0,\"$GPU\",[0,1,8,16,24,62,63,64,65],\"0-1,8,16,24,62-65\",\"3c000000001010103\",[1],[2]]" ]
}

@test "-l: kernels that were launched and have ended" {
	start_playing -t 0-7 -- where wait
	nvtaskset -l --json >"$WORK/json"
	mine=".processes[] | select(.pid == $PROGRAM) | .kernels[0]"
	has_members "$mine" "gpu bus_id launches ended in_flight unannounced memory_bytes memory_limit_bytes gaps"
	[ "$(ask "$mine | .launches > 0 and .ended == .launches")" = true ]
	[ "$(ask -c "$mine | [.gpu, .bus_id, .in_flight, .unannounced, .gaps]")" = "[0,\"$GPU\",0,0,[]]" ]
}

# How busy the program is on each GPU: it launches all the time on one of them. A busy machine may leave no time to it, or to us.
look_how_busy() {
	nvtaskset -l --busy --json >"$WORK/json"
	[ "$(ask -c ".processes[] | select(.pid == $PROGRAM) | .kernels | map([.gpu, .busy > 0])")" = "[[1,false],[0,true]]" ]
}

@test "-l --busy: of two GPUs" {
	own_gpus h200-x2
	start_playing -G 1 -t 0-7 -- where launch wait
	mine=".processes[] | select(.pid == $PROGRAM) | .kernels"
	wait_until look_how_busy
	[ "$(ask "${mine}[0].busy")" = 0 ]
	[ "$(ask "${mine}[1].busy <= 1.01")" = true ]
	nvtaskset -l --json >"$WORK/json"
	[ "$(ask "${mine}[1] | has(\"busy\")")" = false ]
}

@test "-l: what is not known about kernels is null" {
	SIM_FAULTS=no-register start_playing -t 0-7 -- where wait
	nvtaskset -l --json >"$WORK/json"
	mine=".processes[] | select(.pid == $PROGRAM) | .kernels[0]"
	[ "$(ask "$mine | .launches > 0")" = true ]
	[ "$(ask -c "$mine | [.ended, .in_flight, .unannounced, (.gaps | map(.gap))]")" = '[null,null,null,["refused"]]' ]
	has_members "$mine | .gaps[0]" "gap text"
	nvtaskset -l --busy --json >"$WORK/json"
	[ "$(ask "$mine | .busy")" = null ]
}

@test "-l: overlaps" {
	start_program -t 0-7
	first=$PROGRAM
	start_program -t 4-11
	nvtaskset -l --json >"$WORK/json"
	mine=".overlaps[] | select(.bus_id == \"$GPU\")"
	has_members "$mine" "gpu bus_id $set_members pids"
	[ "$(ask -c "$mine | [.tpcs, (.pids | sort)]")" = "[[4,5,6,7],$(printf '%s\n' "$first" "$PROGRAM" | jq -sc sort)]" ]
}

@test "-T" {
	start_program -t 7,62
	nvtaskset -T --json >"$WORK/json"
	has_members . "schema time_ms gpus"
	[ "$(ask .schema)" = nvtaskset-topology/3 ]
	has_members ".gpus[0]" "gpu bus_id uuid name compute_capability sms_per_tpc tpc_count tpcs processes"
	[ "$(ask -c '.gpus[0] | [.gpu, .bus_id, .uuid, .name, .compute_capability, .sms_per_tpc, .tpc_count]')" = \
		"[0,\"$GPU\",null,\"NVIDIA H200\",\"9.0\",2,66]" ]
	[ "$(ask '.gpus[0].tpcs | length')" -eq 66 ]
	[ "$(ask -c '.gpus[0].tpcs[7]')" = \
		"{\"tpc\":7,\"sms\":[14,15],\"gpc\":7,\"virtual_gpc\":7,\"singleton\":false,\"pids\":[$PROGRAM]}" ]
	[ "$(ask -c '.gpus[0].tpcs[62] | [.gpc, .singleton, .pids]')" = "[1,true,[$PROGRAM]]" ]
	[ "$(ask -c '[.gpus[0].tpcs[] | select(.pids != []) | .tpc]')" = "[7,62]" ]
	has_members ".gpus[0].processes[0]" "$process_members gpu bus_id $set_members"
	[ "$(ask -c '.gpus[0].processes[] | [.pid, .tpc_list]')" = "[$PROGRAM,\"7,62\"]" ]
}

@test "-T: what is not known is null" {
	sed 's/^\( *tpc *[0-9]*\) *[0-9]* *[0-9]*/\1 - -/; /^ *name/d' "$NVTASKSET_TOPOLOGY" >"$WORK/unknown.txt"
	NVTASKSET_TOPOLOGY=$WORK/unknown.txt CUDA_VISIBLE_DEVICES='' nvtaskset -T --json >"$WORK/json"
	[ "$(ask -c '.gpus[0] | [.gpu, .name, .tpcs[3].gpc, .tpcs[3].virtual_gpc, .tpcs[3].singleton]')" = \
		"[null,null,null,null,false]" ]
}

@test "-p: shown, and changed" {
	start_program -t 0-7
	nvtaskset --json -p "$PROGRAM" >"$WORK/json"
	has_members . "schema time_ms processes"
	[ "$(ask .schema)" = nvtaskset-partition/2 ]
	has_members '.processes[0]' "pid partitions quota rank lend_us borrow memory_limit_bytes"
	has_members '.processes[0].partitions[0]' "gpu bus_id $set_members before"
	[ "$(ask -c '.processes[0] | [.pid, .partitions[0].bus_id, .partitions[0].tpc_list, .partitions[0].before]')" = \
		"[$PROGRAM,\"$GPU\",\"0-7\",null]" ]
	nvtaskset --json -tp 8-9 "$PROGRAM" >"$WORK/json"
	has_members '.processes[0].partitions[0].before' "$set_members"
	[ "$(ask -c '.processes[0].partitions[0] | [.tpcs, .before.tpc_mask]')" = '[[8,9],"ff"]' ]
	runs_on 8-9
}

@test "-p: a mistake is reported as without --json, and nothing else is printed" {
	start_program -t 0-7
	refuses "TPC 99: this GPU has TPCs 0-65" nvtaskset --json -tp 99 "$PROGRAM"
	refuses "--json and --dry-run, which prints a list that can be pasted: choose one" \
		nvtaskset --json --dry-run -tp 9 "$PROGRAM"
	refuses "--json: only with -p, -l, -T, 'top', 'curve' and 'plan'" nvtaskset --json -t 0 true
	refuses "standard output: No space left on device" bash -c 'nvtaskset --json -p "$1" >/dev/full' - "$PROGRAM"
}

@test "a GPU's name that is not valid text" {
	sed 's/NVIDIA H200/\xffH\xc2\x9b200/' "$NVTASKSET_TOPOLOGY" >"$WORK/named.txt"
	export NVTASKSET_TOPOLOGY=$WORK/named.txt
	nvtaskset -T --json >"$WORK/json"
	[ "$(ask '.gpus[0].name')" = $'\ufffdH\ufffd200' ]
	[[ "$(LC_ALL=C nvtaskset -T)" == "GPU 0, ?H?200, "* ]]
}

@test "names and counters that other processes set do not break the JSON" {
	start_named $'60\e[2J"\\\x9b\xff\n\u202e\u6f22'
	LC_ALL=C nvtaskset -l --json >"$WORK/json"
	[ "$(ask ".processes[] | select(.pid == $PROGRAM) | .command")" = \
		"$BUILD/demo/where "$'60\ufffd[2J"\\\ufffd\ufffd\ufffd\ufffd\u6f22' ]
	# It is ASCII on every terminal, so nothing in it can harm the terminal.
	not env LC_ALL=C grep -q '[^ -~]' "$WORK/json"
}

@test "a counter made up by a process does not become negative or lose digits" {
	start_program -t 0-7
	file=$(readlink -f "/proc/$PROGRAM/fd"/* | grep -n "memfd:nvtaskset " | cut -d: -f1)
	file=$(printf '%s\n' "/proc/$PROGRAM/fd"/* | sed -n "${file}p")
	printf '\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\xff' |
		dd of="$file" bs=1 seek=320 conv=notrunc status=none
	nvtaskset -l --json >"$WORK/json"
	[ "$(ask ".processes[] | select(.pid == $PROGRAM) | .uploads")" = 9007199254740991 ]
	nvtaskset -l | grep "^ *$PROGRAM .* [0-9]\{19,20\} "
}

@test "--watch: a document a line, and no empty lines, on a terminal too" {
	timeout 60 bash -c 'nvtaskset -l --json --watch=0.1 | head -n 3' >"$WORK/json"
	[ "$(wc -l <"$WORK/json")" -eq 3 ]
	[ "$(ask .schema | uniq -c | xargs)" = "3 nvtaskset-list/4" ]
	[ "$(jq -s '.[0].time_ms < .[1].time_ms and .[1].time_ms < .[2].time_ms' "$WORK/json")" = true ]
	TERM=xterm "$BATS_TEST_DIRNAME/on_terminal" 20x5 "$WORK/screen" \
		see schema see schema see schema signal INT -- nvtaskset -T --json --watch=0.1
	tr -d '\r' <"$WORK/screen" | head -n 2 >"$WORK/json"
	[ "$(ask -s 'length')" = 2 ]
	[ "$(ask '.gpus[0].tpc_count' | xargs)" = "66 66" ]
}

# A busy machine may leave the program no time for a kernel while somebody looks.
has_kernels() {
	nvtaskset top --once --delay 0.2 --json "$PROGRAM" >"$WORK/top"
	jq -e '.kernels[0]' "$WORK/top"
}

@test "docs/reference/json.md describes exactly the members that are printed" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	SIM_FAULTS=bad-qmd start_program -t -G 0:0-3 -G 1:4-7
	first=$PROGRAM
	start_program -t 0-1
	wait_until has_kernels
	{
		nvtaskset -l --busy --json
		cat "$WORK/top"
		nvtaskset -T --json
		nvtaskset -p --json --quota 30% --weight 200 "$PROGRAM"
		nvtaskset -p --group "$PROGRAM" --json
	} >"$WORK/json"
	ask -s '[.. | objects | keys[]] | unique[]' | sort >"$WORK/members"
	sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' "$ROOT/docs/reference/json.md" | sort -u >"$WORK/described"
	diff "$WORK/described" "$WORK/members"
}
