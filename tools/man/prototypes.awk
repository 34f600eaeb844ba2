# Prints a man page, with the prototypes of a header where a comment says PROTOTYPES: awk -f prototypes.awk HEADER PAGE
FNR == NR {
	if (/^[a-z].*\(/ || text) {
		sub(/^ +/, " ")
		text = text $0
	}
	if (/;$/ && text) {
		# A line ends behind a parameter, or the name.
		gsub(/ /, "\\ ", text)
		gsub(/,\\ /, ", ", text)
		sub(/\(/, "(\\:", text)
		prototypes = prototypes ".HP 8\n\\fB" text "\\fR\n"
		text = ""
	}
	next
}
/^\.\\" PROTOTYPES/ {
	printf ".nh\n.ad l\n.PD 0\n%s.PD\n.ad\n.hy\n", prototypes
	next
}
{ print }
