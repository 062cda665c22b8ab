"""An explanation's answer is the matcher's, and of every line that of the reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import eligo
from eligo.explain import explain
from eligo.language.reference import matches
from eligo.language.tree import Node, children_of
from strategies import events, expressions, tried

MULTI = frozenset({"c"})


@pytest.mark.parametrize("absent", ["fails", "classical"])
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rule=expressions(multi=MULTI), event=events(multi=MULTI, ranges=True))
def test_an_explanation_says_what_matching_says(absent: Any, rule: Any, event: dict[str, Any]) -> None:
    m = eligo.Matcher(absent=absent, multi=MULTI)
    m.add("r", rule)
    try:
        matched = m.match(event) == ["r"]
    except eligo.EventError:
        return
    assert m.explain(event, "r").matched == matched


@pytest.mark.parametrize("absent", ["fails", "classical"])
@tried(300)
@given(rule=expressions(multi=MULTI), event=events(multi=MULTI))
def test_every_line_is_a_node_as_written_with_its_own_truth(absent: str, rule: Node, event: dict[str, Any]) -> None:
    lines = explain("r", rule, event, absent, MULTI).lines
    waiting = [(rule, 1)]
    for depth, held, _, _ in lines:
        node, level = waiting.pop()
        assert (depth, held) == (level, matches(node, event, absent, MULTI))
        waiting.extend((child, level + 1) for child in reversed(children_of(node)))
    assert not waiting
