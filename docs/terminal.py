#!/usr/bin/env python3
"""Draws a terminal in which a command has run, on the simulated GPU: docs/top.svg, docs/topology.svg and docs/demo.svg.

usage: docs/terminal.py top|topology|demo >docs/top.svg      (needs tmux, and `make demo` before; BUILD is the build directory)
"""

import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
SIDE_BY_SIDE = "nvtaskset -t 0-23 answer 60 busy & nvtaskset -t 24-57 train 60 busy"
SCENES = {  # programs, the command, its columns and rows, and after how many seconds it is drawn
    "top": (SIDE_BY_SIDE, "nvtaskset top", 80, 8, 8.6),
    "topology": (SIDE_BY_SIDE, "nvtaskset -T", 80, 24, 3),
    "demo": ("", "demo/run", 80, 80, 18.5),
}

# xterm's sixteen colours, a little softer, and the size of a place.
COLORS = "#1e1e1e #d16969 #6a9955 #d7ba7d #569cd6 #c586c0 #4ec9b0 #d4d4d4".split()
COLORS += "#808080 #f44747 #b5cea8 #dcdcaa #9cdcfe #d7a0d7 #9cdcdc #ffffff".split()
INK, PAPER = "#d4d4d4", "#1e1e1e"
WIDTH, HEIGHT, SIZE, BORDER = 8.4, 18, 14, 12


def color(number):
    if number < 16:
        return COLORS[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return f"#{levels[red]:02x}{levels[green]:02x}{levels[blue]:02x}"


class Style:
    def __init__(self):
        self.ink, self.paper, self.bold, self.dim, self.reverse = INK, PAPER, False, False, False

    def change(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[code], True)
            elif code in (38, 48):
                codes.pop(0)  # 5: one of 256
                setattr(self, "ink" if code == 38 else "paper", color(codes.pop(0)))
            elif code in (39, 49):
                setattr(self, "ink" if code == 39 else "paper", INK if code == 39 else PAPER)
            elif 30 <= code <= 47 or 90 <= code <= 107:
                number = code % 10 + (8 if code >= 90 else 0)
                setattr(self, "ink" if code // 10 in (3, 9) else "paper", color(number))

    def shown(self):
        ink, paper = (self.paper, self.ink) if self.reverse else (self.ink, self.paper)
        return "#808080" if self.dim else ink, paper, self.bold


def runs(line):
    """(column, text, style) for each piece of a line that looks alike."""
    style, column = Style(), 0
    for text, escape, codes in re.findall(r"([^\033]*)(\033\[([\d;]*)m)?", line):
        if text:
            yield column, text, style.shown()
        column += len(text)
        if escape:
            style.change(codes)


def draw(lines, columns):
    width, height = columns * WIDTH + 2 * BORDER, len(lines) * HEIGHT + 2 * BORDER
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    yield f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>'
    yield f'<g font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}">'
    for row, line in enumerate(lines):
        for column, text, (ink, paper, bold) in runs(line):
            x, y, length = BORDER + column * WIDTH, BORDER + row * HEIGHT, len(text) * WIDTH
            if paper != PAPER:
                yield f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{HEIGHT}" fill="{paper}"/>'
            weight = ' font-weight="bold"' if bold else ""
            # Each word begins at its place, whatever the font's width.
            for word in re.finditer(r"\S+(?: \S+)*", text):
                at, size = x + word.start() * WIDTH, len(word.group()) * WIDTH
                escaped = word.group().replace("&", "&amp;").replace("<", "&lt;")
                yield f'<text x="{at:.1f}" y="{y + 13}" textLength="{size:.1f}" fill="{ink}"{weight}>{escaped}</text>'
    yield "</g>"
    yield "</svg>"


def tmux(*arguments):
    command = ["tmux", "-L", f"drawing{os.getpid()}", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def use_simulated_gpu(work):
    """With programs that `work` has, which another user may read."""
    os.chmod(work, 0o755)
    topology = os.path.join(ROOT, "share", "topologies", "h200.txt")
    paths = [BUILD, work, os.path.join(ROOT, "tests", "fake-mps"), os.environ["PATH"]]
    driver = os.path.join(BUILD, "sim", "libcuda.so.1")
    os.environ.update(PATH=":".join(paths), XDG_CACHE_HOME=work, CUDA_MPS_PIPE_DIRECTORY=os.path.join(work, "mps"))
    os.environ.update(BUILD=BUILD, FAKE_MPS_LINGER="60", NVTASKSET_TOPOLOGY=topology, NVTASKSET_DRIVER=driver)
    os.chdir(ROOT)


def capture(scene, work):
    programs, command, columns, rows, seconds = SCENES[scene]
    use_simulated_gpu(work)
    for name in ("answer", "train"):
        os.symlink(os.path.join(BUILD, "demo", "where"), os.path.join(work, name))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    group = subprocess.Popen(["sh", "-c", programs + "; wait"], start_new_session=True, **quiet)
    time.sleep(2)
    shown = f"clear; printf '$ %s\\n' '{command}'; {command}; sleep 60" if scene == "topology" else f"{command}; sleep 60"
    tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "env TERM=screen-256color sh -c " + repr(shown))
    time.sleep(seconds)
    lines = tmux("capture-pane", "-e", "-p").partition("\nMore: ")[0].rstrip("\n").split("\n")
    tmux("kill-server")
    os.killpg(group.pid, 15)
    return lines, columns


def main(arguments):
    if len(arguments) != 1 or arguments[0] not in SCENES:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        print("\n".join(draw(*capture(arguments[0], work))))


if __name__ == "__main__":
    main(sys.argv[1:])
