"""Rules that cannot be asked of some events: set aside, counted and named, while all others are matched.

A rule cannot be asked if it looks at an attribute that is, in these events, a column of a type that rules do not
compare, or there twice (`event_columns.locate`), or not sent by a running stream. Such a rule matches nothing; the same
rule is matched again as soon as the column or the rule is another.

What is set aside here depends on the types of the columns alone, so it is found once for a version and a schema. In a
worker the rules are marked in the masks of its own matcher; nothing on disk changes. What only the values of an event
tell is another matter (`partial_events.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from eligo.compile.naming import rules_naming
from eligo.segments.rule_set import RuleSet
from eligo.segments.rules import Rules

_EXAMPLES: Final = 5


@dataclass(frozen=True)
class SetAside:
    """What was set aside of one rule set for one schema of events."""

    rules: int = 0
    of: int = 0  # of so many rules
    examples: tuple[Any, ...] = ()  # some of their ids
    reasons: Mapping[str, str] = field(default_factory=dict)  # attribute → why it cannot be asked

    def sentence(self) -> str:
        """The warning: how many, which, and why."""
        more = "" if self.rules <= len(self.examples) else ", …"
        named = ", ".join(map(repr, self.examples)) + more
        why = [f"the attribute {name!r} {reason}" for name, reason in list(self.reasons.items())[:_EXAMPLES]]
        why += ["…"] if len(self.reasons) > _EXAMPLES else []
        rules = "rule cannot be asked" if self.of == 1 else "rules cannot be asked"
        return (
            f"{self.rules:,} of {self.of:,} {rules} of these events and set aside, matching nothing ({named}): "
            f"{'; '.join(why)}. Change the columns, or change or remove these rules"
        )


def set_aside(matcher: Any, reasons: Mapping[str, str]) -> SetAside:
    """Leave the rules that look at one of these attributes out of the answers of a matcher that nobody else has."""
    rules: Rules = matcher.engine.rules
    metas = rules.recipe.attributes.metas
    numbers = {name: metas[name] >> 8 for name in reasons if name in metas}
    if not numbers:
        return SetAside(of=len(matcher))
    count = len(matcher)
    if isinstance(rules, RuleSet):
        found, examples = _mask_segments(rules, list(numbers.values()))
    else:
        found, examples = _remove_living(rules, frozenset(numbers))
    return SetAside(found, count, tuple(examples), dict(reasons))


def _mask_segments(rules: RuleSet, numbers: list[int]) -> tuple[int, list[Any]]:
    wanted = np.zeros(len(rules.recipe.attributes), np.bool_)
    wanted[numbers] = True
    total, examples = 0, list[Any]()
    with rules.lock:
        rules.seal()
        masks = []
        for segment, alive in zip(rules.segments, rules.alive, strict=True):
            marks = rules_naming(segment.whole(), wanted)
            if len(alive):
                marks &= alive.astype(np.bool_)
            masks.append(marks)
            rows = np.nonzero(marks)[0]
            total += len(rows)
            examples += [segment.table.id(int(row)) for row in rows[: _EXAMPLES - len(examples)]]
        rules.leave_out(masks)
    return total, examples


def _remove_living(rules: Rules, names: frozenset[str]) -> tuple[int, list[Any]]:
    """Rules that change in place have no masks; of a copy in memory they are removed."""
    with rules.lock:
        marked = rules.rules_naming(names, mentioned=False)
        examples = [rules.rule_at(place).id for place in marked[:_EXAMPLES]]
        rules.remove_many(marked)
    return len(marked), examples


def ids_naming(matcher: Any, names: frozenset[str]) -> list[Any]:
    """The ids of the rules that look at one of these attributes, where rules change in place."""
    rules: Rules = matcher.engine.rules
    with rules.lock:
        return [rules.rule_at(place).id for place in rules.rules_naming(names, mentioned=False)]
