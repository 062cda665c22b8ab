"""Drafts: their text, and that compiling without the text says the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eligo
from eligo.compile.attributes import Attributes
from eligo.compile.conjunctions import build_conjunctions
from eligo.compile.encode import TEXT, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.workload.draft import BETWEEN, IN, LARGEST, NOT_IN, OPERATORS, Draft, conjunctive
from eligo_lab.workload.events import EventDraft, match_probability, matches_of

NAMES = ("a", "two words", "and", "s", "t")
TEXTUAL = np.array([False, False, False, True, True])
WORDS = ("b", "", "it's", "é", "a", "ab")  # in no order, as a generator may have them

Rule = Any  # a conjunction {attribute: (operator, operands)}, or ("and" | "or", [rules])


def drafted(rules: list[Rule]) -> Draft:
    """The columns of some rules."""
    attribute, operator, counts, operand, sizes, tree, ends = [], [], [0], [], [0], [], [0]
    for rule in rules:
        stack = [rule] if rule is not None else []
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                tree.append(len(sizes) - 1)
                for name, (op, values) in node.items():
                    attribute.append(name)
                    operator.append(op)
                    operand += values
                    counts.append(len(operand))
                sizes.append(len(attribute))
            else:
                word, children = node
                tree.append(-2 * len(children) - (word == "or"))
                stack.extend(reversed(children))
        ends.append(len(tree))
    return Draft(
        NAMES,
        WORDS,
        TEXTUAL,
        np.array(attribute, np.int32),
        np.array(operator, np.uint8),
        np.array(counts, np.int64),
        np.array(operand, np.int64),
        np.array(sizes, np.int64),
        np.array(ends, np.int64),
        np.array(tree, np.int32),
    )


def _operands(name: int, op: int) -> st.SearchStrategy[list[int]]:
    value = (
        st.integers(0, len(WORDS) - 1) if TEXTUAL[name] else st.sampled_from((-LARGEST, -2, -1, 0, 1, 2, 3, LARGEST))
    )
    if op in (IN, NOT_IN):
        return st.lists(value, min_size=1, max_size=4, unique=True).map(sorted)
    if op == BETWEEN:
        order = WORDS.__getitem__ if TEXTUAL[name] else None
        return st.lists(value, min_size=2, max_size=2).map(lambda pair: sorted(pair, key=order))
    return st.lists(value, min_size=1, max_size=1)


def _predicate(name: int) -> st.SearchStrategy[tuple[int, list[int]]]:
    return st.integers(0, len(OPERATORS) - 1).flatmap(lambda op: st.tuples(st.just(op), _operands(name, op)))


conjunctions = st.fixed_dictionaries({}, optional={name: _predicate(name) for name in range(len(NAMES))})
trees = st.recursive(
    conjunctions,
    lambda inner: st.tuples(st.sampled_from(("and", "or")), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)
whole = st.lists(st.one_of(conjunctions, trees, st.none()), min_size=1, max_size=6)
values = st.sampled_from((-LARGEST, -2, -1, 0, 0.5, 1, 2, 3, 4, LARGEST, LARGEST + 1, True, *WORDS, "aa", "z"))
events = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, values)), min_size=1, max_size=6)


def found(draft: Draft, some: list[dict[str, Any]], absent: str) -> list[list[int]]:
    """Matches of the compiled draft."""
    attributes, strings = Attributes(), Strings()
    compiled, conjunctions = build_conjunctions(draft.compile(attributes, strings, absent), strings, len(attributes))
    index = INDEXES.get("scan").build(conjunctions)
    evaluator = EVALUATORS.get("interval").build(compiled)
    encoder = Encoder(attributes, strings, {attributes.names[a]: TEXT for a in conjunctions.text_attributes()})
    scratch, done, answers = index.scratch(), evaluator.scratch(), []
    for event in some:
        buffer = EventBuffer()
        encoder.encode(event, buffer)
        count = index.search(buffer, 0, scratch)
        matched = evaluator.evaluate(scratch.found, count, np.zeros(0, np.uint8), done)
        answers.append(done.matched[:matched].tolist())
    return answers


@settings(max_examples=200, deadline=None)
@given(rules=whole, some=events, absent=st.sampled_from(("fails", "classical")))
def test_text_and_arrays_mean_the_same(rules: list[Rule], some: list[dict[str, Any]], absent: Any) -> None:
    draft = drafted(rules)
    table = draft.table()
    matcher = eligo.Matcher(absent=absent)
    matcher.add_many(table)
    roots = [parse(text) for text in table["expression"].to_pylist()]
    wanted = [[i for i, root in enumerate(roots) if matches(root, event, absent)] for event in some]
    assert [matcher.match(event) for event in some] == wanted
    assert found(draft, some, absent) == wanted


typed = st.lists(
    st.fixed_dictionaries({}, optional={a: st.integers(0, len(WORDS) - 1) if TEXTUAL[a] else st.integers(-3, 4) for a in range(len(NAMES))}),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(rules=whole, some=typed, own=st.integers(-1, 0))
def test_measuring_agrees_with_the_matcher(rules: list[Rule], some: list[dict[int, int]], own: int) -> None:
    draft = drafted(rules)
    pairs = [pair for event in some for pair in event.items()]
    events = EventDraft(
        NAMES,
        np.cumsum([0, *map(len, some)]),
        np.array([a for a, _ in pairs], np.int32),
        np.array([value for _, value in pairs], np.int64),
        TEXTUAL,
        WORDS,
    )
    matcher = eligo.Matcher()
    matcher.add_many(draft.table())
    shown = [{NAMES[a]: WORDS[v] if TEXTUAL[a] else v for a, v in event.items()} for event in some]
    rows = events.table().to_pylist() if pairs else [{} for _ in some]
    assert [{name: v for name, v in row.items() if v is not None} for row in rows] == shown
    wanted = np.zeros(len(draft), np.int64)
    for number, event in enumerate(shown):
        wanted[matcher.match(event)] += number != own
    assert matches_of(draft, events, np.full(len(draft), own)).tolist() == wanted.tolist()
    if own < 0:
        assert match_probability(draft, events) == pytest.approx(wanted.sum() / len(some) / len(draft))


@settings(max_examples=50, deadline=None)
@given(rules=whole, n=st.integers(0, 6))
def test_a_slice_is_the_first_rules(rules: list[Rule], n: int) -> None:
    draft = drafted(rules)
    assert draft.slice(n).table().equals(draft.table().slice(0, n))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({0: (BETWEEN, [-3, 5]), 3: (IN, [0, 2]), 2: (NOT_IN, [7])}, "a between -3 and 5 and s in ('b', 'it''s') and `and` not in (7)"),
        (("or", [{0: (0, [1])}, {1: (1, [0]), 0: (2, [9])}]), "a = 1 or `two words` != 0 and a < 9"),
        (("and", [("or", [{0: (3, [1])}, {0: (4, [-10])}]), {1: (5, [100])}]), "(a <= 1 or a > -10) and `two words` >= 100"),
        (("and", [("or", [{0: (0, [1])}]), ("and", [{1: (0, [2])}])]), "a = 1 and `two words` = 2"),
        (("or", [("and", [("or", [{0: (0, [1])}, {0: (0, [2])}])]), {4: (0, [1])}]), "a = 1 or a = 2 or t = ''"),
        (("and", [("and", [("or", [{0: (0, [1])}, {0: (0, [2])}])]), {}]), "(a = 1 or a = 2) and true"),
        (None, "false"),
    ],
)  # fmt: skip
def test_text(rule: Rule, text: str) -> None:
    assert drafted([rule]).table()["expression"].to_pylist() == [text]


def test_equal_predicates_and_conjunctions_are_stored_once() -> None:
    draft = drafted([{0: (0, [1]), 1: (0, [2])}, {1: (0, [2]), 0: (0, [1])}, {0: (IN, [1])}])
    compiled = draft.compile(Attributes(), Strings())
    assert (compiled.rules, compiled.conjunctions, compiled.predicates) == (3, 2, 2)


def test_numbers_are_those_of_the_whole_matcher() -> None:
    attributes, strings = Attributes(["first"]), Strings()
    strings.intern("z")
    compiled = drafted([{3: (0, [4])}]).compile(attributes, strings)
    assert attributes.names == ["first", "s"]
    assert compiled.attribute.tolist() == [1]
    assert compiled.low_key.tolist() == [2 * strings.number("a")]


def _one(**changes: Any) -> Draft:
    columns = {
        "attribute": [0],
        "operator": [0],
        "operand_offsets": [0, 1],
        "operand": [5],
        "rule_offsets": [0, 1],
    } | changes
    dtypes = {"attribute": np.int32, "operator": np.uint8}
    return conjunctive(
        ("a",), **{name: np.array(column, dtypes.get(name, np.int64)) for name, column in columns.items()}
    )


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (_one(attribute=[1]), "names an attribute"),
        (_one(operator=[9]), "names an attribute or operator"),
        (_one(operand_offsets=[0, 0], operand=[]), "number of operands"),
        (_one(operator=[IN], operand_offsets=[0, 2], operand=[5, 5]), "do not ascend"),
        (_one(operator=[BETWEEN], operand_offsets=[0, 2], operand=[5, 4]), "do not ascend"),
        (_one(operand=[2**53 + 1]), "beyond"),
        (_one(attribute=[0, 0], operator=[0, 0], operand_offsets=[0, 1, 2], operand=[5, 5], rule_offsets=[0, 2]), "two predicates"),
        (Draft(**{**vars(_one()), "tree": np.array([7], np.int32)}), "a tree"),
        (Draft(**{**vars(_one()), "tree": np.array([-4], np.int32)}), "a tree"),
        (Draft(**{**vars(_one()), "attributes": ("a\0",)}), "NUL"),
    ],
)  # fmt: skip
def test_a_broken_draft_is_refused(draft: Draft, reason: str) -> None:
    with pytest.raises(eligo.EligoError, match=reason):
        draft.table()
    with pytest.raises(eligo.EligoError, match=reason):
        draft.compile(Attributes(), Strings())


def test_a_conjunction_that_many_rules_share_is_written_for_each() -> None:
    one = conjunctive(("a" * 50, "b"), np.array([0, 1], np.int32), np.array([IN, BETWEEN], np.uint8), np.array([0, 3, 5]),
                      np.array([-(2**50), 5, 2**50, -7, 7]), np.array([0, 2]))  # fmt: skip
    trees = [[-4, 0, -5, 0, 0]] * 500
    many = Draft(**{**vars(one), "tree": np.array([t for tree in trees for t in tree], np.int32),
                    "tree_offsets": np.arange(0, 5 * 501, 5)})  # fmt: skip
    texts = many.table()["expression"].to_pylist()
    leaf = f"{'a' * 50} in ({-(2**50)}, 5, {2**50}) and b between -7 and 7"
    assert set(texts) == {f"{leaf} and ({leaf} or {leaf})"}
