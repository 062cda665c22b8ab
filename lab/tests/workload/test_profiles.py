"""The profiles workload: intervals of the report on profile matching §4.1.6."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

import eligo
from eligo.errors import OptionError
from eligo_lab.workload.base import generate


def test_the_first_experiment() -> None:
    w = generate("profiles")
    assert (w.rules.num_rows, w.events.num_rows, w.events.column_names) == (1_000, 50, ["a0", "a1"])
    assert w.events["a0"].null_count == 0
    assert w.draft is not None
    assert set(w.draft.operand[1::2] - w.draft.operand[::2]) == {10}
    assert 0.01 <= w.measured["overlap"] <= 0.20  # "the overlap range was held low ([1, 20] percent)"
    assert w.draft.operand.min() >= 0
    assert w.draft.operand.max() < 10_010


@pytest.mark.parametrize("overlap", [0.1, 0.25, 0.5, 0.75, 0.98])
def test_overlap_can_be_asked_for(overlap: float) -> None:
    w = generate("profiles", rules=300, overlap=overlap)
    assert w.measured["overlap"] == pytest.approx(overlap, rel=0.1)
    assert w.draft is not None
    lows, highs = w.draft.operand[::4].tolist(), w.draft.operand[1::4].tolist()
    pairs = list(combinations(range(300), 2))
    found = sum(lows[i] <= highs[j] and lows[j] <= highs[i] for i, j in pairs) / len(pairs)
    assert found == pytest.approx(overlap, rel=0.15)


def test_no_interval_is_cut_off_at_an_edge() -> None:
    narrow, wide = generate("profiles", overlap=0.1), generate("profiles", overlap=0.98)
    assert narrow.draft is not None
    assert wide.draft is not None
    assert (wide.draft.operand[::2] == narrow.draft.operand[::2]).all()  # the size moves no low end
    size = wide.parameters["interval_size"]
    assert set(wide.draft.operand[1::2] - wide.draft.operand[::2]) == {size}
    assert 10_000 <= wide.draft.operand.max() < 10_000 + size
    assert max(wide.events["a0"].to_pylist()) >= 10_000  # documents lie wherever intervals do


def test_skew_draws_profiles_together() -> None:
    overlaps = [generate("profiles", skew=skew).measured["overlap"] for skew in (0.0, 0.5, 1.0, 2.0)]
    assert overlaps == sorted(overlaps)
    assert overlaps[0] == pytest.approx(0.0021, rel=0.2)


def test_the_matcher_finds_what_was_measured() -> None:
    w = generate("profiles", attributes=3, overlap=0.9, events=100)
    matcher = eligo.Matcher()
    matcher.add_many(w.rules)
    assert matcher.match_batch(w.events).num_rows == round(w.measured["match"] * 1_000 * 100)


def test_the_seed_decides() -> None:
    first, again = generate("profiles", seed=5), generate("profiles", seed=5)
    assert first.rules.equals(again.rules)
    assert first.events.equals(again.events)
    assert not first.rules.equals(generate("profiles", seed=6).rules)


def test_one_profile_is_enough() -> None:
    assert generate("profiles", rules=1).measured["overlap"] == 0


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"attributes": 0}, "attributes=0"),
        ({"domain": 1}, "domain=1"),
        ({"interval_size": 10_000}, "interval_size=10000"),
        ({"interval_size": -1}, "interval_size=-1"),
        ({"skew": 9.0}, "skew=9"),
        ({"overlap": 0.0}, "overlap=0"),
        ({"overlap": 1.2}, "overlap=1.2"),
        ({"overlap": 0.001, "skew": 2.0}, "less than these parameters reach"),
    ],
)
def test_what_cannot_be_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        generate("profiles", **parameters)
