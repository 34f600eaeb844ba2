#!/usr/bin/env bats
# --memory: a limit of GPU memory, which MPS sees to

load helpers

# What the program finds in its environment.
limit_of() { # options and SET
	fake nvtaskset "$@" sh -c 'echo $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT' 2>/dev/null
}

@test "sizes: M, G and T, powers of 1024" {
	[ "$(limit_of --memory 2G all)" = "0=2048M" ]
	[ "$(limit_of --memory 512M all)" = "0=512M" ]
	[ "$(limit_of --memory 1T all)" = "0=1048576M" ]
	[ -z "$(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='' limit_of all)" ]
	for size in 0G 2 2g 2GB 2GiB 1.5G -1G G '' 1K 9999999999G ' 2G' 0x2G; do
		refuses "--memory $size: must be a whole number and M, G or T (powers of 1024), such as 512M or 2G" \
			fake nvtaskset --memory "$size" all true
	done
}

@test "several GPUs: each that COMMAND was given, by its number in CUDA" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	[ "$(limit_of --memory 2G -G all all)" = "0=2048M,1=2048M" ]
	[ "$(limit_of --memory 2G -G 1 all)" = "1=2048M" ]
	second=$(sed -n 's/^gpu //p' "$NVTASKSET_TOPOLOGY" | tail -n 1)
	[ "$(CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1 limit_of --memory 2G -G "$second" all)" = "0=2048M" ]
	CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0 \
		refuses "--memory: GPU $second has no number here: CUDA_VISIBLE_DEVICES hides it" \
		fake nvtaskset --memory 2G -G "$second" all true
}

@test "a limit on another GPU stays" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	[ "$(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,,1=512MB, limit_of --memory 2G -G 0 all)" = "1=512MB,0=2048M" ]
	[ "$(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=11=1G,x limit_of --memory 2G -G 1 all)" = "11=1G,x,1=2048M" ]
	[ "$(fake nvtaskset --memory 2G -G all all nvtaskset --memory 1G -G 1 all sh -c 'echo $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT' 2>/dev/null)" = \
		"0=2048M,1=1024M" ]
}

# The simulator stands for MPS here: what is tested of ours is that the limit gets there. tests/hardware/memory.sh asks the real one.
@test "under the simulator's MPS, who allocates more gets CUDA_ERROR_OUT_OF_MEMORY, and a neighbour does not" {
	export NVTASKSET_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt SIM_TOPOLOGY=$ROOT/share/topologies/h200-x2.txt
	fake nvidia-cuda-mps-control -d 3>&-
	[ "$(fake nvtaskset --memory 64M -G all all "$BUILD/tests/programs/play" allocate 40 allocate 40)" = "0 0
2 2" ]
	[ "$(fake nvtaskset --memory 64M -G 1 all "$BUILD/tests/programs/play" allocate 70)" = "0 2" ]
	[ "$(fake nvtaskset -G all all "$BUILD/tests/programs/play" allocate 70)" = "0 0" ]
	# Without MPS nobody sees to it.
	[ "$(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=64M nv all "$BUILD/tests/programs/play" allocate 70)" = "0 0" ]
}

@test "refused where nothing can see to it" {
	refuses "--memory: only MPS sees to it, and --mps off runs without: choose one" nv --memory 2G all true
	refuses "--memory: only with a COMMAND and 'cdi add'" nvtaskset --memory 2G -p 1
	refuses "MPS: no control daemon runs in $WORK/mps; start it with 'nvidia-cuda-mps-control -d', or use --mps auto; only MPS sees to --memory" \
		fake nvtaskset --memory 2G --mps on all true
	FAKE_MPS=no-start refuses \
		"MPS: the control daemon does not start: Failed to create the log directory; --mps off runs without MPS; only MPS sees to --memory" \
		fake nvtaskset --memory 2G all true
	refuses "--memory: needs a value; try 'nvtaskset --help'" nvtaskset --memory
}

@test "the test for the hardware runs, so that no lease is lost to a mistake in it" {
	! is_sanitized || skip "it starts the same programs as the tests above"
	mkdir "$WORK/bin"
	make_script "$WORK/bin/nvidia-smi" '#!/bin/sh' 'echo "GPU 0: simulated (UUID: GPU-0)"'
	PATH=$WORK/bin:$PATH run -0 fake "$ROOT/tests/hardware/memory.sh"
	[ "$(grep -c '^ok' <<<"$output")" -eq 6 ]
	not grep -q '^not ok' <<<"$output"
}
