"""Tables, numbers and verdicts for pages."""

SHOWN, IN_PART = "shown", "in part"


def table(heads, rows):
    """A table; nothing if it has no rows."""
    if not rows:
        return ""
    line = lambda cells: "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
    return "\n".join([line(heads), line(["---"] * len(heads)), *map(line, rows)])


def number(value, digits=2, unit=""):
    """A number, or "?" where there is none."""
    return "?" if value is None else f"{value:.{digits}f}{unit}"


def stolen_percent(figures):
    """The time that the host took from this machine's processors, where it was measured."""
    return ((figures.get("monitor") or {}).get("processors") or {}).get("stolen_percent")


def stolen(figures):
    return number(stolen_percent(figures), 0, " %")


def in_one_run(results, names, heads, row):
    """A table of points as one run found them, which `row` makes of a name and its point."""
    found = results.together(set(names))
    return ["All of them in turn, in the last run that measured all for 20 s:",
            table(heads, [row(name, found[name]) for name in names])] if found else []
