"""The exchange of the paper on complex expressions §1.1, what it answers and what it refuses."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
import eligo.exchange.exchange as exchange_module
from eligo.errors import LimitError, OptionError
from eligo.exchange import Exchange, GraphError, UnknownNodeError
from eligo.language import parse
from eligo.language.reference import matches

# The paper's two expressions. Its campaign has AND between the two age groups, which no visitor satisfies: a misprint.
SOLD = "(gender in ('Male') and category in ('Sports')) or (gender in ('Female') and category not in ('Finance'))"
WANTED = "(age in (4) and interest in ('NFL')) or (age in (5) and interest in ('NBA'))"
VISIT = {"gender": "Male", "interest": "NFL", "category": "Sports"}


@pytest.fixture
def exchange() -> Exchange:
    """P sells to A over X and Y or, news only, directly; Q sells to X too."""
    x = Exchange()
    for name, role in (("P", "publisher"), ("Q", "publisher"), ("X", "intermediary"), ("Y", "intermediary")):
        x.add_node(name, role)  # type: ignore[arg-type]
    x.add_node("A", "advertiser")
    x.add_node("B", "advertiser")
    x.connect("P", "X")
    x.connect("Q", "X", "country = 'US'")
    x.connect("X", "Y", SOLD)
    x.connect("Y", "A")
    x.connect("Y", "B", "age > 2")
    x.connect("P", "A", "category = 'News'")
    return x


def test_the_example_of_the_paper(exchange: Exchange) -> None:
    exchange.book("league", "A", "P", WANTED, path=["P", "X", "Y", "A"])
    assert exchange.eligible("P", VISIT) == []  # the paper's visit says nothing of age
    assert exchange.eligible("P", {**VISIT, "age": 4}) == ["league"]
    assert exchange.eligible("P", {**VISIT, "age": 5}) == []
    assert exchange.eligible("P", {**VISIT, "age": 5, "interest": "NBA"}) == ["league"]
    assert exchange.eligible("P", {**VISIT, "age": 4, "category": "Movies"}) == []
    assert exchange.eligible("P", {**VISIT, "age": 4, "category": "Movies", "gender": "Female"}) == ["league"]
    assert exchange.eligible("P", {**VISIT, "age": 4, "category": "Finance", "gender": "Female"}) == []
    assert exchange.eligible("Q", {**VISIT, "age": 4, "country": "US"}) == []
    composed = parse(exchange.expression("league"))
    assert matches(composed, {**VISIT, "age": 4})
    assert not matches(composed, VISIT)


def test_the_path_is_the_shortest_unless_given(exchange: Exchange) -> None:
    exchange.book("short", "A", "P", "true")
    exchange.book("long", "A", "P", "true", ["P", "X", "Y", "A"], weight=2.5)
    assert exchange.path("short") == ("P", "A")
    assert exchange.get("long") == eligo.exchange.Campaign("long", "A", "P", "true", ("P", "X", "Y", "A"), 2.5)
    assert exchange.eligible("P", {"category": "News", "gender": "Female"}) == ["short", "long"]
    assert exchange.top("P", {"category": "News", "gender": "Female"}, 1) == [("long", 2.5)]
    assert exchange.eligible("P", {"category": "News"}) == ["short"]
    assert exchange.expression("short") == "category = 'News'"


def test_of_paths_alike_the_one_connected_first_is_taken() -> None:
    x = Exchange()
    x.add_node("P", "publisher")
    x.add_node("A", "advertiser")
    for name in ("c", "b", "a"):
        x.add_node(name, "intermediary")
        x.connect("P", name)
    for name in ("a", "b"):
        x.connect(name, "A")
    x.book(1, "A", "P", "true")
    assert x.path(1) == ("P", "b", "A")
    x.connect("P", "b", "z = 1", replace=True)  # a change of expression changes no order
    x.book(2, "A", "P", "true")
    assert x.path(2) == ("P", "b", "A")
    assert x.disconnect("P", "b", "reroute") == [1, 2]
    x.connect("P", "b")  # now it is the last
    x.book(3, "A", "P", "true")
    assert [x.path(n) for n in (1, 2, 3)] == [("P", "a", "A")] * 3
    x.connect("a", "b")
    assert x.eligible("P", {}) == [1, 2, 3]


def test_an_edge_is_one_rule_however_many_campaigns_use_it(exchange: Exchange) -> None:
    exchange.book_many((f"c{n}", "A" if n % 2 else "B", "P" if n % 3 else "Q", f"age = {n % 5}") for n in range(200))
    assert exchange.stats().edges_with_campaigns == 6
    assert len(exchange._ledger.matcher) == 206
    visit = {"gender": "Male", "category": "Sports", "age": 4, "country": "US"}
    before = exchange.eligible("Q", visit)
    assert len(before) > 10
    exchange.connect("X", "Y", "category = 'News'", replace=True)
    assert len(exchange._ledger.matcher) == 206
    assert exchange.eligible("Q", visit) == []
    assert exchange.eligible("Q", {**visit, "category": "News"}) == before
    assert exchange.stats().path_bytes == 4 * exchange.stats().path_edges


def test_edges_without_campaigns_are_no_rules(exchange: Exchange) -> None:
    assert len(exchange._ledger.matcher) == 0
    exchange.book("b", "B", "Q", "true")
    assert len(exchange._ledger.matcher) == 4
    exchange.connect("P", "A", "category = 'Sports'", replace=True)
    assert len(exchange._ledger.matcher) == 4
    exchange.cancel("b")
    assert len(exchange._ledger.matcher) == 0


def test_other_publishers_are_not_looked_at(exchange: Exchange) -> None:
    own = "not (a = 1 and (b = 2 or not c = 3)) or (d = 4 or e in (5, 6) and (f = 7 or g = 8))"
    exchange.book_many((n, "B", "Q" if n % 50 else "P", own) for n in range(1000))
    visit = {"a": 0, "b": 2, "c": 0, "d": 4, "e": 5, "f": 7, "age": 4, "gender": "Male", "category": "Sports"}
    assert exchange.eligible("P", visit) == list(range(0, 1000, 50))
    assert exchange.stats().candidates < 300


def test_expressions_may_be_json_and_python(exchange: Exchange) -> None:
    exchange.connect("P", "B", {"attr": "age", "op": ">=", "value": 3})
    exchange.book(1, "B", "P", (eligo.attr("age") < 9) & ~(eligo.attr("interest") == "NHL"))
    exchange.book(2, "B", "P", '{"attr": "age", "op": "in", "value": [5, 6]}')
    assert exchange.eligible("P", {"age": 5, "interest": "NFL"}) == [1, 2]
    assert exchange.get(2).expression == "age in (5, 6)"
    assert exchange.expression(1) == "(age < 9 and not interest = 'NHL') and age >= 3"


def test_several_values_are_as_in_a_matcher(exchange: Exchange) -> None:
    exchange.connect("P", "B", "interests contains any ('NFL', 'NBA')")
    exchange.book("c", "B", "P", "interests contains all ('NFL', 'film')")
    assert exchange.eligible("P", {"interests": ["film", "NFL"]}) == ["c"]
    assert exchange.eligible("P", {"interests": ["film"]}) == []
    exchange.book("d", "A", "P", "true")
    with pytest.raises(eligo.EventError, match="single-valued"):
        exchange.eligible("P", {"category": ["b"]})


def test_campaigns_are_changed_in_their_place(exchange: Exchange) -> None:
    for name in ("a", "b", "c"):
        exchange.book(name, "A", "P", "true")
    exchange.book("a", "A", "P", "age = 1", ["P", "X", "Y", "A"], 3.0, replace=True)
    visit = {"category": "News", "gender": "Female", "age": 1}
    assert exchange.eligible("P", visit) == ["a", "b", "c"]
    assert exchange.eligible("P", {**visit, "age": 2}) == ["b", "c"]
    assert exchange.top("P", visit) == [("a", 3.0), ("b", 1.0), ("c", 1.0)]
    exchange.book("b", "B", "Q", "true", replace=True)
    assert exchange.eligible("P", visit) == ["a", "c"]
    assert exchange.campaigns == ["a", "b", "c"]


def test_a_load_is_whole_or_not_at_all(exchange: Exchange) -> None:
    exchange.book("a", "A", "P", "true")
    with pytest.raises(eligo.RuleSyntaxError, match="campaign 'c': line 1"):
        exchange.book_many(
            [("a", "A", "P", "age = 1"), ("b", "B", "Q", "true"), ("c", "B", "Q", "age =")], replace=True
        )
    assert exchange.campaigns == ["a"]
    assert [edge.campaigns for edge in exchange.edges] == [0, 1, 0, 0, 0, 0]
    with pytest.raises(eligo.DuplicateRuleError, match="campaign 'b'"):
        exchange.book_many([("b", "A", "P", "true"), ("b", "A", "P", "false")])
    exchange.book_many([{"campaign": "b", "advertiser": "B", "publisher": "Q", "expression": "true", "weight": 2}])
    assert exchange.get("b").weight == 2.0
    exchange.book_many([])
    assert len(exchange) == 2


@pytest.mark.parametrize("many", [False, True])
def test_what_the_matcher_refuses_leaves_nothing_behind(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    exchange.book("a", "A", "P", "true")
    matcher = exchange._ledger.matcher
    add = matcher.add

    def full(*_: object, **__: object) -> None:
        raise eligo.LimitError("too large")

    bookings = [(name, "B", "Q", "true") for name in ("b", "c", "d")[: 1 + 2 * many]]
    with monkeypatch.context() as patch:
        patch.setattr(matcher, "add_many", full)
        patch.setattr(matcher, "add", lambda rule, *more: full() if rule >= 0 else add(rule, *more))
        with pytest.raises(eligo.LimitError):
            exchange.book_many(bookings)
    assert len(matcher) == 2
    assert exchange.campaigns == ["a"]
    assert [edge.campaigns for edge in exchange.edges] == [0, 1, 0, 0, 0, 0]
    exchange.book_many(bookings)
    visit = {"country": "US", "gender": "Female", "category": "x", "age": 3}
    assert exchange.eligible("Q", visit) == [name for name, *_ in bookings]
    assert len(exchange._ledger.links) == 4


def test_limits_are_those_of_the_exchange() -> None:
    x = Exchange(limits={"leaves": 4, "depth": 3})
    x.add_node("P", "publisher")
    x.add_node("A", "advertiser")
    x.connect("P", "A", "a = 1 or b = 2 or c = 3 or d = 4")
    x.book("c", "A", "P", "a = 1 or b = 2 or c = 3 or d = 4")  # with the publisher it has eight
    assert x.eligible("P", {"c": 3}) == ["c"]
    assert "c" in x.expression("c")
    for text in ("a = 1 or b = 2 or c = 3 or d = 4 or e = 5", "((((a = 1))))"):
        with pytest.raises(eligo.LimitError):
            x.book("d", "A", "P", text)
        with pytest.raises(eligo.LimitError):
            x.connect("P", "A", text, replace=True)


def test_options_go_to_the_matcher() -> None:
    x = Exchange(index="scan", evaluator="walk", absent="classical", multi=["tags"])
    assert (x.stats().index, x.stats().evaluator) == ("scan", "walk")
    x.add_node("P", "publisher")
    x.add_node("A", "advertiser")
    x.connect("P", "A", "country != 'US'")
    x.book(7, "A", "P", "tags = 'b' and tags = 'a'")
    assert x.eligible("P", {"tags": ["a", "b"]}) == [7]
    with pytest.raises(eligo.OptionError):
        Exchange(index="none such")


VISITS = [
    {"site": "P", "gender": "Female", "category": "News", "age": 4},
    {"site": "Q", "gender": "Female", "category": "News", "country": "US", "age": 3},
    {"site": "P", "gender": "Male", "category": "Sports", "age": 1},
]


@pytest.mark.parametrize("form", ["dicts", "arrow", "batch", "dictionary", "pandas", "polars"])
def test_batches(exchange: Exchange, form: str) -> None:
    exchange.book("b", "B", "Q", "age < 4")
    exchange.book("p", "A", "P", "true", ["P", "X", "Y", "A"])
    exchange.book("a", "A", "P", "true")
    visits: Any = VISITS
    if form != "dicts":
        visits = pa.Table.from_pylist(
            VISITS,
            pa.schema(
                [
                    ("site", pa.string()),
                    ("gender", pa.string()),
                    ("category", pa.string()),
                    ("country", pa.string()),
                    ("age", pa.int64()),
                ]
            ),
        )
    if form == "batch":
        visits = visits.to_batches()[0]
    if form == "dictionary":
        visits = visits.set_column(0, "site", visits["site"].dictionary_encode())
    if form in ("pandas", "polars"):
        pytest.importorskip(form)
        visits = visits.to_pandas() if form == "pandas" else __import__("polars").from_arrow(visits)
    exchange.observe(visits, publisher="site")
    found = exchange.eligible_batch(visits, publisher="site")
    assert found.to_pylist() == [
        {"event": 0, "campaign": "p"},
        {"event": 0, "campaign": "a"},
        {"event": 1, "campaign": "b"},
        {"event": 2, "campaign": "p"},
    ]
    assert [exchange.eligible(visit["site"], visit) for visit in VISITS] == [["p", "a"], ["b"], ["p"]]


def test_batches_without_campaigns_and_without_visits(exchange: Exchange) -> None:
    assert exchange.eligible_batch([{"publisher": "P"}]).num_rows == 0
    with pytest.raises(eligo.EventError, match="no publisher"):
        exchange.eligible_batch([{"publisher": "P"}, {"publisher": "nowhere"}])
    exchange.book(5, "A", "P", "true")
    found = exchange.eligible_batch([])
    assert found.schema == pa.schema([("event", pa.int64()), ("campaign", pa.int64())])
    assert exchange.eligible_batch({"publisher": "P", "category": "News"} for _ in range(5000)).num_rows == 5000


@pytest.mark.parametrize(
    ("visits", "reason"),
    [
        ([{"publisher": "A"}], "event 0: 'publisher' is 'A', which is no publisher"),
        ([{"publisher": "P"}, {"age": 4}], "event 1: 'publisher' is None"),
        ([{"publisher": "P"}, 4], "event 1: a visit is a mapping"),
        ([{"publisher": "P", "@publisher": "Q"}], "exchange's own"),
        ([{"publisher": "P", "category": eligo.Between(1, 2)}], "values are known"),
        (pa.table({"publisher": ["P", "Q", "R"]}), "event 2: 'publisher' is 'R'"),
        (pa.table({"publisher": ["P", None]}), "event 1: 'publisher' is None"),
        (pa.table({"publisher": [[1]]}), "names are strings"),
        (pa.table({"publisher": [1]}), "no publisher"),
        (pa.table({"site": ["P"]}), "one column 'publisher'"),
        (pa.table({"publisher": ["P"], "@publisher": ["P"]}), "exchange's own"),
        ({"publisher": "P"}, "list of dicts or a table"),
    ],
)
def test_wrong_visits_are_told(exchange: Exchange, visits: Any, reason: str) -> None:
    exchange.book("a", "A", "P", "true")
    with pytest.raises(eligo.EventError, match=reason):
        exchange.eligible_batch(visits)


@pytest.mark.parametrize(
    ("wrong", "kind", "reason"),
    [
        (lambda x: x.add_node("P", "publisher"), GraphError, "already"),
        (lambda x: x.add_node("N", "broker"), eligo.OptionError, "'publisher', 'intermediary' or 'advertiser'"),
        (lambda x: x.add_node("", "publisher"), eligo.OptionError, "not empty"),
        (lambda x: x.add_node(5, "publisher"), eligo.OptionError, "name is a string"),
        (lambda x: x.add_node("\ud800", "publisher"), eligo.OptionError, "valid Unicode"),
        (lambda x: x.remove_node("nobody"), UnknownNodeError, "no node 'nobody'"),
        (lambda x: x.remove_node("P"), GraphError, "2 edges .*disconnect them first"),
        (lambda x: x.connect("P", "Z"), UnknownNodeError, "no node 'Z'"),
        (lambda x: x.connect("A", "X"), GraphError, "advertisers only buy"),
        (lambda x: x.connect("X", "P"), GraphError, "publishers only sell"),
        (lambda x: x.connect("X", "X"), GraphError, "itself"),
        (lambda x: x.connect("P", "X"), GraphError, "replace=True"),
        (lambda x: x.connect("Y", "X", "age >"), eligo.RuleSyntaxError, "expected a value"),
        (lambda x: x.connect("Y", "X", "exists d (age < d.age)"), eligo.RuleTypeError, "this exchange keeps none"),
        (lambda x: x.connect("Y", "X", "`@publisher` = 'P'"), eligo.RuleTypeError, "exchange's own"),
        (lambda x: x.connect("Y", "X", "{1"), eligo.RuleSyntaxError, "no JSON"),
        (lambda x: x.disconnect("P", "Y"), GraphError, "'P' does not sell to 'Y', but to 'X', 'A'"),
        (lambda x: x.disconnect("P", "X"), GraphError, r"2 campaigns \('c', 'd'\) over 'P' → 'X'"),
        (lambda x: x.disconnect("Q", "X", "reroute"), GraphError, r"no path is left for 1 campaign \('e'\)"),
        (lambda x: x.disconnect("P", "X", "drop"), eligo.OptionError, "'refuse', 'reroute' or 'cancel'"),
        (lambda x: x.book("n", "A", "X", "true"), GraphError, "'X' is no publisher"),
        (lambda x: x.book("n", "P", "P", "true"), GraphError, "'P' is no advertiser"),
        (lambda x: x.book("n", "A", "R", "true"), UnknownNodeError, "no node 'R'"),
        (lambda x: x.book("n", "C", "P", "true"), GraphError, "no path leads from 'P' to 'C'"),
        (lambda x: x.book("n", "A", "P", "true", ["P", "Y", "A"]), GraphError, "'P' does not sell to 'Y'"),
        (lambda x: x.book("n", "A", "P", "true", ["P", "nobody", "A"]), UnknownNodeError, "nobody"),
        (lambda x: x.book("n", "A", "P", "true", ["Q", "X", "Y", "A"]), GraphError, "from 'Q' to 'A'"),
        (lambda x: x.book("n", "A", "P", "true", ["P", "X", "Y", "X", "Y", "A"]), GraphError, "'X' twice"),
        (lambda x: x.book("n", "A", "P", "true", ["P"]), GraphError, "two nodes or more"),
        (lambda x: x.book("n", "A", "P", "true", "PA"), GraphError, "list of two nodes"),
        (lambda x: x.book("c", "A", "P", "true"), eligo.DuplicateRuleError, "replace=True"),
        (lambda x: x.book(3, "A", "P", "true"), eligo.RuleTypeError, "of one kind"),
        (lambda x: x.book(None, "A", "P", "true"), eligo.RuleTypeError, "id is a string"),
        (lambda x: x.book("n", "A", "P", 7), eligo.RuleTypeError, "campaign 'n'"),
        (lambda x: x.book("n", "A", "P", "true", weight="much"), eligo.RuleTypeError, "weight"),
        (lambda x: x.book("n", "A", "P", "true", weight=float("nan")), eligo.RuleTypeError, "finite"),
        (lambda x: x.book("n", "A", "P", "true", weight=10**400), eligo.RuleTypeError, "finite"),
        (lambda x: x.book_many([("n", "A", "P")]), eligo.OptionError, "a booking is"),
        (lambda x: x.book_many([{"campaign": "n", "who": 1}]), eligo.OptionError, "a booking is"),
        (lambda x: x.cancel("none"), eligo.UnknownRuleError, "no campaign 'none'"),
        (lambda x: x.get(["list"]), eligo.UnknownRuleError, "no campaign"),
        (lambda x: x.path("none"), eligo.UnknownRuleError, "no campaign"),
        (lambda x: x.expression("none"), eligo.UnknownRuleError, "no campaign"),
        (lambda x: x.explain({}, "none"), eligo.UnknownRuleError, "no campaign"),
        (lambda x: x.explain(4, "c"), eligo.EventError, "mapping"),
        (lambda x: x.eligible("A", {}), GraphError, "'A' is no publisher"),
        (lambda x: x.eligible("PP", {}), UnknownNodeError, "did you mean 'P'"),
        (lambda x: x.eligible("P", 5), eligo.EventError, "mapping"),
        (lambda x: x.eligible("P", {"@publisher": "Q"}), eligo.EventError, "exchange's own"),
        (lambda x: x.eligible("P", {"gender": eligo.OneOf("a", "b")}), eligo.EventError, "values are known"),
        (lambda _: Exchange(multi=["@publisher"]), eligo.OptionError, "exchange's own"),
    ],
)
def test_wrong_use_is_told_and_changes_nothing(exchange: Exchange, wrong: Any, kind: type, reason: str) -> None:
    exchange.add_node("C", "advertiser")
    exchange.connect("Y", "X", "age = 1")
    exchange.book("c", "B", "P", "true")
    exchange.book("d", "A", "P", "true", ["P", "X", "Y", "A"])
    exchange.book("e", "B", "Q", "true")
    before = exchange.nodes, exchange.edges, [exchange.get(name) for name in exchange], len(exchange._ledger.matcher)
    with pytest.raises(kind, match=reason) as caught:
        wrong(exchange)
    assert isinstance(caught.value, eligo.EligoError)
    assert before == (
        exchange.nodes, exchange.edges, [exchange.get(name) for name in exchange], len(exchange._ledger.matcher)
    )  # fmt: skip


def test_explain_goes_part_by_part(exchange: Exchange) -> None:
    exchange.book("b", "B", "P", "interest = 'NFL'")
    why = exchange.explain({"interest": "NFL", "gender": "Female", "category": "Finance", "age": 4}, "b")
    assert not why
    assert why.parts == {"own expression": True, "P sells to X": True, "X sells to Y": False, "Y sells to B": True}
    assert str(why).splitlines()[:3] == [
        "b is not eligible",
        "  ✓ own expression",
        "    ✓ interest = 'NFL'   (interest is 'NFL')",
    ]
    assert str(exchange.explain({**VISIT, "age": 3}, "b")).startswith("b is eligible\n")


def test_a_long_life_leaves_no_rows_behind(exchange: Exchange) -> None:
    for n in range(600):
        exchange.book(f"c{n % 7}", "A", "P", f"age = {n}", replace=True)
        exchange.book("b", "B", "Q", "true")
        exchange.cancel("b")
    assert len(exchange._ledger.bookings.published.rule) < 200
    assert len(exchange._ledger.links) <= 4
    assert len(exchange._ledger.matcher) == 8
    assert exchange.eligible("P", {"category": "News", "age": 599}) == [f"c{599 % 7}"]
    assert exchange.campaigns == [f"c{n}" for n in range(7)]


def test_readers_beside_writers_see_whole_changes(exchange: Exchange) -> None:
    """One campaign is rebooked and rerouted all the time, and every state of it is eligible for the visit."""
    visit = {"category": "News", "gender": "Female", "age": 4, "country": "US"}
    exchange.book_many((f"f{n}", "B", "Q", f"age = {n}") for n in range(300))
    exchange.book("c", "A", "P", "age = 4")
    stop, wrong = threading.Event(), []

    def reader() -> None:
        try:
            while not stop.is_set():
                found = exchange.eligible("P", visit)
                if found.count("c") != 1 or found != sorted(found, key=("c", "n").index):
                    wrong.append(found)
                many = exchange.eligible_batch([{**visit, "publisher": "P"}, {**visit, "publisher": "Q"}])
                if many["campaign"].to_pylist().count("c") != 1 or "f4" not in many["campaign"].to_pylist():
                    wrong.append(many)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(60):
        exchange.book("c", "A", "P", "age = 4", None if n % 2 else ["P", "X", "Y", "A"], replace=True)
        exchange.book("n", "A", "P", f"age >= {n % 6}")
        exchange.cancel("n")
        exchange.connect("X", "Y", SOLD if n % 2 else "true", replace=True)
        if n % 10 == 0:
            exchange.disconnect("P", "A", "reroute")
            exchange.connect("P", "A", "category = 'News'")
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


def test_a_campaign_that_moves_while_it_is_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between asking the matcher and taking the bookings, another thread replaces a campaign and tidies old rows away."""
    exchange = Exchange()
    exchange.add_node("P", "publisher")
    exchange.add_node("A", "advertiser")
    exchange.connect("P", "A")
    exchange.book("moves", "A", "P", "a = 1")
    exchange.book("other", "A", "P", "z = 1")
    real = exchange_module.refuse_ranges

    def meanwhile(buffer: object) -> None:
        monkeypatch.setattr(exchange_module, "refuse_ranges", real)
        exchange.book("moves", "A", "P", "a in (1, 2)", replace=True)
        before = exchange._ledger.bookings.published.tidied
        while exchange._ledger.bookings.published.tidied == before:
            exchange.book("other", "A", "P", "z = 1", replace=True)
        real(buffer)  # type: ignore[arg-type]

    monkeypatch.setattr(exchange_module, "refuse_ranges", meanwhile)
    assert exchange.eligible("P", {"a": 1}) == ["moves"]


