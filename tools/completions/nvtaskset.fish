# Fish completion for nvtaskset(1): options, words, the TPCs and GPCs of this machine's GPU, programs with a partition.

function __nvtaskset_line --description 'The words before the current one, behind the name of the command, also behind sudo or with a path'
    set -l line (commandline -cpo)
    while set -q line[1]; and not string match -qr '(^|/)nvtaskset$' -- $line[1]
        set -e line[1]
    end
    set -e line[1]
    string join \n -- $line
end

set -g __nvtaskset_with_value -G -tG -gG -nG --gpu --mps --connections --strategy --on-misfit --group --memory --policy --priority --quota --weight --delay --format --output

# They stand before SET and behind it. They end at the first word behind SET that is none, or at a --.
function __nvtaskset_own --description 'Our part of the line: options with their values, and SET; COMMAND and PID are behind it'
    set -l is_value false
    set -l has_set false
    for word in (__nvtaskset_line)
        if $is_value
            set is_value false
            string match -qr -- '^[^-].*:[^:.]*$' $word; and set has_set true
        else if not string match -q -- '-*' $word
            $has_set; and break
            set has_set true
        else if contains -- $word $__nvtaskset_with_value; or string match -qr -- '^-[^-]*G$' $word
            set is_value true
        end
        echo -- $word
        test "$word" = --; and $has_set; and break
    end
end

function __nvtaskset_first --description 'The first word that is neither an option nor the value of one'
    set -l is_value false
    for word in (__nvtaskset_own)
        if $is_value
            set is_value false
        else if not string match -q -- '-*' $word
            echo -- $word
            break
        else if contains -- $word $__nvtaskset_with_value; or string match -qr -- '^-[^-]*G$' $word
            set is_value true
        end
    end
end

function __nvtaskset_asks_for --description 'Whether the line has this option' --argument-names short long
    string match -qr -- "^(-[a-zA-FH-Z]*$short.*|--$long)\$" (__nvtaskset_own)
end

# Bus ids have colons, too, and end in a dot and a digit.
function __nvtaskset_has_set --description 'Whether -G gives a GPU a SET, as in 0:3-5'
    string match -qr -- '^[^-].*:[^:.]*$' (__nvtaskset_own)
end

function __nvtaskset_words --description 'How many arguments before the current one are neither options nor values of options'
    math (count (__nvtaskset_first)) + (count (__nvtaskset_line)) - (count (__nvtaskset_own))
end

function __nvtaskset_views
    __nvtaskset_asks_for l list; or __nvtaskset_asks_for T topology
end

function __nvtaskset_wants_set --argument-names short long
    __nvtaskset_asks_for $short $long; and test (__nvtaskset_words) = 0
end

function __nvtaskset_wants_pid
    __nvtaskset_asks_for p pid; and test (__nvtaskset_words) -le 1
end

set -g __nvtaskset_actions top metrics mps system measure

function __nvtaskset_has_notation
    __nvtaskset_asks_for t tpc-list; or __nvtaskset_asks_for g gpc-list; or __nvtaskset_asks_for n count
end

function __nvtaskset_may_have_action
    not __nvtaskset_has_notation; and not __nvtaskset_asks_for p pid; and not __nvtaskset_views; and not __nvtaskset_has_set
end

function __nvtaskset_wants_action
    __nvtaskset_may_have_action; and test (__nvtaskset_words) = 0
end

function __nvtaskset_follows --description 'Whether the line begins with this word of an action, and has none of the other words' --argument-names name
    __nvtaskset_may_have_action; or return
    set -l line (__nvtaskset_line)
    test "$(__nvtaskset_first)" = $name; or return
    for other in $argv[2..-1]
        not contains -- $other $line; or return
    end
end

function __nvtaskset_has_action
    for name in $__nvtaskset_actions
        __nvtaskset_follows $name; and return
    end
    return 1
end

function __nvtaskset_wants_option
    not __nvtaskset_has_action; or return
    test (count (__nvtaskset_line)) = (count (__nvtaskset_own))
end

function __nvtaskset_wants_command
    not __nvtaskset_asks_for p pid; and not __nvtaskset_views; and not __nvtaskset_has_action; or return
    test (__nvtaskset_words) -ge 1; or __nvtaskset_has_set
