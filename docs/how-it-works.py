#!/usr/bin/env python3
"""Draws docs/how-it-works.svg, the picture in README: the way of a kernel from a program to its TPCs.

usage: docs/how-it-works.py >docs/how-it-works.svg
"""

WIDTH, HEIGHT = 960, 400
INK, GREY, PAPER = "#1f2328", "#6e7781", "#ffffff"
OURS, OURS_LIGHT = "#2f6f3e", "#e3f1e5"
THEIRS_LIGHT, EDGE = "#f3f4f6", "#c4c9cf"
FIRST, SECOND, FREE = "#3b78c4", "#d9822b", "#e5e7ea"

drawn = []


def draw(line):
    drawn.append(line)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def write(x, y, text, size=14, color=INK, weight="normal", anchor="start", family="sans-serif"):
    draw(
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}" font-weight="{weight}" fill="{color}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def box(x, y, width, height, fill, edge, title, *lines, title_color=INK):
    draw(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{edge}" stroke-width="1.5"/>')
    write(x + 12, y + 22, title, weight="bold", color=title_color)
    for number, line in enumerate(lines):
        write(x + 12, y + 41 + 18 * number, line, size=13, color=GREY)


def arrow(points, color=INK, dashed=False):
    path = "M " + " L ".join(f"{x} {y}" for x, y in points)
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    name = "ours" if color == OURS else "ink"
    draw(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dashes} marker-end="url(#{name})"/>')


def step(x, y, number):
    draw(f'<circle cx="{x}" cy="{y}" r="11" fill="{INK}"/>')
    write(x, y + 5, str(number), size=13, color=PAPER, weight="bold", anchor="middle")


def arrow_head(name, color):
    draw(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M 0 0 L 10 5 L 0 10 z" fill="{color}"/></marker>'
    )


def gpu(x, y):
    """Six GPCs of eight TPCs: some are the first program's, some another's, some free."""
    box(x, y, 246, 262, PAPER, EDGE, "GPU")
    for gpc in range(6):
        write(x + 12, y + 58 + 34 * gpc, f"GPC {gpc}", size=11, color=GREY)
        for tpc in range(8):
            color = FIRST if gpc < 3 else SECOND if gpc == 3 or (gpc == 4 and tpc < 4) else FREE
            draw(f'<rect x="{x + 56 + 23 * tpc}" y="{y + 42 + 34 * gpc}" width="19" height="24" rx="3" fill="{color}"/>')
    for place, (color, text) in enumerate(((FIRST, "this program"), (SECOND, "another"), (FREE, "free"))):
        left = x + (12, 122, 198)[place]
        draw(f'<rect x="{left}" y="{y + 243}" width="11" height="11" rx="2" fill="{color}"/>')
        write(left + 16, y + 253, text, size=12, color=GREY)


def picture():
    draw(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="How nvtaskset works">'
    )
    draw("<defs>")
    arrow_head("ink", INK)
    arrow_head("ours", OURS)
    draw("</defs>")
    draw(f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{PAPER}"/>')

    draw(f'<rect x="16" y="16" width="650" height="292" rx="8" fill="none" stroke="{EDGE}" stroke-width="1.5" stroke-dasharray="2 3"/>')
    write(30, 296, "process 1234", size=13, color=GREY)
    box(30, 34, 176, 70, THEIRS_LIGHT, EDGE, "Your program", "unmodified;", "launches a kernel")
    box(244, 34, 196, 70, THEIRS_LIGHT, EDGE, "NVIDIA's driver library", "describes the launch", "to the GPU")
    box(478, 34, 176, 70, PAPER, EDGE, "Launch descriptor", "grid, code, …, and which", "TPCs are disabled")
    box(360, 150, 196, 70, OURS_LIGHT, OURS, "nvtaskset's library", "is in the process under", "the name libcuda.so.1", title_color=OURS)
    box(360, 246, 196, 52, OURS_LIGHT, OURS, "Shared memory", "the partition: TPCs 0-23", title_color=OURS)
    box(340, 328, 236, 56, OURS_LIGHT, OURS, "nvtaskset -tp 0-23 1234", "changes it, at any time", title_color=OURS)
    gpu(696, 34)

    arrow([(206, 69), (242, 69)])
    step(224, 88, 1)
    arrow([(410, 104), (410, 148)])
    step(391, 126, 2)
    arrow([(520, 150), (520, 106)], color=OURS)
    step(540, 126, 3)
    arrow([(654, 69), (694, 69)])
    step(674, 88, 4)
    arrow([(458, 246), (458, 222)], color=OURS)
    arrow([(458, 328), (458, 300)], color=OURS)

    steps = ("the program calls the driver,", "which calls nvtaskset's library", "to set the mask of TPCs;", "the kernel runs on these alone")
    for number, text in enumerate(steps):
        write(34, 150 + 24 * number, str(number + 1), size=13, weight="bold")
        write(50, 150 + 24 * number, text, size=13)
    write(696, 322, "Each cell is a TPC, two streaming", size=13, color=GREY)
    write(696, 340, "multiprocessors (SMs). Several TPCs", size=13, color=GREY)
    write(696, 358, "form a GPC.", size=13, color=GREY)
    draw("</svg>")
    return "\n".join(drawn)


print(picture())
