"""One DAG of all sub-expressions: found, written once, evaluated from below and in layers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.unit.test_evaluators import holds, tree

import eligo
from eligo.compile.compiled import Compiled, concatenate
from eligo.evaluate.leaves import EVERYTHING
from eligo.evaluate.shared import Shared
from eligo.evaluate.sharing import share

NONE = np.zeros(0, np.uint8)


def rules(trees: list[list[int]], conjunctions: int) -> Compiled:
    """Rules over conjunctions of one predicate each, `a<c> = 1`, so that none of them is equal to another."""
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in trees], dtype=np.int64)))
    numbers, ones = np.arange(conjunctions, dtype=np.int32), np.ones(conjunctions, np.int64)
    return Compiled(
        attribute=numbers, flags=np.zeros(conjunctions, np.uint8), pattern=-np.ones(conjunctions, np.int32),
        run_offsets=np.arange(conjunctions + 1, dtype=np.int64), low_kind=np.ones(conjunctions, np.uint8), low_key=ones,
        low_key2=0 * ones, high_kind=np.ones(conjunctions, np.uint8), high_key=ones, high_key2=0 * ones,
        conjunction_offsets=np.arange(conjunctions + 1, dtype=np.int64), conjunction=numbers,
        tree_offsets=offsets, tree=np.array([t for one in trees for t in one], np.int32),
    )  # fmt: skip


def written_out(compiled: Compiled) -> list[list[int]]:
    """The trees without parts."""
    parts: list[list[int]] = []

    def whole(tokens: list[int]) -> list[int]:
        out: list[int] = []
        for token in tokens:
            out += parts[token - compiled.conjunctions] if token >= compiled.conjunctions else [token]
        return out

    for p in range(compiled.parts):
        parts.append(whole(compiled.part[compiled.part_offsets[p] : compiled.part_offsets[p + 1]].tolist()))
    offsets = compiled.tree_offsets
    return [whole(compiled.tree[offsets[r] : offsets[r + 1]].tolist()) for r in range(compiled.rules)]


def crowd(rng: random.Random, conjunctions: int, depth: int, count: int) -> list[list[int]]:
    """Trees, many of them made of others and of each other's parts."""
    trees = [tree(rng, depth, conjunctions, rng.random() < 0.5) for _ in range(count)]
    for _ in range(count):
        some = rng.sample(trees, rng.randint(2, 4))
        trees.append([-2 * len(some) - rng.randint(0, 1), *(token for one in some for token in one)])
    trees.append([])
    rng.shuffle(trees)
    return trees


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_agree_with_the_trees(seed: int) -> None:
    rng = random.Random(seed)
    conjunctions = rng.choice([3, 20, 200])
    trees = crowd(rng, conjunctions, rng.choice([1, 2, 3, 5]), 40)
    arranged = Shared.arrange(rules(trees, conjunctions))
    chance = np.array([rng.random() for _ in range(conjunctions)])
    built = Shared.build(arranged, chance)
    again = Shared.restore(arranged, built.arrays())
    scratch = again.scratch()
    for often in (0.0, 0.05, 0.3, 0.6, 0.9, 1.0):
        found = np.array([c for c in range(conjunctions) if rng.random() < often], np.int32)
        rng.shuffle(found)
        wanted = [r for r, tokens in enumerate(trees) if tokens and holds(tokens, set(found.tolist()))]
        for way in (0, EVERYTHING):
            again.group(found, len(found), scratch)
            count = again.complete(way, NONE, scratch)
            assert scratch.matched[:count].tolist() == wanted
            again.group(found, len(found), scratch)
            allowed = np.array([r % 3 != 0 for r in range(len(trees))], np.uint8)
            count = again.complete(way, allowed, scratch)
            assert scratch.matched[:count].tolist() == [r for r in wanted if r % 3]


@pytest.mark.parametrize("often", [0.02, 0.5, 1.0])
def test_batches_of_more_events_than_a_word_has_bits(often: float) -> None:
    rng = random.Random(7)
    trees = [*crowd(rng, 50, 2, 60), *([c] for c in range(50))]
    built = Shared.build(Shared.arrange(rules(trees, 50)))
    scratch = built.scratch()
    founds = [np.array([c for c in range(50) if rng.random() < often], np.int32) for _ in range(150)]
    found, ends = np.concatenate(founds), np.zeros(151, np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in founds], dtype=np.int64)))
    for allowed in (NONE, np.array([r % 3 != 0 for r in range(len(trees))], np.uint8)):
        one_by_one = []
        for one in founds:
            one_by_one.append(scratch.matched[: built.evaluate(one, len(one), allowed, scratch)].tolist())
        together: list[list[int]] = []
        while len(together) < 150:
            done = len(together)
            some = built.evaluate_batch(found, offsets[done:], 150 - done, allowed, scratch, ends)
            together += [scratch.matched[ends[e] : ends[e + 1]].tolist() for e in range(some)]
        assert together == one_by_one


