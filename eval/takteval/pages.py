"""Pages for docs/experiments: an overview with the verdicts, and a page per experiment."""

from takteval import floods, kinds, mixed, pages_floods, pages_kinds, pages_mixed, pages_others, pages_reality
from takteval.markdown import SHOWN, stolen, table

PAGES = {
    "kinds": (pages_kinds.page, "An app on time beside every kind of flood"),
    "floods": (pages_floods.page, "An app on time beside floods"),
    "mixed": (pages_mixed.page, "Seventeen live apps"),
    "overhead": (pages_others.overhead, "What Takt costs"),
    "prediction": (pages_others.prediction, "Predictions"),
    "reality": (pages_reality.page, "The simulator against reality"),
}
# Figures in one line.
BRIEFS = {"kinds": kinds.Experiment.brief, "floods": floods.Experiment.brief, "mixed": mixed.Experiment.brief}


class Report:
    def __init__(self, results, name, out, takt):
        self.results, self.name, self.out, self.takt = results, name, out, takt
        self.verdicts = []

    def write(self):
        """Writes all pages; their paths."""
        (self.out / "plots").mkdir(parents=True, exist_ok=True)
        links = []
        for name, (page, title) in PAGES.items():
            body = page(self)
            if not body:
                continue
            path = self.out / f"{self.name}-{name}.md"
            text = "\n\n".join(part for part in [f"# {title}, on {self.results.gpu()}", *body,
                                              f"[Commands, commits and machine]({self.name}.md#machine)."] if part)
            path.write_text(text + "\n")
            links.append(f"- [{title}]({path.name})")
            yield path
        yield self.overview(links)

    def overview(self, links):
        causes = [f"- **{what}**: {cause}" for what, _, _, _, cause in self.verdicts if cause]
        lost = [[name, point.get("error", point.get("skipped", "")).strip().splitlines()[-1][:300]]
                for name, point in sorted(self.results.points.items()) if "figures" not in point]
        parts = [f"# Takt on {self.results.gpu()}", "Claims, and what the measurements found.",
                 table(["what", "wanted", "found", "verdict"], [list(row[:4]) for row in self.verdicts]),
                 "\n".join(["Causes, and what would help:", "", *causes]) if causes else "", "## Pages", "\n".join(links),
                 self.environment(), self.how()]
        if lost:
            parts += [f"## Points without figures ({len(lost)})", table(["point", "why"], lost)]
        parts += self.superseded()
        path = self.out / f"{self.name}.md"
        path.write_text("\n\n".join(part for part in parts if part) + "\n")
        return path

    def superseded(self):
        """Earlier measurements of what must be shown, with older code or on other machines."""
        rows = [[point["point"], f"`{self.results.runs[point['run']]['environment']['commit']}`",
                 BRIEFS[point["experiment"]](point["figures"]), stolen(point["figures"])]
                for point in self.results.superseded if point["experiment"] in BRIEFS]
        return ["## Superseded measurements", "The same points in other runs, mostly with older code. A host that takes processors away can only do harm: of "
                "what must be shown, the last run counts in which it stole less than a tenth of a processor, or in which nothing "
                "was late all the same.",
                table(["point", "commit", "found", "stolen"], rows)] if rows else []

    def environment(self):
        facts = self.results.runs[0]["environment"]
        rows = [[key.replace("_", " "), str(facts[key])] for key in
                ("renderer", "driver", "nvidia_smi", "kernel", "system", "cpu", "cores", "real_time_rights", "extra_env")
                if facts.get(key)]
        return "## Machine\n\n" + table(["", ""], rows)

    def how(self):
        """Where figures come from."""
        told = lambda value: ",".join(map(str, value)) if isinstance(value, list) else value
        option = lambda run, name: f" --{name} {told(run['arguments'].get(name))}" * bool(run["arguments"].get(name))
        runs = [[f"`eval/run --budget {run['arguments']['budget']:.0f}"
                + "".join(option(run, name) for name in ("device", "only", "skip", "seconds", "config", "calm", "env", "like", "done"))
                + " --awake" * bool(run["arguments"].get("awake"))
                + "`", f"`{run['environment']['commit']}`", f"{run['seconds']:.0f} s" + stood_still(run)]
                for run in self.results.runs]
        awake = any(run["arguments"].get("awake") for run in self.results.runs)
        copied = sorted({self.results.commit(point) for point in self.results.points.values() if point.get("source")})
        return ("Measured by [eval/run](../evaluation.md), on virtual machines of that kind:\n\n" +
                table(["command", "commit", "took"], runs) + "\n\n" +
                bool(copied) * (table(["figures from earlier pages, rounded as there"], [[commit] for commit in copied]) + "\n\n") +
                awake * "With `--awake`, processors of the virtual machine were kept from halting for long, in all modes. " +
                "`eval/report` wrote the pages; \"?\" stands for points without a measurement.")

    def plot(self, name, svg):
        """Keeps a plot; the line that shows it."""
        if svg is None:
            return ""
        file = f"plots/{self.name}-{name}.svg"
        (self.out / file).write_text(svg)
        return f"![{name}]({file})"

    def verdict(self, what, wanted, found, good, cause=""):
        """Notes whether something was shown; `good` is none where it was not measured, and may be a word of its own.
        `cause` says why not."""
        word = good if isinstance(good, str) else "not measured" if good is None else SHOWN if good else "**missed**"
        self.verdicts.append((what, wanted, found, word, cause))


def stood_still(run):
    """How calm the processors of a run's machine were, if it has looked."""
    stalls = run["environment"].get("processor_stalls_ms")
    return "" if not stalls else (f" (a processor stood still {stalls['count']} times in {stalls['seconds']:g} s, for up to "
                                  f"{stalls['longest']:.1f} ms)")