end

function __nvtaskset_subcommand --description 'What COMMAND offers for the line behind our part'
    set -l line (__nvtaskset_line)
    set -l behind $line[(math (count (__nvtaskset_own)) + 1)..-1]
    complete --do-complete=(string join ' ' -- (string escape -- $behind) (commandline -ct))
end

function __nvtaskset_numbers --description 'The numbers 0 to LAST as the next element of a list' --argument-names last
    set -l before (string replace -r '[0-9]*$' '' -- (commandline -ct))
    for number in (seq 0 $last)
        echo $before$number
    end
end

function __nvtaskset_tpcs
    __nvtaskset_numbers (nvtaskset --dry-run all 2>/dev/null | string replace -r '.*[,-]' '')
end

function __nvtaskset_gpcs
    __nvtaskset_numbers (nvtaskset -T 2>/dev/null | string replace -rf '^GPC ([0-9]+) .*' '$1' | sort -n | tail -n 1)
end

function __nvtaskset_pids
    nvtaskset -l 2>/dev/null | string replace -rf '^ *([0-9]+) +(?!times?:)\S+(?: +\S+){6} +(\S+).*' '$1\t$2' | sort -u
end

complete -c nvtaskset -n '__nvtaskset_wants_set t tpc-list' -f -a '(__nvtaskset_tpcs)' -d TPC
complete -c nvtaskset -n '__nvtaskset_wants_set g gpc-list' -f -a '(__nvtaskset_gpcs)' -d GPC
complete -c nvtaskset -n __nvtaskset_wants_pid -f -a '(__nvtaskset_pids)'
complete -c nvtaskset -n __nvtaskset_wants_command -x \
    -a '(__nvtaskset_subcommand)'
