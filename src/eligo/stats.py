"""Figures about a matcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from eligo.index.auto import KINDS
from eligo.options import Value, differing
from eligo.segments.planning import LEAST, UNPLANNED
from eligo.segments.rules import Rules

# Rules as they were given, which any index would keep.
_AS_GIVEN = ("rules/text_offsets", "rules/text_data", "rules/id_offsets", "rules/id_data", "rules/ids", "rules/records")


@dataclass(frozen=True, kw_only=True)
class Stats:
    """What a matcher holds and what matching cost so far; `print` it for a table."""

    rules: int
    conjunctions: int  # different ones: the unit that indexes know
    predicates: int
    attributes: int
    multi_valued: tuple[str, ...]  # attributes that may hold several values
    strings: int  # different ones that rules name
    segments: int
    index: str
    index_reason: str
    evaluator: str
    options: Mapping[str, Value]  # of index and evaluator, those that are not the default
    candidates: int  # conjunctions that the index looked at, for all events so far
    evaluations: int  # predicates that were tested one by one
    false_candidates: int | None  # candidates that did not hold, where the index counts them
    total_bytes: int
    bytes_per_rule: float  # without ids and texts
    notes: Mapping[str, object]  # what the index and the evaluator have to say
    plans: tuple[Mapping[str, Any], ...]  # of `auto`: for each segment its rules, its index, and what was tried
    arrays: Mapping[str, int]  # bytes of every array, the largest first

    def to_dict(self) -> dict[str, Any]:
        """Returns all figures as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for name in (field.name for field in fields(self) if field.name != "arrays"):
            value = getattr(self, name)
            if isinstance(value, Mapping):
                lines += [name] if value else []
                width = max((len(str(key)) for key in value), default=0)
                lines += [f"  {key!s:<{width}}  {_figure(inner):>16}" for key, inner in value.items()]
            elif value is not None:
                lines.append(f"{name:<24}{_figure(value)}")
        return "\n".join(lines)


def _figure(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _most(plans: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any]:
    """Returns the plan of the segment with most rules."""
    return max(plans, key=lambda plan: plan["rules"], default={"index": KINDS[UNPLANNED.kind], "tried": {}})


def _reason(plan: Mapping[str, Any]) -> str:
    tried = {name: figures["microseconds"] for name, figures in plan["tried"].items()}
    if not tried:
        return f"planned: fewer than {LEAST:,} rules together need no trial; batches as bitmaps where it pays"
    figures = ", ".join(f"{name} {time:,.0f} µs" for name, time in tried.items())
    return f"planned for {plan['rules']:,} rules, by steps for an event: {figures}; batches as bitmaps where it pays"


def collect(rules: Rules, index: str, evaluator: str) -> Stats:
    """Collects the figures of a rule set."""
    figures = rules.figures()
    sizes = figures.bytes
    strings = rules.recipe.strings
    sizes["strings/data"], sizes["strings/offsets"] = strings.size, 8 * (len(strings) + 1)
    total = sum(sizes.values())
    compiled = total - sum(sizes.get(name, 0) for name in _AS_GIVEN)
    return Stats(
        rules=rules.count,
        conjunctions=figures.conjunctions,
        predicates=figures.predicates,
        attributes=rules.recipe.attributes.taken,
        multi_valued=tuple(sorted(rules.multi)),
        strings=strings.taken,
        segments=figures.segments,
        index=_most(figures.plans)["index"] if index == "auto" else rules.recipe.index.name,
        index_reason=_reason(_most(figures.plans)) if index == "auto" else "asked for",
        evaluator=evaluator,
        options=differing(rules.recipe.options, (rules.recipe.index, rules.recipe.evaluator)),
        candidates=figures.candidates,
        evaluations=figures.evaluations,
        false_candidates=figures.false_candidates,
        total_bytes=total,
        bytes_per_rule=round(compiled / max(rules.count, 1), 1),
        notes=figures.notes,
        plans=figures.plans,
        arrays=dict(sorted(sizes.items(), key=lambda item: -item[1])),
    )
