"""Strings are compared by their bytes wherever an index needs them, whichever container built it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import eligo
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.reference import matches

RULES = [
    "x = ''", "x != ''", "x in ('', 'a')", "x not in ('', 'a', 'b')", "x <= ''", "x in ('a', 'b', 2)", "x in ('', 2)",
    "x not in ('a', 'b', 2)", "x not in ('a', 'b') and x != true", "x in ('', 'a') and y = 1",
]  # fmt: skip
EVENTS: list[dict[str, Any]] = [{"x": value} for value in ("", "a", "b", "c", "zz", 2, True, None)]
EVENTS.append({"x": "", "y": 1})


@pytest.mark.parametrize(("index", "evaluator"), list(product(INDEXES.all(), EVALUATORS.all())))
@pytest.mark.parametrize("rule", [*RULES, "x contains none ('', 'a', 'b')"])
def test_lists_with_the_empty_string_or_of_several_kinds(index: str, evaluator: str, rule: str) -> None:
    # One rule at a time: another one on the same attribute may ask for the bytes.
    for absent in ("fails", "classical"):
        m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent)  # type: ignore[arg-type]
        m.add(1, rule)
        wanted = [[1] if matches(parse(rule), event, absent) else [] for event in EVENTS]
        assert [m.match(event) for event in EVENTS] == wanted
        assert m.match_batch(EVENTS)["event"].to_pylist() == [i for i, found in enumerate(wanted) if found]
