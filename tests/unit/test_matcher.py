"""The public class: rules in and out, answers, and what is refused."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo import Above, Below, Between, Matcher, NoneOf, OneOf, attr


@pytest.fixture(autouse=True, params=["live", "sealed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that come one by one are looked through, or indexed at once: every test holds either way."""
    if request.param == "sealed":
        monkeypatch.setattr("eligo.segments.rule_set.SEALED", 1)


@pytest.fixture
def m() -> Matcher:
    matcher = Matcher()
    matcher.add("adult", "age >= 18 and country in ('US', 'CA')", weight=2.0, tags=("tenant-7", "new"))
    matcher.add("minor", "age < 18", weight=5.0, tags=("tenant-7",))
    matcher.add("any", "age is not null", tags=("tenant-8",))
    return matcher


def test_rules_in_every_form_mean_the_same() -> None:
    m = Matcher()
    m.add("text", "age >= 18 and country in ('US', 'CA')")
    m.add(
        "json",
        {"and": [{"attr": "age", "op": ">=", "value": 18}, {"attr": "country", "op": "in", "value": ["US", "CA"]}]},
    )
    m.add(
        "encoded",
        '{"and": [{"attr": "age", "op": ">=", "value": 18}, {"attr": "country", "op": "in", "value": ["US", "CA"]}]}',
    )
    m.add("python", (attr("age") >= 18) & attr("country").is_in(["US", "CA"]))
    assert m.match({"age": 20, "country": "US"}) == ["text", "json", "encoded", "python"]
    assert m.stats().conjunctions == 1
    assert m.get("python").expression == "age >= 18 and country in ('US', 'CA')"


def test_answers_come_in_the_order_of_adding(m: Matcher) -> None:
    assert m.match({"age": 20, "country": "US"}) == ["adult", "any"]
    m.add("adult", "age >= 21", replace=True)
    assert m.match({"age": 30}) == ["adult", "any"]
    assert list(m) == ["adult", "minor", "any"]
    m.remove("adult")
    m.add("adult", "age >= 21")
    assert m.match({"age": 30}) == ["any", "adult"]


def test_tags_and_limit(m: Matcher) -> None:
    event = {"age": 20, "country": "US"}
    assert m.match(event, tags=["tenant-7"]) == ["adult"]
    assert m.match(event, tags=["tenant-7", "tenant-8"]) == ["adult", "any"]
    assert m.match(event, tags="tenant-8") == ["any"]
    assert m.match(event, tags=["nobody"]) == []
    assert m.match(event, tags=[]) == []
    assert m.match(event, limit=1) == ["adult"]
    assert m.match(event, limit=0) == []
    assert m.match_batch([event, event], limit=1).to_pydict() == {"event": [0, 1], "rule": ["adult", "adult"]}
    assert m.match_batch([event], tags=["new"]).to_pydict() == {"event": [0], "rule": ["adult"]}
    with pytest.raises(ValueError, match="limit"):
        m.match(event, limit=-1)


def test_top_is_by_weight_then_by_order(m: Matcher) -> None:
    m.add("later", "age > 0", weight=2.0)
    assert m.top({"age": 20, "country": "US"}, k=2) == [("adult", 2.0), ("later", 2.0)]
    assert m.top({"age": 20, "country": "US"}) == [("adult", 2.0), ("later", 2.0), ("any", 1.0)]
    assert m.top({}, k=3) == []


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_best_of_many_events_are_those_of_one(index: str, parts: int) -> None:
    m = Matcher(index=index)
    rules = [(f"r{i}", f"a >= {i % 7}", float(i % 4), [f"t{i % 2}"]) for i in range(60)]
    for part in range(parts):
        m.add_many(rules[part::parts])
    some: list[dict[str, Any]] = [{"a": 3}, {}, {"a": -1}, {"a": 9}, {"a": 0}]
    for k, tags in ((3, None), (100, None), (5, ["t1"]), (0, None)):
        found = m.top_batch(some, k, tags=tags)
        rows = list(zip(*(found[name].to_pylist() for name in ("event", "rule", "weight")), strict=True))
        assert rows == [(i, *best) for i, event in enumerate(some) for best in m.top(event, k, tags=tags)]


