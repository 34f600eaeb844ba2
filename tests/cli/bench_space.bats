#!/usr/bin/env bats
# The experiments of bench/space on the simulated GPU: the tables that they write, and that these are drawn
# needs: bench/all
# processes: no
# limit: 600
# takes: long
# sanitizers: no

load helpers
OWN_GPUS=yes
load experiments

# Those that know static partitions and MIG run with them.
@test "every experiment but two" {
	# shellcheck disable=SC2046 # several
	run bench $(experiments_of space | grep -vx 'enforcement\|decode')
	[[ "$output" == *"this is a simulated one, and its numbers mean nothing"* ]]
	succeeds_again "$output"
	# Only PyTorch's programs say which steps come first after a pause.
	rm "$WORK/results/lending_first.csv"
	are_well_formed
	cat >"$WORK/columns" <<-'END'
		granularity 2 green mps-percent nvtaskset
		processes 2 mps mps-percent none nvtaskset
		connections 3 2 3 4 8 default
		slots_used 2 green mps mps-percent mps-priority none nvtaskset
		pitfall2 4 yes
		properties 3 dynamic granular isolated
	END
	in_twenty_tries all_have_samples granularity processes connections slots pitfalls properties
	cd "$WORK/results"
	[ "$(column kernels.csv 3 | wc -w)" -eq 38 ]
	# Two blocks in each of 132 SMs, or of half of them: the simulated GPU has partitions, but knows no percentages.
	grep -q '^1,mps,first,132,0,264,0,264$' pitfall6.csv
	grep -q '^1,nvtaskset,first,66,0,132,0,132$' pitfall6.csv
	[ "$(grep -c '^1,mps,first,[0-9]*,4$' pitfall5.csv)" -eq 132 ]
	[ "$(grep -c '^1,nvtaskset,first,[0-9]*,8$' pitfall5.csv)" -eq 66 ]
	[ "$(grep -c '^1,nvtaskset,second,[0-9]*,8$' pitfall5.csv)" -eq 66 ]
	[ "$(grep -c '^1,nvtaskset.*,dynamic,132,264,yes$' properties.csv)" -eq 2 ]
	[ "$(grep -c '^1,nvtaskset.*,granular,4,4,yes$' properties.csv)" -eq 2 ]
	grep -q '^1,mps-percent,dynamic,264,264,no$' properties.csv
	grep -q '^1,mps-percent,granular,4,80,no$' properties.csv
	left_nothing
	[ "$(grep -c '^### ' tables.md)" -ge 10 ]
	are_drawn granularity pitfall tail decode_training processes overlap slots kernels network faulty
}

@test "static partitions and MIG, where they exist" {
	cat >"$WORK/nvidia-smi" <<-'END'
		#!/bin/sh
		case $1 in
		-L) printf '  MIG 3g.71gb Device 0: (UUID: MIG-aaaaaaaa-%s-bbbb-cccc-dddddddddddd)\n' 1111 2222 ;;
		*) echo GPU-01234567-89ab-cdef-0123-456789abcdef ;;
		esac
	END
	chmod +x "$WORK/nvidia-smi"
	export PATH=$WORK:$PATH FAKE_MPS_STATIC=1
	run -0 bench enforcement decode
	cat >"$WORK/columns" <<-'END'
		enforcement 2 green mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-no-mps
		enforcement 5 1024 6144 8192
		decode 2 mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap
		decode_neighbour 2 alone mig mps mps-percent mps-priority mps-static none nvtaskset nvtaskset-distributed nvtaskset-no-mps nvtaskset-overlap
	END
	in_twenty_tries all_have_samples enforcement decode
	are_well_formed
	are_drawn enforcement-1024 decode
	left_nothing
}
