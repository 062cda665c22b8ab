"""Many rules at once: tuples, dicts or an Arrow table to rows of (id, expression, weight, tags, owner)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from eligo.arguments import shown
from eligo.errors import EligoError, EventError, RuleTypeError
from eligo.segments.encoding import from_frame

Row = tuple[Any, Any, Any, Any, Any]
_COLUMNS = ("id", "expression", "weight", "tags", "owner")


def rows_of(rules: Any) -> Iterator[Row | EligoError]:
    """Rows in the order of the input; one that has no such shape is given as the error that says so."""
    if isinstance(rules, pa.Table | pa.RecordBatch):
        yield from _table_rows(rules)
        return
    if hasattr(rules, "__arrow_c_stream__"):
        yield from _frame_rows(rules)
        return
    if isinstance(rules, Mapping):
        rules = rules.items()
    if isinstance(rules, str | bytes) or not isinstance(rules, Iterable):
        raise RuleTypeError(
            "rules are tuples (id, expression[, weight[, tags[, owner]]]), dicts or an Arrow table, "
            f"not {type(rules).__name__}"
        )
    for rule in rules:
        if isinstance(rule, tuple | list) and 2 <= len(rule) <= 5:
            yield (*rule, *((1.0, (), None)[len(rule) - 2 :]))
        elif isinstance(rule, Mapping) and "id" in rule:
            expression = rule.get("expression", rule.get("expr"))
            yield rule["id"], expression, rule.get("weight"), rule.get("tags"), rule.get("owner") or None
        elif hasattr(rule, "expression") and hasattr(rule, "id"):
            tags, owner = getattr(rule, "tags", ()), getattr(rule, "owner", None)
            yield rule.id, rule.expression, getattr(rule, "weight", 1.0), tags, owner
        else:
            yield RuleTypeError(
                "a rule is (id, expression[, weight[, tags[, owner]]]) or a dict with id and expression, "
                f"not {shown(rule, 80)}"
            )


def _frame_rows(frame: Any) -> Iterator[Row]:
    try:
        rules = from_frame(frame)
    except EventError as error:
        raise RuleTypeError(f"rules: {error}") from None
    if isinstance(rules, pa.Table):
        yield from _table_rows(rules)
        return
    _require(list(rules[0]))  # a frame without rows is one that Arrow reads
    for rule in rules:
        # What is missing is NaN or the like in a data frame, and null in a table.
        yield tuple(None if _is_missing(value := rule.get(name)) else value for name in _COLUMNS)  # type: ignore[misc]


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _require(names: list[str]) -> None:
    missing = [name for name in _COLUMNS[:2] if name not in names]
    if missing:
        raise RuleTypeError(
            f"a table of rules has columns id and expression; missing {', '.join(missing)}; "
            f"it has {', '.join(map(str, names))}"
        )


def _table_rows(table: pa.Table | pa.RecordBatch) -> Iterator[Row]:
    names = table.schema.names
    _require(names)
    for start in range(0, table.num_rows, 65_536):  # Python values of one slice at a time
        part = table.slice(start, 65_536)
        columns = [part.column(name).to_pylist() if name in names else [None] * part.num_rows for name in _COLUMNS]
        yield from zip(*columns, strict=True)
