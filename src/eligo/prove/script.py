"""A case as a program that anybody can run: it ends with an assertion that fails."""

from __future__ import annotations

from typing import Any

from eligo.language import render
from eligo.language.tree import Node
from eligo.prove.cases import (
    Add,
    AddMany,
    Batch,
    Case,
    Difference,
    Match,
    Observe,
    Remove,
    Reopen,
    Rule,
    Rules,
    Step,
    Top,
    TopBatch,
)
from eligo.prove.tables import Column

_HEAD = """\
import datetime
from decimal import Decimal
from math import inf, nan
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa

import eligo
from eligo import Above, Below, Between, NoneOf, OneOf
"""


def script_of(case: Case, difference: Difference) -> str:
    """The program. Its last line says what the matcher should answer."""
    s = case.setup
    given = [f"index={s.index!r}", f"evaluator={s.evaluator!r}", f"absent={s.absent!r}"]
    given += [f"multi={list(s.multi)!r}"] if s.multi else []
    given += [f"options={dict(s.options)!r}"] if s.options else []
    lines = [_HEAD, f"m = eligo.Matcher({', '.join(given)})"]
    for number, step in enumerate(case.steps):
        asked = _written(step)
        if number < difference.step:
            lines.append(asked)
        elif isinstance(difference.found, Exception):
            lines.append(f"{asked}  # raised {type(difference.found).__name__}: {difference.found}")
        else:
            lines.append(f"found = {asked}")
            lines.append(f"assert found == {difference.wanted!r}, found")
    return "\n".join(lines) + "\n"


def _written(step: Step) -> str:
    match step:
        case Add(rule):
            return f"m.add({_rule(rule)}, replace=True)"
        case AddMany(rules):
            given = ", ".join(f"({_rule(rule)})" for rule in rules)
            return f"[r.id for r in m.add_many([{given}], on_error='collect', replace=True)]"
        case Remove(rule):
            return f"m.remove({rule!r})"
        case Observe(events):
            return f"m.observe({list(events)!r})"
        case Reopen():
            return "place = mkdtemp(); m.save(place + '/rules'); m = eligo.open(place + '/rules')"
        case Match(event, tags, limit):
            return f"m.match({event!r}{_more(tags=tags, limit=limit)})"
        case Batch(events, tags, limit, columns):
            table = f"m.match_batch({_events(events, columns)}{_more(tags=tags, limit=limit)})"
            return f"list(zip(*{table}.to_pydict().values()))"
        case Top(event, k, tags):
            return f"m.top({event!r}, {k}{_more(tags=tags)})"
        case TopBatch(events, k, tags):
            return f"list(zip(*m.top_batch({list(events)!r}, {k}{_more(tags=tags)}).to_pydict().values()))"
        case Rules():
            return "list(m)"


def _rule(rule: Rule) -> str:
    text = render(rule.expression) if isinstance(rule.expression, Node) else rule.expression
    parts = [repr(rule.id), repr(text)]
    if rule.weight != 1.0 or rule.tags:
        parts += [repr(rule.weight), repr(rule.tags)]
    return ", ".join(parts)


def _events(events: tuple[Any, ...], columns: tuple[Column, ...]) -> str:
    if not columns:
        return repr(list(events))
    given = [(column, [event.get(column.name) for event in events]) for column in columns]
    arrays = [f"{c.name!r}: pa.array({c.array(values).to_pylist()!r}, {c.type})" for c, values in given]
    return f"pa.table({{{', '.join(arrays)}}})"


def _more(**given: Any) -> str:
    return "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
