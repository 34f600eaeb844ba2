#!/usr/bin/env python3
"""The house: moves files into the rooms of DESIGN.md (issue 36, points 1, 2 and 7).

usage: move.py [--commit] [--until STAGE] [--list]     in a clean checkout
       move.py --rewrite [--commit]                    in one that has been moved, where others have added files since: moves what
                                                       lies in an old place, and rewrites what still names one

Each stage is a commit of its own (--commit). Rows of files that are not there are left out; so are new files that no row
knows, which are named in the end, as is everything that did not fit (exit status 1). The new tests/layers lies beside this file.
"""
import os
import re
import subprocess
import sys

INCLUDE_ROOTS = ("src", "include", "tools/nvtaskset", "tools/slurm", "tests/gpu/support", "bench/support")
CODE_TOPS = ("src", "include", "tools", "tests", "bench", "demo", "examples")
# Their words are what was, or data.
NO_MENTIONS = re.compile(r"^(CHANGELOG\.md|bench/data/|docs/evaluation/|share/topologies/)")

HERE = os.path.dirname(os.path.abspath(__file__))
problems = []
history = {}  # old path -> new path, of all stages and also of what has been moved already


def problem(text):
    problems.append(text)
    print(f"  ! {text}")


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def tracked():
    return [path for path in git("ls-files", "-co", "--exclude-standard").splitlines() if os.path.lexists(path)]


def is_code(path):
    return path.endswith((".c", ".h")) and path.split("/")[0] in CODE_TOPS


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def edit(path, change):
    """Replaces a file's text by change(text)."""
    before = read(path)
    after = change(before)
    if after != before:
        write(path, after)
    return after != before


# --- rewriting --------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^(#\s*include ")([^"]+)(")', re.MULTILINE)


def resolve(name, here, files):
    """The file that `#include "name"` in directory `here` means, or meant; None if it is none of ours."""
    other = "tools/nvtaskset" if re.match(r"(?:tools|tests)/slurm", here) else "tools/slurm"
    roots = [root for root in INCLUDE_ROOTS if root != other]
    for base in (here, *roots):
        path = os.path.normpath(f"{base}/{name}")
        if path in files:
            return path
    for base in (here, *roots):
        path = os.path.normpath(f"{base}/{name}")
        if path in history:
            return path
    return None


def spelled(target, here, name):
    """How a file in directory `here`, that said `name`, includes `target`."""
    if os.path.dirname(target) == here:
        return os.path.basename(target)
    if name.startswith(".."):
        return os.path.relpath(target, here)
    for root in INCLUDE_ROOTS:
        if target.startswith(root + "/"):
            return target[len(root) + 1:]
    return os.path.relpath(target, here)


def sort_includes(text, kind=r'"[^"\n]+\.h"'):
    """Sorts each paragraph of quoted includes of this kind; a file's own header has a paragraph of its own."""
    def sort(match):
        lines = match[0].splitlines()
        return "\n".join(sorted(set(lines), key=lambda line: line.split('"')[1])) + "\n"
    return re.sub(rf'(?:^#include {kind}\n){{2,}}', sort, text, flags=re.MULTILINE)


def guard_of(path):
    for root in ("src", "tools/nvtaskset", "tools"):
        if path.startswith(root + "/"):
            return "NVTASKSET_" + re.sub(r"[/.]", "_", re.sub(r"^(base|gpu)/", "", path[len(root) + 1:])).upper()
    return None


WIDTH = 120


def is_too_long(line, path):
    return len(line.expandtabs(4)) > (WIDTH if is_code(path) else 132)


def split_words(prefix, words):
    """As many words as fit behind the prefix, and the rest."""
    taken = 1
    while taken < len(words) and len((prefix + " ".join(words[:taken + 1])).expandtabs(4)) <= WIDTH:
        taken += 1
    return words[:taken], words[taken:]


def wrap(lines, number, path):
    """Pushes what is too much in a line of a comment, or of text, into the next one."""
    line, is_text = lines[number], not is_code(path)
    if is_text:
        match = re.match(r"^(\s*(?:- |\d+\. )?)(\S.*)$", line)
        if line.startswith(("|", "    ", "#", "```")) or not match:
            return
        begin, words, follow, end = match[1], match[2].split(" "), " " * len(match[1]), ""
        continues = r"^" + follow + r"(?!- |\d+\. |#|\||\s|```)(\S.*)$"
    else:
        match = re.match(r"^(\t*(?:/\*| \*) )(\S.*?)( \*/)?$", line)
        if not match or re.search(r"\S {2,}\S", match[2]) or match[2].startswith("---"):
            return
        begin, words, end = match[1], match[2].split(" "), match[3] or ""
        follow = re.match(r"\t*", line)[0] + " * "
        continues = r"^" + re.escape(follow) + r"(?!-)(\S.*)$"
    kept, rest = split_words(begin, words)
    if end and not rest:
        rest, kept = kept[-1:], kept[:-1]
    following = lines[number + 1] if number + 1 < len(lines) else ""
    lines[number] = begin + " ".join(kept)
    if not end and re.match(continues, following):
        lines[number + 1] = follow + " ".join(rest) + " " + following[len(follow):]
    else:
        lines.insert(number + 1, follow + " ".join(rest) + end)
    if is_too_long(lines[number + 1], path):
        wrap(lines, number + 1, path)


def replace_lines(path, text, change):
    """Changes each line that is no include; what becomes too long is wrapped."""
    lines, number = text.split("\n"), 0
    while number < len(lines):
        line = lines[number]
        if not line.startswith("#include"):
            lines[number] = change(line)
            if lines[number] != line and is_too_long(lines[number], path) and (is_code(path) or path in ("HACKING.md", "SECURITY.md")):
                wrap(lines, number, path)
        number += 1
    return "\n".join(lines)


