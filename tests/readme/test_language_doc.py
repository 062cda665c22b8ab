"""Runs every example of docs/language.md.

Blocks: rules in an `eligo` block, parted by blank lines, are read; those in an `eligo-error` or `json-error` block are
refused, and a `text` block right after one is the message. Tables: a first column `rule` is asked of its `event`; a
first column `JSON` or `Python` says the same as the text beside it; a first column `limit` holds the defaults. An
`explain` block has a rule, an event and, after a blank line, what `explain` prints.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from eligo.errors import RuleSyntaxError
from eligo.language import Limits, attr, exists, forall, from_json, parse, read, render

DOC = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([\w-]+)\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)


def paragraphs(kind):
    return [text.strip() for name, block in BLOCKS if name == kind for text in re.split(r"\n\s*\n", block)]


def cells(line):
    """The cells of a table's row, without the backquotes around code."""
    parts = [part.strip().replace("\\|", "|") for part in re.split(r"(?<!\\)\|", line)[1:-1]]
    return [re.sub(r"^(`+) ?(.*?) ?\1$", r"\2", part) for part in parts]


def rows(first):
    """Every row of the tables whose first column has that title, as (titles, cells)."""
    outside = re.sub(r"^```.*?^```$", "", DOC, flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", outside, re.MULTILINE):
        titles, _, *body = map(cells, table.splitlines())
        if titles[0] == first:
            yield from ((titles, row) for row in body)


def python(code):
    from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf

    known = (Above, Below, Between, NoneOf, OneOf, attr, exists, forall, datetime, Decimal, float)
    return eval(code, {"__builtins__": {}, **{thing.__name__: thing for thing in known}})


@pytest.mark.parametrize("text", paragraphs("eligo"))
def test_example_is_read(text):
    tree = parse(text)
    assert repr(parse(render(tree))) == repr(tree)


@pytest.mark.parametrize("text", paragraphs("eligo-error"))
def test_example_is_refused(text):
    with pytest.raises(RuleSyntaxError):
        parse(text)


def test_messages_are_shown_as_they_are():
    shown = 0
    for (kind, block), (following, message) in pairwise(BLOCKS):
        if following == "text":
            with pytest.raises(RuleSyntaxError) as caught:
                from_json(json.loads(block)) if kind == "json-error" else parse(block.strip())
            assert str(caught.value) == message.strip()
            shown += 1
    assert shown == 2


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "explain"])
def test_explanation_is_shown_as_it_is(block):
    from eligo.explain import explain

    asked, _, shown = block.partition("\n\n")
    rule, event = asked.splitlines()
    assert str(explain("rule", parse(rule), python(event), "fails", ())) == shown.strip()


ASKED = list(rows("rule"))


@pytest.mark.parametrize(("titles", "row"), ASKED, ids=[" | ".join(row) for _, row in ASKED])
def test_example_holds_as_the_table_says(titles, row):
    from eligo.language.reference import matches

    given = dict(zip(titles, row, strict=True))
    rule, event = parse(given.pop("rule")), python(given.pop("event"))
    documents = python(given.pop("documents", "[]"))
    for title, expected in given.items():
        absent = title if title in ("fails", "classical") else "fails"
        multi = frozenset(title.partition("multi: ")[2].split())
        assert matches(rule, event, absent=absent, multi=multi, documents=documents) is (expected == "true")


@pytest.mark.parametrize(("form", "text"), [row for _, row in rows("JSON")])
def test_json_says_the_same(form, text):
    assert repr(read(json.loads(form))) == repr(parse(text))


@pytest.mark.parametrize(("code", "text"), [row for _, row in rows("Python")])
def test_python_says_the_same(code, text):
    assert repr(read(python(code))) == repr(parse(text))
    assert render(read(python(code))) == text


def test_limits_are_the_defaults():
    documented = {name: int(default.replace(",", "")) for _, (name, default, _) in rows("limit")}
    assert documented == {name: getattr(Limits(), name) for name in Limits.__struct_fields__}


def test_there_are_examples():
    assert len(ASKED) > 50
    assert len(paragraphs("eligo")) > 8
    assert len(list(rows("JSON"))) > 8
