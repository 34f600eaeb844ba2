# Bash completion for nvtaskset(1). The command itself says what may stand there, by nvtaskset --complete WORD...

_nvtaskset() {
	local i cur before offer
	local -a words=() places=() offers=()
	COMPREPLY=()
	# Bash splits words at : and =. `places` says where each begins in COMP_WORDS.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i > 0)) && [[ ${COMP_WORDS[i]} == [:=] || (${COMP_WORDS[i - 1]} == [:=] && -n ${COMP_WORDS[i]}) ]]; then
			words[${#words[@]} - 1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
			places+=("$i")
		fi
	done
	cur=${words[${#words[@]} - 1]} before=
	[[ $cur != *[:=]* ]] || before=${cur%"${cur##*[:=]}"}
	mapfile -t offers < <("${COMP_WORDS[0]/#\~/$HOME}" --complete "${words[@]:1}" 2>/dev/null)
	case ${offers[0]-} in
	:command*)
		i=${offers[0]#* }
		if declare -F _command_offset >/dev/null; then
			_command_offset "${places[i]}"
		elif ((i == ${#words[@]} - 1)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
		return
		;;
	:list) compopt -o nospace 2>/dev/null ;;
	esac
	for offer in "${offers[@]}"; do
		offer=${offer%%$'\t'*}
		[[ $offer == :* ]] || COMPREPLY+=("${offer#"$before"}")
	done
}

complete -o default -F _nvtaskset nvtaskset