def rewrite(moved):
    """After files were moved (old -> new): includes, guards, and mentions everywhere."""
    history.update(moved)
    for old, new in list(history.items()):
        if new in moved:
            history[old] = moved[new]
    back = {new: old for old, new in moved.items()}
    now = tracked()
    before = {back.get(path, path) for path in now}
    places = {path: history.get(path, path) for path in before | set(history)}

    def rewrite_includes(path):
        old_here, here = os.path.dirname(back.get(path, path)), os.path.dirname(path)
        changed = False

        def change(match):
            nonlocal changed
            target = resolve(match[2], old_here, before)
            if not target:
                return match[0]
            new = places.get(target, target)
            if old_here == here and new == target:
                return match[0]
            name = spelled(new, here, match[2])
            changed = changed or name != match[2]
            return match[1] + name + match[3]
        text = read(path)
        after = INCLUDE.sub(change, text)
        if changed:
            after = sort_includes(after, r'"[^"\n]+\.h"' if path.startswith(("src/", "tools/")) else r'"[a-z]\w*/[^"\n]+\.h"')
        # A comment's "x.h" is the file beside it.
        def mention(match):
            target = f"{old_here}/{match[0]}"
            new = places.get(target)
            if not new or (target not in before and target not in history) or os.path.basename(new) == match[0] and \
                    os.path.dirname(new) == here:
                return match[0]
            return spelled(new, here, "")
        after = replace_lines(path, after, lambda line: re.sub(r"(?<![\w/.])[a-z][a-z0-9_]*\.[ch]\b", mention, line))
        if after != text:
            write(path, after)

    for path in now:
        if is_code(path):
            rewrite_includes(path)
    for old, new in moved.items():
        guard = guard_of(new)
        if new.endswith(".h") and guard:
            found = re.search(r"^#ifndef (\w+)\n#define \1$", read(new), re.MULTILINE)
            if found:
                edit(new, lambda text, found=found, guard=guard: re.sub(rf"\b{found[1]}\b", guard, text))

    # Mentions: src/room/x.c, room/x.c.
    forms = {}
    for old, new in (moved or {old: new for old, new in history.items() if old not in before}).items():
        forms[old] = new
        for root in ("src", "tools/nvtaskset"):
            if old.startswith(root + "/") and new.startswith(root + "/"):
                short = old[len(root) + 1:]
                if "/" in short:
                    forms[short] = new[len(root) + 1:]
    if forms:
        full = r"(?:src|tools|bench|tests)/"
        long = sorted((re.escape(form) for form in forms if re.match(full, form)), key=len, reverse=True)
        less = sorted((re.escape(form) for form in forms if not re.match(full, form)), key=len, reverse=True)
        pattern = re.compile(r"(?<![\w.-])((?:" + "|".join(long or ["(?!)"]) + r")|(?<!/)(?:" + "|".join(less or ["(?!)"]) + r"))(?!\w)")
        for path in tracked():
            if NO_MENTIONS.match(path) or os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                text = read(path)
            except UnicodeDecodeError:
                continue
            after = replace_lines(path, text, lambda line: pattern.sub(lambda match: forms[match[1]], line))
            if after != text:
                write(path, after)


def move(rows):
    moved = {}
    for old, new in rows:
        for suffix in (".c", ".h") if not re.search(r"\.\w+$", old) else ("",):
            source, target = old + suffix, new + suffix
            if os.path.exists(source) and os.path.exists(target):
                problem(f"{source}: {target} is there already")
            elif os.path.exists(source):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                git("mv", source, target)
                moved[source] = target
            elif os.path.exists(target):
                history[source] = target
    rewrite(moved)
    return len(moved)


def to(new, old, names):
    """Rows: from directory `old` to `new`; "a=b": a is called b there."""
    rows = []
    for name in names.split():
        name, _, other = name.partition("=")
        rows.append((f"{old}/{name}", f"{new}/{other or name}"))
    return rows


# --- changes that are more than a move --------------------------------------------------------------------------------


def definition(name):
    """A pattern for a function's definition, with the comment in front of it and the empty line behind."""
    return re.compile(r"^(?:/\*(?:(?!\*/).)*?\*/\n)?(?![ \t}/*#])[^\n;{}]*\b" + name + r"\([^;{}]*\)\n\{\n.*?^\}\n\n?",
                      re.MULTILINE | re.DOTALL)


def declaration(name):
    return re.compile(r"^(?:/\*(?:(?!\*/).)*?\*/\n)?(?![ \t}/*#])[^\n;{}=]*\b" + name + r"\([^;{}]*;\n", re.MULTILINE | re.DOTALL)


def take(text, pattern, what):
    """(The text without it, it)."""
    found = pattern.search(text)
    if not found:
        problem(f"{what}: not found")
        return text, ""
    return text[:found.start()] + text[found.end():], found[0]


def substitute(path, *pairs, regex=False, required=True):
    if not os.path.exists(path):
        if required:
            problem(f"{path}: not there")
        return
    text = read(path)
    for old, new in pairs:
        if regex:
            after, count = re.subn(old, new, text, flags=re.MULTILINE)
        else:
            after, count = text.replace(old, new), text.count(old)
        if not count and required:
            problem(f"{path}: not found: {old.strip().splitlines()[0][:90]}")
        text = after
    write(path, text)


RENAMED = {}


def rename_symbols(names):
    RENAMED.update(names)
    pattern = re.compile(r"\b(" + "|".join(names) + r")\b")
    for path in tracked():
        if is_code(path) or path in ("tests/mutants/faults", "HACKING.md"):
            edit(path, lambda text: pattern.sub(lambda match: names[match[1]], text))


def add_include(path, name):
    """Adds an include of ours where the first paragraph of them is that is not the own header alone."""
    text = read(path)
    if f'#include "{name}"' in text:
        return
    blocks = list(re.finditer(r'(?:^#include "[^"\n]+"\n)+', text, re.MULTILINE))
    own = os.path.basename(path)[:-2] + ".h"
    if blocks:
        block = blocks[0]
        if path.endswith(".c") and len(blocks) > 1 and block[0].count("\n") == 1:
            block = blocks[1]
        if path.endswith(".c") and block[0] == f'#include "{own}"\n':
            text = text[:block.end()] + f'\n#include "{name}"\n' + text[block.end():]
        else:
            text = text[:block.end()] + f'#include "{name}"\n' + text[block.end():]
    else:
        first = re.search(r"^#include <", text, re.MULTILINE)
        text = text[:first.start()] + f'#include "{name}"\n\n' + text[first.start():]
    write(path, sort_includes(text))


def drop_include(path, name):
    if os.path.exists(path):
        edit(path, lambda text: re.sub(r'^#include "' + re.escape(name) + r'"\n', "", text, flags=re.MULTILINE))


def names_of(header):
    """What a header declares: functions, macros, constants, tags."""
    text = re.sub(r"/\*.*?\*/|__attribute__\(\(.*?\)\)\)?", "", read(header), flags=re.DOTALL)
    return set(re.findall(r"\b(\w+)\(", text)) | set(re.findall(r"\b[A-Z][A-Z0-9_]{3,}\b", text)) | \
        set(re.findall(r"\b(?:struct|enum|union) (\w+) \{", text)) | set(re.findall(r"^extern [^;]*?(\w+)(?: __attr[^;]*)?;", text, re.MULTILINE))


