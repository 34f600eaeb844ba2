# Bash completion for nvtaskset(1): options, words, the TPCs and GPCs of this machine's GPU, programs with a partition.

_nvtaskset_options="-t --tpc-list -g --gpc-list -n --count --strategy --dry-run -p --pid -a --all-tasks --attach -l --list \
-T --topology --watch --json --borrow --busy -G --gpu --group --memory --mps --connections --hide --lend --on-misfit --policy --priority --quota --weight --strict -v --verbose -h --help -V --version"

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
_nvtaskset_word() { # WORD, and what follows it already
	local following
	case " $* " in
	" mps"*" stop "*) following="--force" ;;
	" mps"*" status "*) following="--connections" ;;
	" mps "*) following="status stop --connections --force" ;;
	" system"*" enable "*) following="--dry-run -v --verbose" ;;
	" system"*" status "* | " system"*" disable "*) following="-v --verbose" ;;
	" system "*) following="status enable disable --dry-run -v --verbose" ;;
	" measure "*) following="-G --gpu -v --verbose" ;;
	" top "*) following="--delay --once --json $(_nvtaskset_running)" ;;
	" metrics "*) following="--format --output --busy" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$following -h --help" -- "$cur")
}

_nvtaskset_running() {
	nvtaskset -l 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && $2 !~ /^times?:$/ { print $1 }'
}

_nvtaskset_pids() {
	mapfile -t COMPREPLY < <(compgen -W "$(_nvtaskset_running)" -- "$cur")
}

_nvtaskset_groups() {
	nvtaskset -l 2>/dev/null | sed -n 's/^group \([^ ]*\): .*/\1/p'
}

_nvtaskset_gpus() {
	mapfile -t COMPREPLY < <(compgen -W "all $(nvtaskset -T 2>/dev/null | sed -n 's/^GPU \([^,]*\),.*/\1/p')" -- "$cur")
}

# Whether a GPU has a SET of its own, as in 0:3-5. Bus ids have colons, too, and end in a dot and a digit.
_nvtaskset_has_set() { # GPU[:SET]
	[[ $1 == *:* && ${1##*:} != *.* ]]
}

# Bash splits words at : and =. Joins them again in `words`; `places` says where each begins in COMP_WORDS.
_nvtaskset_join() {
	local i
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i > 0)) && [[ ${COMP_WORDS[i]} == [:=] || (${COMP_WORDS[i - 1]} == [:=] && -n ${COMP_WORDS[i]}) ]]; then
			words[${#words[@]} - 1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
			places+=("$i")
		fi
	done
}

# Offers what the last of these options wants; false if it wants nothing.
_nvtaskset_value() { # OPTION
	local values
	case $1 in
	--mps) values="auto on off" ;;
	--strategy) values="packed distributed" ;;
	--on-misfit) values="widen fail" ;;
	--policy) values="prt ht pe ht,pe" ;;
	--priority) values="20 50 80" ;;
	--weight) values="50 100 200" ;;
	--quota) values="10% 25% 50% 30ms/100ms max" ;;
	--connections) values="1 2 4 8 16 32" ;;
	--format) values="openmetrics prometheus" ;;
	--delay) values="0.5 1 5" ;;
	--output) compopt -o default 2>/dev/null && return ;;
	--group) values=$(_nvtaskset_groups) ;;
	--memory) values="1G 2G 4G 8G 16G" ;;
	--gpu | -[!-]*G | -G) _nvtaskset_gpus && return ;;
	*) return 1 ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
}

_nvtaskset() {
	local cur notation=m pid=false view=false has_set=false ended=false is_word=false word gpu i last
	local -a words=() places=()
	COMPREPLY=()
	_nvtaskset_join
	last=$((${#words[@]} - 1))
	cur=${words[last]}

	# Our options stand before SET and behind it. They end at the first word behind SET that is none, or at a --.
	for ((i = 1; i < last; i++)); do
		word=${words[i]} gpu=
		case $word in
		--tpc-list) notation=t ;;
		--gpc-list) notation=g ;;
		--count) notation=n ;;
		--pid) pid=true ;;
		--list | --topology) view=true ;;
		--gpu) gpu=${words[++i]} ;;
		--mps | --connections | --strategy | --on-misfit | --group | --memory | --policy | --priority | --quota | --weight | --delay | --format | --output) ((++i)) ;;
		--) ! $has_set || { ((++i)) && ended=true && break; } ;;
		--*) ;;
		-*)
			[[ $word != *G ]] || gpu=${words[++i]}
			[[ $word != *G?* ]] || gpu=${word#*G}
			word=${word%%G*}
			[[ $word != *t* ]] || notation=t
			[[ $word != *g* ]] || notation=g
			[[ $word != *n* ]] || notation=n
			[[ $word != *p* ]] || pid=true
			[[ $word != *[lT]* ]] || view=true
			;;
		mps | system | measure | top | metrics)
			$has_set || $pid || $view || [[ $notation != m ]] || is_word=true
			! $has_set && ! $is_word || break
			has_set=true
			;;
		*)
			! $has_set || break
			has_set=true
			;;
		esac
		! _nvtaskset_has_set "$gpu" || has_set=true
	done
	# The word at i is COMMAND or the PID; or the current one, or an option whose value is the current one.
	if ((i >= last)) || $is_word; then
		$ended || ! _nvtaskset_value "${words[last - 1]}" || return
	fi
	if $is_word; then
		_nvtaskset_word "${words[@]:i:last-i}"
	elif ((i >= last)) && ! $ended && [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$_nvtaskset_options" -- "$cur")
	elif $view; then
		: # takes no arguments
	elif $pid && ((i >= last)); then
		# The first argument is a SET, or the PID if there is no SET.
		_nvtaskset_pids
		if ! $has_set; then
			local pids=("${COMPREPLY[@]}")
			_nvtaskset_set "$notation"
			COMPREPLY+=("${pids[@]}")
		fi
	elif ((i >= last)) && ! $has_set; then
		_nvtaskset_set "$notation"
		[[ $notation != m ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "top metrics mps system measure" -- "$cur")
	elif ! $pid; then
		# The rest of the line is COMMAND's.
		if declare -F _command_offset >/dev/null; then
			_command_offset "${places[i]}"
		elif ((i == last)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
	fi
}

complete -o default -F _nvtaskset nvtaskset
