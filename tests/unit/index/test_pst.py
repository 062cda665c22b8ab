"""`pst-hash` and `pst-bloom`: hard values, splits and merges under load, bounded memory, selectivity from events."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.pools import BY_DEPTH, COPIES, KEYS, MOVED, ROWS, Pools
from eligo.index.rows.allocator import USED
from eligo.language import parse
from eligo.language.reference import matches, multi_valued
from eligo.prove.draw import THEMES
from eligo.prove.rounds import Round
from eligo.segments.living.living import LivingSet
from invariants.ps_tree import verify_index

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("pst-hash", {}),
    ("pst-hash", {"crowd": 1}),
    ("pst-hash", {"crowd": 1, "accesses": 3, "max_keys": 4}),
    ("pst-bloom", {}),
    ("pst-bloom", {"signatures": 3}),
]
both = pytest.mark.parametrize(("index", "options"), KINDS, ids=lambda value: str(value))


def inner(m: eligo.Matcher) -> PsIndex:
    rules = m.engine.rules
    assert isinstance(rules, LivingSet)
    assert isinstance(rules.structure.index, PsIndex)
    return rules.structure.index


def check(m: eligo.Matcher, rules: dict[str, str], events: list[dict[str, Any]]) -> None:
    """The matcher says what the reference says, one by one and in a batch."""
    trees = {name: parse(text) for name, text in rules.items()}
    multi = frozenset(m.multi).union(*(multi_valued(tree) for tree in trees.values()))
    verify_index(inner(m))
    for event in events:
        wanted = [name for name, tree in trees.items() if matches(tree, event, "fails", multi)]
        assert m.match(event) == wanted, event


HARD: dict[str, str] = {
    "largest": "n = 9223372036854775807",
    "lowest": "n = -9223372036854775808",
    "above 2^53": "n > 9007199254740992",
    "2^53 + 1": "n = 9007199254740993",
    "tiny": "n > 0.0 and n < 1e-300",
    "zero": "n = 0",
    "minus zero": "n >= -0.0 and n <= 0.0",
    "adjacent": "n > 0.1 and n < 0.10000000000000002",
    "next": "n = 0.10000000000000002",
    "open": "n > 5 and n < 6",
    "short line": "n between -524288 and 524288",
    "beyond it": "n > 524287",
    "true": "b = true",
    "bare": "b",
    "not": "not b",
    "day": "t = date '2026-01-31'",
    "since": "t >= timestamp '2026-01-31 12:00:00Z'",
    "empty": "s = ''",
    "before all": "s < 'a'",
    "prefix": "s like 'Sun%'",
    "longer": "s like 'Sunday%'",
    "nested": "s like 'Sunday morning, very early%'",
    "seven": "s > 'abcdefg'",
    "eight": "s >= 'abcdefgh' and s < 'abcdefgi'",
    "long": "s = '" + "x" * 5000 + "'",
    "very long": "s > '" + "x" * 4999 + "'",
    "pattern": "s like '%day'",
    "other than": "s != 'Sunday' and n != 3",
    "few": "n in (1, 2, 3, 1000000, 0.5)",
    "none of": "n not in (1, 2, 3)",
    "nothing there": "s is null",
    "together": "n = 3 and b and s like 'S%' and t < date '2027-01-01'",
}
HARD_VALUES: dict[str, list[Any]] = {
    "n": [
        2**63 - 1, -(2**63), 2**53, 2**53 + 1, 2**53 - 1, float(2**53), 0, -0.0, 0.0, 5e-324, 1e-301, 0.1,
        math.nextafter(0.1, 1), 5, 5.5, 6, 524287, 524288, 524288.5, -524288, -524289, math.inf, -math.inf, 3, 1000000,
    ],
    "b": [True, False],
    "t": [date(2026, 1, 31), datetime(2026, 1, 31, 12, tzinfo=UTC), date(1, 1, 1), date(9999, 12, 31)],
    "s": ["", "a", "Sun", "Sunday", "Sunday morning, very early on", "Sunda", "abcdef", "abcdefg", "abcdefgh", "abcdefg\0",
          "abcdefgi", "x" * 5000, "x" * 5001, "\0", "Zoë", "day"],
}  # fmt: skip


@both
def test_hard_values(index: str, options: dict[str, Any]) -> None:
    m = eligo.Matcher(index, options=options)
    m.add_many(HARD.items())
    rng = random.Random(1)
    events = [{name: value} for name, values in HARD_VALUES.items() for value in values]
    events += [{name: rng.choice(values) for name, values in HARD_VALUES.items()} for _ in range(60)]
    events += [{}, {"other": 1}, {"n": "3", "b": 1, "s": 5, "t": True}]
    events += [
        {"n": eligo.Between(0, 5)},
        {"n": eligo.Above(2**53)},
        {"t": eligo.Below(date(2026, 2, 1))},
        {"n": eligo.NoneOf(3)},
    ]
    check(m, HARD, events)
    for name in list(HARD)[::2]:
        m.remove(name)
    check(m, {name: text for name, text in HARD.items() if name in m}, events)


def some_rule(rng: random.Random) -> str:
    parts = []
    for name in rng.sample(["x", "y", "z", "w"], rng.randint(1, 3)):
        low = rng.randint(0, 60)
        kind = rng.randrange(8)
        high = low + rng.choice((0, 1, 5, 40))
        parts.append(
            f"{name} between {low} and {high}" if kind < 3
            else f"{name} = {low}" if kind == 3
            else f"{name} > {low / 4}" if kind == 4
            else f"{name} in ({', '.join(str(low + 3 * i) for i in range(rng.randint(1, 9)))})" if kind == 5
            else f"{name} != {low}" if kind == 6
            else f"{name} <= {low}"
        )  # fmt: skip
    return " and ".join(parts)


@both
def test_splits_and_merges_under_load(index: str, options: dict[str, Any]) -> None:
    rng = random.Random(7)
    m = eligo.Matcher(index, options=options)
    rules: dict[str, str] = {}
    for step in range(5):
        coming = {f"{step}-{i}": some_rule(rng) for i in range(300)}
        m.add_many(coming.items())
        rules.update(coming)
        for name in rng.sample(sorted(rules), len(rules) // 2):
            m.remove(name)
            del rules[name]
        events: list[dict[str, Any]] = [
            {name: rng.choice((rng.randint(0, 100), rng.randint(0, 400) / 4)) for name in rng.sample("xyzw", 3)}
            for _ in range(12)
        ]
        events.append({"x": eligo.Between(10, 30), "y": 7})
        check(m, rules, events)
    for name in list(rules):
        m.remove(name)
    check(m, {}, [{"x": 5}])
    pools = inner(m).pools
    assert not pools.root.any(), "a line is left though no rule is"
    assert pools.heads[0] == pools.heads[1] + 2
    assert pools.tree_heads[0] == pools.tree_heads[1] + 2


@both
def test_memory_is_bounded_where_every_predicate_covers_every_space(index: str, options: dict[str, Any]) -> None:
    m = eligo.Matcher(index, options=options)
    names = [f"a{i}" for i in range(6)]
    rules = {f"value {i}": f"{names[i % 6]} = {i}" for i in range(600)}
    rules |= {f"wide {i}": " and ".join(f"{name} > {-i - 1}" for name in names) for i in range(1500)}
    rules |= {f"never met {i}": " and ".join(f"{name} != {i}" for name in names) for i in range(300)}
    m.add_many(rules.items())
    state = inner(m).pools.state
    assert state[COPIES] <= 16 * state[ROWS] + 2048
    assert inner(m).bytes() < 1500 * state[ROWS]
    assert m.stats().notes["found by presence alone"] > 0
    check(m, rules, [dict.fromkeys(names, 5), {"a0": 7}, dict.fromkeys(names, -700.5)])


@both
def test_rules_that_nothing_could_find_are_always_verified(index: str, options: dict[str, Any]) -> None:
    m = eligo.Matcher(index, absent="classical", options=options)
    m.add("a", "x is null")
    m.add("b", "not (x = 1) and y is null")
    m.add("c", "x = 1")
    assert m.stats().notes["always verified"] == 2
    assert m.match({}) == ["a", "b"]
    assert m.match({"x": 1}) == ["c"]
    assert m.match({"x": 2}) == ["b"]


def test_many_rules_of_one_value_go_by_further_predicates() -> None:
    m = eligo.Matcher("pst-hash", options={"crowd": 4, "accesses": 3})
    rules = {f"{i}": f"x = 1 and y = {i % 3} and z = {i % 2} and w > {i}" for i in range(200)}
    m.add_many(rules.items())
    state = inner(m).pools.state
    assert state[KEYS] > 0
    assert state[BY_DEPTH + 3] > 0
    check(m, rules, [{"x": 1, "y": y, "z": z, "w": w} for y in range(3) for z in range(2) for w in (0, 5, 150)])


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom"])
def test_events_seen_change_what_rules_are_found_by(index: str) -> None:
    m = eligo.Matcher(index)
    rules = {f"{i}": f"seldom = {i % 5} and always = {i % 7}" for i in range(35)}
    m.add_many(rules.items())  # of seven values one is less likely than of five
    m.observe([{"always": i % 7} if i % 50 else {"seldom": i % 5, "always": i % 7} for i in range(2000)])
    moved = int(inner(m).pools.state[MOVED])
    assert moved >= 25  # the first few came before it was known how many values there are
    assert m.stats().notes["rules moved"] == moved
    check(m, rules, [{"seldom": 1, "always": 1}, {"seldom": 3}, {"always": 2}, {"seldom": 4, "always": 4}])


@both
def test_a_snapshot_opens_and_goes_on_changing(index: str, options: dict[str, Any], tmp_path: Path) -> None:
    rng = random.Random(3)
    rules = {f"{i}": some_rule(rng) for i in range(150)}
    m = eligo.Matcher(index, options=options)
    m.add_many(rules.items())
    m.save(tmp_path / "rules.eligo")
    again = eligo.open(tmp_path / "rules.eligo")
    more = {f"more {i}": some_rule(rng) for i in range(100)}
    again.add_many(more.items())
    for name in list(rules)[::3]:
        again.remove(name)
        del rules[name]
    check(again, rules | more, [{"x": x, "y": x / 2, "z": 3, "w": 60 - x} for x in range(0, 60, 7)])


@both
def test_strings_that_nobody_asks_in_order_any_more(index: str, options: dict[str, Any]) -> None:
    m = eligo.Matcher(index, options=options)
    rules = {f"{i}": f"s = 'text {i}'" for i in range(3000)}
    m.add_many(rules.items())
    for text in ("s < 'aaaaaaab'", "s like 'text and more%'", "s between 'aaaaaaaa' and 'aaaaaaaabbbbbbbc'"):
        m.add("in order", text)
        m.add("beside", "s > 'aaaaaaaa'")
        m.remove("in order")
        m.remove("beside")
    assert not inner(m).pools.root[12::16].any()
    check(m, {}, [])
    assert m.match({"s": "text 2999"}) == ["2999"]


@both
def test_a_range_that_meets_more_spaces_than_there_is_room_for(index: str, options: dict[str, Any]) -> None:
    m = eligo.Matcher(index, options=options)
    rules = {f"{i}": f"a = {i}" for i in range(1200)} | {f"b{i}": f"b{i} between 1 and 3" for i in range(30)}
    m.add_many(rules.items())
    others = {f"b{i}": 2 for i in range(30)}
    assert m.match({"a": eligo.Between(0, 5000), **others}) == list(rules)
    assert m.match({"a": eligo.Between(0, 500), **others}) == [*map(str, range(501)), *others]


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom"])
def test_minutes_of_one_day_are_told_apart(index: str) -> None:
    m = eligo.Matcher(index)
    clock = [f"timestamp '2026-03-05 {i // 60:02}:{i % 60:02}:00Z'" for i in range(1440)]
    m.add_many((i, f"t between {clock[i]} and {clock[i + 1]}") for i in range(1439))
    assert m.stats().notes["found by presence alone"] < 100
    assert m.match({"t": datetime(2026, 3, 5, 12, 0, 30, tzinfo=UTC)}) == [720]


def candidates(m: eligo.Matcher, events: list[dict[str, Any]]) -> float:
    before = m.stats().candidates
    for event in events:
        m.match(event)
    return (m.stats().candidates - before) / len(events)


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom"])
def test_ranges_in_ascending_order_do_not_end_up_in_one_space(index: str) -> None:
    m, count = eligo.Matcher(index), 6000
    for first in range(0, count, 1000):
        m.add_many([(n, f"x between {5 * n} and {5 * n + 20}") for n in range(first, first + 1000)])
    events = [{"x": random.Random(n).randrange(5 * count)} for n in range(2000)]
    m.match_batch(events)  # so that what was wide among the first rules moves to where narrow ranges are
    assert candidates(m, events[:200]) < 200
    for event in events[:50]:
        assert sorted(m.match(event)) == [n for n in range(count) if 5 * n <= event["x"] <= 5 * n + 20]
    # A window that moves on.
    for n in range(count // 2):
        m.remove(n)
    m.add_many([(n, f"x between {5 * n} and {5 * n + 20}") for n in range(count, 3 * count // 2)])
    verify_index(inner(m))
    assert candidates(m, [{"x": 5 * n} for n in range(count, 3 * count // 2, 100)]) < 200


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom"])
def test_many_prefixes_are_told_apart(index: str) -> None:
    m = eligo.Matcher(index)
    names = [f"{n:05d}" for n in range(4000)]
    m.add_many([(name, f"s like '{name}%'") for name in names])
    verify_index(inner(m))
    assert candidates(m, [{"s": f"{name} and more"} for name in names[::50]]) < 300
    assert m.match({"s": "01234 and more"}) == ["01234"]


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom", "be-tree"])
def test_more_attributes_than_a_check_of_one_word_can_name(index: str) -> None:
    m, last = eligo.Matcher(index), 33_000
    # 16,384 and 32,768 are where an attribute's number needs one bit more.
    some = sorted({*range(0, last, 501), 16383, 16384, 32767, 32768, last - 1})
    m.add_many([("all", " or ".join(f"a{n} = {n}" for n in range(last)))])
    m.add_many([(str(n), f"a{n} between {n} and {n + 3} and a{n} != {n + 2} and b in (1, 3)") for n in some])
    for n in some:
        assert m.match({f"a{n}": n, "b": 3}) == ["all", str(n)]
        assert m.match({f"a{n}": n + 1, "b": 1}) == [str(n)]
        assert m.match({f"a{n}": n + 2, "b": 1}) == []
        assert m.match({f"a{n}": n + 1, "b": 2}) == []


def test_more_spaces_than_half_a_word_of_a_signature_can_name() -> None:
    m, count = eligo.Matcher("pst-bloom"), 70_000
    m.add_many([(n, f"a = {n} and b = {n % 1000}") for n in range(count)])
    for n in (0, 999, 65_533, 65_534, 65_535, 65_536, count - 1):
        assert m.match({"a": n, "b": n % 1000}) == [n]
        assert m.match({"a": n, "b": (n + 1) % 1000}) == []


@pytest.mark.parametrize("index", ["pst-hash", "pst-bloom"])
def test_strings_that_differ_far_behind_their_beginning_take_no_more_room_than_there_is(index: str) -> None:
    """A cut at a long string makes many spaces, so that rules found by several predicates get keys by the dozen."""
    own = {"accesses": 5, "crowd": 1, "max_keys": 64} if index == "pst-hash" else {}
    for seed in range(6):
        draw = random.Random(seed)
        rules = [
            " and ".join(
                f"{name} {draw.choice(('>=', '<'))} '{'p' * draw.choice((0, 8, 20, 64, 100))}{draw.randrange(9)}'"
                for name in draw.sample("abcde", draw.randint(2, 5))
            )
            for _ in range(draw.choice((40, 300)))
        ]
        events = [{name: "p" * draw.choice((0, 8, 20, 64, 100)) + "4" for name in "abcde"} for _ in range(20)]
        several, slow = eligo.Matcher(index, options=own), eligo.Matcher("scan")
        for matcher in (several, slow):
            matcher.add_many(enumerate(rules))
        for number, rule in enumerate(rules[:20]):
            for matcher in (several, slow):
                matcher.add(number, rule, replace=True)
        assert [several.match(event) for event in events] == [slow.match(event) for event in events]


def test_whatever_an_insertion_moves_there_is_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that many keys and ranges share: a cut, or a row, may move more than all the words there are."""
    used = Pools.used

    def checked(self: Pools) -> dict[str, int]:
        assert self.heads[USED] <= len(self.words)
        assert self.tree_heads[USED] <= len(self.tree)
        return used(self)

    monkeypatch.setattr(Pools, "used", checked)
    theme = next(theme for theme in THEMES if theme.name == "crowd")
    drawn = Round(theme, 20261119)
    for index in ("pst-hash", "pst-bloom"):
        for setup in drawn.setups([index], ["scan", "interval"]):
            assert drawn.compare(setup)[1] is None
