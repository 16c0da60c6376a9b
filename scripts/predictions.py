#!/usr/bin/env python3
"""Tables about compare files of real programs, for scripts/predictions.sh.

predictions.py --about FILE CSV...   the page, in Markdown
predictions.py --draws CSV           the draw groups that the tables count, as CSV
"""
import csv
import os
import statistics
import sys

METHODS = ["bb", "ts", "ratio", "sequence"]
SHADERS = ["profiled", "mars"]
MODELS = [f"{method}+{shader}" for method in METHODS for shader in SHADERS]
THESIS = ["build", "shading", "texture", "es2gears", "speedometer"]
# Groups below are not measured well, and not learnt from.
SHORT_US = 20.0
# The first frames of a run, in which nothing has been learnt, are shown apart.
FIRST_FRAMES = 10
# A scene is steady if groups at the same place of consecutive frames differ by no more than this, on average.
STEADY = 0.05


def counted(row):
    return row["kind"] == "draw" and row["disturbed"] == "no" and float(row["measured_us"]) >= SHORT_US


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row["kind"] == "draw"], rows


def median(values):
    values = list(values)
    return statistics.median(values) if values else 0.0


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def percent(share, digits=1):
    return "–" if share != share else f"{100 * share:.{digits}f} %"


def us(value):
    return "–" if value != value else f"{value:.1f}"


