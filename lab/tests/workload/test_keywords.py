"""`keywords`: the paper's transformation of words, queries and passages of a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.errors import OptionError
from eligo.language import parse
from eligo_lab.workload.base import generate
from eligo_lab.workload.keywords import split

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
WORDS = [
    first + second + third for first in SYLLABLES[:24] for second in SYLLABLES[24:36] for third in ("", "ns", "tors")
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A text whose words are as unevenly frequent as those of a language."""
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    chosen = rng.choice(WORDS, (300, 40), p=weights / weights.sum())
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(" ".join(line) + ", a 7!" for line in chosen.tolist()))
    return str(file)


@pytest.mark.parametrize(
    ("keyword", "parts"),
    [
        ("boolean", ("boo", "lea")),  # the paper's
        ("vldb", ("vl", "db")),  # the paper's
        ("expressions", ("exp", "res")),
        ("tuning", ("tun", "ing")),
        ("index", ("in", "dex")),
        ("and", ("a", "nd")),
        ("of", ("o", "f")),
    ],
)
def test_a_keyword_is_an_attribute_and_a_value(keyword: str, parts: tuple[str, str]) -> None:
    assert split(keyword) == parts


def test_queries_and_passages(source: str) -> None:
    workload = generate("keywords", rules=1_000, events=100, source=source, event_size=15.0, stop=10)
    assert workload.draft is not None
    workload.draft.check()
    measured = workload.measured
    assert measured["rule_size"] == pytest.approx(2.78, rel=0.03)
    assert measured["event_size"] == pytest.approx(15, rel=0.05)
    assert measured["words"] == 300 * 40
    known = {"=".join(split(word)) for word in WORDS}
    for text in workload.rules["expression"].to_pylist()[:200]:
        parse(text)
        for predicate in text.replace("`", "").split(" and "):
            name, _, value = predicate.partition(" = ")
            assert f"{name}={value.strip(chr(39))}" in known
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    found = matcher.match_batch(workload.events).num_rows
    assert measured["match"] == pytest.approx(found / (1_000 * 100))
    assert found


def test_frequent_words_are_drawn_more_often_unless_left_out(source: str) -> None:
    def share(**parameters: Any) -> float:
        workload = generate(
            "keywords", rules=3_000, events=10, source=source, event_size=15.0, rule_size=1.0, **parameters
        )
        texts = workload.rules["expression"].to_pylist()
        return max(texts.count(text) for text in set(texts)) / len(texts)

    assert share(stop=0, zipf=0.0) < share(stop=50, zipf=1.0) < share(stop=0, zipf=1.0) < share(stop=0, zipf=3.0)


def test_an_event_keeps_the_first_word_of_an_attribute(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text(
        "reading readers reader boolean vldb index tuning of and or by xylophone quartz jumping foxes dwarf"
    )
    workload = generate("keywords", rules=10, events=1, source=str(file), event_size=3.0, rule_size=1.0, stop=0)
    event = workload.events.to_pylist()[0]
    assert event["rea"] == "din"
    assert event["boo"] == "lea"
    assert "o" not in event


def test_the_same_seed_makes_the_same_tables(source: str) -> None:
    def made(seed: int) -> Any:
        return generate("keywords", rules=500, events=400, source=source, event_size=10.0, stop=10, seed=seed)

    assert made(1).rules.equals(made(1).rules)
    assert made(1).events.equals(made(1).events)
    assert not made(1).rules.equals(made(2).rules)
    assert set(made(1).parameters) >= {"rules", "events", "source", "zipf", "stop", "seed", "text", "text_hash"}


def test_the_prose_that_python_has() -> None:
    workload = generate("keywords", rules=5_000, events=50, source="python")
    assert workload.measured["different_words"] > 2_000
    assert workload.measured["event_size"] == pytest.approx(93, rel=0.05)
    assert 0 < workload.measured["match"] < 0.05


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"rule_size": 0.5}, "rule_size=0.5"),
        ({"zipf": 6.0}, "zipf=6"),
        ({"stop": -1}, "stop=-1"),
        ({"stop": 10_000}, "stop=10000"),
        ({"event_size": 5_000.0}, "event_size=5000 .* larger source"),
        ({"events": 10_000_000, "event_size": 10.0}, "cells"),
        ({"source": "no/such/file"}, "neither"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(source: str, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        generate("keywords", **{"rules": 100, "events": 10, "source": source, "stop": 10, **parameters})
