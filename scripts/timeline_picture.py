#!/usr/bin/env python3
"""Draws docs/images/timeline.svg: the apps of a car in order of arrival, and under Takt.

    scripts/timeline_picture.py [--takt target/release/takt] [--out FILE] [--check]

Both halves are recorded runs of `takt sim examples/car.toml`, so the picture changes only with the
scenario or the scheduler. A curtain that opens from left to right makes it move, which needs no
script and therefore works where pages show SVG as images. --check compares instead of writing.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO = "examples/car.toml"
# Six refreshes, after everything has settled.
FIRST_NS, PERIOD_NS, PERIODS = 2_000_000_000, 1_000_000_000 / 60, 6
SECONDS = 9
LEFT, WIDTH, ROW, HEAD, GAP = 112, 660, 22, 30, 22
COLOURS = ["#1f6feb", "#0aa5b5", "#7a3ff2", "#2da44e", "#bf8700", "#8c959f"]
GOOD, BAD, INK, FAINT = "#1a7f37", "#cf222e", "#1f2328", "#d0d7de"


def simulate(takt, policy):
    """Records of one run, as dictionaries."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "run.jsonl"
        command = [takt, "sim", SCENARIO, "--policy", policy, "--trace", str(log)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in log.read_text().splitlines()]


def place(at_ns):
    """Horizontal position of a time, within the window."""
    share = (at_ns - FIRST_NS) / (PERIODS * PERIOD_NS)
    return LEFT + WIDTH * min(max(share, 0.0), 1.0)


def deadlines(records):
    """Every deadline of apps with reserved time in the window: app, time, and whether it was met."""
    met = {(r["app"], r["deadline_ns"]) for r in records if r["record"] == "frame-done" and r["met"]}
    for join in (r for r in records if r["record"] == "join" and r["etpf_ns"]):
        app, stride = join["app"], join["stride"]
        for refresh in range(round(FIRST_NS / PERIOD_NS) + 1, round(FIRST_NS / PERIOD_NS) + PERIODS + 1):
            at_ns = refresh * PERIOD_NS
            if (refresh - join["phase"]) % stride == 0:
                yield app, at_ns, any(a == app and abs(t - at_ns) < 1000 for a, t in met)


def blocks(records, top):
    """One rectangle for each stretch that the GPU works for an app."""
    for record in records:
        if record["record"] != "gpu-finished":
            continue
        start, end = place(record["started_ns"]), place(record["at_ns"])
        if end <= start:
            continue
        app = record["app"]
        y = top + ROW * app + 4
        fill = COLOURS[app % len(COLOURS)]
        width = max(end - start - 0.4, 0.4)
        yield f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 8}" fill="{fill}"/>'


def verdicts(records, top):
    """A tick at each deadline that was met, a cross at each that was missed."""
    for app, at_ns, met in deadlines(records):
        x, y = place(at_ns) - 6, top + ROW * app + ROW / 2
        path = "m-3 0 2.4 3 4-7" if met else "m-3-3 6 6m0-6-6 6"
        yield f'<path d="M{x:.1f} {y}{path}" stroke="{GOOD if met else BAD}"/>'


def panel(title, records, top):
    """Rows of one run: fixed parts first, then what the curtain hides."""
    names = [app["name"] for app in records[0]["apps"]]
    met = [met for _, _, met in deadlines(records)]
    late, total = met.count(False), len(met)
    bottom = top + HEAD + ROW * len(names)
    colour = BAD if late else GOOD
    fixed = [
        f'<text x="16" y="{top + 19}" class="title">{title}</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + 19}" text-anchor="end" fill="{colour}" class="title">'
        f"{late} of {total} deadlines missed</text>",
    ]
    for index, name in enumerate(names):
        y = top + HEAD + ROW * index + 15
        fixed.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{name}</text>')
    for period in range(PERIODS + 1):
        x = place(FIRST_NS + period * PERIOD_NS)
        fixed.append(f'<path d="M{x:.1f} {top + HEAD}V{bottom}" stroke="{FAINT}"/>')
    moving = [*blocks(records, top + HEAD), '<g fill="none" stroke-width="2">']
    moving += [*verdicts(records, top + HEAD), "</g>"]
    return fixed, moving, bottom


def picture(takt):
    plain, timed = simulate(takt, "fifo"), simulate(takt, "timeline")
    first = panel("GPU work in order of arrival", plain, 6)
    second = panel("The same apps under Takt", timed, first[2] + GAP)
    height = second[2] + 34
    width = LEFT + WIDTH + 20
    foot = second[2] + 22
    style = f"""
text {{ font: 13px sans-serif; fill: {INK}; }}
.title {{ font-weight: bold; font-size: 14px; }}
text[fill="{BAD}"] {{ fill: {BAD}; }} text[fill="{GOOD}"] {{ fill: {GOOD}; }}
.curtain {{ animation: open {SECONDS}s linear infinite; transform-origin: {LEFT}px 0; }}
.head {{ animation: move {SECONDS}s linear infinite; }}
@keyframes open {{ 0% {{ transform: scaleX(0); }} 80%, 100% {{ transform: scaleX(1); }} }}
@keyframes move {{ 0% {{ transform: translateX(-{WIDTH}px); }} 80%, 100% {{ transform: none; }} }}"""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<title>Six apps on one GPU for 100 ms, in order of arrival and under Takt</title>",
        f"<style>{style}\n</style>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<clipPath id="c"><rect class="curtain" x="{LEFT}" y="0" width="{WIDTH}" height="{height}"/></clipPath>',
        *first[0],
        *second[0],
        '<g clip-path="url(#c)">',
        *first[1],
        *second[1],
        "</g>",
        f'<path class="head" d="M{LEFT + WIDTH} {HEAD}V{second[2]}" stroke="{INK}"/>',
        f'<text x="{LEFT}" y="{foot}">Grey lines: refreshes of a 60 Hz display. '
        f'<tspan fill="{GOOD}">✓</tspan> frame in time, <tspan fill="{BAD}">×</tspan> deadline missed '
        "(apps with reserved time).</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--takt", default=str(ROOT / "target/release/takt"))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/images/timeline.svg")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    drawn = picture(str(pathlib.Path(options.takt).resolve()))
    if not options.check:
        options.out.write_text(drawn)
    elif options.out.read_text() != drawn:
        sys.exit(f"{options.out} is not what {SCENARIO} gives now: run {sys.argv[0]} without --check")


if __name__ == "__main__":
    main()
