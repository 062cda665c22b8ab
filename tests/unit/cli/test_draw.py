"""`eligo draw`: an index as a person sees it."""

from __future__ import annotations

import pytest
from command_line import Run, ndjson

RULES = [
    {"id": i, "expression": f"age >= {i % 60} and country = '{'US' if i % 3 else 'CA'}' and price < {i % 17}"}
    for i in range(600)
]


@pytest.fixture
def many(run: Run) -> str:
    return ndjson("many.ndjson", RULES)  # type: ignore[arg-type]


def test_a_file_of_rules(run: Run, many: str) -> None:
    done = run("draw", many, "--option", "max_cap=10", "--depth", 4)
    assert done.code == 0, done.err
    assert done.text.startswith("be-tree: 600 rules, 600 conjunctions\n")
    for word in ("c-nodes", "p-nodes", "l-nodes", "all conjunctions", "country, a string", "rows of an l-node"):
        assert word in done.text
    assert len(run("draw", many, "--option", "max_cap=10", "--depth", 1, "--width", 1).text) < len(done.text)


@pytest.mark.parametrize("index", ["be-tree", "be-tree-batch"])
def test_a_snapshot_has_its_own_index(run: Run, many: str, index: str) -> None:
    assert run("compile", many, "-o", "s", "--index", index, "--option", "max_cap=10").code == 0
    done = run("draw", "s")
    assert done.code == 0, done.err
    assert done.text.startswith(f"{index}: 600 rules")
    assert "country" in done.text


def test_events_are_matched_first(run: Run, many: str) -> None:
    ndjson("events.ndjson", [{"age": 30, "country": "US", "price": n % 20} for n in range(30)] + [{"age": [1, 2]}])
    done = run("draw", many, "--events", "events.ndjson")
    assert done.code == 1
    assert "30 events: " in done.text
    assert "candidates for each" in done.text
    assert "line 31" in done.err


def test_other_indexes_have_nothing_to_draw(run: Run, many: str) -> None:
    done = run("draw", many, "--index", "scan")
    assert done.code == 0, done.err
    assert "scan has nothing to draw" in done.text


def test_what_cannot_be_drawn(run: Run, many: str) -> None:
    assert run("draw", "missing.ndjson").code == 2
    assert run("draw", many, "--depth", -1).code == 2
    assert run("draw", many, "--option", "max_cp=3").code == 2
    assert run("draw", many, "--events", "missing.ndjson").code == 2
    assert run("draw", "-", "--events", "-", "--rules-format", "ndjson").code == 2
