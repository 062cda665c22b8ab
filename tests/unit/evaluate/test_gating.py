"""Gates are carried into trees where they spare work, and the rules stay what they were."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import eligo
from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import Compiled, unique
from eligo.compile.strings import Strings
from eligo.evaluate.gating import gate
from eligo.evaluate.sharing import share
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.prove import prove


def compiled(*texts: str) -> Compiled:
    builder = Builder(Attributes(), Strings())
    for text in texts:
        builder.add(normalize(parse(text), multi=frozenset(), absent="fails"))
    return unique(builder.finish())


def tenants(rules: int) -> list[str]:
    return [
        f"tenant = 't{i % 40}' and (a = {i % 7} or b > {i % 5}) and (c = {i % 3} or d < {i % 6})" for i in range(rules)
    ]


def same(one: Compiled, other: Compiled) -> bool:
    arrays = other.arrays()
    return all(np.array_equal(array, arrays[name]) for name, array in one.arrays().items())


def test_a_selective_predicate_goes_to_every_leaf_beside_it() -> None:
    rules = compiled(*tenants(400))
    gated = gate(rules)
    tenant = rules.attribute[rules.conjunction[rules.conjunction_offsets[rules.tree[rules.tree >= 0][0]]]]
    for token in gated.tree[gated.tree >= 0]:
        predicates = gated.conjunction[gated.conjunction_offsets[token] : gated.conjunction_offsets[token + 1]]
        assert tenant in gated.attribute[predicates]
    assert gated.predicates == rules.predicates
    assert np.array_equal(gated.tree < 0, rules.tree < 0)


def test_gated_rules_come_out_as_they_went_in() -> None:
    gated = gate(compiled(*tenants(400)))
    assert same(gate(gated), gated)
    shared = share(gated)
    assert shared.parts
    assert same(gate(shared), shared)


@pytest.mark.parametrize(
    "texts",
    [
        tenants(40),  # too few
        [f"a = {i} and b = {i}" for i in range(100)],  # no trees
        [f"a > {i} and (b > {i} or c > {i})" for i in range(100)],  # nothing that seldom holds
        [f"(a = {i} or b = {i}) and (c = 1 or d = 2)" for i in range(100)],  # nothing beside the trees
    ],
)
def test_what_would_gain_nothing_is_left_alone(texts: list[str]) -> None:
    rules = compiled(*texts)
    assert gate(rules) is rules


def test_parts_keep_their_numbers() -> None:
    rules = share(
        compiled(
            *tenants(100), *(f"x = 'v{i}' and (y = 1 or z = 2 and w = 3) and (u = {i} or v = 1)" for i in range(90))
        )
    )
    assert rules.parts
    gated = gate(rules)
    assert gated.parts == rules.parts
    assert gated.conjunctions > rules.conjunctions


def test_the_prover_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With gates wherever they are possible, not only where they pay."""
    monkeypatch.setattr("eligo.segments.segment.gate", partial(gate, least=1, seldom=1.0))
    proof = prove(seed=1, indexes=["bitmap"], evaluators=["shared"], themes=["reuse"])
    assert not proof.differences, proof.differences[0][1]


def test_a_matcher_asks_less() -> None:
    texts = tenants(2000)
    gated, plain = eligo.Matcher("propagation"), eligo.Matcher("scan")
    for m in (gated, plain):
        m.add_many(enumerate(texts))
    events = [{"tenant": f"t{i}", "a": i % 7, "b": 3, "c": i % 3, "d": 2} for i in range(40)]
    assert [gated.match(event) for event in events] == [plain.match(event) for event in events]
    assert gated.stats().candidates < plain.stats().candidates / 2


def test_stats_count_gates() -> None:
    m = eligo.Matcher()
    m.add_many([(n, f"(a = {n} or b > 3) and tenant = 't{n}' and (c = 1 or d = 2)") for n in range(100)])
    assert m.stats().notes["conjunctions with a gate"] == 300  # of a tenant: b > 3, c = 1, d = 2; but a = n is as rare
    assert m.stats().conjunctions == 500
    few = eligo.Matcher()
    few.add_many([(n, f"tenant = 't{n}' and (c = 1 or d = 2)") for n in range(10)])
    assert "conjunctions with a gate" not in few.stats().notes
