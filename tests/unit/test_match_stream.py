"""The answer of a batch in pieces."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo.segments import pace

EVENTS = [{"a": n % 50, "s": f"v{n % 7}"} for n in range(9000)]


@pytest.mark.parametrize("index", ["auto", "pst-hash", "bitmap"])
@pytest.mark.parametrize("ids", [int, str])
def test_pieces_together_are_the_answer(index: str, ids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MATCHES", 1000)
    m = eligo.Matcher(index)
    m.add_many((ids(n), f"a >= {n % 50} and s != 'v{n % 7}'", 1.0, ("t",) * (n % 2)) for n in range(150))
    for events in (EVENTS, pa.Table.from_pylist(EVENTS), iter(EVENTS)):
        reader = m.match_stream(events)
        assert reader.schema == m.match_batch(EVENTS[:1]).schema
        pieces = list(reader)
        assert pa.Table.from_batches(pieces).equals(m.match_batch(EVENTS).combine_chunks())
        assert max(piece.num_rows for piece in pieces) < 10_000
    some = m.match_stream(EVENTS, tags=["t"], limit=2).read_all()
    assert some.equals(m.match_batch(EVENTS, tags=["t"], limit=2).combine_chunks())
    assert m.match_stream([]).read_all().num_rows == 0


def test_events_are_read_as_they_are_needed() -> None:
    read = []

    def given() -> Iterator[dict[str, int]]:
        for n in range(20_000):
            read.append(n)
            yield {"a": 1}

    m = eligo.Matcher()
    m.add("x", "a = 1")
    reader = m.match_stream(given())
    assert not read
    assert reader.read_next_batch().num_rows == 16
    assert len(read) <= 4096


def test_a_wrong_event_is_named_by_its_number() -> None:
    m = eligo.Matcher()
    m.add("x", "a = 1")
    reader = m.match_stream([*EVENTS[:5000], {"a": [1, 2]}])
    with pytest.raises(eligo.EventError, match=r"^event 5000: attribute 'a' holds \[1, 2\]"):
        reader.read_all()


@pytest.mark.slow
def test_more_matches_than_32_bits_count() -> None:
    m = eligo.Matcher()
    m.add_many((n, "a >= 0") for n in range(2000))
    before, matches = 0, 0
    for piece in m.match_stream(pa.table({"a": range(1_100_000)})):
        matches += piece.num_rows
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert matches == 2_200_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 500_000  # kB


def test_ids_of_another_kind_than_at_the_beginning_are_refused() -> None:
    m = eligo.Matcher()
    reader = m.match_stream([{"a": 1}])
    m.add(7, "a = 1")
    with pytest.raises(eligo.OptionError, match="begin it again"):
        reader.read_all()
    assert m.match_stream([{"a": 1}]).read_all()["rule"].to_pylist() == [7]
