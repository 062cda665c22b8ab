"""Which structure holds a matcher's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eligo.evaluate.base import Evaluator
from eligo.index.base import Index
from eligo.language.limits import DEFAULT_LIMITS, Limits
from eligo.options import Value
from eligo.segments.rule_set import RuleSet
from eligo.segments.rules import Rules


def rules_for(
    index: type[Index],
    evaluator: type[Evaluator],
    absent: str,
    multi: Iterable[str],
    limits: Limits = DEFAULT_LIMITS,
    options: Mapping[str, Value] | None = None,
) -> Rules:
    """Returns an empty set of rules: one that changes in place if index and evaluator can, else one of segments."""
    if index.updates == "native" and evaluator.name == "interval":
        from eligo.segments.living.living import LivingSet

        return LivingSet(index, evaluator, absent, multi, limits, options)
    return RuleSet(index, evaluator, absent, multi, limits, options)
