#!/usr/bin/env python3
"""Usage: texts.py [--check] [--data DIRECTORY] [FILE…]

Puts the numbers of the texts in from the data of bench/data: each number that has a query behind it (queries.py), and
each table between <!--table NAME ARGUMENTS--> and <!--/table--> (tables.py). With --check it changes nothing, and names
each number that is not what the data says, and each quantity of README.md and the pages of docs/ that has no query: a
quantity that has none has a mark behind it; and each picture that was drawn from other data. Status 1 if there is one.
The marks:

    <!--given-->      somebody chose the number: a setting, a goal, a bound. It is round; a measured one seldom is.
    <!--seen-->       it was measured, and the rows were not kept: its section names the day or the version.
    <!--published-->  others say so: its paragraph names them, by the year of their paper, or as "the paper".

To compute all of them takes half a minute. So where all were put in, `written` beside this file keeps a digest of data, queries, numbers
and of this program, and --check computes only where that is another one.
"""

import gc
import glob
import hashlib
import os
import re
import sys

sys.dont_write_bytecode = True  # in a working tree
import queries
import tables

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
WRITTEN = os.path.join(HERE, "written")

NUMBER = r"[−+]?\d+(?:[ \u202f]\d{3})*(?:\.\d+)?|met|missed|not\s+shown|\d{4}-\d\d-\d\d|[^\s<>|*(]+"
MARKED = re.compile(rf"({NUMBER})<!--([^<>]*?:[^<>]*?)-->")
TABLE = re.compile(r"(<!--table ([^<>]*?)-->\n)(.*?)(<!--/table-->)", re.DOTALL)
GIVEN = re.compile(r"\S*\d\S*(?:\s\S+)?<!--(?:given|seen|published)-->")
# The number and the mark, as in "12 981 ns<!--seen-->".
MARK = re.compile(r"(?<![\w.])(\d+(?:[ \u202f]\d{3})*(?:\.\d+)?)"
                  r"([^\d<>\n]{0,12}|\n[^\d<>\n]{1,8})<!--(given|seen|published)-->")
WHEN = re.compile(r"20\d\d-\d\d-\d\d|\b(?=[0-9a-f]*\d)[0-9a-f]{7,8}\b")
SOURCE = re.compile(r"\b20\d\d\b|[Pp]aper|XSched")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\(((?:(?:docs/)?evaluation/)?(h\d+|simulator)/([^/)]+?)(?:-\d+)?\.svg)\)")
UNIT = (
    r"(?:ns|us|[µμ]s|ms|s|min|(?:nano|micro|milli)?sec(?:onds?)?|minutes?|hours?|%|percent|per cent|times|"
    r"[×x](?!\s*\d)|[\w-]+/s|[\w-]+ (?:a|per) second)"
)
QUANTITY = re.compile(rf"(?<![\w.#/])\d+(?:[ \u00a0\u202f.,–-]\d+)*[\s\u00a0\u202f-]?{UNIT}(?![a-z])")
BY_HAND = re.compile(r"^\|[^\n]*\b(?:[numµμ]?s|fast|slow|time)\b[^\n]*\|\n\|[ :|-]+\|\n(?:\|[^\n]*\n)+", re.MULTILINE)
CELL = re.compile(r"(?<=\|) *[−+]?\d+\.\d+ *(?=\|)")
FOLLOWING = re.compile(r"\**[\s\u00a0\u202f]*(ns|us|µs|ms|s|%)(?![a-z])")


def blank(match):
    """As long and with as many lines, so that what is found later has its place."""
    return re.sub(r"[^\n]", " ", match.group())


def is_round(number):
    """Two digits but for zeros at the ends, or a five behind both, or a power of two: as settings and goals are."""
    digits = re.sub(r"[ \u202f]", "", number)
    whole = int(digits) if digits.isdigit() else 0
    if whole and whole & (whole - 1) == 0:
        return True
    digits = digits.replace(".", "").strip("0")
    return len(digits) <= 2 or (len(digits) == 3 and digits.endswith("5"))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


