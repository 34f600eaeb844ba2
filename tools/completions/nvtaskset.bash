# Bash completion for nvtaskset(1): options, words, the TPCs and GPCs of this machine's GPU, programs with a partition.

_nvtaskset_options="-t --tpc-list -g --gpc-list -n --count --strategy --dry-run -p --pid -a --all-tasks --attach -l --list \
-T --topology --watch --json -G --gpu --mps --connections --hide --on-misfit --strict -v --verbose -h --help -V --version"

# Offers the numbers 0 to LAST as the next element of a list.
_nvtaskset_list() { # LAST
	local typed=${cur##*[,-]} before
	before=${cur%"$typed"}
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(seq 0 "$1" 2>/dev/null)" -- "$typed")
	compopt -o nospace 2>/dev/null
}

_nvtaskset_set() { # NOTATION
	local all
	case $1 in
	t)
		all=$(nvtaskset --dry-run all 2>/dev/null)
		_nvtaskset_list "${all##*[,-]}"
		;;
	g) _nvtaskset_list "$(nvtaskset -T 2>/dev/null | sed -n 's/^GPC \([0-9]*\) .*/\1/p' | sort -n | tail -n 1)" ;;
	n) mapfile -t COMPREPLY < <(compgen -W "10% 25% 50% 75%" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "all" -- "$cur") ;;
	esac
}

# Offers what may follow the word of an action.
_nvtaskset_word() { # WORD
	local following
	case $1 in
	mps) following="status stop --connections --force" ;;
	system) following="status enable disable --dry-run -v --verbose" ;;
	measure) following="-G --gpu -v --verbose" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$following -h --help" -- "$cur")
}

_nvtaskset_pids() {
	mapfile -t COMPREPLY < <(compgen -W "$(nvtaskset -l 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && $2 !~ /^times?:$/ { print $1 }')" -- "$cur")
}

_nvtaskset_gpus() {
	mapfile -t COMPREPLY < <(compgen -W "all $(nvtaskset -T 2>/dev/null | sed -n 's/^GPU \([^,]*\),.*/\1/p')" -- "$cur")
}

_nvtaskset() {
	local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local notation=m pid=false positional=0 first="" word i
	COMPREPLY=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--tpc-list) notation=t ;;
		--gpc-list) notation=g ;;
		--count) notation=n ;;
		--pid) pid=true ;;
		-G | --gpu | --mps | --connections | --strategy | --on-misfit) ((i++)) ;;
		--*) ;;
		-*)
			[[ $word != *t* ]] || notation=t
			[[ $word != *g* ]] || notation=g
			[[ $word != *n* ]] || notation=n
			[[ $word != *p* ]] || pid=true
			[[ $word != *G ]] || ((i++))
			;;
		*)
			((++positional))
			first=${first:-$word}
			;;
		esac
	done

	case $previous in
	--mps) mapfile -t COMPREPLY < <(compgen -W "auto on off" -- "$cur") && return ;;
	--strategy) mapfile -t COMPREPLY < <(compgen -W "packed distributed" -- "$cur") && return ;;
	--on-misfit) mapfile -t COMPREPLY < <(compgen -W "widen fail" -- "$cur") && return ;;
	--connections) mapfile -t COMPREPLY < <(compgen -W "1 2 4 8 16 32" -- "$cur") && return ;;
	--gpu | -*G) _nvtaskset_gpus && return ;;
	esac
	if [[ $notation == m && $first == @(mps|system|measure) ]]; then
		_nvtaskset_word "$first"
	elif ((positional == 0)) && [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_nvtaskset_options" -- "$cur")
	elif $pid && ((positional <= 1)); then
		# The first argument is a SET, or the PID if there is no SET.
		_nvtaskset_pids
		if ((positional == 0)); then
			local pids=("${COMPREPLY[@]}")
			_nvtaskset_set "$notation"
			COMPREPLY+=("${pids[@]}")
		fi
	elif ((positional == 0)); then
		_nvtaskset_set "$notation"
		[[ $notation != m ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "mps system measure" -- "$cur")
	elif declare -F _command_offset >/dev/null; then
		# The rest of the line is COMMAND's. Find where it begins.
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i - 1]} == -*G ]] || break
		done
		_command_offset $((i + 1))
	else
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	fi
}

complete -o default -F _nvtaskset nvtaskset
