"""Rules that cannot be asked of some events: set aside, counted and named, while all others are matched.

A rule cannot be asked if it looks at an attribute that is, in these events, a column of a type that rules do not
compare, or there twice (`event_columns.locate`), or not sent by a running stream. Such a rule matches nothing; the same
rule is matched again as soon as the column or the rule is another.

What is set aside here depends on the types of the columns alone, so it is found once for a version and a schema. In a
worker the rules are marked in the masks of its own matcher; nothing on disk changes. What only the values of an event
tell is another matter (`partial_events.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from eligo.compile.compiled import U8
from eligo.compile.naming import Mask, rules_naming
from eligo.engine import Engine
from eligo.segments.joining import Needs, rows_asking
from eligo.segments.rule_set import RuleSet

_EXAMPLES: Final = 5


@dataclass(frozen=True)
class SetAside:
    """What was set aside of one rule set for one schema of events."""

    rules: int = 0
    of: int = 0  # of so many rules
    examples: tuple[Any, ...] = ()  # some of their ids
    reasons: Mapping[str, str] = field(default_factory=dict)  # attribute → why it cannot be asked
    why: str = ""  # of rules that ask about documents: the predicate of a sentence about them

    def sentence(self, set_aside: bool = True) -> str:
        """The warning: how many, which, and why. Not `set_aside`: the same as an error."""
        more = "" if self.rules <= len(self.examples) else ", …"
        named = ", ".join(map(repr, self.examples)) + more
        why = [f"the attribute {name!r} {reason}" for name, reason in list(self.reasons.items())[:_EXAMPLES]]
        why += ["…"] if len(self.reasons) > _EXAMPLES else []
        if self.why:
            done = " are set aside, matching nothing" if set_aside else ""
            return f"{self.rules:,} of {self.of:,} rules{done} ({named}): they {self.why}"
        rules = "rule cannot be asked" if self.of == 1 else "rules cannot be asked"
        return (
            f"{self.rules:,} of {self.of:,} {rules} of these events and set aside, matching nothing ({named}): "
            f"{'; '.join(why)}. Change the columns, or change or remove these rules"
        )


def set_aside(engine: Engine, reasons: Mapping[str, str]) -> SetAside:
    """Leave the rules that look at one of these attributes out of the answers of an engine that nobody else has."""
    rules = engine.rules
    count = rules.count
    if not reasons:
        return SetAside(of=count)
    names = frozenset(reasons)
    if isinstance(rules, RuleSet):
        found, examples = _leave_out(rules, lambda segment: rows_looking(rules, segment, names))
    else:  # rules that change in place have no masks; of a copy in memory they are removed
        with rules.lock:
            marked = rules.rules_naming(names, mentioned=False)
            found, examples = len(marked), [rules.rule_at(place).id for place in marked[:_EXAMPLES]]
            rules.remove_many(marked)
    return SetAside(found, count, tuple(examples), dict(reasons)) if found else SetAside(of=count)


def set_aside_joins(engine: Engine, why: str) -> SetAside:
    """Leaves all rules that ask about documents out of the answers. `why` completes the sentence "they …"."""
    rules = engine.rules
    assert isinstance(rules, RuleSet)
    count = rules.count
    found, examples = _leave_out(rules, lambda segment: rows_asking(segment.table, lambda _: True))
    return SetAside(found, count, tuple(examples), why=why)


def rules_asking(engine: Engine, wanted: Callable[[Needs], bool], why: str) -> SetAside:
    """The rules that ask documents for something that is wanted; whoever screens answers leaves them out."""
    rules = engine.rules
    assert isinstance(rules, RuleSet)
    total, examples = 0, list[Any]()
    for segment, alive in zip(rules.segments, rules.alive, strict=True):
        total += _counted(segment, alive, rows_asking(segment.table, wanted), examples)
    return SetAside(total, rules.count, tuple(examples), why=why)


def rows_looking(rules: RuleSet, segment: Any, names: frozenset[str]) -> Mask:
    """For every row of a segment, whether its rule looks at one of the attributes of an event."""
    found = rows_asking(segment.table, lambda needs: not names.isdisjoint(needs.event))
    return found | rules_naming(segment.whole(), rules.wanted(names))


def _leave_out(rules: RuleSet, chosen: Callable[[Any], Mask]) -> tuple[int, list[Any]]:
    total, examples = 0, list[Any]()
    with rules.lock:
        rules.seal()
        masks = []
        for segment, alive in zip(rules.segments, rules.alive, strict=True):
            marks = chosen(segment)
            total += _counted(segment, alive, marks, examples)
            masks.append(marks)
        rules.leave_out(masks)
    return total, examples


def _counted(segment: Any, alive: U8, marks: Mask, examples: list[Any]) -> int:
    """Unmarks dead rows. Returns how many stay marked, and adds the ids of the first ones to the examples."""
    if len(alive):
        marks &= alive.astype(np.bool_)
    rows = np.nonzero(marks)[0]
    examples += [segment.table.id(int(row)) for row in rows[: _EXAMPLES - len(examples)]]
    return len(rows)


def ids_naming(engine: Engine, names: frozenset[str]) -> list[Any]:
    """The ids of the rules that look at one of these attributes, where rules change in place."""
    rules = engine.rules
    with rules.lock:
        return [rules.rule_at(place).id for place in rules.rules_naming(names, mentioned=False)]
