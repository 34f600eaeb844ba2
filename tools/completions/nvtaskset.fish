# Fish completion for nvtaskset(1). The command itself says what may stand there, by nvtaskset --complete WORD...

function __nvtaskset_offers
    # The words before the current one, from the name of the command on, also behind sudo or with a path.
    set -l line (commandline -cpo)
    while set -q line[1]; and not string match -qr '(^|/)nvtaskset$' -- $line[1]
        set -e line[1]
    end
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $line[1])
    set -l offers (command $program --complete $line[2..-1] "$current" 2>/dev/null)
    switch "$offers[1]"
        case ':command *'
            set -l behind $line[(math (string replace ':command ' '' -- $offers[1]) + 1)..-1]
            complete --do-complete=(string join ' ' -- (string escape -- $behind) $current)
        case :files
            __fish_complete_path $current
        case :list
            printf '%s\n' $offers[2..-1]
        case '*'
            printf '%s\n' $offers
    end
end

complete -c nvtaskset -f -a '(__nvtaskset_offers)'