def test_len_in_get_iter(m: Matcher) -> None:
    assert len(m) == 3
    assert "adult" in m
    assert "nobody" not in m
    assert 5 not in m
    assert None not in m
    rule = m.get("adult")
    assert (rule.id, rule.weight, rule.tags) == ("adult", 2.0, ("tenant-7", "new"))
    with pytest.raises(eligo.UnknownRuleError, match="nobody"):
        m.get("nobody")
    with pytest.raises(KeyError):
        m.remove("nobody")


def test_an_empty_matcher_answers() -> None:
    m = Matcher()
    assert m.match({"a": 1}) == []
    assert m.match_batch([{"a": 1}]).num_rows == 0
    assert m.match_batch(pa.table({"a": [1]})).schema == pa.schema([("event", pa.int64()), ("rule", pa.string())])
    assert m.top({"a": 1}) == []
    assert list(m) == []
    assert m.stats().rules == 0


def test_integer_ids() -> None:
    m = Matcher()
    m.add_many([(5, "a = 1"), (-3, "a = 1"), (2**63 - 1, "a = 1")])
    assert m.match({"a": 1}) == [5, -3, 2**63 - 1]
    assert m.match_batch([{"a": 1}])["rule"].type == pa.int64()
    assert -3 in m
    m.remove(-3)
    assert m.match({"a": 1}) == [5, 2**63 - 1]
    with pytest.raises(eligo.RuleTypeError, match="one kind"):
        m.add("x", "a = 1")


@pytest.mark.parametrize("rule", [None, 1.5, True, b"x", ("a",), 2**63, "\ud800"])
def test_odd_ids_are_refused(rule: Any) -> None:
    m = Matcher()
    with pytest.raises(eligo.RuleTypeError):
        m.add(rule, "a = 1")
    assert len(m) == 0


def test_a_refused_rule_changes_nothing(m: Matcher) -> None:
    for rule, expression, kwargs in [
        ("adult", "age > 1", {}),
        ("new", "age >", {}),
        ("new", "exists d (age < d.age)", {}),
        ("new", "age > 1", {"weight": math.nan}),
        ("new", "age > 1", {"weight": "heavy"}),
        ("new", "age > 1", {"tags": (1,)}),
        ("adult", "age >", {"replace": True}),
        ("new", 5, {}),
        ("new", None, {}),
    ]:
        with pytest.raises(eligo.EligoError):
            m.add(rule, expression, **kwargs)  # type: ignore[arg-type]
        assert list(m) == ["adult", "minor", "any"]
        assert m.match({"age": 20, "country": "US"}) == ["adult", "any"]


def test_bulk_load_collects_rejects() -> None:
    m = Matcher()
    rejects = m.add_many(
        [("a", "x = 1"), ("b", "x ="), ("a", "x = 2"), {"id": "c", "expression": "x > 0", "weight": 3}, "nonsense",
         {"id": None, "expression": "x = 1"}, ("d", "x = 1", None, None)],
        on_error="collect",
    )  # fmt: skip
    assert [(r.row, r.id, r.position) for r in rejects] == [(1, "b", 3), (2, "a", -1), (4, None, -1), (5, None, -1)]
    assert m.match({"x": 1}) == ["a", "c", "d"]
    assert m.get("c").weight == 3.0


def test_bulk_load_that_raises_adds_nothing() -> None:
    m = Matcher()
    m.add("z", "x = 1")
    with pytest.raises(eligo.RuleSyntaxError, match=r"rule 'b' \(row 1\)"):
        m.add_many([("a", "x contains any (1)"), ("b", "x =")])
    assert list(m) == ["z"]
    with pytest.raises(eligo.EventError):
        m.match({"x": [1]})
    with pytest.raises(eligo.DuplicateRuleError):
        m.add_many([("a", "x = 1"), ("a", "x = 2")])
    assert m.match({"x": 1}) == ["z"]


