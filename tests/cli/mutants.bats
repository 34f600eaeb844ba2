#!/usr/bin/env bats
# The list of deliberate faults (tests/mutants) follows a source that changes around them.
# sanitizers: no

load helpers

prepare() {
	needs python3
	mkdir -p "$WORK"/{src,tools,tests/mutants,tests/unit}
	cp "$ROOT/tests/mutants/run" "$WORK/tests/mutants/"
	touch "$WORK/tests/unit/room.c"
	printf '%s\n' 'static int has_room(struct room *room, int count)' '{' 'if (room->size >= count && room->is_open)' \
		'return enter(room);' 'return 0;' '}' >"$WORK/src/room.c"
	printf '%s\n' '# Faults' 'has_room: return enter(room); => return 0;' '	tests/unit/room' \
		'has_room: if (room->size >= count && room->is_open) => if (room->size >= count)' \
		'	tests/unit/room' >"$WORK/tests/mutants/faults"
}

check() {
	PYTHONDONTWRITEBYTECODE=1 run "$@" "$WORK/tests/mutants/run" --check
}

change() { # SCRIPT for sed
	sed -i "$1" "$WORK/src/room.c"
}

@test "a fault survives new lines, comments, and after --shorten new names beside the fault" {
	change 's/ && room/\n	    \&\& room/; s/return enter/return \/* why *\/\n	enter/'
	check -0
	"$WORK/tests/mutants/run" --shorten
	[ "$(grep '^has_room' "$WORK/tests/mutants/faults")" = "has_room: enter(room) => 0
has_room: && room->is_open =>" ]
	change 's/count/number/; s/size/length/'
	check -0
}

@test "--check says which fault's place is gone" {
	change 's/enter(room)/take(room)/'
	check -2
	[[ "${lines[1]}" == *"has_room: return enter(room); => return 0;: stands 0 times in has_room (src/room.c), "* ]]
	[ "${#lines[@]}" -eq 2 ]
	change 's/has_room/is_free/'
	check -2
	[ "${lines[2]}" = "  has_room: there is no such function, macro or variable" ]
}
