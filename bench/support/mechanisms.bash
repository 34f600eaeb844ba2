# The mechanisms that are compared, and how programs run under each.
#
#   none               no partition, no MPS: programs take turns on the GPU
#   mps                MPS alone
#   mps-priority       MPS with CUDA_MPS_CLIENT_PRIORITY=1 (below normal) for the rest
#   mps-percent        MPS with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
#   mps-static         MPS with static partitions, where the driver has them
#   green              green contexts, made by the program, under MPS
#   mig                two MIG instances, where MIG is on already
#   nvtaskset          MPS and nvtaskset
#   nvtaskset-no-mps   nvtaskset --mps off
#   nvtaskset-priority the same on the whole GPU: a high priority for `first`, a low one for `rest`
#   nvtaskset-weight   the same; the part is a weight, or 100 for `first` and `rest`
#   nvtaskset-prt      MPS and priorities on the whole GPU: launches are held back; a high one for `first`, a low one for `rest`
#   nvtaskset-stepping as nvtaskset-prt, but `first` has its part of the GPU only: `rest` steps aside
#   nvtaskset-lend     as nvtaskset, but `first` lends its part while it is idle, and `rest` borrows it
#   xsched             XSched, with a high priority for `first`, a low one for `rest`; in turns
#   hami               HAMi-core, with its limit of SMs; in turns
#   nvtaskset-pe       MPS and a quota on the whole GPU; the part is the quota
#
#   by-hand            no mechanism: `first` as with none, `rest` of nvtaskset-priority, whose time slices are as short as they
#                      get while a program of a higher priority is there, at rest (see turns.bash)
#
# A part of the GPU is `first` or `rest`, as split_gpu left them; `all`; or a list of TPCs, for nvtaskset only.

split_gpu() { # STRATEGY COUNT
	local first rest
	{
		read -r total_tpcs sms_per_tpc _
		read -r first_tpcs first
		read -r rest_tpcs rest
	} < <(split && split "$1" "$2")
	first_list=$first rest_list=${rest:-}
}

tpcs_of() { # PART
	case $1 in
	first) echo "$first_list" ;;
	rest) echo "$rest_list" ;;
	*) echo "$1" ;;
	esac
}

count_of() { # PART: how many TPCs
	case $1 in
	first) echo "$first_tpcs" ;;
	rest) echo "$rest_tpcs" ;;
	all) echo "$total_tpcs" ;;
	esac
}

# The smallest whole percentage that gives a client so many SMs: MPS rounds down.
percentage_of() { # PART
	echo $((($(count_of "$1") * 100 + total_tpcs - 1) / total_tpcs))
}

green_of() { # PART
	case $1 in
	first) echo "$((first_tpcs * sms_per_tpc))" ;;
	rest) echo "$((first_tpcs * sms_per_tpc))-rest" ;;
	esac
}

# Static partitions are of 8 SMs each, and last as long as the daemon.
static_partition() { # PART
	local file gpu chunks
	file=$BENCH_WORK/static-$1-$(count_of "$1")
	if [ ! -e "$file" ]; then
		gpu=$(nvidia-smi --query-gpu=uuid --format=csv,noheader -i "$BENCH_GPU")
		chunks=$(($(count_of "$1") * sms_per_tpc / 8))
		ask_mps "sm_partition add $gpu $chunks" | grep -oE 'GPU-[^ ]+/[^ ]+' >"$file"
	fi
	cat "$file"
}

mig_instance() { # PART
	local line=1
	[ "$1" = first ] || line=2
	nvidia-smi -L 2>/dev/null | grep -oE 'MIG-[0-9a-f-]{36}' | sed -n "${line}p"
}

# Prints why this machine lacks a mechanism; nothing if it has it.
missing() { # MECHANISM
	case $1 in
	none | nvtaskset-no-mps | nvtaskset-priority | nvtaskset-weight) ;;
	mig) [ -n "$(mig_instance rest)" ] || echo "there are no two MIG instances" ;;
	xsched | hami) [ -x "${BENCH_PEERS:-}/$1.sh" ] || echo "BENCH_PEERS names no directory that has $1.sh" ;;
	mps-static) [ -n "${BENCH_STATIC:-}" ] || echo "this driver's MPS has no static partitions" ;;
	*) [ -n "${BENCH_MPS:-}" ] || echo "there is no MPS" ;;
	esac
}