def test_bulk_load_from_arrow_pandas_and_mapping() -> None:
    table = pa.table({"id": ["a", "b"], "expression": ["x = 1", "x > 0"], "weight": [1.0, None], "tags": [["t"], None]})
    m = Matcher()
    m.add_many(table)
    m.add_many({"c": "x < 5"})
    assert m.match({"x": 1}) == ["a", "b", "c"]
    assert m.get("a").tags == ("t",)
    frame = pytest.importorskip("pandas").DataFrame({"id": [1, 2], "expression": ["x = 1", "x = 2"]})
    n = Matcher()
    n.add_many(frame)
    assert n.match({"x": 2}) == [2]
    with pytest.raises(eligo.RuleTypeError, match="missing expression"):
        n.add_many(pa.table({"id": [3]}))


def test_bulk_replace() -> None:
    m = Matcher()
    m.add_many([("a", "x = 1"), ("b", "x = 1")])
    m.add_many([("a", "x = 2"), ("c", "x = 2"), ("a", "x = 3")], replace=True)
    assert m.match({"x": 3}) == ["a"]
    assert m.match({"x": 2}) == ["c"]
    assert list(m) == ["a", "b", "c"]


# Several values


def test_contains_makes_an_attribute_multi_valued() -> None:
    m = Matcher()
    m.add("bounds", "a >= 10 and a <= 30")
    m.add("never", "a < 5 and a > 7")
    with pytest.raises(eligo.EventError, match=r"multi=\['a'\]"):
        m.match({"a": [5, 50]})
    m.add("both", "a contains all (5, 50)")
    assert m.match({"a": [5, 50]}) == ["bounds", "both"]
    assert m.match({"a": [3, 50]}) == ["bounds", "never"]
    assert m.match({"a": 20}) == ["bounds"]
    m.remove("both")
    assert m.match({"a": [5, 50]}) == ["bounds"]  # it stays multi-valued
    assert m.match({"a": 20}) == ["bounds"]


@pytest.mark.parametrize("index", ["auto", "be-tree", "pst-hash"])
@pytest.mark.parametrize("together", [True, False])
def test_a_rule_that_names_an_attribute_in_its_text_alone_is_found(index: str, together: bool, tmp_path: Path) -> None:
    """Normalisation leaves nothing of `a` while it has one value; of several values the rules say something."""
    given = {"never": "a = 1 and a = 2", "there": "a < 5 or a >= 5", "gone": "x = 1 or (a = 3 and a = 4)", "y": "y = 1"}
    m = Matcher(index, absent="classical")
    if together:
        m.add_many((name, text, 1.0, ["tag"]) for name, text in given.items())
    else:
        for name, text in given.items():
            m.add(name, text, tags=["tag"])
    assert m.match({"x": 1}) == ["gone"]
    assert all(rule.tags == ("tag",) for rule in m.rules())
    m.save(tmp_path / "rules")
    for one in (m, eligo.open(tmp_path / "rules")):
        one.add("several", "a contains any (9)")
        assert one.match({"a": [1, 2]}) == ["never", "there"]
        assert one.match({"a": [3, 4, 9]}) == ["there", "gone", "several"]
        assert one.match({"x": 1, "y": 1}) == ["gone", "y"]
        assert one["never"] == eligo.Rule("never", "a = 1 and a = 2", 1.0, ("tag",))
        assert one.match({"a": [1, 2]}, tags=["tag"]) == ["never", "there"]


