"""The prover finds what is wrong, makes it small, and writes a program that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import OneOf
from eligo.compile.events import EventBuffer
from eligo.index.registry import INDEXES
from eligo.index.scan import Scan
from eligo.language import parse
from eligo.language.tree import And, Not, Predicate
from eligo.prove import prove
from eligo.prove.cases import (
    Add,
    AddMany,
    Batch,
    Case,
    Difference,
    Match,
    Model,
    Observe,
    Remove,
    Reopen,
    Rule,
    Rules,
    Setup,
    Top,
    TopBatch,
    ask_reference,
    run,
    wanted_of,
)
from eligo.prove.draw import THEMES, Drawer
from eligo.prove.oracle import Oracle
from eligo.prove.script import script_of
from eligo.prove.shrink import shrink
from eligo.prove.tables import Column, draw_table, table_of


class Forgetful(Scan):
    """Misses the last conjunction of an event that satisfies three or more."""

    name = "forgetful"
    summary = "wrong on purpose"

    def search(self, events: EventBuffer, event: int, scratch: Any) -> int:
        count = super().search(events, event, scratch)
        return count - 1 if count > 2 else count


@pytest.fixture
def forgetful() -> Iterator[str]:
    INDEXES.all()
    INDEXES.register(Forgetful)
    yield "forgetful"
    del INDEXES._known["forgetful"]


def test_a_wrong_index_is_found_and_shown_by_a_small_program(forgetful: str) -> None:
    proof = prove(seed=3, indexes=[forgetful], evaluators=["interval"], themes=["kinds"])
    assert proof.differences
    setup, program = proof.differences[0]
    assert setup.index == forgetful
    assert program.count("m.add(") <= 3
    with pytest.raises(AssertionError):
        exec(program, {})


def test_shrinking_leaves_what_is_needed(forgetful: str) -> None:
    rules = tuple(
        Rule(i, parse(f"a >= {i % 3} and (b = 'x' or not c in (1, 2, {i}))"), 2.0, ("red",)) for i in range(9)
    )
    events = [{"a": 2, "b": "y", "c": 7, "d": None}, {"a": 5, "b": "x", "c": [1]}]
    steps = (AddMany(rules), Remove(3), Reopen(), Match(events[0], ("red",)), Batch(tuple(events[:1])))
    small = shrink(Case(Setup(forgetful, "interval"), steps))
    assert small is not None
    case, difference = small
    assert all(isinstance(step, Add | AddMany) for step in case.steps[:-1])
    assert len(case.steps) <= 4
    assert isinstance(case.steps[-1], Match)
    assert difference.wanted != difference.found
    with pytest.raises(AssertionError):
        exec(script_of(case, difference), {})


def test_no_difference_gives_nothing_to_shrink() -> None:
    case = Case(Setup("scan", "interval"), (Add(Rule(1, parse("a = 1"))), Match({"a": 1}), Reopen(), Match({"a": 2})))
    assert run(case) is None
    assert shrink(case) is None


def test_an_error_of_the_matcher_is_a_difference_with_a_program() -> None:
    case = Case(Setup("scan", "interval"), (Add(Rule(1, parse("a = 1"))), Match({"a": object()})))
    difference = run(case)
    # The reference refuses such an event as well, so there is nothing to compare.
    assert difference is None
    bad = Case(Setup("scan", "interval", multi=("m",)), (Add(Rule(1, "a ===")), Match({"a": 1})))
    found = run(bad)
    assert found is not None
    assert "raised RuleSyntaxError" in script_of(bad, found)


def test_programs_of_every_kind_of_step_run() -> None:
    theme = THEMES[0]
    drawer = Drawer(theme, 5)
    events, columns = draw_table(drawer, 3)
    rules = (Rule(1, drawer.rule(), 2.0, ("red",)), Rule(2, "a ==="), Rule(3, drawer.rule()))
    begin = (AddMany(rules), Add(Rule(4, parse("a = 1"))), Remove(3), Observe(events), Reopen())
    setup = Setup("scan", "dnf", multi=tuple(theme.several), options={"past_terms": "interval"})
    model = Model(setup)
    for step in begin:
        wanted_of(step, model)
    for asked in (
        Match(events[0], ("red",), 2), Batch(events), Batch(events, None, 2, columns), Top(events[1], 3, ("red",)),
        TopBatch(events, 1), Rules(),
    ):  # fmt: skip
        case = Case(setup, (*begin, asked))
        # The program ends with an assertion of what is wanted, which holds because the matcher is right.
        exec(script_of(case, Difference(len(begin), wanted_of(asked, model), None)), {})


def test_the_oracle_says_what_the_reference_says() -> None:
    for theme in THEMES:
        if theme.ranges:
            continue
        drawer = Drawer(theme, 1)
        rules, events = [drawer.rule() for _ in range(20)], [drawer.event() for _ in range(20)]
        for absent in ("fails", "classical"):
            oracle = Oracle(events, absent, frozenset(theme.several))
            oracle.verify(rules, oracle.truth(rules), 400, 0)


def test_the_oracle_tells_equal_values_of_different_kinds_apart() -> None:
    rules = [Predicate("a", "=", (1,)), Predicate("a", "=", (True,)), Predicate("a", "=", (1.0,))]
    events = [{"a": 1}, {"a": True}, {"a": 1.0}]
    truth = Oracle(events, "fails", frozenset()).truth([*rules, And(tuple(rules[:2]))])
    assert np.array_equal(truth, [[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 0, 0]])


def test_tables_hold_their_events() -> None:
    events, columns = draw_table(Drawer(THEMES[0], 2), 30)
    again = table_of(events, columns).to_pylist(maps_as_pydicts="strict")
    assert [repr(event) for event in again] == [repr(event) for event in events]
    assert (
        Column("t", "pa.timestamp('ms')").arrow_type()
        == table_of([], [Column("t", "pa.timestamp('ms')")]).schema[0].type
    )


def test_of_a_range_below_a_path_the_normal_form_is_asked_too() -> None:
    rule = And((Predicate("n.x", "=", (2,)), Not(Predicate("n.x", "=", (3,), negated=True))))
    for event in ({"n": {"x": OneOf(2, 3)}}, {"n.x": OneOf(2, 3)}):
        assert not ask_reference(rule, event, "fails", frozenset())
        matcher = eligo.Matcher()
        matcher.add(1, rule)
        assert matcher.match(event) == []
