"""Figures about a matcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from eligo.index.registry import AUTO_REASON
from eligo.options import Value, differing
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
    arrays: Mapping[str, int]  # bytes of every array, the largest first

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
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


def collect(rules: Rules, index: str, evaluator: str) -> Stats:
    """The figures of a rule set."""
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
        index=rules.recipe.index.name,
        index_reason=AUTO_REASON if index == "auto" else "asked for",
        evaluator=evaluator,
        options=differing(rules.recipe.options, (rules.recipe.index, rules.recipe.evaluator)),
        candidates=figures.candidates,
        evaluations=figures.evaluations,
        false_candidates=figures.false_candidates,
        total_bytes=total,
        bytes_per_rule=round(compiled / max(rules.count, 1), 1),
        notes=figures.notes,
        arrays=dict(sorted(sizes.items(), key=lambda item: -item[1])),
    )