def test_several_values() -> None:
    m = Matcher(multi=["a"])
    m.add_many({"some": "a = 1", "none": "a != 1", "all": "a contains all (1, 2)", "not": "not a contains any (1, 2)",
                "null": "a is null", "there": "a is not null", "like": "a like '%x%'", "unlike": "a not like '%x%'"})  # fmt: skip
    assert m.match({"a": [1, 2]}) == ["some", "all", "there", "unlike"]
    assert m.match({"a": [3]}) == ["none", "not", "there", "unlike"]
    assert m.match({"a": []}) == ["none", "not", "there", "unlike"]
    assert m.match({"a": ["ax", "b"]}) == ["none", "not", "there", "like"]
    assert m.match({"a": [None, math.nan]}) == ["none", "not", "there", "unlike"]
    assert m.match({}) == ["null"]
    assert m.match({"a": (1,)}) == m.match({"a": {1}}) == m.match({"a": np.array([1])}) == m.match({"a": 1})


# Events


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"d.e": 1}, ["r"]),
        ({"d": {"e": 1}}, ["r"]),
        ({"d": {"e": None}, "d.e": 1}, ["r"]),
        ({"d": 5, "d.e": 1}, ["r"]),
        ({"d": {"f": 1}}, []),
        ({"d": None}, []),
    ],
)
def test_paths(event: dict[str, Any], wanted: list[str]) -> None:
    m = Matcher()
    m.add("r", "d.e = 1")
    assert m.match(event) == wanted
    assert m.match_batch([event])["rule"].to_pylist() == wanted


def test_a_path_given_twice_is_refused() -> None:
    m = Matcher()
    m.add("r", "d.e = 1")
    with pytest.raises(eligo.EventError, match="twice"):
        m.match({"d.e": 1, "d": {"e": 2}})
    deep = Matcher()
    deep.add("r", "a.b.c.d = 1")
    assert deep.match({"a": {"b.c": {"d": 1}}}) == ["r"]
    assert deep.match({"a": {"b": {"c": {"d": {"e": 1}}}}}) == []  # an object, which is not 1


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, b"x", object(), 1j, [1], {1}, "\ud800", [[1]], ...])
def test_odd_values_are_refused_where_rules_look(value: Any) -> None:
    m = Matcher()
    m.add("r", "a = 1")
    with pytest.raises(eligo.EventError, match="'a'"):
        m.match({"a": value})
    assert m.match({"b": value, "a": 1}) == ["r"]
    with pytest.raises(eligo.EventError, match="event 1"):
        m.match_batch([{"a": 1}, {"a": value}])


@pytest.mark.parametrize("event", [None, 5, "a", [("a", 1)], b"a"])
def test_an_event_is_a_mapping(event: Any) -> None:
    m = Matcher()
    m.add("r", "a = 1")
    with pytest.raises(eligo.EventError, match="mapping"):
        m.match(event)


def test_numpy_and_subclasses() -> None:
    class Text(str):
        pass

    m = Matcher()
    m.add_many(
        {"int": "a = 1", "float": "a = 1.5", "bool": "a = true", "text": "a = 'x'", "time": "a = date '2026-01-31'"}
    )
    assert m.match({"a": np.int32(1)}) == ["int"]
    assert m.match({"a": np.float32(1.5)}) == ["float"]
    assert m.match({"a": np.bool_(True)}) == ["bool"]
    assert m.match({"a": np.str_("x")}) == m.match({"a": Text("x")}) == ["text"]
    assert m.match({"a": np.datetime64("2026-01-31T00:00:00")}) == ["time"]
    assert m.match({"a": date(2026, 1, 31)}) == m.match({"a": datetime(2026, 1, 31)}) == ["time"]
    assert m.match({"a": np.float64("nan")}) == []


