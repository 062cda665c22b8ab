"""One tree, three notations: reading back what was written gives the same tree, types and all."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from eligo.errors import EligoError
from eligo.language import from_json, parse, read, render, to_json
from strategies import ODD_NAMES, STRINGS, expressions

trees = expressions(attributes=ODD_NAMES, with_quantifiers=True, max_leaves=12, variables=("d", "a", "doc"))

# repr tells 1, 1.0 and True apart, and 0.0 from -0.0; equality does not.


@given(trees)
def test_text_gives_the_tree_back(tree):
    assert repr(parse(render(tree))) == repr(tree)


@given(trees)
def test_json_gives_the_tree_back(tree):
    assert repr(from_json(json.loads(json.dumps(to_json(tree))))) == repr(tree)


@given(trees)
def test_a_tree_is_read_as_itself(tree):
    assert repr(read(tree)) == repr(tree)


@given(trees)
def test_layout_and_case_of_keywords_say_nothing(tree):
    text = f" \t( --it's a comment\n {render(tree)}\n) -- and another"
    assert repr(parse(text)) == repr(tree)


WORDS = """
    a b d.e d.`x` `and` and or not NOT in between like is null true false contains any all none exists forall date
    timestamp ( ) , = == != <> < <= > >= 1 -2 1.5 1e999 99999999999999999999 'x' '' ' ` " -- && === - . {
"""
PHRASES = ("date '2026-01-31'", "timestamp '2026-01-31 12:00:00Z'", "date 'x'", "\n", "²", "\ud800")
words = st.sampled_from((*WORDS.split(), *PHRASES, *STRINGS))
texts = st.one_of(st.lists(words, max_size=12).map(" ".join), st.lists(words, max_size=6).map("".join), st.text())


def attempt(reader, given):
    """The tree, or the error that refuses it; any other error is a bug and passes through."""
    try:
        return reader(given), None
    except EligoError as error:
        return None, error


@given(texts)
def test_any_text_is_read_or_refused_with_a_place(text):
    tree, error = attempt(parse, text)
    if error is None:
        assert repr(parse(render(tree))) == repr(tree)
    else:
        assert 0 <= error.position <= len(text)
        assert str(error)


KEYS = ("and", "or", "not", "attr", "op", "value", "of", "other", "exists", "forall", "where", "date", "x")
TEXTS = ("a", "d", "=", "<", "in", "not in", "between", "like", "is null", "contains any", "", "2026-01-31")
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(TEXTS))
forms = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=8,
)


@given(forms)
def test_any_json_is_read_or_refused(form):
    tree, error = attempt(from_json, form)
    if error is None:
        assert repr(from_json(to_json(tree))) == repr(tree)
    else:
        assert str(error).startswith("at $")