def test_an_edge_past_a_limit_is_named() -> None:
    exchange = Exchange(evaluator="dnf", limits={"terms": 4})
    exchange.add_node("P", "publisher")
    exchange.add_node("A", "advertiser")
    exchange.connect("P", "A", "(a = 1 or b = 1) and (c = 1 or d = 1) and (e = 1 or f = 1)")
    with pytest.raises(LimitError, match=r"^edge 'P' → 'A': rule too large: 8 terms"):
        exchange.book("c", "A", "P", "a = 1")
    with pytest.raises(LimitError, match=r"^edge 'P' → 'A': rule too large: 8 terms"):
        exchange.book_many([("c", "A", "P", "a = 1"), ("d", "A", "P", "a = 1")])
    assert len(exchange) == 0
    with pytest.raises(OptionError, match="multi is a list"):
        Exchange(multi=5)  # type: ignore[arg-type]


def test_expressions_may_ask_about_visits_seen_before(tmp_path: Path) -> None:
    exchange = Exchange(documents=eligo.Documents())
    exchange.add_node("P", "publisher")
    exchange.add_node("A", "advertiser")
    exchange.connect("P", "A", "not exists d (d.blocked = user)")
    exchange.book("again", "A", "P", "exists d (user = d.user and age > 18)")
    exchange.book("new", "A", "P", "forall d (user != d.user)")
    visits = exchange.documents
    assert visits is not None
    visits.add({"user": "ann"})
    assert exchange.eligible("P", {"user": "ann", "age": 20}) == ["again"]
    assert exchange.eligible("P", {"user": "bob", "age": 20}) == ["new"]
    table = exchange.eligible_batch([{"publisher": "P", "user": user, "age": 20} for user in ("ann", "bob")])
    assert table["campaign"].to_pylist() == ["again", "new"]
    visits.add({"blocked": "bob", "user": "eve"})
    assert exchange.eligible("P", {"user": "bob", "age": 20}) == []
    assert "document 1 does: blocked is 'bob'" in str(exchange.explain({"user": "bob"}, "new"))
    exchange.save(tmp_path / "x")
    opened = eligo.exchange.open(tmp_path / "x")
    assert opened.eligible("P", {"user": "ann", "age": 20}) == ["again"]
    with pytest.raises(eligo.RuleTypeError, match="exchange's own"):
        exchange.book("odd", "A", "P", "exists d (`@publisher` = d.publisher)")
