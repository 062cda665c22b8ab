"""Options of indexes and evaluators: declared, validated, handed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

import eligo
from eligo.index.registry import INDEXES
from eligo.index.scan import Scan
from eligo.options import Option, differing, from_texts, own, validated


class Tree:
    """Stands for an index with options of every kind."""

    name = "tree"
    options: ClassVar[Mapping[str, Option]] = {
        "max_cap": Option(20, "conjunctions in a leaf", least=1, most=1000),
        "share": Option(0.5, "of something", least=0),
        "fast": Option(True, "whether"),
        "way": Option("left", "which", choices=("left", "right")),
        "label": Option("", "any text"),
    }


class Plain:
    name = "plain"
    options: ClassVar[Mapping[str, Option]] = {}


DEFAULTS = {"max_cap": 20, "share": 0.5, "fast": True, "way": "left", "label": ""}


def test_values_are_made_complete() -> None:
    assert validated(None, (Tree, Plain)) == DEFAULTS
    assert validated({}, (Plain,)) == {}
    given = {"max_cap": np.int64(5), "share": 2, "fast": False, "way": "right", "label": "x"}
    made = validated(given, (Plain, Tree))
    assert made == {"max_cap": 5, "share": 2.0, "fast": False, "way": "right", "label": "x"}
    assert [type(value) for value in made.values()] == [int, float, bool, str, str]
    assert own(Tree, made) == made
    assert own(Plain, made) == {}
    assert differing(made, (Tree, Plain)) == made
    assert differing(DEFAULTS, (Tree,)) == {}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_cap": 0}, "option 'max_cap' is a whole number from 1 to 1,000, not 0"),
        ({"max_cap": 1001}, "not 1001"),
        ({"max_cap": 2.0}, "a whole number"),
        ({"max_cap": "2"}, "not '2'"),
        ({"max_cap": True}, "not True"),
        ({"share": -1}, "option 'share' is a number of 0 or more, not -1"),
        ({"share": float("nan")}, "not nan"),
        ({"fast": 1}, "option 'fast' is True or False, not 1"),
        ({"way": "up"}, "option 'way' is 'left' or 'right', not 'up'"),
        ({"label": 5}, "option 'label' is a text, not 5"),
        ({"max_kap": 5}, r"unknown option 'max_kap' of tree with plain; did you mean 'max_cap'\? \(there are: max_cap"),
        ({"xyz": 5}, "unknown option 'xyz'"),
        ({5: 5}, "unknown option 5"),
        ([("max_cap", 5)], "options is a mapping"),
    ],
)
def test_wrong_values_are_refused(given: Any, told: str) -> None:
    with pytest.raises(eligo.EligoError, match=told) as caught:
        validated(given, (Tree, Plain))
    assert isinstance(caught.value, ValueError)


def test_an_option_of_somebody_else() -> None:
    with pytest.raises(eligo.EligoError, match="'max_cap' is an option of tree, not of plain"):
        validated({"max_cap": 5}, (Plain,), (Tree, Plain))
    with pytest.raises(eligo.EligoError, match=r"unknown option 'x' of plain \(there are none\)"):
        validated({"x": 5}, (Plain,), (Tree, Plain))


def test_values_as_text() -> None:
    given = ["max_cap=7", "share = 1e-3", "fast=False", "way=right", "label=a=b", "max_cap=8"]
    assert from_texts(given, (Tree,)) == {"max_cap": 8, "share": 0.001, "fast": False, "way": "right", "label": "a=b"}
    for wrong, told in (("max_cap", "name=value"), ("=5", "name=value"), ("max_cap=x", "not 'x'"), ("fast=1", "not '1'"),
                        ("max_cap=0", "not 0"), ("cap=5", "did you mean 'max_cap'")):  # fmt: skip
        with pytest.raises(eligo.EligoError, match=told):
            from_texts([wrong], (Tree,))


def test_allowed_says_what_may_be_given() -> None:
    assert Option(1, "").allowed() == "a whole number"
    assert Option(1.5, "", most=2).allowed() == "a number of 2 or less"


class Choosy(Scan):
    """An index with an option, and what it was built with."""

    name = "choosy"
    options: ClassVar[Mapping[str, Option]] = {"width": Option(3, "a width", least=1)}
    built: ClassVar[list[int]] = []

    @classmethod
    def build(cls, conjunctions: Any, selectivity: Any = None, *, width: int = 3) -> Any:
        cls.built.append(width)
        return super().build(conjunctions, selectivity)


def test_an_index_gets_its_options_wherever_it_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    INDEXES.all()
    monkeypatch.setitem(INDEXES._known, "choosy", Choosy)
    m = eligo.Matcher("choosy", "dnf", options={"width": 7, "past_terms": "interval"})
    assert m.options == {"width": 7, "past_terms": "interval"}
    with pytest.raises(TypeError):
        m.options["width"] = 5  # type: ignore[index]
    for i in range(200):
        m.add(i, f"a = {i % 3}")
    m.observe([{"a": 1}])
    assert len(m.match({"a": 1})) == 67
    m.save(tmp_path / "rules.eligo")
    opened = eligo.open(tmp_path / "rules.eligo")
    opened.add(200, "a = 1")
    assert opened.match({"a": 1})[-1] == 200
    assert opened.stats().options == {"width": 7, "past_terms": "interval"}
    assert set(Choosy.built) == {7}
    eligo.Matcher("choosy").add_many([("x", "a = 1")])
    assert set(Choosy.built) == {7, 3}
    with pytest.raises(eligo.OptionError, match="'width' is an option of choosy, not of scan with shared"):
        eligo.Matcher("scan", options={"width": 5})


def test_options_that_are_the_default_are_not_shown() -> None:
    assert not eligo.Matcher(evaluator="dnf", options={"past_terms": "refuse"}).stats().options
    assert not eligo.Matcher().stats().options
    assert eligo.Matcher("scan").options == {}
