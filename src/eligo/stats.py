"""Figures about a matcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eligo.index.registry import AUTO_REASON
from eligo.options import differing
from eligo.segments.rules import Rules

# Rules as they were given, which any index would keep.
_AS_GIVEN = ("rules/text_offsets", "rules/text_data", "rules/id_offsets", "rules/id_data", "rules/ids", "rules/records")


class Stats(dict[str, Any]):
    """A dict whose entries are also attributes; `print` it for a table."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __str__(self) -> str:
        lines = []
        for key, value in self.items():
            if isinstance(value, Mapping):
                lines.append(key)
                width = max((len(str(k)) for k in value), default=0)
                lines.extend(f"  {k!s:<{width}}  {_figure(v):>16}" for k, v in value.items())
            else:
                lines.append(f"{key:<24}{_figure(value)}")
        return "\n".join(lines)


def _figure(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def collect(rules: Rules, index: str, evaluator: str) -> Stats:
    """Counts, bytes by array, and the index chosen and why."""
    figures = rules.figures()
    sizes = figures.bytes
    strings = rules.recipe.strings
    sizes["strings/data"], sizes["strings/offsets"] = strings.size, 8 * (len(strings) + 1)
    total = sum(sizes.values())
    compiled = total - sum(sizes.get(name, 0) for name in _AS_GIVEN)
    reason = AUTO_REASON if index == "auto" else "asked for"
    options = differing(rules.recipe.options, (rules.recipe.index, rules.recipe.evaluator))
    return Stats(
        rules=rules.count,
        conjunctions=figures.conjunctions,
        predicates=figures.predicates,
        attributes=rules.recipe.attributes.taken,
        multi_valued=sorted(rules.multi),
        strings=strings.taken,
        segments=figures.segments,
        index=rules.recipe.index.name,
        index_reason=reason,
        evaluator=evaluator,
        **({"options": options} if options else {}),
        candidates=figures.candidates,
        evaluations=figures.evaluations,
        **figures.more,
        total_bytes=total,
        bytes_per_rule=round(compiled / max(rules.count, 1), 1),
        **({"notes": figures.notes} if figures.notes else {}),
        bytes=dict(sorted(sizes.items(), key=lambda item: -item[1])),
    )