# BENCH_MECHANISMS has those that are wanted, if not all are.
is_wanted() { # MECHANISM
	[[ " ${BENCH_MECHANISMS:-$1} " == *" $1 "* ]]
}

# Prints which of these mechanisms the machine has; on standard error, why it lacks the others.
available() { # MECHANISM…
	local mechanism reason
	for mechanism in "$@"; do
		is_wanted "$mechanism" || continue
		reason=$(missing "$mechanism")
		if [ -z "$reason" ]; then
			echo "$mechanism"
		else
			echo "  left out: $mechanism: $reason" >&2
		fi
	done
}

priority_of() { # PART
	case $1 in
	first) echo 80 ;;
	rest) echo 20 ;;
	esac
}

# Replaces this (sub)shell: by COMMAND under the mechanism, in that part of the GPU. BENCH_PREFIX is a command
# in front of all of that.
under() { # MECHANISM PART COMMAND…
	local mechanism=$1 part=$2 value
	shift 2
	case $mechanism in
	none)
		export CUDA_MPS_PIPE_DIRECTORY=/dev/null
		;;
	xsched)
		export CUDA_MPS_PIPE_DIRECTORY=/dev/null
		set -- "$BENCH_PEERS/xsched.sh" "$(priority_of "$part")" "$@"
		;;
	hami)
		export CUDA_MPS_PIPE_DIRECTORY=/dev/null
		set -- "$BENCH_PEERS/hami.sh" "$(percentage_of "$part")" "$@"
		;;
	mps-priority)
		[ "$part" != rest ] || export CUDA_MPS_CLIENT_PRIORITY=1
		;;
	mps-percent)
		value=$(percentage_of "$part")
		export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$value
		;;
	mps-static)
		export CUDA_MPS_PIPE_DIRECTORY=$BENCH_STATIC
		value=$(static_partition "$part")
		export CUDA_MPS_SM_PARTITION=$value
		;;
	green)
		value=$(green_of "$part")
		export BENCH_GREEN=$value
		;;
	mig)
		value=$(mig_instance "$part")
		export CUDA_MPS_PIPE_DIRECTORY=/dev/null CUDA_VISIBLE_DEVICES=$value
		;;
	nvtaskset)
		set -- nvtaskset --mps on -t "$(tpcs_of "$part")" "$@"
		;;
	nvtaskset-no-mps)
		set -- nvtaskset --mps off -t "$(tpcs_of "$part")" "$@"
		;;
	nvtaskset-priority)
		set -- nvtaskset --mps off --priority "$(priority_of "$part")" all "$@"
		;;
	nvtaskset-weight)
		[[ $part == [1-9]* ]] || part=100
		set -- nvtaskset --mps off --weight "$part" all "$@"
		;;
	nvtaskset-prt)
		set -- nvtaskset --mps on --priority "$(priority_of "$part")" all "$@"
		;;
	nvtaskset-stepping)
		value=$(tpcs_of "$part")
		[ "$part" != rest ] || value=all
		set -- nvtaskset --mps on --priority "$(priority_of "$part")" -t "$value" "$@"
		;;
	nvtaskset-lend)
		value=--borrow
		[ "$part" != first ] || value=--lend
		set -- nvtaskset --mps on "$value" -t "$(tpcs_of "$part")" "$@"
		;;
	nvtaskset-pe)
		set -- nvtaskset --mps on --quota "$part" all "$@"
		;;
	esac
	# Not quoted, so that an empty prefix is no word.
	# shellcheck disable=SC2086
	exec ${BENCH_PREFIX:-} "$@"
}

# Prints those of `mechanisms` that are measured in this round: none, mps and both of nvtaskset in every round, the others in
# every third.
due() { # ROUND
	local mechanism
	for mechanism in "${mechanisms[@]}"; do
		case $mechanism in
		none | mps | nvtaskset*) echo "$mechanism" ;;
		*) [ -z "${BENCH_QUICK:-}" ] && (($1 % 3 != 1)) || echo "$mechanism" ;;
		esac
	done
}