def test_numbers_are_exact() -> None:
    m = Matcher()
    m.add_many({"big": f"a = {2**53 + 1}", "half": "a = 0.5", "edge": f"a >= {2**63 - 1}", "zero": "a = 0"})
    assert m.match({"a": 2**53 + 1}) == ["big"]
    assert m.match({"a": float(2**53)}) == []
    assert m.match({"a": 2.0**63}) == ["edge"]
    assert m.match({"a": 2**63 - 1}) == ["edge"]
    assert m.match({"a": 2**63 - 2}) == []
    assert m.match({"a": -0.0}) == m.match({"a": 0}) == ["zero"]
    assert m.match({"a": math.inf}) == ["edge"]
    assert m.match({"a": -math.inf}) == []


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Between(10, 20), ["low", "high", "fifteen", "not15", "odd"]),
        (Below(10), ["low", "not15"]),
        (Below(10, inclusive=True), ["low", "high", "not15"]),
        (Above(20), ["high", "not15"]),
        (OneOf(15), ["high", "fifteen"]),
        (NoneOf(15), ["low", "high", "not15", "odd"]),
        (OneOf("x", 15), ["high", "fifteen", "not15"]),
        (15, ["high", "fifteen"]),
    ],
)
def test_ranges_as_events(value: Any, wanted: list[str]) -> None:
    m = Matcher()
    m.add_many(
        {"low": "a < 11", "high": "a >= 10", "fifteen": "a = 15", "not15": "a != 15", "odd": "a > 11 and a < 12"}
    )
    assert m.match({"a": value}) == wanted


def test_a_range_is_present() -> None:
    m = Matcher()
    m.add_many({"null": "b is null", "never": "b = 1 and b = 2 and b is null", "one": "b = 1"})
    assert m.match({"b": Above(0)}) == ["one"]
    assert m.match({"b": Below(9)}) == ["one"]


def test_odd_ranges_are_refused() -> None:
    m = Matcher(multi=["c"])
    m.add("r", "a = 1 and b like '%x%' and c = 1")
    with pytest.raises(eligo.EventError, match="no value at all"):
        m.match({"a": Between(2, 1)})
    with pytest.raises(eligo.EventError, match="pattern"):
        m.match({"b": Between("a", "b")})
    with pytest.raises(eligo.EventError, match="several values"):
        m.match({"c": Below(1)})
    for make in (OneOf, NoneOf):
        with pytest.raises(eligo.EventError):
            make()
    with pytest.raises(eligo.EventError):
        NoneOf(1, "a")
    with pytest.raises(eligo.EventError):
        Between(1, "a")


def test_explanations_agree_with_matches(m: Matcher) -> None:
    event = {"age": 20, "country": "DE"}
    why = m.explain(event, "adult")
    assert not why.matched
    assert "✗ country in ('US', 'CA')   (country is 'DE')" in str(why)
    assert "✓ age >= 18   (age is 20)" in str(why)
    assert m.explain(event, "any").matched
    assert "country is absent" in str(m.explain({"age": 20}, "adult"))


def test_stats_say_what_there_is(m: Matcher) -> None:
    m.match({"age": 20})
    s = m.stats()
    assert (s.rules, s.index, s.evaluator) == (3, "propagation", "shared")
    assert s.candidates > 0
    assert s.arrays.get("live/words", 0) + s.arrays.get("rules/text_data", 0) > 0
    m.add_many([("more", "age > 7")])
    assert m.stats().arrays["rules/text_data"] > 0
    assert s.to_dict()["rules"] == 3
    assert "index" in str(s)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"index": "scann"}, "did you mean 'scan'"), ({"evaluator": "intervals"}, "did you mean 'interval'"),
     ({"absent": "maybe"}, "classical"), ({"multi": "a"}, "list")],
)  # fmt: skip
def test_odd_settings_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Matcher(**kwargs)


def test_limits() -> None:
    with pytest.raises(eligo.LimitError, match="nesting"):
        Matcher(limits={"depth": 3}).add("r", "((((a = 1))))")
    with pytest.raises(eligo.LimitError, match="the limit is 256"):
        Matcher().add("r", "(" * 10_000 + "a = 1" + ")" * 10_000)
    with pytest.raises(eligo.LimitError, match="values in one list"):
        Matcher().add("r", f"a in ({', '.join(map(str, range(70_000)))})")


