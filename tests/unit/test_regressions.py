"""What once went wrong."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import Matcher
from eligo.compile.strings import Strings
from eligo.language import Predicate, parse
from eligo.language.normalize import normalize
from eligo.segments import rule_set


@pytest.fixture(autouse=True, params=["live", "sealed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that come one by one are looked through, or indexed at once: every test holds either way."""
    if request.param == "sealed":
        monkeypatch.setattr("eligo.segments.rule_set.SEALED", 1)


def calls_in(function: Callable[[], object]) -> int:
    """How many calls, of Python and of C, a function makes: its work, whatever else the machine does."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("word", "predicate"), [("or", "a = {}"), ("and", "a != {}"), ("or", "a like 'x{}%'")], ids=["=", "!=", "like"]
)
def test_many_predicates_on_one_attribute_normalise_quickly(word: str, predicate: str) -> None:
    few, many = (parse(f" {word} ".join(predicate.format(i) for i in range(n))) for n in (1_000, 8_000))
    assert calls_in(lambda: normalize(many)) < 12 * calls_in(lambda: normalize(few))  # 64 where all meet all


def test_tags_are_checked_before_anything_is_lost() -> None:
    m = Matcher()
    m.add("a", "x = 1")
    with pytest.raises(eligo.RuleTypeError, match="Unicode"):
        m.add("b", "x = 1", tags=("\ud800",))
    with pytest.raises(eligo.RuleTypeError):
        m.add_many([("a", "x = 2", 1.0, ("\ud800",))], replace=True)
    assert m.match({"x": 1}) == ["a"]


def test_a_bulk_load_that_fails_late_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Matcher()
    m.add("a", "x = 1")
    m.match({"x": 1})

    def broken(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr("eligo.segments.pending.make_rule_table", broken)
    with pytest.raises(MemoryError):
        m.add_many([("a", "x contains any (2)"), ("b", "y = 1")], replace=True)
    monkeypatch.undo()
    assert m.match({"x": 1}) == ["a"]
    assert m.multi == frozenset()


def test_what_one_load_made_multi_valued_and_replaced_stays_so() -> None:
    m = Matcher()
    m.add_many([("b", "x > 1 and x < 5"), ("a", "x contains any (1)"), ("a", "y = 1")], replace=True)
    assert m.multi == {"x"}
    assert m.match({"y": 1}) == ["a"]
    assert m.match({"x": [0, 9]}) == ["b"]


@pytest.mark.parametrize("rule", [2**70, "\ud800", True, 1.0, None, (1,)])
def test_ids_that_cannot_be(rule: Any) -> None:
    m = Matcher()
    m.add(1, "x = 1")
    assert rule not in m
    for ask in (m.get, m.remove):
        with pytest.raises(eligo.UnknownRuleError):
            ask(rule)
    assert len(m) == 1


@pytest.mark.parametrize(
    "settings", [{"limits": {"depht": 3}}, {"limits": 5}, {"limits": {"depth": "x"}}, {"multi": 5}, {"multi": [1]}]
)
def test_odd_settings_are_eligo_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(eligo.EligoError):
        Matcher(**settings)


def test_odd_weights_and_deep_json() -> None:
    m = Matcher()
    with pytest.raises(eligo.RuleTypeError, match="weight"):
        m.add("a", "x = 1", weight=10**400)
    with pytest.raises(eligo.EligoError):
        m.add("a", '{"not": ' * 100_000 + "true" + "}" * 100_000)
    with pytest.raises(eligo.OptionError):
        m.match({}, tags=5)  # type: ignore[arg-type]
    assert len(m) == 0


def test_a_refused_rule_leaves_no_attribute_behind() -> None:
    m = Matcher()
    m.add("b", "z = 1")
    with pytest.raises(eligo.EligoError):
        m.add_many([("c", "q = 1"), ("c", "q = 2")])
    assert m.attributes == ("z",)


def test_removing_most_rules_frees_their_memory() -> None:
    m = Matcher()
    m.add_many((i, f"a = {i}") for i in range(5000))
    before = m.stats().total_bytes
    for i in range(4000):
        m.remove(i)
    m.engine.rules.wait()
    assert m.stats().total_bytes < before / 2
    assert m.match({"a": 4500}) == [4500]


def test_a_merge_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rule_set, "AT_ONCE", 0)
    m = Matcher()
    real = rule_set.merge_segments

    def broken(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(rule_set, "merge_segments", broken)
    for i in range(600):
        m.add(i, f"a = {i}")
    m.engine.rules.wait()
    monkeypatch.setattr(rule_set, "merge_segments", real)
    m.save(tmp_path / "s")
    m.observe([{"a": 1}])
    for i in range(600, 1200):
        m.add(i, f"a = {i}")
    m.engine.rules.wait()
    assert len(m.engine.rules.segments) <= 6 * (rule_set.FANOUT - 1)  # six sizes up to 1,200 rules, few of each
    assert m.match({"a": 700}) == [700]
    assert len(eligo.open(tmp_path / "s")) == 600


def test_saving_while_others_add(tmp_path: Path) -> None:
    m = Matcher()
    m.add_many((i, f"a = {i}") for i in range(2000))
    stop = threading.Event()

    def add() -> None:
        i = 10_000
        while not stop.is_set():
            m.add(i, f"a = {i}")
            i += 1

    adder = threading.Thread(target=add)
    adder.start()
    savers = [threading.Thread(target=lambda: [m.save(tmp_path / "s") for _ in range(10)]) for _ in range(2)]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join(60)
        assert not saver.is_alive()
    stop.set()
    adder.join()
    opened = eligo.open(tmp_path / "s")
    assert opened.match({"a": 77}) == [77]
    assert len(list((tmp_path / "s").iterdir())) == 3


def test_saving_takes_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "app.manifest.json", "notes.tmp"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(eligo.SnapshotError, match="holds other things"):
            Matcher().save(tmp_path)
        (tmp_path / name).unlink()
    (tmp_path / "x.bin").mkdir()
    with pytest.raises(eligo.SnapshotError):
        Matcher().save(tmp_path)


def test_readers_do_not_wait_for_a_bulk_load() -> None:
    m = Matcher()
    m.add_many((i, f"a = {i}") for i in range(300))
    m.add(300, "a = 300")  # nobody has matched since: the view is stale
    halfway, answered = threading.Event(), threading.Event()

    def rules() -> Iterator[tuple[int, str]]:
        for i in range(1000, 3000):
            if i == 2000:
                halfway.set()
                assert answered.wait(60)
            yield i, f"a = {i} and b = 'x{i}'"

    loader = threading.Thread(target=lambda: m.add_many(rules()))
    loader.start()
    assert halfway.wait(60)
    found = m.match({"a": 300}), 300 in m, 1000 in m, m.match({"a": 1000, "b": "x1000"})
    answered.set()
    loader.join()
    assert found == ([300], True, False, [])
    assert m.match({"a": 1000, "b": "x1000"}) == [1000]


def test_strings_can_be_looked_up_while_others_are_added() -> None:
    strings = Strings()
    old = [strings.state]
    for i in range(2000):
        strings.intern(f"string {i}")
        old.append(strings.state)
    for number, table in enumerate(old):
        assert int(table.slots.max(initial=0)) <= len(table.begin)
        assert number == table.count


def test_a_rule_of_many_values_does_not_stall_the_others() -> None:
    m = Matcher()
    for i in range(700):
        m.add(i, f"a in ({', '.join(str(i + k) for k in range(300))})")
    assert m.match({"a": 5}) == list(range(6))


def test_nodes_made_by_hand_have_plain_fields() -> None:
    """One of them meant one thing as a tree and another as its text, in which many rules are read together."""
    with pytest.raises(eligo.EligoError, match="negated is True or False, not None"):
        eligo.Matcher().add("it", Predicate("a", "<", (2,), None))  # type: ignore[arg-type]
    m = eligo.Matcher()
    m.add("list", Predicate("a", "in", [1, 2]))  # type: ignore[arg-type]
    assert m.match({"a": 1}) == ["list"]
    assert m["list"].expression == "a in (1, 2)"


@pytest.mark.parametrize("index", ["auto", "pst-hash"])
def test_a_rule_whose_text_is_longer_than_its_form_stays_readable(index: str) -> None:
    m = eligo.Matcher(index, limits={"text": 30})
    m.add("form", {"and": [{"attr": "m", "op": "!=", "value": i} for i in range(5)]})
    assert m.explain({"m": 9}, "form").matched
    m.add("later", "m contains any ('x')")  # all rules on m are compiled again
    assert m.match({"m": ["x"]}) == ["form", "later"]


@pytest.mark.parametrize("many", [1, 1500])
def test_lone_surrogates_reject_one_rule(many: int) -> None:
    rows = [*(("ok", "a = 1") if i == 0 else (f"ok {i}", "a = 1") for i in range(many)), ("bad", '{"attr": "\ud800"}')]
    m = eligo.Matcher()
    (reject,) = m.add_many(rows, on_error="collect")
    assert (reject.row, "lone surrogate" in reject.message) == (many, True)
    assert len(m) == many
    (reject,) = m.add_many([("owned", "a = 1", 1.0, (), "\ud800")], on_error="collect")
    assert "an owner is valid Unicode text" in reject.message
    assert len(m) == many
