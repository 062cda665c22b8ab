"""MATCH (Algorithm 5) on the paper's own example, and at the widths where labels change type."""

from __future__ import annotations

import pytest

import eligo


def rule_of_figure_5() -> eligo.Matcher:
    m = eligo.Matcher(limits={"leaves": 200_000})
    m.add("contract", "(a = 1 and (a2 = 1 or x = 1)) or c = 1 or (d = 1 and (e = 1 or x = 1) and (f = 1 or y = 1))")
    return m


@pytest.mark.parametrize(
    ("satisfied", "wanted"),
    [("a d e f", True), ("a a2", True), ("c", True), ("d e f", True), ("a2 d", False), ("a d e", False), ("", False)],
)
def test_figure_5(satisfied: str, wanted: bool) -> None:
    assert rule_of_figure_5().match(dict.fromkeys(satisfied.split(), 1)) == (["contract"] if wanted else [])


@pytest.mark.parametrize("leaves", [127, 128, 129, 255, 256, 257, 32_767, 32_768, 65_535, 65_536, 70_000])
def test_label_widths(leaves: int) -> None:
    # An AND of ORs of two leaves, so that nothing collapses into one conjunction.
    ors = [f"(a{i % 50} = {i} or b{i % 50} = {i})" for i in range(leaves // 2)]
    event = {f"a{i}": list(range(i, leaves, 50)) for i in range(50)}
    m = eligo.Matcher(multi=list(event), limits={"leaves": 200_000, "text": 10_000_000})
    m.add("wide", " and ".join(ors))
    assert m.match(event) == ["wide"]
    event["a7"] = event["a7"][1:]
    assert m.match(event) == []
