"""Rules of one conjunction each, where some conjunctions or some rules have nothing to do with each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import eligo


@pytest.mark.parametrize("others", [["never", "gone"], ["gone", "never"], ["never", "gone", "kept", "gone", "never"]])
@pytest.mark.parametrize("index", ["auto", "bitmap", "scan"])
def test_a_rule_that_is_never_true_does_not_get_the_conjunction_of_one_that_is_gone(
    index: str, others: list[str], tmp_path: Path
) -> None:
    texts = {"never": "b between 3 and 2.5", "gone": "not a <= 'w'", "kept": "a = 'kept'"}
    matcher = eligo.Matcher(index)
    for number, other in enumerate(others):
        matcher.add(number, texts[other] if other != "gone" else f"not a <= 'w{number}'")
    matcher.remove_many([number for number, other in enumerate(others) if other == "gone"])
    matcher.save(tmp_path / "rules")
    matcher = eligo.open(tmp_path / "rules")
    kept = [number for number, other in enumerate(others) if other == "kept"]
    events = [{"a": 0}, {"a": "kept"}, {"a": "z"}, {}, {"b": 2.7}]
    assert [matcher.match(event) for event in events] == [[], kept, [], [], []]
    found = matcher.match_batch(events)
    assert list(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True)) == [(1, n) for n in kept]
