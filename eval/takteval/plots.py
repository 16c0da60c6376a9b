"""Plots as SVG, in the colours of Takt's other plots."""

import math
from html import escape

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d00", "#6a51a3", "#7f8c8d")
WIDTH, HEIGHT = 760, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 56
# From one line of a legend to the next.
LINE = 18


def bars(title, groups, series, unit, *, log=False, line=None):
    """Bars side by side: `series` gives for each name a value, or none, per group; `line` is a value and what it is called."""
    limit, called = line or (None, "")
    shown = [value for values in series.values() for value in values if value]
    if not shown:
        return None
    top = max([*shown, limit or 0]) * 1.1
    low = min(shown) / 2 if log else 0.0
    height = scale(low, top, log)
    slot = (WIDTH - LEFT - RIGHT) / len(groups)
    # Long names below narrow bars are tilted, and need room.
    tilted = max(map(len, groups)) * 7 > slot
    drop = 70 if tilted else 0
    names, below = legend(series, drop)
    parts = [frame(title, unit, low, top, log), names]
    width = slot * 0.8 / len(series)
    for at, group in enumerate(groups):
        middle = LEFT + slot * (at + 0.5)
        parts.append(text(middle, HEIGHT - BOTTOM + 16, group, "end" if tilted else "middle", tilted=tilted))
        for number, (name, values) in enumerate(series.items()):
            left = middle + (number - len(series) / 2) * width
            if values[at] is None:
                parts.append(text(left + width / 2, HEIGHT - BOTTOM - 4, "?", "middle"))
                continue
            up = height(max(values[at], low))
            parts.append(f'<rect x="{left:.1f}" y="{HEIGHT - BOTTOM - up:.1f}" width="{width * 0.92:.1f}" '
                         f'height="{max(up, 0.5):.1f}" fill="{COLOURS[number % len(COLOURS)]}">'
                         f"<title>{escape(f'{group}, {name}: {values[at]:g} {unit}')}</title></rect>")
    if limit:
        y = HEIGHT - BOTTOM - height(limit)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#c00" stroke-dasharray="4 3"/>')
        parts.append(f'<g fill="#c00">{text(WIDTH - RIGHT, TOP - 8, called, "end")}</g>')
    # Tilted names end below their bars, and begin left of the axis where they are long.
    begins = [LEFT + slot * (at + 0.5) - 7 * len(group) for at, group in enumerate(groups)] if tilted else []
    return wrap(parts, drop + below, max(0, round(-min(begins, default=0))))


def curves(title, series, x_unit):
    """Cumulative shares of values, on a logarithmic axis."""
    shown = {name: sorted(values) for name, values in series.items() if values}
    if not shown:
        return None
    low = min(values[0] for values in shown.values()) / 1.2
    top = max(values[-1] for values in shown.values()) * 1.2
    names, below = legend(shown)
    parts = [frame(title, "share of frames, %", 0, 100, False), names]
    across = lambda value: LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / math.log(top / low)
    up = scale(0, 100, False)
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(top)) + 1):
        for step in (1, 2, 5):
            value = step * 10.0 ** power
            if low <= value <= top:
                parts.append(text(across(value), HEIGHT - BOTTOM + 16, f"{value:g}", "middle"))
    parts.append(text((WIDTH + LEFT) / 2, HEIGHT - BOTTOM + 34, x_unit, "middle"))
    for number, values in enumerate(shown.values()):
        every = max(1, len(values) // 400)
        points = [(values[at], 100 * (at + 1) / len(values)) for at in [*range(0, len(values), every), len(values) - 1]]
        path = " ".join(f"{across(value):.1f},{HEIGHT - BOTTOM - up(share):.1f}" for value, share in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke-width="1.8" '
                     f'stroke="{COLOURS[number % len(COLOURS)]}"/>')
    return wrap(parts, below)


def scale(low, top, log):
    """Height in pixels of a value."""
    tall = HEIGHT - TOP - BOTTOM
    if log:
        return lambda value: tall * math.log(value / low) / math.log(top / low)
    return lambda value: tall * (value - low) / (top - low)


def frame(title, unit, low, top, log):
    """Title, axis and its marks."""
    height = scale(low, top, log)
    parts = [text(LEFT, 16, title, "start", bold=True), text(8, TOP - 8, unit, "start")]
    for value in marks(low, top, log):
        y = HEIGHT - BOTTOM - height(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y + 4, f"{value:g}", "end"))
    return "".join(parts)


def marks(low, top, log):
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(top)) + 1)
        return [step * 10.0 ** power for power in powers for step in (1, 2, 5) if low <= step * 10.0 ** power <= top]
    step = 10 ** math.floor(math.log10(top - low))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2) if (top - low) / (step * part) <= 8)
    return [low + step * number for number in range(int((top - low) / step) + 1)]


def legend(series, drop=0):
    """Names and their colours in as many lines as they need, and the room for those beyond the first."""
    parts, x, y = [], LEFT, HEIGHT + drop - 14
    for number, name in enumerate(series):
        if x > LEFT and x + 14 + 7 * len(name) > WIDTH - RIGHT:
            x, y = LEFT, y + LINE
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" '
                     f'fill="{COLOURS[number % len(COLOURS)]}"/>{text(x + 14, y + 9, name, "start")}')
        x += 30 + 7 * len(name)
    return "".join(parts), y - (HEIGHT + drop - 14)


def text(x, y, words, anchor, *, bold=False, tilted=False):
    more = ' font-weight="bold"' if bold else ""
    more += f' transform="rotate(-40 {x:.1f} {y:.1f})"' if tilted else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def wrap(parts, drop=0, beside=0):
    """The whole picture, with so much more room below and on the left."""
    width, height = WIDTH + beside, HEIGHT + drop
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-beside} 0 {width} {height}" font-family="sans-serif" '
            f'font-size="12"><rect x="{-beside}" width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n')
