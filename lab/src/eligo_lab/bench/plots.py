"""Plots of experiments as SVG: logarithmic axes, names at the ends of lines, readable in black and white.

Every contender has one colour, marker and dash in all plots, told apart without the colour. Names stand where lines
end, moved apart where they would overlap, with a thin line to what they name; so there is no box to look things up in.
"""

from __future__ import annotations

import io
import re
from typing import Any, Final

from eligo.errors import OptionError
from eligo_lab.bench.experiment import FRESH, LONGEST
from eligo_lab.bench.tables import MEASURES, duration, series, shown, value_of

# Okabe and Ito's colours, which colour-blind readers tell apart, and black.
_COLOURS: Final = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8B6508", "#56B4E9", "#7A3E9D")
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
_DASHES: Final = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)), (0, (2, 2)))
_KNOWN: Final = (
    "scan", "counting", "k-index", "propagation", "op-index", "gryphon", "be-tree", "be-tree-batch", "pst-bloom",
    "pst-hash", "stab-cluster", "stab-interval", "stab-hybrid", "segment-tree", "interval-tree", "bitmap",
    "dict", "lambdas", "rule-engine", "zen-engine", "cel", "ps-tree", "op-index-kept", "naive", "lazy",
)  # fmt: skip
_GAP: Final = 11.0  # points between the names at the ends of lines
_TICKS: Final = 12  # most labels along an axis
_LETTER: Final = 0.0102  # of the width of a figure


def plot(experiment: dict[str, Any], machine: str, format: str = "svg") -> bytes:
    """One experiment as a picture: lines where something varies, else a dot for each contender."""
    measure, points = experiment["measure"], experiment["points"]
    lines = experiment["varied"] and len(points) > 1
    spans = {"pause": _waits, "locate": _steps}.get(measure)
    longest = max(map(len, series(experiment).lines), default=0) if lines and not spans else 0
    figure, axes = _figure(0.94 if spans or not lines else min(0.8, 0.925 - _LETTER * longest), 0.3 if spans else 0.15)
    if spans:
        spans(axes, points)
    elif lines:
        _lines(axes, experiment, measure)
    else:
        _dots(axes, {n: value_of(measure, points[0], f) for n, f in points[0]["contenders"].items()}, measure)
    workloads = ", ".join(dict.fromkeys(point["workload"] for point in points))
    title = f"{experiment['name']}: {experiment['title']}"
    return _drawn(figure, axes, title, f"workload {workloads}", machine, format)


def outside_plot(section: dict[str, Any], name: str, machine: str, format: str = "svg") -> bytes:
    """The comparison with contenders from outside."""
    figure, axes = _figure(0.94)
    _dots(axes, {name: f["total_ns"]["quiet"] for name, f in section["contenders"].items()}, "match")
    axes.set_xlabel("time of an event, from a dict to a list of ids")
    return _drawn(figure, axes, f"{name}: contenders from outside", f"{section['rules']:,} rules", machine, format)


def style(name: str, position: int) -> dict[str, Any]:
    """Colour, marker and dash of a contender: by its name where that is known, else by its place."""
    base, _, evaluator = name.partition("+")
    if name.endswith(FRESH):  # what it is compared with: of the same colour, and lighter to look at
        return style(name.removesuffix(FRESH), position) | {"marker": "", "linestyle": (0, (1, 1.5))}
    number = _KNOWN.index(base) if base in _KNOWN and not evaluator else position
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[number % len(_MARKERS)],
        "linestyle": _DASHES[number % len(_DASHES)],
    }


