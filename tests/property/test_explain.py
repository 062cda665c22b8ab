"""An explanation's answer is the matcher's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import eligo
from strategies import events, expressions

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
