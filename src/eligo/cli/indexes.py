"""`eligo indexes`: the indexes and evaluators there are, and their options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eligo.cli import options
from eligo.cli.terminal import show_table
from eligo.options import Option


def list_indexes(as_json: options.AsJson = False) -> None:
    """List the indexes, the evaluators and their options. They are what --index, --evaluator and --option take."""
    from eligo.evaluate.registry import EVALUATORS
    from eligo.index.registry import every_index

    indexes: list[dict[str, Any]] = [
        {"name": name, "summary": kind.summary, "updates": kind.updates, "options": _listed(kind.options)}
        for name, kind in every_index().items()
    ]
    evaluators: list[dict[str, Any]] = [
        {"name": name, "summary": kind.summary, "options": _listed(kind.options)}
        for name, kind in EVALUATORS.all().items()
    ]
    if as_json:
        print(json.dumps({"indexes": indexes, "evaluators": evaluators}, indent=2, ensure_ascii=False))
        return
    show_table("indexes", ("name", "what it does", "updates"), [_cells(row) for row in indexes])
    show_table("evaluators", ("name", "what it does"), [_cells(row) for row in evaluators])
    rows = [
        (str(row["name"]), *(str(cell) for cell in option.values()))
        for row in (*indexes, *evaluators)
        for option in row["options"]
    ]
    show_table("options", ("of", "name", "default", "is", "what it does"), rows)


def _listed(declared: Mapping[str, Option]) -> list[dict[str, Any]]:
    return [
        {"name": name, "default": option.default, "allowed": option.allowed(), "about": option.about}
        for name, option in declared.items()
    ]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(cell) for name, cell in row.items() if name != "options")
