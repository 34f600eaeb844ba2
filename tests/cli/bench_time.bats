#!/usr/bin/env bats
# The experiments of bench/cost, bench/time and bench/accounting on the simulated GPU: the tables that they write, and that
# these are drawn
# needs: bench/all
# processes: no
# limit: 600
# takes: long
# sanitizers: no

load helpers
OWN_GPUS=yes
load experiments

@test "every experiment about costs and time" {
	# shellcheck disable=SC2046 # several
	run bench account $(experiments_of cost time)
	succeeds_again "$output"
	[[ "$output" != *"left out: valgrind "* ]] || rm "$WORK/results/callback.csv"
	# A simulated kernel logs no laps.
	rm "$WORK/results/quota_periods.csv"
	are_well_formed
	cat >"$WORK/columns" <<-'END'
		startup 2 green mps mps-percent none nvtaskset nvtaskset-no-mps
		stages 2 command library mps none nvtaskset nvtaskset-no-mps partition true uncounted
		launch 3 finish start submit
		account 3 off on
		registration 3 again first
		resize 1 eager graph1 graph10 graph100 graph1000
		command 2 change list show true
		priority 2 alone by-hand mps mps-priority none nvtaskset nvtaskset-priority
		held_priority 2 alone mps mps-priority nvtaskset nvtaskset-prt nvtaskset-stepping
		held_unreached 2 9900ms/10s unlimited
		timegraph_response 2 mps nvtaskset-pe nvtaskset-prt
	END
	in_twenty_tries all_have_samples priority held_priority held_cost timegraph_response
	cd "$WORK/results"
	[ "$(column parts.csv 2 | wc -w)" -eq 16 ]
	left_nothing
	[ "$(grep -c '^### ' tables.md)" -ge 14 ]
	are_drawn startup parts hook resize command slices priority bursts weights decode_priority resnet resnet_weights \
		held_priority held_quota_spent
}

@test "calls of the kernel driver are counted" {
	calls=(env -u NVTASKSET_TOPOLOGY "LD_PRELOAD=$BUILD/bench/calls.so" "BENCH_CALLS=$WORK/calls")
	run "${calls[@]}" nvtaskset -T
	grep -qE '^nvtaskset,open nvidiactl( fails)?,1,[0-9.]+$' "$WORK/calls"
	[ "$(grep -c '^nvtaskset,open nvidiactl' "$WORK/calls")" -eq 1 ]
}

# A busy machine may leave top no time to compare the clocks: then once more.
all_have_numbers() {
	[ "$(grep -cE '^1,(own|top),(20|50|90|0.1),yes,[0-9.]+$' watchers.csv)" -eq 8 ] || { bench watchers >/dev/null && false; }
}

@test "looking at programs" {
	cat >"$WORK/nvidia-smi" <<-'END'
		#!/bin/sh
		case $* in
		"pmon -c 1 -s u -i 0")
			echo '# gpu        pid  type    sm   mem   enc   dec   command'
			pgrep duty | sed 's/^/    0 /; s/$/ M+C - - - - duty/; 1s/ - - - -/ 37 1 - -/'
			;;
		--query-compute-apps*) pgrep duty | sed 's/$/, 512 MiB/' ;;
		--query-gpu=utilization*) echo 61 ;;
		esac
	END
	chmod +x "$WORK/nvidia-smi"
	export PATH=$WORK:$PATH
	run bench looking busy watchers
	succeeds_again "$output"
	[[ "$output" == *"  nvml says nothing: nvml: libnvidia-ml.so.1: "* ]]
	are_well_formed
	cd "$WORK/results"
	cat >"$WORK/columns" <<-'END'
		looking 2 10 us 2 us graph
		looking 3 nobody top watch
		looking_cpu 3 top watch
		looking_graph 2 begins ends goes on unchanged
		busy 2 nvtaskset nvtaskset-no-mps
		busy 3 10 1000 10000 2 200 5 50
		busy_change 4 0 100 1000 20000 5000
		busy_ways 3 graph1 graph10 graph100 plain
		busy_ways 5 front latency next release visible
		watchers 2 compute-apps nvml own pmon top utilization
	END
	in_twenty_tries all_have_samples looking busy watchers
	# What says nothing has no number, and no 0; what its kernels saw, and what top says, are numbers.
	[ "$(grep -c '^1,nvml,.*,no,n/a$' watchers.csv)" -eq 4 ]
	[ "$(grep -c '^1,compute-apps,.*,yes,n/a$' watchers.csv)" -eq 4 ]
	[ "$(grep -c '^1,pmon,.*,yes,n/a$' watchers.csv)" -eq 3 ]
	[ "$(grep -c '^1,pmon,.*,yes,37$' watchers.csv)" -eq 1 ]
	grep -q '^1,utilization,all,yes,61$' watchers.csv
	in_twenty_tries all_have_numbers
	grep -qF '| nvidia-smi --query-compute-apps | 20 | yes | 0 | n/a | n/a |' tables.md
	! draws || grep -q '</svg>' looking.svg busy_change.svg watchers.svg
	left_nothing
}