def _figure(right: float, left: float = 0.15) -> tuple[Any, Any]:
    """An empty figure with room for names up to `right`, or beyond it for those at the ends of lines."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError(
            "plots are made by Matplotlib, which is not installed: pip install 'eligo-lab[plots]'"
        ) from None
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    matplotlib.rcParams["font.size"] = 9
    figure = Figure(figsize=(7.6, 4.4))
    figure.subplots_adjust(left=left, right=right, top=0.85, bottom=0.13)
    return figure, figure.add_subplot()


def _drawn(figure: Any, axes: Any, title: str, workload: str, machine: str, format: str) -> bytes:
    """The picture with its heading: what, on what, where."""
    import matplotlib

    short = title if len(title) <= 80 else f"{title[:79]}…"
    figure.text(0.02, 0.945, short, fontsize=11, fontweight="bold")
    figure.text(0.02, 0.9, f"{workload}; {machine.split(', Python')[0]}", fontsize=8, color="#444444")
    target = io.BytesIO()
    # Names of parts must differ between the pictures of one page.
    with matplotlib.rc_context({"svg.hashsalt": title}):
        figure.savefig(target, format=format, metadata={"Date": None} if format == "svg" else None, dpi=110)
    return target.getvalue()


def _lines(axes: Any, experiment: dict[str, Any], measure: str) -> None:
    drawn = series(experiment)
    numeric = drawn.xs is not None
    xs: list[float] = drawn.xs or [float(place) for place in range(len(drawn.marks))]
    ends: list[tuple[str, float, float, str]] = []
    for position, (name, values) in enumerate(drawn.lines.items()):
        known = [(xs[mark], value) for mark, value in values.items()]
        look = style(name, position)
        axes.plot(*zip(*known, strict=True), markersize=5.5, linewidth=1.6, markerfacecolor="white", **look)
        ends.append((name, *known[-1], look["color"]))
    if experiment.get("method") == "replace":
        axes.set_ylim(0, 1.1 * max(value for values in drawn.lines.values() for value in values.values()))
    else:
        axes.set_yscale("log")
    if numeric and min(xs) > 0 and max(xs) / min(xs) >= 8:
        axes.set_xscale("log")
    every = -(-len(xs) // _TICKS)  # where there are many marks, some of them
    axes.set_xticks(xs[::every], drawn.marks[::every])
    axes.minorticks_off()
    axes.set_xlabel(drawn.axis)
    _value_axis(axes, measure, axes.yaxis)
    _name_ends(axes, ends, max(xs))


def _name_ends(axes: Any, ends: list[tuple[str, float, float, str]], right: float) -> None:
    """Names right of the lines, in the order of the ends, with a thin line to each."""
    axes.figure.canvas.draw()  # limits, and with them places, are final only now
    scale = 72 / axes.figure.dpi  # of pixels to points

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across * scale), float(up * scale)

    ordered = sorted(ends, key=lambda end: end[2])
    heights = apart([place(x, y)[1] for _, x, y, _ in ordered])
    for (name, x, y, colour), height in zip(ordered, heights, strict=True):
        across, up = place(x, y)
        edge, _ = place(right, y)
        axes.annotate(
            name,
            (x, y),
            xytext=(edge - across + 24, height - up),
            textcoords="offset points",
            va="center",
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "linewidth": 0.6, "color": colour, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 5,
            },
        )  # fmt: skip


def apart(heights: list[float], gap: float = _GAP) -> list[float]:
    """Ascending heights, moved as little as it takes to be a gap apart."""
    placed = list(heights)
    for _ in range(200):
        for i in range(len(placed) - 1):
            overlap = gap - (placed[i + 1] - placed[i])
            if overlap > 0.01:
                placed[i] -= overlap / 2
                placed[i + 1] += overlap / 2
    return placed


def _dots(axes: Any, values: dict[str, float], measure: str) -> None:
    """One dot a contender, the best on top, with its value beside it."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    places = {name: place for place, name in enumerate(values)}
    for height, (name, value) in enumerate(ordered):
        look = style(name, places[name])
        axes.plot([value], [height], linestyle="none", marker=look["marker"], color=look["color"], markersize=7)
        axes.annotate(shown(measure, value), (value, height), xytext=(9, 0), textcoords="offset points", va="center")
    axes.set_xscale("log")
    low, high = max(min(values.values()), 1e-9), max(max(values.values()), 1e-9)
    room = (high / low) ** 0.18  # for the value beside the last dot
    axes.set_xlim(low / max(1.5, room**0.4), high * max(1.8, room))
    axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
    axes.set_ylim(-0.7, len(ordered) - 0.3)
    _value_axis(axes, measure, axes.xaxis)


def _waits(axes: Any, points: list[dict[str, Any]]) -> None:
    """A line for each operation in each case, from its median to the longest time, with the limit across."""
    several = len(points[0]["contenders"]) > 1
    rows = {
        f"{name}, " * several + f"{point['label']}: {operation}": {w: one[f"{w}_ns"] for w in ("p50", "p99", "longest")}
        for point in points
        for name, figures in point["contenders"].items()
        for operation, one in figures["operations"].items()
    }
    _spans(axes, rows, LONGEST)
    axes.axvline(LONGEST, color=_COLOURS[2], linestyle=_DASHES[1], linewidth=1)
    axes.annotate(duration(LONGEST), (LONGEST, -0.6), xytext=(4, 0), textcoords="offset points", color=_COLOURS[2])
    _value_axis(axes, "pause", axes.xaxis)
    axes.set_xlabel("time of an operation")


def _steps(axes: Any, points: list[dict[str, Any]]) -> None:
    """A line for each structure in each case: to locate a point, to count what holds it, to write that down."""
    rows = {
        f"{point['label']}: {name}": {what: one["best"] for what, one in figures["point_ns"].items()}
        for point in points
        for name, figures in sorted(point["contenders"].items(), key=lambda item: value_of("locate", point, item[1]))
    }
    _spans(axes, rows)
    _value_axis(axes, "locate", axes.xaxis)
    axes.set_xlabel("time of a point")


def _spans(axes: Any, rows: dict[str, dict[str, float]], most: float = 0.0) -> None:
    """A line for each row, the first on top, with a mark for each value; the first row names the marks."""
    names = max((list(values) for values in rows.values()), key=len)
    looks = dict(zip(names, ("o", "s", "D"), strict=True))
    for height, values in enumerate(reversed(rows.values())):
        axes.plot(list(values.values()), [height] * len(values), color="#bbbbbb", linewidth=1, zorder=1)
        for what, value in values.items():
            axes.plot([value], [height], linestyle="none", marker=looks[what], color=_COLOURS[1], markersize=6)
            said = f"{what} {duration(value)}" if height == len(rows) - 1 else duration(value)
            above = -13 if looks[what] == "s" else 7  # two that are close must not cover each other
            axes.annotate(said, (value, height), xytext=(0, above), textcoords="offset points", ha="center", fontsize=7)
    everything = [value for values in rows.values() for value in values.values()]
    axes.set_xscale("log")
    axes.set_xlim(min(everything) / 2, 2 * max(most, *everything))
    axes.set_yticks(range(len(rows)), list(reversed(rows)))
    axes.set_ylim(-0.7, len(rows) - 0.3)


def _value_axis(axes: Any, measure: str, axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(base=10, subs=(1.0,), numticks=12))
    if axis.get_scale() == "log" and high / max(low, 1e-12) < 100:  # so few marks would not do to read anything
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: re.sub(r"\.0+(?!\d)", "", shown(measure, value))))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(MEASURES[measure])
    axes.grid(True, which="major", linewidth=0.5, color="#dddddd")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