@pytest.mark.parametrize("seed", range(4))
def test_sharing_keeps_the_meaning_and_is_done_once(seed: int) -> None:
    rng = random.Random(seed)
    trees = crowd(rng, 12, 3, 30)
    once = share(rules(trees, 12))
    twice = share(once)
    for tokens, one, two in zip(trees, written_out(once), written_out(twice), strict=True):
        for _ in range(20):
            found = {c for c in range(12) if rng.random() < 0.6}
            wanted = bool(tokens) and holds(tokens, found)
            assert (bool(one) and holds(one, found)) == wanted
            assert (bool(two) and holds(two, found)) == wanted
    assert len(twice.tree) == len(once.tree)
    assert len(twice.part) == len(once.part)


def test_merging_joins_what_segments_share() -> None:
    edge = [-5, 0, 1]
    trees = [[-4, *edge, 2 + r] for r in range(8)]
    halves = [share(rules(trees[:4], 10)), share(rules(trees[4:], 10))]
    keep = np.array([True, False, True, True])
    merged = share(concatenate(halves, [keep, None]))
    assert merged.parts == 1
    assert merged.conjunctions == 2 + 7
    assert merged.part.tolist() == [-5, 0, 1]
    nobody = concatenate(halves, [np.zeros(4, np.bool_), np.zeros(4, np.bool_)])
    assert (nobody.rules, nobody.parts, nobody.conjunctions, nobody.predicates) == (0, 0, 0, 0)


def test_what_always_occurs_together_becomes_one_part() -> None:
    """An edge of an exchange is three ORs that flattening spread among the campaign's own."""
    edge = [[-5, 0, 1], [-5, 2, 3], [-5, 4, 5]]
    flat = [token for one in edge for token in one]
    campaigns = [[-2 * 4, *flat, 6 + r] for r in range(20)]
    shared = share(rules(campaigns, 26))
    # A campaign is an AND of two: the edge, and its own.
    assert np.diff(shared.tree_offsets).tolist() == [3] * 20
    assert [sorted(one) for one in written_out(shared)] == [sorted([-4, -6, *flat, 6 + r]) for r in range(20)]


def test_parts_survive_updates_and_snapshots(tmp_path: object) -> None:
    rng = random.Random(5)
    edges = [f"(e{i} = 1 or f{i} > 2) and (g{i} in (1, 2) or h{i} = 'x')" for i in range(5)]

    def campaign(r: int) -> str:
        return f"({edges[r % 5]}) and ({edges[(r // 5) % 5]}) and (own{r % 7} = {r % 3} or own{(r + 1) % 7} > {r % 4})"

    shared, plain = eligo.Matcher(evaluator="shared"), eligo.Matcher()
    events = []
    for _ in range(60):
        event: dict[str, object] = {f"{k}{i}": rng.randint(0, 3) for k in "efg" for i in range(5)}
        event |= {f"h{i}": rng.choice("xy") for i in range(5)} | {f"own{i}": rng.randint(0, 5) for i in range(7)}
        events.append({k: v for k, v in event.items() if rng.random() < 0.9})
    for matcher in (shared, plain):
        matcher.add_many([(r, campaign(r)) for r in range(150)])
        for r in range(150, 400):
            matcher.add(r, campaign(r))
        for r in range(0, 400, 3):
            matcher.remove(r)
        for r in range(1, 400, 9):
            matcher.add(r, campaign(r + 1), replace=True)
        matcher.engine.rules.wait()
    assert [shared.match(event) for event in events] == [plain.match(event) for event in events]
    shared.save(f"{tmp_path}/s")
    opened = eligo.open(f"{tmp_path}/s")
    assert opened.match_batch(events).equals(plain.match_batch(events))
    opened.observe(events)
    assert opened.match_batch(events).equals(plain.match_batch(events))
    assert opened.match(events[0], limit=2) == plain.match(events[0], limit=2)


def test_what_becomes_equal_when_segments_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """`x = 1` and `x in (1)` are two conjunctions in a small segment and one in a merged one, and so are what they make."""
    monkeypatch.setattr("eligo.segments.rule_set.SEALED", 32)
    plain = " and ".join(f"({k}p = 1 or {k}q = 1)" for k in "abc")
    listed = plain.replace("= 1", "in (1)")
    texts = [f"(x = 1 and {plain}) or (x in (1) and {listed})", *(f"y = {i} and {plain}" for i in range(10))]
    texts += [f"z = {i}" for i in range(32 - len(texts))]
    for block in range(3):
        texts += [f"w = {10 * block + i} and {plain}" for i in range(2)]
        texts += [f"v = {100 * block + i}" for i in range(30)]
    shared, interval = eligo.Matcher(evaluator="shared"), eligo.Matcher()
    for matcher in (shared, interval):
        for rule, text in enumerate(texts):
            matcher.add(rule, text)
        matcher.engine.rules.wait()
    full = {f"{k}{j}": 1 for k in "abc" for j in "pq"}
    events = [{**full, "x": i % 2, "y": i % 12, "w": i % 3, "z": i % 21, "v": i % 30} for i in range(200)]
    events += [{}, {"x": 1}, full]
    assert shared.match_batch(events).equals(interval.match_batch(events))
    assert [shared.match(event) for event in events] == [interval.match(event) for event in events]
