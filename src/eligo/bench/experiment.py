"""What an experiment is: one figure or table of a paper, as data.

    measure    match: time of an event; index, evaluate: of these phases alone; memory: of index and labels, rule: the
               same for one rule; build, evaluations, selectivity, insert: as they say
    indexes    all that the paper compares, whether they exist yet or not; those that do not are left out and named
    subject    who the experiment is about: without one of these it cannot run
    needs      what else has to exist first; "" when the harness is enough

The table of them all is `experiments.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One run of an experiment: `label` and `x` on its axis, parameters beyond the fixed ones."""

    label: str = ""
    x: float | None = None
    parameters: Parameters = field(default_factory=dict)
    workload: str = ""  # where it is another than the experiment's


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
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)  # point to fastest first, as the paper found it
    limits: dict[str, float] = field(default_factory=dict)  # what has to be kept: build_s, bytes

    def points(self) -> list[Point]:
        """What to run; one point where nothing varies."""
        given = [v if isinstance(v, Point) else Point(_label(v), float(v), {self.vary: v}) for v in self.values]
        return given or [Point()]

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
        }


def _label(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