def prune_includes(path):
    """Drops includes of ours of which nothing is used; not the own header."""
    text = read(path)
    body = re.sub(r"^#include.*$", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    words = set(re.findall(r"\w+", body))
    for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
        target = resolve(name, os.path.dirname(path), set(tracked()))
        if target and target[:-2] != path[:-2] and not names_of(target) & words:
            drop_include(path, name)


def body_of(text):
    """A file's text in three: the comment at its head, its includes (as lines), and the rest; of a header without its guard."""
    guard = re.search(r"^#ifndef (\w+)\n#define \1\n", text, re.MULTILINE)
    head = re.match(r"(?:/\*.*?\*/\n)?", text, re.DOTALL)[0]
    rest = text[len(head):]
    if guard:
        rest = rest.replace(guard[0], "", 1)
        rest = re.sub(r"\n#endif\n$", "\n", rest)
    includes = re.findall(r"^#include .*$", rest, re.MULTILINE)
    return head, includes, re.sub(r"^#include .*\n", "", rest, flags=re.MULTILINE).strip("\n")


def merge(source, target, title=None, was=None):
    """Folds source.c and source.h into target's. What they include must be spelled as in the target."""
    moved = {}
    for suffix in (".c", ".h"):
        if was and not os.path.exists(was + suffix) and os.path.exists(target + suffix):
            history[was + suffix] = target + suffix
        if not os.path.exists(source + suffix):
            if os.path.exists(target + suffix):
                history[source + suffix] = target + suffix
            continue
        if not os.path.exists(target + suffix):
            problem(f"{target}{suffix}: not there to take {source}{suffix}")
            continue
        head, includes, body = body_of(read(source + suffix))
        text = read(target + suffix)
        names = [re.search(r'"([^"]+)"|<', line)[1] for line in includes]
        here, there = os.path.dirname(source), os.path.dirname(target)
        files = set(tracked())
        for line, name in zip(includes, names):
            if name:
                found = resolve(name, here, files)
                if found and found[:-2] in (source, target):
                    continue
                add_include(target + suffix, spelled(found, there, name) if found else name)
            elif line not in text:
                last = list(re.finditer(r"^#include <.*\n", read(target + suffix), re.MULTILINE))
                if last:
                    block = re.search(r"(?:^#include <.*\n)+", read(target + suffix), re.MULTILINE)
                    lines = sorted(set(block[0].splitlines() + [line]))
                    edit(target + suffix, lambda text: text.replace(block[0], "\n".join(lines) + "\n", 1))
                else:
                    blocks = list(re.finditer(r'(?:^#include "[^"\n]+"\n)+', read(target + suffix), re.MULTILINE))
                    at = blocks[-1].end() if blocks else re.search(r"^#define .*\n", read(target + suffix), re.MULTILINE).end()
                    edit(target + suffix, lambda text: text[:at] + "\n" + line + "\n" + text[at:])
        text = read(target + suffix)
        name = title or os.path.basename(source).replace("_", " ")
        rule = "/* --- " + name + " " + "-" * (110 - len(name)) + " */\n\n"
        head = head + "\n" if body.startswith("/*") else head
        addition = "\n" + (rule if suffix == ".c" else "") + head + body + "\n"
        if suffix == ".h":
            text = re.sub(r"\n#endif\n$", lambda _: addition + "\n#endif\n", text)
        else:
            text = text.rstrip("\n") + "\n" + addition
        write(target + suffix, text)
        git("rm", "-q", "-f", source + suffix)
        moved[source + suffix] = target + suffix
    for suffix in (".c", ".h"):
        drop_include(target + suffix, os.path.basename(source) + ".h")
    rewrite(moved)


STAGES = []


def stage(name, subject, body=""):
    def register(function):
        STAGES.append((name, subject, body, function))
        return function
    return register


@stage("make", "Makefile: libraries by rooms, and no single objects",
       "Rooms are named once; a room's sources are those of its directory and of the rooms in it. Tests of parts of the command,\n"
       "of the plugin or of the simulated driver take them from archives.")
def stage_make():
    if "sources_of =" in read("Makefile"):
        return
    substitute(
        "Makefile",
        (r"^# The lowest rooms; driver and shim.*\nrooms = .*\n", r"""# The rooms (HACKING.md), from the top down: those that every program of ours may use; and those that run in other people's
# processes.
rooms         = base gpu mps state monitor
process_rooms = driver launch time shim
# The sources of rooms, and of the rooms in them.
sources_of = $(wildcard $(foreach room,$(1),src/$(room)/*.c src/$(room)/*/*.c))
objects_of = $(patsubst %.c,$(BUILD)/%.o,$(call sources_of,$(1)))
"""),
        (r"^library_objects = .*\n", "library_objects = $(call objects_of,$(rooms) attach api)\n"),
        (r"^process_sources = .*\nshim_objects .*\nattach_objects .*\n", """shim_objects    = $(filter-out %/entry_attached.o,$(call objects_of,$(process_rooms)))
attach_objects  = $(filter-out %/entry_loaded.o,$(call objects_of,$(process_rooms)))
"""),
        (r"^smctrl_objects  = .*\n.*\n", "smctrl_objects  = $(call objects_of,smctrl) $(filter-out %/entry_loaded.o,$(shim_objects))\n"),
        (r"^api_objects = .*\n", "api_objects = $(call objects_of,api)\n"),
        (r"\$\(wildcard \$\(patsubst %,src/%/\*\.c,\$\(rooms\)\)\) -lcmocka", "$(call sources_of,$(rooms)) -lcmocka"),
        (r"\$\(wildcard \$\(patsubst %,src/%/\*\.c,\$\(rooms\) attach\)\)", "$(call sources_of,$(rooms) attach)"),
        (r"^fuzz_objects = .*\n(?:[ \t]+.*\n)+", """fuzz_objects = $(patsubst $(BUILD)/%,$(BUILD)/fuzz/%,\\
               $(filter-out %/entry_loaded.o %/entry_attached.o,$(call objects_of,$(rooms) $(process_rooms))))
"""),
        (r"^# What runs in other people's processes, for tests to take from\.\n(?:.*\n)*?\t\$\(call say,LINK,\$@\).*-lcmocka -ldl -o \$@\n",
         """# What runs in other people's processes, the command's parts, and the simulated driver's, for tests to take from.
process_archive = $(BUILD)/process.a
$(process_archive): $(filter-out %/entry_loaded.o,$(shim_objects))
command_archive = $(BUILD)/command.a
$(command_archive): $(filter-out %/main.o,$(command_objects))
sim_archive = $(BUILD)/sim.a
$(sim_archive): $(sim_objects)
$(process_archive) $(command_archive) $(sim_archive):
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(process_archive) $(command_archive) $(sim_archive) $(library)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(first) $(filter %.a,$^) -lcmocka -ldl -o $@
# Both have a turns.c.
$(BUILD)/tests/unit/sim_%: first = $(sim_archive)
"""),
        (r"^# What they test is in no library\.\n(?:\$\(BUILD\)/tests/unit/.*\n)+", ""),
        regex=True)
    substitute(
        "Makefile",
        (r"^(\$\(slurm_parts\)\.o: .*\n)\$\(slurm_parts\): .*\n",
         r"\1slurm_archive = $(BUILD)/slurm/parts.a" "\n"
         r"$(slurm_archive): $(slurm_objects)" "\n"
         "\t" r"$(call say,AR,$@)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $^" "\n"
         r"$(slurm_parts): $(slurm_parts).o $(slurm_archive) $(api_archive) $(library)" "\n"),
        regex=True, required=False)


@stage("gpu", "gpu/topology: what selects TPCs, and how many blocks fit, lies above it",
       "gpu and gpu/topology used each other.")
def stage_gpu():
    move(to("src/gpu/topology", "src/gpu", "occupancy select_tpcs"))


def shared_file():
    """segment_make_file goes down to base: groups, the board and counts make files as segments do."""
    source, layout = "src/state/file.c", "src/state/layout.h"
    if not os.path.exists(source) or "segment_make_file" not in read(source):
        return
    text, limit = take(read(source), definition("check_file_limit"), "check_file_limit")
    text, make = take(text, definition("segment_make_file"), "segment_make_file")
    text = text.replace("#include <sys/resource.h>\n", "")
    write(source, text)
    head, flags = take(read(layout), re.compile(r"^/\* How a segment's file is made\..*?^#endif\n\n", re.MULTILINE | re.DOTALL),
                       "flags of a segment's file")
    head, declared = take(head, declaration("segment_make_file"), "declaration of segment_make_file")
    write(layout, re.sub(r"\n{3,}", "\n\n", head))
    flags = flags.replace("How a segment's file is made.", "How they are made.").replace("SEGMENT_FILE_", "SHARED_FILE_")
    flags = flags.replace("(handle.h)", "(state/handle.h)")
    renamed = {"segment_make_file": "shared_file_make"}
    renamed.update({f"SEGMENT_FILE_{word}": f"SHARED_FILE_{word}" for word in ("FLAGS", "MODE", "SEALS")})
    write("src/base/shared_file.h", f"""/* Files in memory that processes share. */
#ifndef NVTASKSET_SHARED_FILE_H
#define NVTASKSET_SHARED_FILE_H

#include "error.h"

#include <stddef.h>

{flags}{declared.replace("segment_make_file", "shared_file_make")}
#endif
""")
    write("src/base/shared_file.c", """#include "shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

""" + limit + make.rstrip("\n") + "\n")
    git("add", "src/base/shared_file.c", "src/base/shared_file.h")
    rename_symbols(renamed)
    for path in tracked():
        if is_code(path) and re.search(r"shared_file_make|SHARED_FILE_", read(path)) and "base/shared_file." not in path:
            add_include(path, "base/shared_file.h")
    for path in ("src/state/group.c", "src/state/board_file.c"):
        drop_include(path, "layout.h")


def handle_without_layout():
    """The handle knows no segment: who looks for one says by which name and size."""
    path = "src/state/handle.c"
    if not os.path.exists(path) or '"layout.h"' not in read(path):
        return
    substitute(path, ("static int next_by_name(int first, bool *is_known)", "static int next_by_name(int first, const char *link, bool *is_known)"),
               ("memfd_next(directory, first, SEGMENT_LINK)", "memfd_next(directory, first, link)"),
               ("static int next_by_look(int first)", "static int next_by_look(int first, size_t size)"),
               ("look(number, sizeof(struct segment_memory), &status)", "look(number, size, &status)"),
               ("int handle_next(int first)\n", "int handle_next(int first, const char *link, size_t size)\n"),
               ("next_by_name(first, &is_known)", "next_by_name(first, link, &is_known)"),
               (": next_by_look(first)", ": next_by_look(first, size)"))
    drop_include(path, "layout.h")
    substitute("src/state/handle.h", ("that may be a segment's; -1 if there are no more. Also works without\n * /proc. */",
                                      "that leads to a file of this name (memfd_find.h) and size,\n * as a segment has; -1 if there are no more. Also works without /proc. */"),
               ("int handle_next(int first);", "int handle_next(int first, const char *link, size_t size);"))
    substitute("src/state/source.c", ("handle_next(", "next_handle("),
               ("enum segment_source segment_open_source(", """static int next_handle(int first)
{
	return handle_next(first, SEGMENT_LINK, sizeof(struct segment_memory));
}

enum segment_source segment_open_source("""), required=False)


def areas_without_circle():
    """How many areas a segment names is the segment's matter."""
    counts, layout, segment = "src/state/counts.h", "src/state/layout.h", "src/state/segment.h"
    if not os.path.exists(counts) or "#define COUNTS_AREAS" not in read(counts):
        return
    substitute(counts, (r"^#define COUNTS_AREAS 8\n", ""), regex=True)
    substitute(segment, ("#include <sys/types.h>\n", "#include <sys/types.h>\n\n/* So many areas of each kind a segment names: of counts"
                         " (counts.h), and of times (stamps.h). */\n#define SEGMENT_AREAS 8\n"))
    drop_include(layout, "counts.h")
    rename_symbols({"COUNTS_AREAS": "SEGMENT_AREAS"})


def budget_of_group():
    """A budget is a group's: it needs no segment."""
    source, header = "src/state/budget.c", "src/state/budget.h"
    if not os.path.exists(source) or "budget_open(const struct segment *segment)" not in read(source):
        return
    substitute(source,
               ("struct budget *budget_open(const struct segment *segment)", "struct budget *budget_open(const struct group *of, int descriptor)"),
               (".number = segment_group_descriptor(segment),", ".number = descriptor,"),
               (".identity = segment->group.identity,", ".identity = of->identity,"),
               ("if (segment->group.memory && !segment->group.is_copy && ", "if (of->memory && !of->is_copy && "))
    substitute(header, ("struct budget *budget_open(const struct segment *segment);",
                        "struct budget *budget_open(const struct group *group, int descriptor);"),
               ("/* The budget of the group that the process is in, for budget_close. NULL if there is none, or the process may not write it:\n"
                " * a group in a file of another user's. */",
                "/* The budget of the group that this process is in and names by that descriptor, for budget_close. NULL if there is none, or\n"
                " * the process may not write it: a group in a file of another user's. */"),
               ('#include "segment.h"', '#include "group.h"'))
    for path in tracked():
        if is_code(path) and path != source:
            edit(path, lambda text: re.sub(r"budget_open\((\w+)\)", r"budget_open(&\1->group, segment_group_descriptor(\1))", text))


@stage("base", "base: locks and files that groups, segments and the board share",
       "group used the segment's layout only for these, and the segment's layout used group.")
def stage_base():
    move([("src/state/lock", "src/base/file_lock"), ("src/state/execution", "src/base/execution")])
    shared_file()


@stage("handle", "state: handle knows no segment, and a budget is a group's")
def stage_handle():
    handle_without_layout()
    budget_of_group()
    areas_without_circle()


@stage("group", "state/group: a room of its own")
def stage_group():
    move(to("src/state/group", "src/state", "group group_file=file group_find=find budget"))


@stage("segment", "state/segment: a room of its own")
def stage_segment():
    move(to("src/state/segment", "src/state",
            "segment layout counters owner source findable find absence kind edit editor lease file environment"))


@stage("kernels", "state/kernels: a room of its own")
def stage_kernels():
    move(to("src/state/kernels", "src/state",
            "counts counts_layout counts_read counts_view area stamps stamps_layout stamps_read"))


@stage("board", "state/board: a room of its own")
def stage_board():
    move(to("src/state/board", "src/state", "board board_layout=layout board_file=file board_place=place board_search=search"))


@stage("monitor", "monitor: what a watcher reads and estimates has a room of its own",
       "monitor/estimate knows neither clocks nor processes.")
def stage_monitor():
    move(to("src/monitor", "src/state", "look look_parts=parts look_clocks=clocks look_events=events look_functions=functions "
            "look_graphs=graphs look_memory=memory look_rings=rings function_sums") +
         to("src/monitor/estimate", "src/state", "behind clock_fit durations node_stamps replays shared_clock times"))


@stage("driver", "driver/channels: the kernel driver's objects have a room of their own")
def stage_driver():
    move(to("src/driver/channels", "src/driver",
            "channels channels_list=list channels_slice=slice channels_suspend=suspend kernel_client import"))
    if "src/driver/*/*.c" not in read("tests/cli/manual.bats"):
        substitute("tests/cli/manual.bats", ('"$ROOT"/src/driver/*.c', '"$ROOT"/src/driver/*.c "$ROOT"/src/driver/*/*.c'))


@stage("attach", "attach/x86_64: the machine's part has a room of its own")
def stage_attach():
    move(to("src/attach/x86_64", "src/attach", "x86_64 x86_64_code=code x86_64_signals=signals x86_64_way=way"))


@stage("launch", "launch: the way of a launch has a room of its own",
       "In src/shim stays what starts, forks, executes, and hands on what the driver announces.")
def stage_launch():
    move(to("src/launch/account", "src/shim", "account escape strict looking") +
         to("src/launch/space", "src/shim", "allowed app_masks caller decision epoch hide misfit partition residency "
            "stepping stepping_fit yielding yielded") +
         to("src/launch/graphs", "src/shim", "graphs graph_counts=counts graph_descriptors=descriptors looking_graphs=looking") +
         to("src/launch", "src/shim", "launch"))
    if "src/launch/*/*.c" not in read("tests/cli/manual.bats"):
        substitute("tests/cli/manual.bats", ('"$ROOT"/src/shim/*.c', '"$ROOT"/src/shim/*.c "$ROOT"/src/launch/*/*.c'))


@stage("time", "time: demand and the gate have rooms of their own")
def stage_time():
    move(to("src/time/demand", "src/time", "demand work peers given news wakeup") +
         to("src/time/gate", "src/shim", "turnstile turnstile_parts turnstile_thread holding held reserve in_flight ends busy"))


@stage("command", "tools/nvtaskset: rooms for options, selections, actions and the terminal",
       "cli is what is said on the command line; select, which TPCs and which processes that means; actions use all of them.")
def stage_command():
    tools = "tools/nvtaskset"
    move(to(f"{tools}/cli", tools, "options actions arguments parse option_values quota time_given time_change help gpus gpcs") +
         to(f"{tools}/select", tools, "set claims turn targets process_tree") +
         to(f"{tools}/actions", tools, "partition group attach mps") +
         to(f"{tools}/terminal", f"{tools}/show", "terminal screen text events watch"))


@stage("looking", "launch: looking gets a number of TPCs, not a decision", "account lies above space: decisions are space's.")
def stage_looking():
    looking, graphs, launch = "src/launch/account/looking", "src/launch/graphs/looking", "src/launch/launch.c"
    if not os.path.exists(launch) or "looking_tpcs" not in read(looking + ".c"):
        return
    text, function = take(read(looking + ".c"), definition("looking_tpcs"), "looking_tpcs")
    write(looking + ".c", text)
    substitute(looking + ".c", ("looking_launch(const struct launch *launch, const struct decision *decision)",
                                "looking_launch(const struct launch *launch, unsigned int tpcs)"),
               ("looking_tpcs(launch, decision)", "tpcs"))
    substitute(looking + ".h", ("/* The launch's kernel is about to be uploaded, and somebody looks. */",
                                "/* The launch's kernel is about to be uploaded, for so many TPCs, 0 if that is not known; and somebody looks. */"),
               ("looking_launch(const struct launch *launch, const struct decision *decision)",
                "looking_launch(const struct launch *launch, unsigned int tpcs)"),
               ("unsigned int looking_tpcs(const struct launch *launch, const struct decision *decision);\n", ""),
               ("/* Of a launch or a node: its TPCs, 0 if that is not known; has the function's name written, once; and the release, which\n"
                " * writes to this cell. False if there is no place for one: then the cell is given back. */",
                "/* Of a launch or a node: has the function's name written, once; and the release, which writes to this cell. False if there\n"
                " * is no place for one: then the cell is given back. */"))
    parameters = ("looking_graph_node(const struct launch *launch, const struct decision *decision, struct graph_descriptor *descriptor)",
                  "looking_graph_node(const struct launch *launch, unsigned int tpcs, struct graph_descriptor *descriptor)")
    substitute(graphs + ".c", parameters, ("looking_tpcs(launch, decision)", "tpcs"))
    substitute(graphs + ".h", parameters)
    for path in (looking + ".h", graphs + ".h"):
        for name in re.findall(r'"([^"]*decision\.h)"', read(path)):
            drop_include(path, name)
    function = function.replace("unsigned int looking_tpcs(", "/* What watchers hear; 0 if it is not known. */\nstatic unsigned int tpcs_of(")
    substitute(launch, ("looking_launch(launch, decision)", "looking_launch(launch, tpcs_of(launch, decision))"),
               ("looking_graph_node(launch, decision, descriptor)", "looking_graph_node(launch, tpcs_of(launch, decision), descriptor)"))
    text = read(launch)
    at = re.search(r"^/\* The driver uses a graph's descriptor again", text, re.MULTILINE)
    if at:
        write(launch, text[:at.start()] + function + text[at.start():])
    else:
        problem(f"{launch}: no place for tpcs_of")


EVENTS = {f"launch_{name}": f"events_{name}".replace("wants", "want") for name in
          "wants_call call_begins call_ended call_passes subscribed context_created context_destroyed".split()}


@stage("events", "shim/events: which call goes to whom", "launch decides about launches, and knows no room above it but one.")
def stage_events():
    launch, header = "src/launch/launch.c", "src/launch/launch.h"
    if not os.path.exists(launch) or os.path.exists("src/shim/events.c"):
        return
    text = read(launch)
    found = re.search(r"^/\* --- calls around launches -+ \*/\n\n", text, re.MULTILINE)
    if not found:
        problem(f"{launch}: no calls around launches")
        return
    includes = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    rest = text[found.start():].replace("recent.epoch = EPOCH_NEVER", "launch_forget()")
    text = text[:found.start()] + """void launch_forget(void)
{
	recent.epoch = EPOCH_NEVER;
}
"""
    files = set(tracked())
    ours = sorted(spelled(resolve(name, "src/launch", files), "src/shim", name) for name in includes)
    write(launch, text)
    write("src/shim/events.c", '#include "events.h"\n\n' + "".join(f'#include "{name}"\n' for name in ours) +
          "\n#include <stdatomic.h>\n\n" + rest)
    declared = read(header)
    at = re.search(r"^/\* API calls: whether we must hear of one", declared, re.MULTILINE)
    end = declared.rindex("\n#endif\n")
    write("src/shim/events.h", """/* Which call of the driver's API goes to whom, and what a context that comes or goes means to whom; in their order. */
#ifndef NVTASKSET_SHIM_EVENTS_H
#define NVTASKSET_SHIM_EVENTS_H

#include "driver/hook.h"

#include <stdbool.h>

""" + declared[at.start():end] + "\n#endif\n")
    write(header, declared[:at.start()] + "/* This thread's next launch is decided anew. */\nvoid launch_forget(void);\n" + declared[end:])
    git("add", "src/shim/events.c", "src/shim/events.h")
    rename_symbols(EVENTS)
    for path in tracked():
        if is_code(path) and path.startswith(("src/", "tests/")) and path not in ("src/shim/events.c", "src/shim/events.h") and \
                re.search(r"\b(" + "|".join(EVENTS.values()) + r")\b", read(path)):
            add_include(path, "events.h" if path.startswith("src/shim/") else "shim/events.h")
    for path in (launch, header, "src/shim/events.c", "src/shim/shim.c"):
        prune_includes(path)
    if "atomic_" not in read(launch):
        substitute(launch, ("#include <stdatomic.h>\n\n", ""))
    if "bool" not in read(header).split("#include <stdbool.h>")[1]:
        substitute(header, ("#include <stdbool.h>\n\n", ""))


@stage("rings", "monitor/rings: a watcher's clock, and a ring's GPU", "look.c and its parts called each other.")
def stage_rings():
    look, rings = "src/monitor/look.c", "src/monitor/rings.c"
    if not os.path.exists(look):
        return
    for name in ("look_gpu_for", "look_now"):
        text = read(look)
        if definition(name).search(text):
            text, function = take(text, definition(name), name)
            write(look, text)
            other = read(rings)
            at = re.search(r"^(?:#include .*\n\n)(?!#include)", other, re.MULTILINE).end()
            write(rings, other[:at] + function + other[at:])
    if "process_clock_ns" in read(rings):
        add_include(rings, "base/process_clock.h")
    prune_includes(look)


@stage("merges", "shim, slurm: files of one idea are one file")
def stage_merges():
    merge("src/launch/account/strict", "src/launch/account/escape", "the end of the program", "src/shim/strict")
    merge("src/launch/space/caller", "src/launch/space/hide", "who asks", "src/shim/caller")
    slurm = "tools/slurm"
    move([(f"{slurm}/dispatch", f"{slurm}/plugin"), (f"{slurm}/contexts.h", f"{slurm}/plugin.h"), (f"{slurm}/prolog", f"{slurm}/job_scripts")])
    merge(f"{slurm}/srun", f"{slurm}/plugin")
    merge(f"{slurm}/slurmd", f"{slurm}/plugin")
    merge(f"{slurm}/epilog", f"{slurm}/job_scripts")
    merge(f"{slurm}/cgroup", f"{slurm}/claim", "the job's control group")
    merge(f"{slurm}/gpus", f"{slurm}/claim", "its GPUs")


# Arrows that point back, and why; the ones that are there are listed in tests/layers.
EXCEPTIONS = {
    ("src/launch/launch.c", "src/time/control.h"): "a launch that is decided anew looks whether there is news for our thread",
    ("src/launch/launch.c", "src/time/turns/kernel_access.h"): "which calls are the gate's alone",
    ("src/launch/launch.c", "src/time/gate/gate.h"): "a launch begins at the gate",
    ("src/launch/space/yielding.c", "src/time/gate/gate.h"): "a decider asks the gate what is left to others",
    ("src/launch/space/stepping.h", "src/time/demand/peers.h"): "a decider, and what it leaves to whom, are one file",
    ("src/launch/account/looking.c", "src/time/gate/turnstile.h"): "the gate wants times, and hears of each launch",
    ("src/launch/graphs/looking.c", "src/time/gate/turnstile.h"): "the same",
}

ROWS = {
    "`src/gpu/`": "what a GPU is: its PCI address and UUID, sets of TPCs, launch descriptors (only `qmd.c` knows their bits; "
                  "`qmd_release.c` writes what tells that a kernel has ended). `topology/`: only this knows which bit is which TPC; "
                  "which TPCs to take (`select_tpcs.c`), and room in them for blocks that must run at once (`occupancy.c`)",
    "`src/state/`": "what processes tell each other in shared memory, and the revisions that all of it is made of (`revisions.h`). "
                    "`group/`: groups, which several processes obey, and the time that they share (`budget.h`). `segment/`: the memory "
                    "that holds a process's partition: its layout, its owner, how it is found and edited. `kernels/`, in memory that "
                    "the GPU writes: the counts of kernels (`counts.h`; `counts_view.h` reads another process's), and the times at "
                    "which they ended (`stamps.h`). `board/`: where programs of a user find each other",
    "`src/monitor/`": "what a watcher makes of another process's counts and times (`look.h`). `estimate/` knows neither clocks nor "
                      "processes: `times.h`, `replays.h`, `clock_fit.h`",
    "`src/driver/`": "NVIDIA's driver as seen from inside a process: the callback table (`hook.c`, `slot.c`), its calls by number "
                     "(`calls.c`), the functions that we call (`functions.c`), contexts, modules, graphs, what counts kernels that "
                     "have ended (`releases.c`). `channels/`: a process's own objects in the kernel driver (`kernel_client.c`): "
                     "finds those that run kernels (`channels.c`), suspends them, sets their time slices. Nothing in it knows about "
                     "partitions",
    "`src/launch/`": "the way of a launch (`launch.c`). `space/` decides which TPCs it may use; `graphs/` has the same for nodes of "
                     "graphs; `account/` counts it, has its end's time written, and tells when it runs outside",
    "`src/time/`": "what a program was given in time: what edits and calls mean for it (`control.c`), and the thread that keeps it "
                   "(`thread.c`). `rules/` decides: pure. `demand/` is what they look at: the program's own work, its peers, what it "
                   "was given. `turns/` carries out, without MPS: suspends the program, sets its time slices. `gate/` does so under "
                   "MPS: launches wait, or leave TPCs to others",
    "`src/shim/`": "starts the library: `entry_loaded.c` the one that is loaded in place of the driver, `entry_attached.c` the one in a "
                   "program that was already running. `inherit.c`: fork and exec. `events.c`: which call of the driver's goes to whom",
    "`tools/nvtaskset/`": "the command. `cli/` (options and words; `actions.h`), `terminal/` (screen and keys), `show/` (lists, pictures, "
                          "JSON; `activity.h` is what programs did between two looks), `select/` (which TPCs, and which processes), "
                          "`start/` (starts COMMAND with the library), `top/`, `metrics/`, `measure/`, `system/`, `actions/` (what "
                          "changes something: `partition.c`, `group.c`, `attach.c`, `mps.c`)",
}
ORDER = ["`src/base/`", "`src/gpu/`", "`src/mps/`", "`src/state/`", "`src/monitor/`", "`src/driver/`", "`src/attach/`", "`src/launch/`",
         "`src/time/`", "`src/shim/`", "`src/audit/`", "`src/api/`, `src/smctrl/`", "`tools/nvtaskset/`", "`tools/slurm/`",
         "`tests/`, `bench/`, `demo/`"]


def align_way(text):
    """The second column of the way of a launch."""
    def align(match):
        rows = [re.match(r"^( *\S+)(?: +(.*))?$", line) for line in match[1].splitlines()]
        width = max(len(row[1]) for row in rows) + 2
        return "```\n" + "".join((f"{row[1]:{width}}{row[2]}" if row[2] else row[1]) + "\n" for row in rows) + "```"
    return re.sub(r"```\n(driver/hook\.c .*?)```", align, text, count=1, flags=re.DOTALL)


@stage("layers", "tests/layers: rooms by path, all headers, and circles of all kinds",
       "A header without a .c counts as well, and so does what is called without being included: so a circle through a common\n"
       "header is found. Three circles that passed until now are gone: of group and segment, of gpu and its topology, and of those\n"
       "who read the times of others.")
def stage_layers():
    with open(os.path.join(HERE, "layers"), encoding="utf-8") as file:
        layers = file.read()
    there = {}
    for (user, used), reason in EXCEPTIONS.items():
        if os.path.exists(user) and os.path.exists(used) and any(resolve(name, os.path.dirname(user), {used}) == used
                                        for name in re.findall(r'^#include "([^"]+)"', read(user), re.MULTILINE)):
            there[user, used] = reason
    listed = "".join(f'\t("{user}", "{used}"): "{reason}",\n'.replace("\t", "    ") for (user, used), reason in sorted(there.items()))
    write("tests/layers", layers.replace("@EXCEPTIONS@", listed))
    os.chmod("tests/layers", 0o755)
    text = read("HACKING.md")
    table = re.search(r"^\| room \| what is in it \|\n\| --- \| --- \|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = dict(re.match(r"^\| (.*?) \| (.*) \|$", line).groups() for line in table[1].splitlines())
    if set(rows) - set(ORDER):
        problem(f"HACKING.md: rooms that no row knows: {set(rows) - set(ORDER)}")
    rows.update(ROWS)
    new = "".join(f"| {room} | {rows[room]} |\n" for room in ORDER if room in rows)
    text = text.replace(table[1], new.replace("`dispatch.c` says which hook runs what and where", "`plugin.c` says which hook runs what and where"))
    before = re.search(r"^A room is a directory\. It uses only rooms above it.*?\n\n", text, re.MULTILINE | re.DOTALL)
    picture = subprocess.run(["tests/layers", "--list"], check=True, text=True, stdout=subprocess.PIPE).stdout
    if not before:
        write("HACKING.md", align_way(re.sub(r"```\nbase\n.*?```", lambda _: "```\n" + picture + "```", text, count=1, flags=re.DOTALL)))
        return
    after = re.search(r"^## |^Code that runs in other people's processes", text[before.end():], re.MULTILINE)
    first = "A room is a directory, and so is a room in it. It uses only rooms above it in this list.\n\n"
    head = ("`tests/layers` checks that (with `make lint`), and finds circles. This is what `tests/layers --list` prints: each room, and\n"
            "which rooms it uses, but for those that one of them uses, too.\n\n```\n" + picture + "```\n\n")
    at = before.end() + after.start()
    text = text[:before.start()] + first + text[before.end():at].rstrip("\n") + "\n\n" + head + text[at:]
    text = re.sub(r"(`X_wants_call`, `X_call_begins`, `X_call_ended`\.) `src/\w+/launch\.c` calls", r"\1 `src/shim/events.c` calls", text)
    text = text.replace("The module in `src/shim/` that needs it", "The module in `src/launch/` that needs it")
    text = text.replace("**a decider.** `src/shim/X.c`", "**a decider.** `src/launch/space/X.c`")
    write("HACKING.md", align_way(text))


BENCH = {
    "space": "connections decode decode_training enforcement fault faulty granularity kernels network overlap pitfall pitfalls processes "
             "properties slots strategies tail",
    "cost": "attach callback change graphs group hook launch parts registration resize startup",
    "accounting": "account busy looking watchers",
    "time": "bursts decode_priority held_cost held_priority held_quota preemption priority quota quota_cost quota_periods "
            "quota_training resnet slices timegraph weights",
}
# Programs of one topic, by the experiments; what several use is in programs/.
BENCH_PROGRAMS = {
    "space": "kernels slots trespass waits", "cost": "attach change graphs hook latency parts registration resize startup",
    "accounting": "account busy duty functions looking nvml",
    "time": "aside presence progress quota_cost quota_start slice spans spent",
    "programs": "crowd launches repeat split task",
}


@stage("bench", "bench: a directory for each topic: its experiments and their programs",
       "What several topics use is in bench/programs; what is in Python stays, beside what it imports. Built programs lie where they did, so that nobody has to know a topic.")
def stage_bench():
    rows = [row for topic, names in BENCH.items() for row in to(f"bench/{topic}", "bench/experiments", names)]
    rows = [(old, new) for old, new in rows if os.path.exists(old)]
    for old, new in rows:
        os.makedirs(os.path.dirname(new), exist_ok=True)
        git("mv", old, new)
    programs = [row for topic, names in BENCH_PROGRAMS.items() for row in to(f"bench/{topic}", "bench", names)]
    move([(old + ".c", new + ".c") for old, new in programs])
    if os.path.isdir("bench/experiments") and os.listdir("bench/experiments"):
        problem(f"bench/experiments: {' '.join(os.listdir('bench/experiments'))}: no topic")
    elif "bench/experiments" in read("bench/run"):
        substitute("bench/run",
                   ('	sed -n \'s/^#.* At most \\([0-9]*\\) s\\.$/\\1/p\' "bench/experiments/$1"\n',
                    '	sed -n \'s/^#.* At most \\([0-9]*\\) s\\.$/\\1/p\' "$(find_experiment "$1")"\n'),
                   ("limit_of() { # NAME: in seconds", "find_experiment() { # NAME: in the directory of its topic\n"
                    "	local path\n"
                    "	for path in bench/{" + ",".join(sorted(BENCH)) + "}/\"$1\"; do\n"
                    "		[ ! -x \"$path\" ] || echo \"$path\"\n"
                    "	done\n"
                    "}\n\n"
                    "limit_of() { # NAME: in seconds"),
                   ('timeout --kill-after=5 "$limit" "bench/experiments/$1" &', 'timeout --kill-after=5 "$limit" "$(find_experiment "$1")" &'),
                   ('[ -x "bench/experiments/$name" ] || {', '[ -n "$(find_experiment "$name")" ] || {'),
                   ('$(sed -n \'2s/^# //p\' "bench/experiments/$name")', '$(sed -n \'2s/^# //p\' "$(find_experiment "$name")")'),
                   required=True)
        edit("HACKING.md", lambda text: text.replace("A file in `bench/experiments/`, and its name in `bench/run`.",
                                                     "A file in the directory of its topic in `bench/`, and its name in `bench/run`."))
    left = [path for path in tracked() if re.match(r"bench/[^/]+\.c$", path)]
    for path in left:
        problem(f"{path}: no topic; it stays, and the Makefile does not build it")
    if "bench_sources" in read("Makefile"):
        return
    substitute(
        "Makefile",
        ("bench_programs  = $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))\n",
         "# By topic; built, they lie side by side.\n"
         "bench_sources   = $(filter-out bench/support/%,$(wildcard bench/*/*.c))\n"
         "bench_programs  = $(addprefix $(BUILD)/bench/,$(notdir $(bench_sources:.c=)))\n"),
        ("bench/*.c bench/support/*.c", "bench/*/*.c"),
        ("link_bench_program = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $^ -ldl", "link_bench_program = $(call say,LINK,$@)$(CC) "
         "$(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -ldl"),
        ("$(BUILD)/bench/%: $(BUILD)/bench/%.o $(bench_support) $(library)\n\t$(link_bench_program)\n",
         "$(foreach source,$(bench_sources),$(eval $(BUILD)/bench/$(notdir $(source:.c=)): $(source:%.c=$(BUILD)/%.o)))\n"))
    substitute(
        "Makefile",
        (r"^(\$\(addprefix \$\(BUILD\)/bench/,[a-z_ ]*\)): \$\(BUILD\)/bench/%: \$\(BUILD\)/bench/%\.o \$\(attach_objects\).*\n\t.*\n",
         r"\1: $(attach_objects)" "\n"),
        (r"^\$\(BUILD\)/bench/presence: \$\(BUILD\)/bench/presence\.o (\S+) .*\n(?:\t.*\n)+",
         r"$(BUILD)/bench/presence: \1" "\n"
         "$(bench_programs): $(bench_support) $(library)\n\t$(link_bench_program)\n"),
        regex=True)


# --- what to do -------------------------------------------------------------------------------------------------------


# All that is renamed, for --rewrite.
SYMBOLS = {"segment_make_file": "shared_file_make", "COUNTS_AREAS": "SEGMENT_AREAS", **EVENTS,
           **{f"SEGMENT_FILE_{word}": f"SHARED_FILE_{word}" for word in ("FLAGS", "MODE", "SEALS")}}
ROOMS_FULL = {"src/shim": "shim.c shim.h entry_loaded.c entry_attached.c inherit.c inherit.h events.c events.h",
              "src/state": "handle.c handle.h policy.c policy.h revisions.c revisions.h",
              "src/time": "control.c control.h thread.c thread.h", "tools/nvtaskset": "main.c"}


def name_unknown():
    for room, known in ROOMS_FULL.items():
        for path in tracked():
            if os.path.dirname(path) == room and path.endswith((".c", ".h")) and os.path.basename(path) not in known.split():
                problem(f"{path}: no row knows where it goes; it stays")


def main():
    arguments = sys.argv[1:]
    os.chdir(git("rev-parse", "--show-toplevel").strip())
    if "--list" in arguments:
        for name, subject, _, _ in STAGES:
            print(f"{name:10} {subject}")
        return 0
    if "--rewrite" not in arguments and git("status", "--porcelain", "-uno").strip():
        print("move.py: the checkout is not clean", file=sys.stderr)
        return 2
    until = arguments[arguments.index("--until") + 1] if "--until" in arguments else None
    for name, subject, body, function in STAGES:
        print(f"{name}: {subject}")
        function()
        if name == "layers" and "--rewrite" in arguments:
            rename_symbols({**RENAMED, **SYMBOLS})
        git("add", "-A")
        if "--commit" in arguments and git("status", "--porcelain").strip():
            git("commit", "-q", "-m", subject + (f"\n\n{body}" if body else ""))
        if name == until:
            break
    if not until:
        name_unknown()
    print(f"{len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