class Program:
    def __init__(self, path):
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.draws, self.rows = read(path)
        good = [row for row in self.draws if counted(row)]
        frames = [int(row["frame"]) for row in good]
        first = min(frames) + FIRST_FRAMES if frames else 0
        self.first = [row for row in good if int(row["frame"]) < first]
        self.later = [row for row in good if int(row["frame"]) >= first]
        self.models = [model for model in MODELS if f"pred_{model}_us" in (self.rows[0] if self.rows else {})]

    def measured(self):
        return mean(float(row["measured_us"]) for row in self.later)

    def change(self):
        """How far groups differ from those at the same place of the frame before."""
        before, changes, place = {}, [], {}
        for row in self.later:
            key = (row["context"], row["frame"])
            at = (row["context"], place.setdefault(key, 0))
            place[key] += 1
            value = float(row["measured_us"])
            if at in before:
                changes.append(abs(value - before[at]) / value)
            before[at] = value
        return mean(changes)

    def ape(self, column, rows=None):
        rows = self.later if rows is None else rows
        return mean(abs(float(row[column]) - float(row["measured_us"])) / float(row["measured_us"]) for row in rows)

    def mae(self, column):
        return mean(abs(float(row[column]) - float(row["measured_us"])) for row in self.later)

    def share(self, test):
        return mean(1.0 if test(row) else 0.0 for row in self.later)

    def under(self, column):
        return self.share(lambda row: float(row["measured_us"]) > float(row[column]))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def page(about, paths):
    programs = [Program(path) for path in paths]
    programs = [program for program in programs if program.later and program.models]
    thesis = [program for program in programs if program.name in THESIS]
    print("# Predictions of real programs\n")
    print("**Question.** How well do the models predict unmodified programs, before and after they have learnt?\n")
    print("**Method.**", open(about).read().strip())
    print(f"""Each program runs under `takt run --compare`; constants and shader models are those of `takt profile`, `takt profile --programs` and `takt train` on the same machine.
Figures are of draw groups of {SHORT_US:.0f} µs and more that were not disturbed; the first {FIRST_FRAMES} frames are shown apart.
A program is steady if its groups differ by at most {percent(STEADY, 0)} from those at the same place of the frame before, on average.
""")
    print("## How large errors are (the thesis's table 3.8)\n")
    print("Mean absolute error in µs; OA is online adaption.\n")
    rows = []
    for kind, title in [("raw", "no"), ("pred", "yes")]:
        for program in thesis:
            cells = [us(program.mae(f"{kind}_{model}_us")) for model in program.models]
            rows.append([f"`{program.name}`", title, us(program.measured())] + cells)
    table(["program", "OA", "mean time"] + MODELS, rows)
    print("## How often errors are large (table 3.7)\n")
    print("Share of groups whose error with adaption is beyond a share of the measured time; below 0 too little was predicted.\n")
    rows = []
    for program in thesis:
        for model in program.models:
            error = lambda row: float(row[f"pred_{model}_us"]) / float(row["measured_us"]) - 1
            cells = [percent(program.share(lambda row: error(row) < -0.2), 2), percent(program.share(lambda row: error(row) < -0.1), 2)]
            cells += [percent(program.share(lambda row: error(row) > 0.1), 2), percent(program.share(lambda row: error(row) > 0.2), 2)]
            rows.append([f"`{program.name}`", model] + cells)
    table(["program", "model", "< −20 %", "< −10 %", "> 10 %", "> 20 %"], rows)
    print("Measured fragments against boxes (table 3.6) are in [fragments](fragments.md), counted by a reference rasteriser.\n")
    for program in thesis:
        print(f"![Cumulative errors of {program.name}](plots/real-{program.name}.svg)\n")
    print("## Each model\n")
    rows = []
    for model in MODELS:
        having = [program for program in programs if model in program.models]
        if not having:
            continue
        steady = [program for program in having if program.change() <= STEADY]
        mape = [program.ape(f"pred_{model}_us") for program in steady]
        rows.append([
            f"`{model}`",
            percent(median(program.ape(f"raw_{model}_us", program.first[:1]) for program in having)),
            percent(median(program.ape(f"pred_{model}_us", program.first) for program in having)),
            percent(mean(mape)),
            f"{sum(1 for value in mape if value <= 0.05)} of {len(mape)}",
            percent(mean(program.ape(f"pred_{model}_us") for program in having)),
            percent(mean(program.under(f"pred_{model}_us") for program in having)),
            percent(mean(program.under(f"upper_{model}_us") for program in having), 2),
        ])
    table(["model", "first frame, median", f"first {FIRST_FRAMES} frames, median", "MAPE, steady", "steady within 5 %", "MAPE, all", "under-predicted", "above upper"], rows)
    within, share = rows[0][4], rows[0][7]
    print(f"**Verdict.** Once they have learnt, {within} steady programs are predicted within 5 % by the model that the "
          f"daemon is asked with unless told otherwise, and {share} of groups exceed the upper estimate, on average. "
          "First frames are far off, whatever the model: drivers compile in them. "
          "What is not steady by the rule above is as far off as it differs from frame to frame.\n")
    print("## Each program\n")
    best = "bb+mars"
    rows = []
    for program in programs:
        hit = mean(1.0 if row["history_hit"] == "yes" else 0.0 for row in program.later)
        change = program.change()
        rows.append([
            f"`{program.name}`",
            str(len(program.later)),
            percent(1 - (len(program.first) + len(program.later)) / max(1, len(program.draws))),
            us(program.measured()),
            percent(change) + (" steady" if change <= STEADY else ""),
            percent(program.ape(f"raw_{best}_us", program.first[:1])),
            percent(program.ape(f"pred_{best}_us")),
            percent(program.ape("pred_ts+mars_us")),
            percent(program.under(f"pred_{best}_us")),
            percent(program.under(f"upper_{best}_us"), 2),
            percent(hit),
            percent(program.ape("pred_history_us")),
        ])
    table(["program", "groups", "left out", "mean µs", "frame to frame", f"first frame, {best}", f"MAPE {best}", "MAPE ts+mars", "under", "above upper", "history hits", "MAPE history"], rows)


def draws(path):
    good = [row for row in read(path)[0] if counted(row)]
    if good:
        writer = csv.DictWriter(sys.stdout, good[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(good)


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "--about":
        page(arguments[1], arguments[2:])
    elif len(arguments) == 2 and arguments[0] == "--draws":
        draws(arguments[1])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
