# How tests are built and run, by the heads of the tests: for each word a line KEY_FILE+=WORD, for make and tests/run.
#
#   awk -f tests/head.awk FILE…
#
# A test's head is the comment with which its file begins. A line "KEY: WORD…" of a head says:
#
#   needs: FILE…       files of BUILD, beside the files that each test of the kind needs (tests.mk)
#   link: WORD…        a program: options and files of BUILD for the linker, before all further files
#   gpus: NAME…        of tests/gpu: the simulated GPUs (share/topologies) of make check; if missing, h200
#   runs: bare         of tests/gpu: without nvtaskset
#   runs: OPTION…      of tests/gpu: inside nvtaskset with options
#   processes: no      looks at no processes of the machine, and can run beside any test
#   limit: SECONDS     hangs where no case ends within the limit; if missing, 120
#   takes: long        begins before all tests without the word
#   sanitizers: NAME…  address, thread or no; if missing, both for a program, and address for a FILE.bats
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