class Text:
    def __init__(self, path, data):
        self.name = os.path.relpath(path, ROOT)
        self.path, self.data = path, data
        with open(path, encoding="utf-8") as file:
            self.old = file.read()
        self.faults = []

    def complain(self, position, what):
        self.faults.append(f"{self.name}:{line_of(self.old, position)}: {what}")

    def new(self):
        """The text as the data has it. Whatever cannot be answered stays, and is complained about."""
        text = TABLE.sub(self.table, self.old)
        return MARKED.sub(self.number, text)

    def table(self, match):
        head, name, body, tail = match.groups()
        try:
            body = tables.table(self.data, name)
        except (queries.Wrong, KeyError) as error:
            self.complain(match.start(), f"table {name}: {error.args[0]}")
        return head + body + tail

    def number(self, match):
        old, query = match.groups()
        value = old
        try:
            value = queries.answer(self.data, query)
        except queries.Wrong as error:
            self.complain(match.start(), f"{query}: {error.args[0]}")
        return f"{old if old.split() == value.split() else value}<!--{query}-->"

    def find_unmarked(self):
        text = self.old
        for pattern in (TABLE, CODE, MARKED, GIVEN):
            text = pattern.sub(blank, text)
        found = [(match.start(), match.group()) for match in QUANTITY.finditer(text)]
        for table in BY_HAND.finditer(text):
            found += [(table.start() + cell.start(), cell.group()) for cell in CELL.finditer(table.group())]
        for position, what in found:
            self.complain(position, f"{what.strip()}: nothing in bench/data says so: put its query behind it")

    def find_wrong_marks(self):
        """Measured numbers that are marked as chosen; seen ones without a day; published ones without a source."""
        head = self.old.partition("\n## ")[0]
        for match in MARK.finditer(self.old):
            number, _, mark = match.groups()
            section, paragraph = self.around(match.start(), "\n## "), self.around(match.start(), "\n\n")
            if mark == "given" and not is_round(number):
                self.complain(match.start(), f"{number}: nobody chose this: put a query behind it, or <!--seen-->")
            if mark == "given" and re.search(r"(?:\bn =|\bp\d+) ?$", self.old[: match.start()]):
                self.complain(match.start(), f"{number}: this was counted: put a query behind it, or <!--seen-->")
            if mark == "seen" and not WHEN.search(section + head):
                self.complain(match.start(), f"{number}: nobody knows when this was seen: add a day or a version")
            if mark == "published" and not SOURCE.search(paragraph):
                self.complain(match.start(), f"{number}: nobody knows who published this")

    def around(self, position, end):
        text = re.sub(r"<!--[^<>]*:[^<>]*-->", blank, self.old)
        start = text.rfind(end, 0, position)
        stop = text.find(end, position)
        return text[max(start, 0) : stop if stop >= 0 else len(text)]

    def find_other_units(self):
        """A unit behind the query that is not the query's own."""
        for match in MARKED.finditer(self.old):
            following = FOLLOWING.match(self.old, match.end())
            words = match.group(2).replace("us", "µs").replace("+%", "%").split()
            own = [word for word in words if re.fullmatch(r"[nµm]?s|%", word)]
            if following and own and following.group(1).replace("us", "µs") != own[-1]:
                self.complain(match.start(), f"{match.group(2)}: its unit is {own[-1]}, not {following.group(1)}")

    def find_old_pictures(self):
        for match in PICTURE.finditer(self.old):
            path, machine, name = match.groups()
            try:
                with open(os.path.join(os.path.dirname(self.path), path), encoding="utf-8") as file:
                    drawn_from = re.search(r"data: (\w+)", file.read())
                if not drawn_from or drawn_from.group(1) != self.data.table(machine, name).digest:
                    self.complain(match.start(), f"{path}: drawn from other data: make figures draws it anew")
            except (OSError, queries.Wrong) as error:
                self.complain(match.start(), f"{path}: {error}")

    def compare(self, is_written):
        new = self.old if is_written else self.new()
        for number, (old, wanted) in enumerate(zip(self.old.split("\n"), new.split("\n")), 1):
            if old != wanted:
                self.faults.append(f"{self.name}:{number}: make figures would write: {wanted.strip()}")
        if self.old.count("\n") != new.count("\n"):
            self.faults.append(f"{self.name}: a table has another number of lines")
        self.find_unmarked()
        self.find_wrong_marks()
        self.find_other_units()
        self.find_old_pictures()

    def write(self):
        new = self.new()
        if new != self.old:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(new)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def digest(texts):
    """Of all that the numbers come from, and of the numbers."""
    found = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "data", "*", "*")) + glob.glob(os.path.join(HERE, "*.py"))):
        found.update(os.path.relpath(path, ROOT).encode() + read(path))
    for path in texts:
        text = read(path).decode()
        found.update(repr((MARKED.findall(text), TABLE.findall(text))).encode())
    return found.hexdigest() + "\n"


def main(arguments):
    gc.disable()  # it would look at millions of rows again and again, and nothing here is a circle
    check = "--check" in arguments
    directory = os.path.join(ROOT, "bench", "data")
    if "--data" in arguments:
        at = arguments.index("--data")
        directory = arguments[at + 1]
        del arguments[at : at + 2]
    texts = [name for name in arguments if name != "--check"]
    is_all = not texts and "--data" not in sys.argv
    texts = texts or [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))]
    is_written = is_all and os.path.exists(WRITTEN) and read(WRITTEN).decode() == digest(texts)
    data = queries.Data(directory)
    faults = []
    for name in texts:
        text = Text(name, data)
        text.compare(is_written) if check else text.write()
        faults += text.faults
    if is_all and not check and not faults:
        with open(WRITTEN, "w", encoding="utf-8") as file:
            file.write(digest(texts))
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
