"""`authors` and `titles`: the paper's transformation, real strings first, and the text that they come from."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo.errors import OptionError
from eligo.language import parse
from eligo_lab.workload import real_text, recombine
from eligo_lab.workload.base import Workload, generate
from eligo_lab.workload.grams import ATTRIBUTES, VALUES, grams

PEOPLE = "Ada Lovelace\nAlan Turing\nÉmile Borel\nGrace B. Hopper\nAda Lovelace\nEmmy Noether\nKurt Goedel\n\n"
LINES = "\n".join(
    f"{tool} - {what} for {whom}"
    for tool in ("grep", "sorter", "packer", "viewer", "parser")
    for what in ("a small and quick program", "shared library files", "the documentation")
    for whom in ("large text files", "pictures and sounds", "network traffic")
)


@pytest.fixture
def people(tmp_path: Path) -> str:
    file = tmp_path / "people.txt"
    file.write_text(PEOPLE, "utf-8")
    return str(file)


@pytest.fixture
def lines(tmp_path: Path) -> str:
    file = tmp_path / "lines.txt"
    file.write_text(LINES)
    return str(file)


def pairs(text: str) -> list[tuple[str, str]]:
    found = grams(pa.array([text]))
    return [(ATTRIBUTES[a], VALUES[v]) for a, v in zip(found.attribute, found.value, strict=True)]


def test_the_paper_s_own_example() -> None:
    assert pairs("string") == [("st", "r"), ("tr", "i"), ("ri", "n"), ("in", "g")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("ab", []),
        ("- a, b!", [("other", "b")]),  # a_b
        ("ABC", [("ab", "c")]),
        ("ann lee", [("an", "n"), ("nn", "_"), ("other", "l"), ("le", "e")]),  # n_l, then _le: the first stands
        ("banana", [("ba", "n"), ("an", "a"), ("na", "n")]),  # an = 'a' twice, and na only once with a third letter
        ("x -- yz.", [("other", "y")]),
        ("é", []),
    ],
)
def test_grams(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text) == found


def test_grams_of_a_sliced_array() -> None:
    strings = pa.array(["zzzz", "string", "ab", "abc"]).slice(1)
    assert np.diff(grams(strings).offsets).tolist() == [4, 0, 1]


def test_there_are_677_dimensions() -> None:
    assert len(ATTRIBUTES) == len(set(ATTRIBUTES)) == 677
    assert len(VALUES) == 27
    assert list(VALUES) == sorted(VALUES)


def test_rules_say_the_strings(people: str) -> None:
    workload = generate("authors", rules=6, events=6, source=people)
    texts = workload.rules["expression"].to_pylist()
    assert len(texts) == 6
    assert (
        "al = 'a' and la = 'n' and an = '_' and other = 't' and tu = 'r' and ur = 'i' and ri = 'n' and `in` = 'g'"
        in texts
    )
    assert any(text.startswith("em = 'i' and mi = 'l'") for text in texts), "accents are dropped"
    for text in texts:
        parse(text)
    assert workload.measured["verbatim"] == 6
    assert workload.measured["recombined"] == 0
    assert workload.parameters["text"] == "people.txt"
    assert len(str(workload.parameters["text_hash"])) == 16


def test_every_event_matches_its_own_rule(lines: str) -> None:
    workload = generate("titles", rules=45, events=200, source=lines)
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    answer = matcher.match_batch(workload.events)
    assert len(set(answer["event"].to_pylist())) == 200
    assert workload.measured["match"] == pytest.approx(answer.num_rows / (45 * 200))


def test_held_out_strings_are_those_of_no_rule(lines: str) -> None:
    workload = generate("titles", rules=40, events=10, source=lines, held_out=0.5)
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    answer = matcher.match_batch(workload.events)
    assert len(set(answer["event"].to_pylist())) == 5


def test_what_is_not_real_is_counted(people: str, lines: str) -> None:
    for name, source, real in (("authors", people, 6), ("titles", lines, 45)):
        workload = generate(name, rules=300, events=5, source=source)
        assert workload.draft is not None
        workload.draft.check()
        assert workload.measured["verbatim"] == real
        assert workload.measured["recombined"] == 300 - real


def test_recombined_names_and_titles_are_of_real_words() -> None:
    rng = np.random.default_rng(1)
    made = recombine.names(rng, pa.array(["ada lovelace", "alan m. turing", "plato"]), 200).to_pylist()
    assert {"ada turing", "a. lovelace"} <= set(made)
    assert {name.split()[-1] for name in made} == {"lovelace", "turing"}
    lines = pa.array(["a red fox ran", "the red hen sat"], pa.large_string())
    titles = set(recombine.titles(rng, lines, 200).to_pylist())
    assert titles == {"a red fox ran", "a red hen sat", "the red fox ran", "the red hen sat"}


def test_the_same_seed_and_text_make_the_same_tables(people: str, tmp_path: Path) -> None:
    again = tmp_path / "again.txt"
    again.write_text("\n".join(sorted(PEOPLE.splitlines(), reverse=True)), "utf-8")
    first = generate("authors", rules=500, events=50, source=people)
    same = generate("authors", rules=500, events=50, source=str(again))
    other = generate("authors", rules=500, events=50, source=people, seed=2)
    assert first.rules.equals(same.rules)
    assert first.events.equals(same.events)
    assert first.parameters["text_hash"] == same.parameters["text_hash"]
    assert not first.rules.equals(other.rules)


@pytest.mark.parametrize(("operators", "equality"), [("min", 1.0), ("low", 0.3), ("med", 0.3), ("high", 0.3)])
def test_a_match_probability_asked_is_reached(operators: str, equality: float) -> None:
    workload = generate(
        "titles", rules=1_000, events=100, source="python", match=0.05, operators=operators, equality=equality
    )
    assert workload.measured["match"] == pytest.approx(0.05, rel=0.1)
    assert workload.measured["rule_size"] == pytest.approx(30, rel=0.05)
    assert workload.measured["event_size"] == pytest.approx(43, rel=0.05)
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    found = matcher.match_batch(workload.events).num_rows / (1_000 * 100)
    assert found == pytest.approx(0.05, rel=0.1)


@pytest.fixture(scope="module")
def real() -> Workload:
    return generate("authors", rules=20_000, events=100, source="python")


def test_what_python_itself_has_is_enough(real: Workload) -> None:
    assert 5.5 < real.measured["rule_size"] < 11
    assert real.measured["verbatim"] > 10
    assert str(real.parameters["text"]).startswith("python 3.")
    titles = generate("titles", rules=20_000, events=100, source="python")
    assert 28 < titles.measured["rule_size"] < 42
    assert titles.measured["verbatim"] > 1_000
    assert 400 < titles.measured["dimensions"] <= 677


def test_debian_s_files_are_read_packed_or_not(tmp_path: Path) -> None:
    lists, doc = tmp_path / "var/lib/apt/lists", tmp_path / "usr/share/doc/tool"
    status = tmp_path / "var/lib/dpkg"
    for folder in (lists, doc, status):
        folder.mkdir(parents=True)
    stanza = "Package: {}\nMaintainer: {} <x@example.org>\nDescription: a {} tool\n It has a long\n .\n description.\nTag: x\n"
    (lists / "x_Packages").write_text(stanza.format("one", "Ann Lee", "first"))
    (lists / "y_Packages.gz").write_bytes(gzip.compress(stanza.format("two", "Debian Tool Team", "second").encode()))
    (lists / "z_Packages.xz").write_bytes(lzma.compress(stanza.format("three", '"Bob Ray"', "third").encode()))
    (lists / "broken_Packages.xz").write_bytes(b"nothing of the kind")
    (lists / "x_Release").write_text("Package: none\nDescription: none\n")
    (status / "status").write_text("Package: four\nStatus: installed\nDescription: short\n\n")
    (doc / "copyright").write_text("Copyright: 2001 Cal Orr <cal@example.org>\n 2002 Somebody without an address\n")
    assert list(real_text.debian("titles", tmp_path)) == [
        "one - a first tool", "two - a second tool", "three - a third tool", "four - short"
    ]  # fmt: skip
    assert list(real_text.debian("people", tmp_path)) == ["Ann Lee", "Bob Ray", "Cal Orr"]
    assert next(real_text.debian("prose", tmp_path)) == "one a first tool It has a long  description"
    assert not list(real_text.debian("titles", tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"source": "no/such/file"}, "neither auto, debian or python nor the path"),
        ({"held_out": 1.5}, "held_out=1.5 is no share"),
        ({"match": 0.9}, "match=0.9"),
        ({"match": 0.01, "operators": "most"}, "none of min, low, med, high"),
        ({"match": 0.01, "operators": "min"}, "1 with operators=min"),
        ({"match": 0.01, "rule_size": 20.0}, "rule_size=20 and event_size=16"),
        ({"match": 0.01, "event_size": 500.0}, "event_size=500 with a source of .* different attributes"),
        ({"rules": 100_000}, "cannot be made of the 6 lines"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(people: str, parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=f"(?s){reason}"):
        generate("authors", **{"rules": 100, "events": 10, "source": people, **parameters})


def test_strings_without_a_gram_make_no_rule(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("ab\n42\nabc\nno\na b\n")
    workload = generate("titles", rules=2, events=2, source=str(file))
    assert sorted(workload.rules["expression"].to_pylist()) == ["ab = 'c'", "other = 'b'"]


def test_a_source_without_text_is_refused(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("\n \n")
    binary.write_bytes(b"\xff\xfe\x00\x81")
    for file, reason in ((empty, "no lines"), (binary, "UTF-8")):
        with pytest.raises(OptionError, match=reason):
            generate("titles", rules=1, events=1, source=str(file))
