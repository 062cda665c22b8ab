"""Memory follows the rules that there are, not those that ever were, nor the events that came."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import Matcher
from eligo.compile.attributes import Attributes
from eligo.compile.strings import Strings
from eligo.language import parse
from eligo.language.reference import matches

INDEXES = ("propagation", "scan", "be-tree", "be-tree-batch", "pst-bloom", "pst-hash")


def test_long_strings_of_events_are_not_remembered() -> None:
    strings = Strings()
    strings.intern("a")
    for n in range(100):
        assert strings.number("x" * 20_000 + str(n)) == -1
    assert not strings.state.misses


def test_short_strings_of_events_are_remembered_up_to_some_bytes() -> None:
    strings = Strings()
    for n in range(100_000):
        assert strings.number(f"a string of an event, number {n}") == -1
        strings.number("often")
    assert strings.state.missed < 5 << 20
    assert len(strings.state.misses) < 50_000
    assert "often" in strings.state.misses


def test_strings_that_rules_name_are_remembered_up_to_some_bytes() -> None:
    strings = Strings()
    numbers = [strings.intern(f"{n:>100}") for n in range(60_000)]
    assert [strings.number(f"{n:>100}") for n in range(60_000)] == numbers
    assert strings._hit < 5 << 20
    assert len(strings.hits) < 50_000


def test_strings_keep_their_numbers_when_others_go() -> None:
    strings = Strings()
    for n in range(100):
        strings.intern(f"string {n}")
    unused = np.array([n % 3 > 0 for n in range(100)])
    fewer = strings.without(unused)
    assert fewer.taken == 34
    assert len(fewer) == 100
    for n in range(100):
        assert fewer.number(f"string {n}") == (-1 if unused[n] else n)
    given = {fewer.intern(f"other {n}") for n in range(80)}
    assert given == set(np.flatnonzero(unused)) | set(range(100, 114))
    for n in range(0, 100, 3):
        assert fewer.text(n) == f"string {n}"
        assert fewer.number(f"string {n}") == n
    data, offsets = fewer.arrays()
    whole = Strings((data, offsets, fewer.slots))
    assert list(whole) == list(fewer)
    assert [whole.number(text) for text in fewer] == list(range(114))
    assert strings.number("string 1") == 1  # the older table goes on
    assert len(strings.without(np.ones(100, np.bool_))) == 0


def test_attributes_keep_their_numbers_when_others_go() -> None:
    attributes = Attributes(["a", "b.c", "d", "e"])
    fewer = attributes.without(np.array([True, False, True, True]))
    assert list(fewer) == ["b.c"]
    assert fewer.metas == {"b.c": 1 << 8}
    assert fewer.paths == {"b"}
    assert [fewer.intern(name) for name in ("x", "b.c", "y")] == [0, 1, 2]
    assert Attributes(fewer.names).metas == fewer.metas
    assert attributes.metas.keys() == {"a", "b.c", "d", "e"}


def replaced(n: int) -> str:
    return f"attribute{n} = 'string {n} {'x' * 200}' and (b like '%pattern {n}%' or b > 'from {n}' or c in ('in {n}', 'c'))"


@pytest.mark.parametrize("index", INDEXES)
def test_one_rule_replaced_many_times_leaves_nothing_behind(index: str, tmp_path: Path) -> None:
    matcher = Matcher(index)
    matcher.add("other", "kept like '%ep%'", tags=["kept"])  # whose string is number 0
    for n in range(3000):
        matcher.add("rule", replaced(n), tags=[f"tag {n}"], replace=True)
    assert matcher.match({"attribute2999": f"string 2999 {'x' * 200}", "c": "in 2999"}) == ["rule"]
    assert matcher.match({"attribute2998": f"string 2998 {'x' * 200}", "c": "in 2998"}) == []
    assert matcher.match({"kept": "kept"}) == ["other"]
    assert set(matcher.attributes) == {"kept", "attribute2999", "b", "c"}
    recipe = matcher.engine.rules.recipe
    assert recipe.strings.taken < 2100
    assert recipe.strings.size < 600_000
    assert recipe.attributes.taken < 2100
    sizes = matcher.stats().arrays
    assert sum(sizes.values()) < 2_000_000, sizes
    matcher.save(tmp_path / "saved")
    written = b"".join(file.read_bytes() for file in (tmp_path / "saved").iterdir())
    assert b"string 2999" in written
    for gone in (b"string 2998", b"tag 2998", b"attribute2998", b"from 2998", b"pattern 2998"):
        assert gone not in written
    opened = eligo.open(tmp_path / "saved")
    assert opened.match({"attribute2999": f"string 2999 {'x' * 200}", "b": "a pattern 2999."}) == ["rule"]
    assert set(opened.attributes) == {"kept", "attribute2999", "b", "c"}
    for n in range(50):
        opened.add("rule", replaced(n), replace=True)
        assert opened.match({f"attribute{n}": f"string {n} {'x' * 200}", "c": f"in {n}"}) == ["rule"]


@pytest.mark.parametrize("index", INDEXES)
def test_attributes_of_removed_rules_are_not_listed(index: str) -> None:
    matcher = Matcher(index)
    matcher.add_many((n, f"a{n} = 1") for n in range(100))
    matcher.remove(5)
    assert "a5" not in matcher.attributes
    assert len(matcher.attributes) == 99
    for n in range(10, 100):
        matcher.remove(n)
    assert set(matcher.attributes) == {f"a{n}" for n in range(10) if n != 5}


@pytest.mark.parametrize("index", INDEXES)
def test_removing_most_rules_frees_their_strings(index: str) -> None:
    matcher = Matcher(index)
    matcher.add_many((n, f"a = 'string {n}'") for n in range(6000))
    matcher.match({"a": "string 7"})
    for n in range(10, 6000):
        matcher.remove(n)
    matcher.engine.rules.wait()
    matcher.remove(0)
    assert matcher.engine.rules.recipe.strings.taken < 3100
    assert matcher.match({"a": "string 7"}) == [7]
    assert matcher.match({"a": "string 70"}) == []


WORDS = ["", "a", "b", "ab", "ba", "abc", "x" * 9, "x" * 9 + "y", "ä", "z%"]


def drawn(rng: random.Random) -> str:
    """A rule over few attributes and many strings, in every shape that a check may have."""
    name, word = f"n{rng.randrange(6)}", lambda: rng.choice(WORDS) + rng.choice(("", str(rng.randrange(40))))
    some = ", ".join(f"'{word()}'" for _ in range(rng.choice((1, 2, 3, 9))))
    one = rng.choice(
        (
            f"{name} = '{word()}'", f"{name} != '{word()}'", f"{name} in ({some})", f"{name} not in ({some})",
            f"{name} >= '{word()}'", f"{name} < '{word()}'", f"{name} like '{word()}%'", f"{name} not like '%{word()}%'",
            f"{name} between '{word()}' and '{word()}'", f"{name} in ({some}, 5, true)", f"m contains any ({some})",
            f"m contains none ({some})",
        )
    )  # fmt: skip
    return one if rng.random() < 0.5 else f"({one}) {rng.choice(('and', 'or'))} ({drawn(rng)})"


def event(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        f"n{n}": rng.choice(WORDS) + rng.choice(("", str(rng.randrange(40)))) for n in range(6) if rng.random() < 0.7
    }
    if rng.random() < 0.5:
        made["m"] = [rng.choice(WORDS) for _ in range(rng.randrange(3))]
    return made


@pytest.mark.parametrize("index", INDEXES)
def test_numbers_given_out_again_mean_what_they_mean_now(
    index: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("eligo.segments.rules._SOME_NAMES", 4)
    monkeypatch.setattr("eligo.segments.rules._SOME_BYTES", 64)
    rng = random.Random(index)
    matcher = Matcher(index, multi=["m"])
    rules: dict[int, str] = {}
    freed, before = 0, matcher.engine.rules.recipe.strings
    for step in range(400):
        if rules and rng.random() < 0.45:
            gone = rng.choice(list(rules))
            matcher.remove(gone)
            del rules[gone]
        elif step % 20 == 7:
            many = {1000 * step + i: drawn(rng) for i in range(5)}
            matcher.add_many(list(many.items()))
            rules |= many
        else:
            rule = rng.randrange(30)
            text = drawn(rng)
            if rule in rules:  # a replaced rule stays where it was
                matcher.add(rule, text, replace=True)
            else:
                matcher.add(rule, text)
            rules[rule] = text
        freed += matcher.engine.rules.recipe.strings is not before
        before = matcher.engine.rules.recipe.strings
        if step % 100 == 50:
            matcher.observe([event(rng) for _ in range(50)])
        if step % 10 == 0:
            asked = [event(rng) for _ in range(6)]
            trees = {rule: parse(text) for rule, text in rules.items()}
            expected = [[r for r, tree in trees.items() if matches(tree, one, multi={"m"})] for one in asked]
            assert [sorted(matcher.match(one)) for one in asked] == [sorted(one) for one in expected]
            batch = matcher.match_batch(asked).to_pydict()
            pairs = sorted(zip(batch["event"], batch["rule"], strict=True))
            assert pairs == sorted((n, rule) for n, found in enumerate(expected) for rule in found)
        if step % 100 == 99:
            matcher.save(tmp_path / "saved")
            matcher = eligo.open(tmp_path / "saved")
            before = matcher.engine.rules.recipe.strings
    assert freed > 1


def test_older_view_goes_on_with_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.segments.rules._SOME_NAMES", 4)
    matcher = Matcher("propagation")
    matcher.add_many((n, f"a = 'old {n}' and b{n} = 1") for n in range(50))
    view, buffer = matcher.engine.rules.view, matcher._buffer()
    for n in range(50):
        matcher.remove(n)
    matcher.add_many((n, f"a = 'new {n}' and c{n} = 1") for n in range(50))
    for n in range(50):
        assert view.ids({"a": f"old {n}", f"b{n}": 1}, buffer, None, None) == [n]
        assert view.ids({"a": f"new {n}", f"b{n}": 1}, buffer, None, None) == []
        assert matcher.match({"a": f"new {n}", f"c{n}": 1}) == [n]


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
def test_batch_sees_changes_made_while_its_events_are_fetched(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.segments.rules._SOME_NAMES", 4)
    monkeypatch.setattr("eligo.segments.encoding._READ", 4)
    matcher = Matcher(index)
    matcher.add_many((n, f"a = 'old {n}'") for n in range(20))

    def events() -> Any:
        for n in range(40):
            if n == 20:
                for old in range(1, 20):
                    matcher.remove(old)
                matcher.add_many((100 + new, f"a = 'new {new}'") for new in range(20))
            yield {"a": f"old {n % 20}"}

    found = matcher.match_batch(events()).to_pydict()
    assert [rule for number, rule in zip(found["event"], found["rule"], strict=True) if number < 20] == list(range(20))
    assert {rule for rule in found["rule"] if rule >= 100} == set()
    assert 0 in [rule for number, rule in zip(found["event"], found["rule"], strict=True) if number == 20]


def test_builders_remember_no_large_predicates() -> None:
    matcher = Matcher("be-tree")
    for n in range(200):
        matcher.add("rule", f"a = '{'x' * 20_000}{n}'", replace=True)
    builder = matcher.engine.rules._builder  # type: ignore[attr-defined]
    assert not builder._predicate_numbers
