# How tests are built and run, as their heads say: for each word a line KEY_FILE+=WORD, which make and tests/run read.
#
#   awk -f tests/head.awk FILE…
#
# A test's head is the comment with which its file begins. A line "KEY: WORD…" of a head says:
#
#   needs: FILE…       files of BUILD, beside those that each test of its kind needs (tests.mk)
#   link: WORD…        a program is linked with these options and files of BUILD, before all others
#   gpus: NAME…        of tests/gpu: the simulated GPUs (share/topologies) of make check; if missing, h200
#   runs: bare         of tests/gpu: without nvtaskset
#   runs: OPTION…      of tests/gpu: inside nvtaskset with these options
#   processes: none    looks at no processes of the machine, and so disturbs no test, and no test disturbs it
#   limit: SECONDS     hangs where no case ends for so long; if missing, 120
#   takes: long        begins before those that do not
#   sanitizers: NAME…  address, thread or none; if missing, both for a program, and address for a FILE.bats
BEGIN {
	split("needs link gpus runs processes limit takes sanitizers", names)
	for (i in names)
		is_key[names[i] ":"]
}

!/^(#|#[! ].*|\/\*.*| \*.*)$/ { nextfile }

$2 in is_key {
	for (i = 3; i <= NF && $i != "*/"; i++)
		print substr($2, 1, length($2) - 1) "_" FILENAME "+=" $i
}

$2 ~ /^[a-z]+:$/ && !($2 in is_key) { print "unknown+=" FILENAME ":" $2 }
