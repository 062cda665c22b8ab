"""What of a rule goes to the index, and what follows for documents: Index Structures and Algorithms for Efficient
Profile Matching, §4.3.2, Examples 6 and 7 and Table 2.
"""

from __future__ import annotations

import pytest

from eligo.language.quantified import implied, plan, quantifiers, read_residual, split, write_residual
from eligo.language.render import render
from eligo.language.text import parse
from eligo.language.tree import And, Predicate

NONE: frozenset[str] = frozenset()


def follows(constant: str, join: str) -> list[str]:
    """What `exists d (join)` and a constant predicate say of the document, that it has the attribute apart."""
    (one,) = quantifiers(parse(f"exists d ({join})"))
    fact = parse(constant)
    assert isinstance(fact, Predicate)
    return [render(predicate) for predicate in implied(one, [fact]) if predicate.operator != "is null"]


# OP1 in `d.a OP1 a` by column, OP2 in `a OP2 10` by row, as the paper has it; "" where nothing follows.
TABLE = {
    "=": ("=", "<", "<=", ">", ">="),
    "<": ("<", "<", "<", "", ""),
    "<=": ("<=", "<", "<=", "", ""),
    ">": (">", "", "", ">", ">"),
    ">=": (">=", "", "", ">", ">="),
}


@pytest.mark.parametrize(
    ("constant", "join", "expected"),
    [(row, column, cells[i]) for row, cells in TABLE.items() for i, column in enumerate(("=", "<", "<=", ">", ">="))],
)
def test_table_2(constant: str, join: str, expected: str) -> None:
    assert follows(f"a {constant} 10", f"d.a {join} a") == ([f"a {expected} 10"] if expected else [])


@pytest.mark.parametrize(
    ("constant", "join", "expected"),
    [
        ("a between 5 and 10", "d.a = a", ["a between 5 and 10"]),
        ("a between 5 and 10", "d.a < a", ["a < 10"]),
        ("a between 5 and 10", "d.a <= a", ["a <= 10"]),
        ("a between 5 and 10", "d.a > a", ["a > 5"]),
        ("a between 5 and 10", "d.a >= a", ["a >= 5"]),
        ("a in (1, 2)", "d.a = a", ["a in (1, 2)"]),
        ("a like 'x%'", "d.a = a", ["a like 'x%'"]),
        ("a != 3", "d.a = a", ["a != 3"]),
        ("a = 3", "d.a != a", ["a != 3"]),
        ("a > 3", "d.a != a", []),
        ("a != 3", "d.a < a", []),
        ("b = 3", "d.a = a", []),
        ("a = 3", "d.other = a", ["other = 3"]),
        ("a is not null", "d.a = a", []),
    ],
)
def test_intervals_and_the_rest(constant: str, join: str, expected: list[str]) -> None:
    assert follows(constant, join) == expected


def test_an_exists_needs_one_document_for_all_that_it_says() -> None:
    relaxed, residual = split(
        parse("price < 10 and kind = 'b' and exists d (d.price = price and d.kind != 'x' and year > d.year)"),
        NONE,
        None,
    )
    assert render(relaxed) == "price < 10 and kind = 'b'"
    assert render(residual.root) == "exists d (price = d.price and d.kind != 'x' and year > d.year)"
    (needed,) = residual.needed
    assert needed is not None
    assert render(needed) == "price is not null and price < 10 and kind != 'x' and year is not null"


def test_nothing_follows_from_an_attribute_with_several_values() -> None:
    _, residual = split(parse("a = 1 and exists d (d.a = a and d.b > b)"), frozenset({"a"}), None)
    assert residual.needed[0] is not None
    assert render(residual.needed[0]) == "a is not null and b is not null"


def test_what_a_quantifier_says_of_the_event_alone_is_taken_out() -> None:
    relaxed, residual = split(parse("x = 1 and exists d (y > 5 and y < d.y)"), NONE, None)
    assert render(relaxed) == "x = 1 and y > 5"
    assert render(residual.root) == "exists d (y < d.y)"
    relaxed, residual = split(parse("y = 1 and exists d (y > 5 and y < d.y)"), NONE, None)
    assert render(relaxed) == "y = 1"  # with a range as y, both would have to hold for one value
    relaxed, residual = split(parse("not exists d (y > 5 and y < d.y)"), NONE, None)
    assert render(relaxed) == "true"
    assert render(residual.root) == "not exists d (y > 5 and y < d.y)"


def test_quantifiers_under_or_are_asked_with_the_rest() -> None:
    relaxed, residual = split(parse("z = 1 and (x = 1 or y = 2 and exists d (p < d.p))"), NONE, None)
    assert render(relaxed) == "z = 1 and (x = 1 or y = 2 and true)"
    assert render(residual.root) == "x = 1 or y = 2 and exists d (p < d.p)"


@pytest.mark.parametrize(
    "text",
    [
        "exists d (a < d.a)",
        "not exists e in received (not a < e.a and e.b != 'it''s \\ \"\x1f\n')",
        "x = 1 and (y = 2 or forall d (d.a contains all (1, true) and a = d.a)) and exists d (d.c like 'x%y')",
    ],
)
def test_a_residual_is_written_and_read(text: str) -> None:
    _, residual = split(parse(text), NONE, "ann")
    assert render(read_residual(write_residual(residual)).root) == render(residual.root)
    assert read_residual(write_residual(residual)).owner == "ann"


def test_searches() -> None:
    def searches(text: str) -> list[str]:
        (one,) = quantifiers(parse(text))
        found = plan(one).searches
        assert found is not None
        return [" & ".join(("" if term.wanted else "not ") + term.key for term in search.terms) for search in found]

    assert searches("exists d (a < d.a and (d.b = 1 or d.c = 2))") == ["a < d.a & d.b = 1", "a < d.a & d.c = 2"]
    assert searches("forall d (a < d.a or d.b = 1)") == ["not a < d.a & not d.b = 1"]
    assert searches("exists d (d.b = 1 and d.b = true)") == ["d.b = 1 & d.b"]  # 1 is not true here
    wide = " and ".join(f"(d.a{i} = 1 or d.b{i} = 1)" for i in range(10))
    (one,) = quantifiers(parse(f"exists d ({wide})"))
    assert plan(one).searches is None
    assert isinstance(plan(one).body, And)
