"""The evaluators by name."""

from __future__ import annotations

from eligo.evaluate.base import Evaluator
from eligo.registry import Registry

EVALUATORS: Registry[Evaluator] = Registry(
    "eligo.evaluators",
    "evaluator",
    {
        "dewey": "eligo.evaluate.dewey:Dewey",
        "dnf": "eligo.evaluate.dnf:Dnf",
        "interval": "eligo.evaluate.interval:Interval",
        "scan": "eligo.evaluate.trees:ScanTrees",
        "shared": "eligo.evaluate.shared:Shared",
        "walk": "eligo.evaluate.trees:Walk",
    },
)


def choose(name: str, *, in_place: bool = False) -> type[Evaluator]:
    """Returns the evaluator of that name. `auto` is `shared`, which takes fewest steps for rules that have trees; where
    rules change in place it is `interval`, which can. Raises an `OptionError` if the name is unknown.
    """
    if name == "auto":
        name = "interval" if in_place else "shared"
    return EVALUATORS.get(name, "auto")
