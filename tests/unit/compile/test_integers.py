"""The short way for whole numbers gives what the long one gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eligo.compile.codes import cut_codes, integer_runs
from eligo.language.tree import Predicate
from eligo.language.values import positive_set

WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**54), 2**54), st.sampled_from([2**53 - 1, 2**53, -(2**53) + 1]))
VALUES = st.one_of(WHOLE, WHOLE, st.booleans(), st.floats(allow_nan=False), st.text(max_size=2))


def no_strings(text: str) -> int:
    raise AssertionError(text)


@given(st.sampled_from(["=", "<", "<=", ">", ">=", "between", "in"]), st.lists(VALUES, min_size=2, max_size=4))
def test_it_is_what_the_long_way_gives(operator: str, values: list[object]) -> None:
    taken = tuple(values[: {"between": 2, "in": 4}.get(operator, 1)])
    short = integer_runs(operator, taken)
    if any(type(value) is not int or abs(value) >= 2**53 for value in taken):
        assert short is None
        return
    whole = positive_set(Predicate("a", operator, taken))  # type: ignore[arg-type]
    assert short == [(*cut_codes(low, no_strings), *cut_codes(high, no_strings)) for low, high in whole]


def test_other_operators_go_the_long_way() -> None:
    assert integer_runs("like", ("a",)) is None
    assert integer_runs("is null", ()) is None
    assert integer_runs("contains any", (1,)) is None
