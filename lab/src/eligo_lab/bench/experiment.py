"""What an experiment is: one figure or table of a paper, as data.

    measure    match: time of an event; index, evaluate: of these phases alone; memory: of index and labels, rule: the
               same for one rule; build, evaluations, selectivity, insert: as they say; locate: of a point
    indexes    all that the paper compares, whether they exist yet or not; those that do not are left out and named
    subject    who the experiment is about: without one of these it cannot run
    needs      what else has to exist first; "" when the harness is enough
    options    of indexes and evaluators: each contender takes part once for each value, or combination of them; who has
               no such option is left out
    across     the option that is along the axis, the points being lines; "": points along it, contenders being lines
    method     how it is measured. compare: everyone on the same work (harness.py); replace: rules of one workload by
               those of another, one by one (replacing.py); mix: updates among matches (mixing.py); stab: intervals
               and points of one attribute, `indexes` being structures for these (stabbing.py); join: rules that ask
               about documents (joining.py); batch: many events at once (batching.py)
    other      of replace: parameters of the second workload, where they differ
    orders     by label of a point: the order that the paper found, best first, or several of them; OTHERS are all that
               it does not name
    bounds     of evaluations, by contender: how the paper's table says that they grow, at best and at worst
    published  what the paper's own table says, by contender: nanoseconds of a query, or of all of them, and of
               building, and bytes; None where it says nothing. Ratios are to the first that is there

The table of them all is `experiments.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

Parameters = dict[str, Any]
Order = tuple[str, ...]

OTHERS = "others"
FRESH = ", built anew"  # of replace, behind the name of an index: the one that it is compared with
LONGEST = 50e6  # of mix: nanoseconds that nobody should have to wait


@dataclass(frozen=True)
class Point:
    """One run of an experiment: `label` and `x` on its axis, parameters and options beyond the fixed ones."""

    label: str = ""
    x: float | None = None
    parameters: Parameters = field(default_factory=dict)
    workload: str = ""  # where it is another than the experiment's
    options: Parameters = field(default_factory=dict)  # of a method; or of indexes and evaluators that have them


@dataclass(frozen=True)
class Experiment:
    """One line of the table; see the top of this file."""

    name: str
    title: str
    workload: str
    fixed: Parameters = field(default_factory=dict)
    vary: str = ""
    values: tuple[Any, ...] = ()  # of the parameter that varies, or whole points
    indexes: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = ("interval",)
    measure: str = "match"
    subject: tuple[str, ...] = ()
    needs: str = ""
    orders: dict[str, Order | tuple[Order, ...]] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)  # what has to be kept: build_s, bytes; of join: GOALS
    options: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    across: str = ""
    method: str = "compare"
    other: Parameters = field(default_factory=dict)
    published: dict[str, tuple[float, float | None, float | None]] = field(default_factory=dict)
    bounds: dict[str, tuple[str, str]] = field(default_factory=dict)

    def points(self) -> list[Point]:
        """What to run; one point where nothing varies."""
        given = [v if isinstance(v, Point) else Point(_label(v), float(v), {self.vary: v}) for v in self.values]
        return given or [Point()]

    def settings(self) -> tuple[Parameters, ...]:
        """The combinations of options, each a contender of its own; none where no option varies."""
        if not self.options:
            return ()
        return tuple(dict(zip(self.options, some, strict=True)) for some in product(*self.options.values()))

    def entry(self) -> dict[str, Any]:
        """The head of its entry in a result file."""
        return {
            "name": self.name,
            "title": self.title,
            "workload": self.workload,
            "varied": self.vary,
            "measure": self.measure,
            "orders": {label: list(order) for label, order in self.orders.items()},
            "limits": self.limits,
            "across": self.across,
            "method": self.method,
            "subject": list(self.subject),
            "published": {name: list(figures) for name, figures in self.published.items()},
            "bounds": {name: list(growth) for name, growth in self.bounds.items()},
        }


def _label(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
