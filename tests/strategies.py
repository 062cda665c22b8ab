"""Random rules and events that collide on purpose: few attributes, few values, all kinds, the values that break code.

`expressions` and `events` draw from the same small pools, so that a random rule has a fair chance of being true of a
random event. Give both the same `multi`: it is where `contains` may stand and where lists may be.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from eligo.language.tree import And, Constant, Join, Node, Not, Or, Predicate, Quantified, Value

ATTRIBUTES = ("a", "b", "c")


def tried(examples: int, **more: Any) -> settings:
    """So many examples in `make test`, which has every index and evaluator try some; `make test-thorough` has more."""
    times = int(os.environ.get("ELIGO_EXAMPLES", "1"))
    return settings(max_examples=times * examples, deadline=None, suppress_health_check=list(HealthCheck), **more)


# Names that text can write only in backquotes, or that look as if they could not be names.
ODD_NAMES = (
    "a", "A", "and", "NOT", "Null", "true", "contains", "exists", "any", "date", "timestamp", "d", "d.e", "d.", "a.b",
    "a.0", "0", "1a", "-1", "two words", "`", "``a", "it's", '"', "--", "(", "ünï", "名", "²", "é", "\n", " ", "\u2028",
)  # fmt: skip

SMALL = (0, 1, 2, 3)
NUMBERS = (
    *SMALL, -1, 0.0, -0.0, 0.5, 1.0, 2.5, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 2.0**63, 1e300, 5e-324,
)  # fmt: skip
STRINGS = ("", "a", "ab", "b", "B", "it's", "a%", "%b", "a_", "true", "1", "\x00", "é", "\ud7ff", "\U0001f600", "\\")
TIMES = (
    date(2026, 1, 31),
    date(1, 1, 1),
    datetime(2026, 1, 31, tzinfo=UTC),
    datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
)
PATTERNS = ("a%", "%", "_", "a_", "%b", "", "a", "a%b", "it's%", "a\\%", "\\%b", "%\\_", "a\\_%", "\\\\%")

_small = st.sampled_from(SMALL)
_numbers = st.one_of(_small, st.sampled_from(NUMBERS))
_strings = st.sampled_from(STRINGS)
_times = st.sampled_from(TIMES)
_ordered = (_numbers, _numbers, _strings, _times)


def values() -> st.SearchStrategy[Value]:
    """A value as a rule holds it, mostly a small number."""
    return st.one_of(_small, _numbers, _strings, st.booleans(), _times)


def expressions(
    attributes: Sequence[str] = ATTRIBUTES,
    with_quantifiers: bool = False,
    max_leaves: int = 8,
    multi: Collection[str] | None = None,
    variables: Sequence[str] = ("d",),
) -> st.SearchStrategy[Node]:
    """Trees such as the readers give. `contains` stands on attributes in `multi`, or on all when it is None."""
    several = tuple(attributes) if multi is None else tuple(name for name in attributes if name in multi)
    leaf: st.SearchStrategy[Node] = st.one_of(_predicates(attributes, several), st.builds(Constant, st.booleans()))
    if with_quantifiers:
        leaf = st.one_of(leaf, *(_quantified(attributes, several, name) for name in variables))
    return _trees(leaf, max_leaves)


def _trees(leaf: st.SearchStrategy[Node], max_leaves: int) -> st.SearchStrategy[Node]:
    def grow(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(inner, min_size=2, max_size=4).map(tuple)
        return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, inner))

    return st.recursive(leaf, grow, max_leaves=max_leaves)


def _predicates(attributes: Sequence[str], several: Sequence[str], variable: str = "") -> st.SearchStrategy[Node]:
    name = st.sampled_from(attributes)
    negated = st.booleans()
    of = st.just(variable)
    listed = st.lists(values(), min_size=1, max_size=3).map(tuple)
    single = _single(values())
    bound = st.one_of(*(_single(kind) for kind in _ordered))
    pair = st.one_of(*(st.tuples(kind, kind) for kind in _ordered))
    order = st.sampled_from(("<", "<=", ">", ">="))
    forms: list[st.SearchStrategy[Node]] = [
        st.builds(Predicate, name, st.just("="), single, negated, of),
        st.builds(Predicate, name, order, bound, st.just(False), of),
        st.builds(Predicate, name, st.just("in"), listed, negated, of),
        st.builds(Predicate, name, st.just("between"), pair, negated, of),
        st.builds(Predicate, name, st.just("like"), _single(st.sampled_from(PATTERNS)), negated, of),
        st.builds(Predicate, name, st.just("is null"), st.just(()), negated, of),
    ]
    if several:
        contains = st.sampled_from(("contains any", "contains all"))
        forms.append(st.builds(Predicate, st.sampled_from(several), contains, listed, negated, of))
    return st.one_of(forms)


def _single(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any]]:
    return strategy.map(lambda value: (value,))


def _quantified(attributes: Sequence[str], several: Sequence[str], variable: str) -> st.SearchStrategy[Node]:
    name = st.sampled_from(attributes)
    of = st.just(variable)
    ordered = st.builds(Join, name, st.sampled_from(("<", "<=", ">", ">=")), of, name, st.just(False))
    equal = st.builds(Join, name, st.just("="), of, name, st.booleans())
    document = _predicates(attributes, (), variable)  # what `contains` declares is the event's attribute
    body = _trees(st.one_of(ordered, equal, document, _predicates(attributes, several)), 4)
    return st.builds(Quantified, st.sampled_from(("exists", "forall")), of, body)


def events(
    attributes: Sequence[str] = ATTRIBUTES, multi: Collection[str] = (), ranges: bool = False
) -> st.SearchStrategy[dict[str, Any]]:
    """Events over the same attributes: absent, None, NaN, all kinds, objects; lists for `multi`, ranges for the others."""
    single = st.one_of(
        _small,
        values(),
        st.sampled_from((None, math.nan, math.inf, -math.inf, {}, {"z": 1})),
        st.sampled_from((datetime(2026, 1, 31), datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1))))),
    )
    lists = st.lists(single, max_size=3)
    ranged = st.one_of(single, _ranges()) if ranges else single
    per_name = {name: st.one_of(single, lists) if name in multi else ranged for name in attributes}
    return st.fixed_dictionaries({}, optional=per_name)


def _ranges() -> st.SearchStrategy[Any]:
    from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf

    ends = (*_ordered, st.booleans())
    one = st.one_of(*_ordered)
    return st.one_of(
        st.one_of(*(st.tuples(kind, kind) for kind in _ordered)).map(lambda pair: Between(*pair)),
        st.builds(Below, one, st.booleans()),
        st.builds(Above, one, st.booleans()),
        st.lists(st.one_of(*ends), min_size=1, max_size=3).map(lambda chosen: OneOf(*chosen)),
        st.one_of(*(st.lists(kind, min_size=1, max_size=3) for kind in ends)).map(lambda chosen: NoneOf(*chosen)),
    )
