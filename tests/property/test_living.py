"""A living set against a plain dict of rules and the reference, through any sequence of changes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import eligo
from eligo.index.be_tree.tree import BeTree
from eligo.index.ps_tree.base import PsIndex
from eligo.language.reference import matches, multi_valued
from eligo.language.tree import And, Node, Not, Or, Predicate
from eligo.segments.living.living import LivingSet
from invariants.be_tree import verify_tree
from invariants.living import verify_structure
from invariants.ps_tree import verify_index
from strategies import events, expressions, tried

NAMES = [f"r{n}" for n in range(8)]
DECLARED = frozenset({"c"})

# `contains` on `b` makes it multi-valued on the way, and it stays so.
_contains = st.builds(
    Predicate,
    st.just("b"),
    st.sampled_from(("contains any", "contains all")),
    st.tuples(st.integers(0, 3)),
    st.booleans(),
)
_once = st.integers(0, 10**6).map(lambda n: Predicate(f"only{n}", "=", (1,)))
_one_value = st.builds(Predicate, st.just("one"), st.just("="), st.just((7,)), st.booleans())
_all_values = st.sampled_from(
    (
        Or((Predicate("a", "<", (2,)), Predicate("a", ">=", (2,)))),
        Predicate("a", ">", (-(2**63),)),
        Predicate("a", "is null", (), True),
    )
)
_negative = st.lists(
    st.builds(Predicate, st.sampled_from("ab"), st.just("="), st.tuples(st.integers(0, 2)), st.just(True)),
    min_size=1,
    max_size=3,
).map(lambda some: And(tuple(some)) if len(some) > 1 else some[0])
some_rules: st.SearchStrategy[Node] = st.one_of(
    expressions(multi=DECLARED), _contains, _once, _one_value, _all_values, _negative, st.builds(Not, _negative)
)
some_events = st.one_of(
    events(multi={"b", "c"}), st.fixed_dictionaries({"one": st.just(7)}, optional={"a": st.integers(0, 3)})
)


class Machine(RuleBasedStateMachine):
    """`kept` is what the matcher should hold, in the order of adding."""

    absent = "fails"
    index = "be-tree"
    options: ClassVar[dict[str, Any]] = {"max_cap": 2, "min_size": 2}

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Node] = {}
        self.multi = DECLARED
        self.folder = Path(tempfile.mkdtemp(prefix="eligo-living-"))

    @initialize()
    def begin(self) -> None:
        self.m = eligo.Matcher(
            self.index,
            absent=self.absent,  # type: ignore[arg-type]
            multi=DECLARED,
            options=self.options,
        )

    @rule(name=st.sampled_from(NAMES), expression=some_rules)
    def add(self, name: str, expression: Node) -> None:
        self.m.add(name, expression, replace=name in self.kept)
        self.kept[name] = expression
        self.multi |= multi_valued(expression)

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name not in self.kept:
            with pytest.raises(eligo.UnknownRuleError):
                self.m.remove(name)
        else:
            self.m.remove(name)
            del self.kept[name]

    @rule(some=st.lists(st.tuples(st.sampled_from(NAMES), some_rules), max_size=5))
    def add_many(self, some: list[tuple[str, Node]]) -> None:
        self.m.add_many([(name, expression, 2.0, (name,)) for name, expression in some], replace=True)
        self.kept.update(some)
        self.multi = self.multi.union(*(multi_valued(expression) for _, expression in some))

    @rule(some=st.lists(st.tuples(st.sampled_from(NAMES), some_rules), max_size=4))
    def add_many_that_fail(self, some: list[tuple[str, Node]]) -> None:
        with pytest.raises(eligo.EligoError):
            self.m.add_many([*some, ("bad", "a = and")], replace=True)

    @rule(seen=st.lists(some_events, max_size=4))
    def observe(self, seen: list[dict[str, Any]]) -> None:
        self.m.observe([event for event in seen if self._fits(event)])

    @rule()
    def save_and_open(self) -> None:
        self.m.save(self.folder / "rules.eligo")
        self.m = eligo.open(self.folder / "rules.eligo")

    @rule(event=some_events, limit=st.one_of(st.none(), st.integers(0, 3)))
    def match(self, event: dict[str, Any], limit: int | None) -> None:
        if self._fits(event):
            assert self.m.match(event, limit=limit) == self._expected(event)[:limit]

    @rule(event=some_events, tags=st.lists(st.sampled_from(NAMES), max_size=3))
    def match_with_tags(self, event: dict[str, Any], tags: list[str]) -> None:
        if self._fits(event):
            wanted = [name for name in self._expected(event) if set(self.m.get(name).tags) & set(tags)]
            assert self.m.match(event, tags=tags) == wanted
            assert [name for name, _ in self.m.top(event, 9, tags=tags)] == wanted

    @rule(some=st.lists(some_events, min_size=1, max_size=5))
    def match_batch(self, some: list[dict[str, Any]]) -> None:
        some = [event for event in some if self._fits(event)]
        found = self.m.match_batch(some)
        wanted = [(number, name) for number, event in enumerate(some) for name in self._expected(event)]
        assert list(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True)) == wanted

    @invariant()
    def books_are_right(self) -> None:
        if not hasattr(self, "m"):
            return
        rules = self.m.engine.rules
        assert isinstance(rules, LivingSet)
        verify_structure(rules.structure, len(self.kept))
        if isinstance(rules.structure.index, BeTree):
            verify_tree(rules.structure.index.pools)
        else:
            assert isinstance(rules.structure.index, PsIndex)
            verify_index(rules.structure.index)
        assert list(self.m) == list(self.kept)
        assert len(self.m) == len(self.kept)
        assert self.m.multi == self.multi

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _fits(self, event: dict[str, Any]) -> bool:
        """Lists stand only where several values may; what no rule names is not looked at."""
        return not any(isinstance(value, list) and name not in self.multi for name, value in event.items())

    def _expected(self, event: dict[str, Any]) -> list[str]:
        return [name for name, expr in self.kept.items() if matches(expr, event, self.absent, self.multi)]


class ClassicalMachine(Machine):
    absent = "classical"


class HashMachine(Machine):
    index = "pst-hash"
    options: ClassVar[dict[str, Any]] = {"crowd": 1, "max_keys": 8}


class DeepHashMachine(ClassicalMachine):
    index = "pst-hash"
    options: ClassVar[dict[str, Any]] = {"accesses": 3, "crowd": 1}


class BloomMachine(Machine):
    index = "pst-bloom"
    options: ClassVar[dict[str, Any]] = {"signatures": 2}


class ClassicalBloomMachine(ClassicalMachine):
    index = "pst-bloom"
    options: ClassVar[dict[str, Any]] = {}


_settings = tried(30, stateful_step_count=40)
TestFails = Machine.TestCase
TestFails.settings = _settings
TestClassical = ClassicalMachine.TestCase
TestClassical.settings = _settings
_fewer = tried(20, stateful_step_count=40)
TestHash = HashMachine.TestCase
TestHash.settings = _fewer
TestDeepHash = DeepHashMachine.TestCase
TestDeepHash.settings = _fewer
TestBloom = BloomMachine.TestCase
TestBloom.settings = _fewer
TestClassicalBloom = ClassicalBloomMachine.TestCase
TestClassicalBloom.settings = _fewer