def test_observing_changes_no_answer(m: Matcher) -> None:
    events = [{"age": i % 40, "country": "US"} for i in range(2000)]
    before = [m.match(event) for event in events]
    m.observe(events)
    assert [m.match(event) for event in events] == before
    m.add("later", "age = 7 and country = 'US'")
    assert m.match({"age": 7, "country": "US"}) == ["minor", "any", "later"]


def test_observing_does_not_trade_an_equality_for_a_range() -> None:
    """Both hold for none of the events seen; the equality leads to fewer rules."""
    m = Matcher()
    m.add_many((i, f"price between {i} and {i + 20} and id = {i}") for i in range(500))
    m.observe([{"other": 1}, {"other": 2}])
    before = m.stats().candidates
    assert m.match({"price": 10, "id": 5}) == [5]
    assert m.stats().candidates - before == 1


def test_many_matches_with_text_ids() -> None:
    m = Matcher()
    m.add_many((f"rule-{i}", "a = 1") for i in range(50))
    assert m.match({"a": 1}) == [f"rule-{i}" for i in range(50)]


def test_names_that_are_empty_and_rules_that_lack_their_expression() -> None:
    with pytest.raises(eligo.OptionError, match="none of them empty"):
        Matcher(multi=["a", ""])
    (reject,) = Matcher().add_many([{"id": 7}], on_error="collect")
    assert reject.id == 7
    assert "NoneType" in reject.message


@pytest.mark.parametrize("index", ["propagation", "be-tree", "pst-hash"])
def test_rules_go_in_many_ways(index: str) -> None:
    m = Matcher(index)
    m.add_many((f"r{i}", f"a = {i}") for i in range(100))
    assert m.discard("r5")
    assert not m.discard("r5")
    assert not m.discard(5)  # type: ignore[arg-type]
    with pytest.raises(eligo.UnknownRuleError, match="there is no rule 'nobody'"):
        m.remove_many(["r6", "nobody"])
    assert "r6" in m
    m.remove_many(f"r{i}" for i in (6, 7, 6))
    assert [rule.id for rule in m.rules()] == list(m) == [f"r{i}" for i in range(100) if i not in (5, 6, 7)]
    assert m["r8"] == m.get("r8")
    with pytest.raises(KeyError):
        m["r7"]
    for odd in ("r8", 8, None):
        with pytest.raises(eligo.OptionError, match="rules is a list of ids"):
            m.remove_many(odd)  # type: ignore[arg-type]
    m.clear()
    assert (len(m), list(m), m.match({"a": 8}), list(m.rules())) == (0, [], [], [])
    m.add(1, "a = 8")  # ids of another kind may come
    assert m.match({"a": 8}) == [1]
    m.clear()
    m.clear()


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
@pytest.mark.parametrize("form", ["dicts", "arrow"])
def test_events_that_cannot_be_used_do_not_stop_the_others(index: str, form: str) -> None:
    m = Matcher(index)
    m.add_many([("one", "a = 1"), ("even", "even = true")])
    far = datetime(2020, 1, 1)
    count = 4_200  # more than a slice
    bad = [0, 4095, 4096, count - 1]
    values = [[1, 2] if i in bad else 1 for i in range(count)]
    if form == "dicts":
        events: Any = ({"a": a, "even": i % 2 == 0, "t": far} for i, a in enumerate(values))
    else:
        column = pa.array([a if isinstance(a, list) else [a] for a in values])
        events = pa.table({"a": column, "even": [i % 2 == 0 for i in range(count)]})
    table, rejects = m.match_batch(events, on_error="collect")
    assert form == "arrow" or [reject.row for reject in rejects] == bad
    assert all(reject.id is None and "'a'" in reject.message and "event" not in reject.message for reject in rejects)
    good = [i for i in range(count) if i not in {reject.row for reject in rejects}]
    assert table.num_rows == len(good) + sum(i % 2 == 0 for i in good)
    assert table.column("event").to_pylist() == sorted(table.column("event").to_pylist())
    if form == "dicts":
        with pytest.raises(eligo.EventError, match="event 0: "):
            m.match_batch([{"a": [1, 2]}])
    with pytest.raises(eligo.OptionError, match="on_error"):
        m.match_batch([], on_error="ignore")  # type: ignore[call-overload]
    for no_table in ({"a": 1}, 5):
        with pytest.raises(eligo.EventError, match="many events are"):
            m.match_batch(no_table, on_error="collect")


