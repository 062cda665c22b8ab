"""Which rules look at which attributes, read from compiled arrays, is what their normal forms say."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

import eligo
from eligo.compile.naming import attribute_counts, rules_naming
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.tree import predicates_of
from eligo.segments.rule_set import RuleSet

NAMES = ("a", "b", "c", "d.e")


def drawn(rng: random.Random, depth: int = 3) -> str:
    if not depth or rng.random() < 0.2:
        return f"{rng.choice(NAMES)} = {rng.randrange(3)}"
    inner = [drawn(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return f"({rng.choice((' and ', ' or ')).join(inner)})"


@pytest.mark.parametrize("evaluator", ["interval", "shared", "dnf"])
def test_attributes_of_rules_are_those_of_their_normal_forms(evaluator: str) -> None:
    """`shared` has trees that name parts of others; the same text twice has them for certain."""
    rng = random.Random(9)
    texts = [drawn(rng) for _ in range(60)] * 2 + ["true", "false"]
    m = eligo.Matcher("propagation", evaluator)
    m.add_many(enumerate(texts))
    rules = m.engine.rules
    assert isinstance(rules, RuleSet)
    named = [{p.attribute for p in predicates_of(normalize(parse(text)))} for text in texts]
    names, total = rules.recipe.attributes.names, Counter[str]()
    for segment in rules.view.segments:
        total += attribute_counts(segment.compiled, names)
        mine = [named[segment.table.id(row)] for row in range(len(segment))]
        half = np.arange(len(segment)) % 2 == 0
        assert attribute_counts(segment.compiled, names, half) == Counter(name for one in mine[::2] for name in one)
        for number, name in enumerate(names):
            wanted = np.arange(len(names)) == number
            assert rules_naming(segment.compiled, wanted).tolist() == [name in one for one in mine]
    assert total == Counter(name for one in named for name in one)
