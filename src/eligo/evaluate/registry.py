"""The evaluators by name. To add one: a file in this package with an `Evaluator`, and `@register` on it."""

from __future__ import annotations

from eligo.evaluate.base import Evaluator
from eligo.registry import Registry

EVALUATORS: Registry[Evaluator] = Registry("eligo.evaluate", "evaluator")
register = EVALUATORS.register


def choose(name: str) -> type[Evaluator]:
    """The evaluator of that name."""
    return EVALUATORS.get(name)