def test_a_column_that_no_rule_can_use_is_nobodys_fault() -> None:
    m = Matcher()
    m.add("one", "a = 1")
    events = pa.table({"a": pa.array([1, 2], pa.duration("s"))})
    with pytest.raises(eligo.EventError, match="'a'"):
        m.match_batch(events, on_error="collect")


def test_all_matches_are_explained() -> None:
    m = Matcher()
    m.add_many([("yes", "a = 1 or b = 2"), ("no", "a = 2"), ("too", "not (a = 2)")])
    whys = m.explain({"a": 1})
    assert [why.rule for why in whys] == ["yes", "too"]
    assert all(whys)
    told = whys[0].to_dict()
    assert told["tree"]["what"] == "any of"
    assert [(child["what"], child["held"]) for child in told["tree"]["children"]] == [("a = 1", True), ("b = 2", False)]
    json.dumps(told)
    shown = m.explain({"a": "<b>"}, "no")._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "✗" in shown
    with pytest.raises(eligo.UnknownRuleError):
        m.explain({"a": 1}, "nobody")


@pytest.mark.parametrize("index", ["propagation", "pst-hash"])
def test_a_batch_with_rejects_takes_what_any_batch_takes(index: str) -> None:
    m = Matcher(index)
    m.add_many([("one", "x = 1", 1.0, "k"), ("two", "x = 1", 1.0, "other")])
    events: list[dict[str, Any]] = [{"x": 1}, {"x": [1, 2]}, {"x": 1}] * 3000
    table, rejects = m.match_batch(events, tags=(tag for tag in ["k"]), on_error="collect")
    assert table.column("event").to_pylist() == [i for i in range(9000) if i % 3 != 1]
    assert [reject.row for reject in rejects] == list(range(1, 9000, 3))
    with pytest.raises(eligo.OptionError, match="tags"):
        m.match_batch([], tags=5, on_error="collect")  # type: ignore[call-overload]
    # Two attributes of a table, each with values that cannot be used in some rows.
    far = pa.array([2**62, 0, 2**62, 0], pa.int64()).cast(pa.timestamp("s"))
    table, rejects = m.match_batch(pa.table({"x": [1, 1, 1, 1], "t": far}), on_error="collect")
    assert (table.num_rows, rejects) == (8, [])  # no rule looks at t
    m.add("when", "t is not null or x = 5")
    table, rejects = m.match_batch(pa.table({"x": [1, 1, 1, 1], "t": far}), on_error="collect")
    assert [reject.row for reject in rejects] == [0, 2]
    assert sorted(set(table.column("event").to_pylist())) == [1, 3]
    m.add("deep", "o.y = 1")
    column = pa.array([[(1, 2)]] * 3, pa.map_(pa.int64(), pa.int64()))
    with pytest.raises(eligo.EventError, match="'o' is a map with keys"):
        m.match_batch(pa.table({"o": column}), on_error="collect")


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
def test_clearing_leaves_attributes_multi_valued(index: str) -> None:
    m = Matcher(index, multi=["declared"])
    m.add_many((i, f"tags contains any ('t{i}') and declared = {i}") for i in range(50))
    assert m.match({"tags": ["t7", "x"], "declared": [7]}) == [7]
    m.remove_many(pa.array([1, 2, 3]))
    assert len(m) == 47
    m.clear()
    assert m.multi == {"declared", "tags"}
    m.add("again", "tags = 't7'")
    assert m.match({"tags": ["t7", "x"]}) == ["again"]