complete -c nvtaskset -n __nvtaskset_wants_option -s t -l tpc-list -d 'SET is a list of TPCs'
complete -c nvtaskset -n __nvtaskset_wants_option -s g -l gpc-list -d 'SET is a list of GPCs'
complete -c nvtaskset -n __nvtaskset_wants_option -s n -l count -d 'SET is a number of TPCs that nobody has'
complete -c nvtaskset -n __nvtaskset_wants_option -l strategy -x -a 'packed distributed' -d 'How -n chooses'
complete -c nvtaskset -n __nvtaskset_wants_option -l dry-run -d 'Print the TPCs of SET'
complete -c nvtaskset -n __nvtaskset_wants_option -s p -l pid -d 'Show or change the partition of a process'
complete -c nvtaskset -n __nvtaskset_wants_option -s a -l all-tasks -d 'With -p: its descendants, too'
complete -c nvtaskset -n __nvtaskset_wants_option -l attach -d 'With -p: a process that was started without nvtaskset'
complete -c nvtaskset -n __nvtaskset_wants_option -s l -l list -d 'Every program with a partition'
complete -c nvtaskset -n __nvtaskset_wants_option -s T -l topology -d 'A picture of each GPU'
complete -c nvtaskset -n __nvtaskset_wants_option -l watch -d 'Look again and again'
complete -c nvtaskset -n __nvtaskset_wants_option -l json -d 'One JSON document'
complete -c nvtaskset -n __nvtaskset_wants_option -l busy -d 'With -l: how busy the GPUs are'
complete -c nvtaskset -n __nvtaskset_wants_option -s G -l gpu -x -a 'all (nvtaskset -T 2>/dev/null | string replace -rf "^GPU ([^,]*),.*" "\$1")' -d 'Which GPU'
complete -c nvtaskset -n __nvtaskset_wants_option -l group -x -a '(nvtaskset --list 2>/dev/null | string replace -rf "^group (\S+): .*" "\$1")' -d 'Join a group, or with -p change it'
complete -c nvtaskset -n __nvtaskset_wants_option -l memory -x -a '1G 2G 4G 8G 16G' -d 'At most so much GPU memory'
complete -c nvtaskset -n __nvtaskset_wants_option -l mps -x -a 'auto on off' -d 'Whether to use MPS'
complete -c nvtaskset -n __nvtaskset_wants_option -l connections -x -a '1 2 4 8 16 32' -d 'Hardware queues under MPS'
complete -c nvtaskset -n __nvtaskset_wants_option -l hide -d 'Tell COMMAND of a GPU of its size'
complete -c nvtaskset -n __nvtaskset_wants_option -l lend -d 'Others may use its TPCs while it is idle'
complete -c nvtaskset -n __nvtaskset_wants_option -l borrow -d 'It may use what others lend'
complete -c nvtaskset -n __nvtaskset_wants_option -l policy -x -a 'prt ht pe ht,pe' -d 'How launches are held back'
complete -c nvtaskset -n __nvtaskset_wants_option -l priority -x -a '20 50 80' -d 'Who goes first, 0-99'
complete -c nvtaskset -n __nvtaskset_wants_option -l weight -x -a '50 100 200' -d 'In which proportion'
complete -c nvtaskset -n __nvtaskset_wants_option -l quota -x -a '10% 25% 50% 30ms/100ms max' -d 'At most so much of the time'
complete -c nvtaskset -n __nvtaskset_wants_option -l on-misfit -x -a 'widen fail' -d 'A launch that SET cannot hold'
complete -c nvtaskset -n __nvtaskset_wants_option -l strict -d 'Keep every promise, or do not start'
complete -c nvtaskset -n __nvtaskset_wants_option -s v -l verbose -d 'Say what is done'
complete -c nvtaskset -n __nvtaskset_wants_option -s h -l help -d 'Display help'
complete -c nvtaskset -n __nvtaskset_wants_option -s V -l version -d 'Display the version'
complete -c nvtaskset -n __nvtaskset_wants_action -f -a top -d 'What programs do on the GPUs, live'
complete -c nvtaskset -n __nvtaskset_wants_action -f -a metrics -d 'The same for Prometheus'
complete -c nvtaskset -n __nvtaskset_wants_action -f -a mps -d 'Whether MPS runs, and for whom'
complete -c nvtaskset -n __nvtaskset_wants_action -f -a system -d 'Have every program carry the library'
complete -c nvtaskset -n __nvtaskset_wants_action -f -a measure -d 'Find out which TPC is where'
complete -c nvtaskset -n '__nvtaskset_follows mps status stop' -f -a status -d 'Whether it runs, and for whom'
complete -c nvtaskset -n '__nvtaskset_follows mps status stop' -f -a stop -d 'End it'
complete -c nvtaskset -n '__nvtaskset_follows mps' -l connections -x -a '1 2 4 8 16 32' -d 'Hardware queues of each client'
complete -c nvtaskset -n '__nvtaskset_follows mps' -l force -d 'End it whoever uses it'
complete -c nvtaskset -n '__nvtaskset_follows system status enable disable' -f -a status -d 'Whether every program does'
complete -c nvtaskset -n '__nvtaskset_follows system status enable disable' -f -a enable -d 'From now on every program does'
complete -c nvtaskset -n '__nvtaskset_follows system status enable disable' -f -a disable -d 'Undo it'
complete -c nvtaskset -n '__nvtaskset_follows system' -l dry-run -d 'Print what would be written'
complete -c nvtaskset -n '__nvtaskset_follows top' -f -a '(__nvtaskset_pids)'
complete -c nvtaskset -n '__nvtaskset_follows top' -l delay -x -a '0.5 1 5' -d 'How long a look takes'
complete -c nvtaskset -n '__nvtaskset_follows top' -l once -d 'One page or document'
complete -c nvtaskset -n '__nvtaskset_follows top' -l json -d 'A JSON document for each look'
complete -c nvtaskset -n '__nvtaskset_follows metrics' -l format -x -a 'openmetrics prometheus' -d 'How they are written'
complete -c nvtaskset -n '__nvtaskset_follows metrics' -l busy -d 'On a socket: measure busy time all the time'
complete -c nvtaskset -n '__nvtaskset_follows metrics' -l output -r -F -d 'A file that is replaced'
complete -c nvtaskset -n '__nvtaskset_follows measure' -s G -l gpu -x -a all -d 'Which GPU'
complete -c nvtaskset -n __nvtaskset_has_action -s h -l help -d 'Display help'
complete -c nvtaskset -n '__nvtaskset_has_action; or __nvtaskset_views' -f
