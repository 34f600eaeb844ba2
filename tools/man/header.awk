# Prints a man page, with what a header says in place of the comments FUNCTIONS and ERRORS: awk -f header.awk HEADER PAGE
#
# Each comment of the header belongs to the prototypes behind it. Bodies of structures stay in the header.

# What has been read belongs together.
function flush() {
	if (prototypes)
		functions = functions paragraph ".PD 0\n" prototypes ".PD\n" (comment ? ".RS 4\n" comment ".RE\n" : "")
	else if (comment)
		functions = functions paragraph comment
	if (prototypes || comment)
		paragraph = ".PP\n"
	comment = prototypes = ""
}

function add_comment(line) {
	gsub(/\\/, "\\e", line)
	while (match(line, /`[^`]*`/))
		line = substr(line, 1, RSTART - 1) "\\fI" substr(line, RSTART + 1, RLENGTH - 2) "\\fR" substr(line, RSTART + RLENGTH)
	comment = comment (line ? line : ".PP") "\n"
}

function add_prototype(text) {
	# A line ends behind a parameter, or the name.
	gsub(/ /, "\\ ", text)
	gsub(/,\\ /, ", ", text)
	sub(/\(/, "(\\:", text)
	prototypes = prototypes ".HP 8\n\\fB" text "\\fR\n"
}

FNR == NR && /NVTASKSET_ERROR_[A-Z_]+ = [0-9]+,? / {
	name = $1
	number = $3
	sub(/,/, "", number)
	sub(/^[^*]*\* /, "")
	sub(/ \*\/$/, "")
	errors = errors ".TP\n\\fB" name "\\fR (" number ")\n" toupper(substr($0, 1, 1)) substr($0, 2) ".\n"
}
FNR == NR && /visibility push/ { begun = 1 }
FNR == NR && /^\/\* --- / {
	flush()
	gsub(/^[^a-zA-Z]*|[^a-zA-Z]*$/, "")
	functions = functions ".SS " toupper(substr($0, 1, 1)) substr($0, 2) "\n"
	paragraph = ""
	next
}
FNR == NR && /^$/ { flush() }
FNR == NR && /^(struct|enum) .*\{$/ {
	if (comment)
		comment = "\\fB" $1 " " $2 "\\fR.\n" comment
	flush()
	in_body = 1
}
FNR == NR && /^\};/ { in_body = 0 }
FNR == NR && begun && !in_body && /^\/\*/ {
	flush()
	in_comment = 1
}
FNR == NR && in_comment {
	is_last = /\*\/$/
	sub(/^\/?[ *]*/, "")
	sub(/ *\*\/$/, "")
	add_comment($0)
	in_comment = !is_last
	next
}
FNR == NR && !in_body && (/^[a-z].*\(/ || text) {
	sub(/^ +/, " ")
	text = text $0
}
FNR == NR && /;$/ && text {
	add_prototype(text)
	text = ""
}
FNR == NR { next }
/^\.\\" FUNCTIONS/ {
	flush()
	$0 = ".nh\n.ad l\n" functions ".ad\n.hy"
}
/^\.\\" ERRORS/ { $0 = ".PD 0\n" errors ".PD" }
{ print }
