"""`eligo indexes`: the indexes and evaluators there are."""

from __future__ import annotations

import json

from eligo.cli import options
from eligo.cli.terminal import show_table


def list_indexes(as_json: options.AsJson = False) -> None:
    """List the indexes (--index) and evaluators (--evaluator)."""
    from eligo.evaluate.registry import EVALUATORS
    from eligo.index.registry import INDEXES

    indexes = [{"name": name, "summary": kind.summary, "updates": kind.updates} for name, kind in INDEXES.all().items()]
    evaluators = [{"name": name, "summary": getattr(kind, "summary", "")} for name, kind in EVALUATORS.all().items()]
    if as_json:
        print(json.dumps({"indexes": indexes, "evaluators": evaluators}, indent=2, ensure_ascii=False))
        return
    show_table("indexes", ("name", "what it does", "updates"), [tuple(row.values()) for row in indexes])
    show_table("evaluators", ("name", "what it does"), [tuple(row.values()) for row in evaluators])
