"""Inner nodes, spaces and layers of strings against lists of borders: many shapes, the ends of the line, all given back."""

from __future__ import annotations

from bisect import bisect_right
from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eligo.index.ps_tree.borders import add_border, drop_border, fill, paint, tidy_border
from eligo.index.ps_tree.nodes import LAST, LOW, build_tree, free_tree, locate, stretch
from eligo.index.ps_tree.pools import Pools
from eligo.index.ps_tree.spaces import (
    add_point,
    close_line,
    count_predicate,
    cut,
    drop_point,
    end_of,
    hold_border,
    is_layer,
    is_void,
    join,
    next_space,
    open_line,
    predicates_of,
    space_at,
)
from eligo.index.ps_tree.string_trie import DEEPEST, cut_text, locate_text, slice_at
from eligo.index.rows.allocator import FREE, USED
from eligo_lab.intervals.locate import located

patient = settings(deadline=None)
LINE = 0


class Line:
    """One line of a tree, and what it should be: borders in order, and the space from each on."""

    def __init__(self, space: int = 1) -> None:
        self.pools = Pools(1)
        self.pools.make_room(1, 1 << 14, 0)  # for all that a test does
        self.pools.root[LINE] = space
        self.t = self.pools.handle
        self.borders, self.spaces = [0], [space]

    def true(self, x: int) -> int:
        return self.spaces[bisect_right(self.borders, x) - 1]

    def end(self, x: int) -> int:
        """Where the space at x really ends."""
        behind = [b for b, s in zip(self.borders, self.spaces, strict=True) if b > x and s != self.true(x)]
        return behind[0] - 1 if behind else LAST

    def set(self, begin: int, end: int, space: int) -> None:
        after = self.true(end + 1) if end < LAST else None
        kept = [(b, s) for b, s in zip(self.borders, self.spaces, strict=True) if b < begin or b > end + 1]
        kept += [(begin, space)] + ([(end + 1, after)] if after is not None else [])
        self.borders, self.spaces = [], []
        for b, s in sorted(kept):
            if not self.spaces or self.spaces[-1] != s:
                self.borders.append(b)
                self.spaces.append(s)

    def check(self, more: list[int]) -> None:
        tree, root = self.pools.tree, int(self.pools.root[LINE])
        links = tree.view(np.int32)
        some = {0, LAST, *more}
        for b in self.borders:
            some.update(x for x in (b - 1, b, b + 1) if 0 <= x <= LAST)
        for x in some:
            assert locate(tree, links, root, np.uint64(x)) == self.true(x)
            space, end = stretch(tree, links, root, np.uint64(x))
            assert space == self.true(x)
            assert x <= end <= self.end(x)
        points = np.array(sorted(some), np.uint64)
        signed = (points ^ np.uint64(1 << 63)).view(np.int64)
        assert located(tree, links, root, signed).tolist() == [self.true(int(x)) for x in points]

    def taken(self) -> int:
        """Words of nodes."""
        return int(self.pools.tree_heads[USED] - 2 - self.pools.tree_heads[FREE])


def positions() -> st.SearchStrategy[list[int]]:
    """A handful to some hundreds of positions that ops then choose from: dense, spread, clustered, at the ends."""
    dense = st.tuples(st.sampled_from((0, 7, 1000, 2**63, LAST - 400)), st.integers(2, 400)).map(
        lambda at: list(range(at[0], at[0] + at[1]))
    )
    anywhere = st.lists(st.integers(0, LAST), min_size=2, max_size=60, unique=True)
    by_bits = st.lists(st.integers(0, 63).flatmap(lambda k: st.integers(0, 2 ** (k + 1) - 1)), min_size=2, max_size=60)
    squares = st.integers(1, 2**40).map(lambda k: [i * i * k % (LAST + 1) for i in range(100)])
    both = st.tuples(dense, anywhere).map(lambda two: two[0] + two[1])
    return st.one_of(dense, anywhere, by_bits, squares, both, st.builds(clusters, st.integers(0, 2**32))).map(
        lambda some: sorted(set(some) | {0, LAST})
    )


def clusters(seed: int) -> list[int]:
    """Many positions in a small part of the line, few elsewhere, and these so that the slots of a table for all would have
    a bound in the midst of the many: tables below it then have slots that reach beyond their own part.
    """
    rng = Random(seed)
    centre, width = rng.choice((0, 2**63, rng.getrandbits(63))), rng.randrange(8, 56)
    near = [centre + rng.getrandbits(width) for _ in range(rng.randrange(10, 120))]
    far = [rng.getrandbits(4) * 2**60 + centre + rng.getrandbits(width) for _ in range(rng.randrange(4))]
    return [x % (LAST + 1) for x in near + far]


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    some = draw(positions())
    place = st.integers(0, len(some) - 1)
    steps = draw(
        st.lists(st.tuples(place, st.one_of(st.just(0), st.integers(0, 3), place), st.integers(1, 30)), max_size=60)
    )
    return [(some[i], some[min(i + wide, len(some) - 1)], space) for i, wide, space in steps]


@patient
@given(steps=spans())
def test_stretches_of_a_line_are_painted(steps: list[tuple[int, int, int]]) -> None:
    line = Line()
    for begin, end, space in steps:
        paint(line.t, LINE, np.uint64(begin), np.uint64(end), space)
        line.set(begin, end, space)
        tidy_border(line.t, LINE, np.uint64(begin))
        if end < LAST:
            tidy_border(line.t, LINE, np.uint64(end + 1))
    line.check([x for step in steps for x in step[:2]])
    free_tree(line.t, int(line.pools.root[LINE]))
    assert line.taken() == 0


@patient
@given(some=positions(), seed=st.integers(0, 2**32))
def test_borders_come_and_go_and_leave_nothing(some: list[int], seed: int) -> None:
    """As Partition and its undoing use it: each border is added once, with another space behind it, and dropped once."""
    come_and_go(some, seed)


@pytest.mark.parametrize("seed", [11, 76, 189, 205])
def test_what_slots_say_beyond_their_part_is_void(seed: int) -> None:
    """A tree below a slot was built anew with borders behind the slot's end, where nothing had been kept up."""
    come_and_go(sorted({0, LAST, *clusters(seed)}), seed)


def come_and_go(some: list[int], seed: int) -> None:
    line, rng, fresh = Line(), Random(seed), count(2)
    sizes = [rng.choice((0, 2, len(some) // 8, len(some) // 2, len(some))) for _ in range(6)]
    for size in (*sizes, 0):
        wanted = {0, *rng.sample(some, min(size, len(some)))}
        changed = sorted(wanted ^ set(line.borders))
        for b in rng.sample(changed, len(changed)):
            end, coming = line.end(b), b in wanted
            space = next(fresh) if coming else line.true(b - 1)
            if coming:
                add_border(line.t, LINE, np.uint64(b), np.uint64(0))
            fill(line.t, LINE, np.uint64(b), np.uint64(end), space)
            if not coming:
                drop_border(line.t, LINE, np.uint64(b))
            line.set(b, end, space)
        line.check(some)
    assert line.pools.root[LINE] == 1
    assert line.taken() == 0


@patient
@given(some=positions(), seed=st.integers(0, 2**32))
def test_single_values_come_and_go_and_leave_nothing(some: list[int], seed: int) -> None:
    """As lines of values use it: neighbours share a border, which is added when it is already there."""
    line, rng, there, fresh = Line(), np.random.default_rng(seed), set(), count(2)
    for _ in range(3):
        for x in rng.permutation(np.array(some, np.uint64)).tolist():
            space = 1 if x in there else next(fresh)
            there ^= {x}
            if space == 1:
                fill(line.t, LINE, np.uint64(x), np.uint64(x), 1)
            else:
                paint(line.t, LINE, np.uint64(x), np.uint64(x), space)
            line.set(x, x, space)
            for b in (x, x + 1):
                if 0 < b <= LAST:
                    tidy_border(line.t, LINE, np.uint64(b))
        line.check(some)
    for x in there:
        fill(line.t, LINE, np.uint64(x), np.uint64(x), 1)
        for b in (x, x + 1):
            if 0 < b <= LAST:
                tidy_border(line.t, LINE, np.uint64(b))
    assert line.taken() == 0
    assert line.pools.root[LINE] == 1


@patient
@given(some=positions())
@example(some=[0, LAST])
@example(some=list(range(1, 300)))
@example(some=[2**63 + i for i in range(9)])
@example(some=[i << 55 for i in range(512)])
def test_built_at_once(some: list[int]) -> None:
    line = Line()
    keys = np.array([x for x in some if x], np.uint64)
    line.pools.root[LINE] = build_tree(line.t, keys, np.arange(2, len(keys) + 2), len(keys), 1)
    line.borders, line.spaces = [0, *keys.tolist()], list(range(1, len(keys) + 2))
    line.check([])
    free_tree(line.t, int(line.pools.root[LINE]))
    assert line.taken() == 0


# Spaces: what Partition cuts and what is joined again.


def chain(pools: Pools, line: int) -> list[int]:
    """The spaces of a line from the first on."""
    s = int(space_at(pools.handle, line, np.uint64(0)))
    while is_layer(pools.handle, s):
        s = int(space_at(pools.handle, ~s, np.uint64(0)))
    found = []
    while s >= 0:
        found.append(s)
        s = int(next_space(pools.handle, s))
    return found


@patient
@given(some=positions(), seed=st.integers(0, 2**32))
def test_spaces_are_cut_and_joined(some: list[int], seed: int) -> None:
    pools, rng, line = Pools(1), Random(seed), 2
    pools.make_room(1, 1 << 14, 0)  # for all that a test does
    t = pools.handle
    open_line(t, line)
    count_predicate(t, int(pools.root[line]), 7)
    held = {0: 0}
    for x in rng.choices([x for x in some if x], k=3 * len(some)):
        s = int(space_at(t, line, np.uint64(x)))
        if x in held and rng.random() < 0.7:
            hold_border(t, s, -1)
            held[x] -= 1
            assert is_void(t, s) == (held[x] == 0)
            if held[x] == 0:
                join(t, line, s)
                del held[x]
        else:
            made = int(cut(t, line, np.int64(line), np.uint64(x)))
            assert (made == s) == (x in held)
            hold_border(t, made, 1)
            held[x] = held.get(x, 0) + 1
    borders = sorted(held)
    spaces = chain(pools, line)
    assert [int(np.uint64(pools.space[4 * s + LOW])) for s in spaces] == borders
    assert pools.spaces[line] == len(borders)
    for s, begin, end in zip(spaces, borders, [*(b - 1 for b in borders[1:]), LAST], strict=True):
        assert end_of(t, line, s, np.uint64(begin)) == end
        assert predicates_of(t, s) == 7  # a new one has what the one that was cut had
    for s in rng.sample(spaces[1:], len(spaces) - 1):
        join(t, line, s)
    count_predicate(t, spaces[0], -7)
    close_line(t, line)
    assert (int(pools.root[line]), int(pools.spaces[line])) == (0, 0)
    assert pools.tree_heads[USED] - 2 == pools.tree_heads[FREE]


@patient
@given(some=positions(), seed=st.integers(0, 2**32))
def test_values_of_a_line_have_spaces_of_their_own(some: list[int], seed: int) -> None:
    pools, rng, line = Pools(1), Random(seed), 1
    pools.make_room(1, 1 << 14, 0)  # for all that a test does
    t, there = pools.handle, dict[int, int]()
    for x in rng.choices(some, k=3 * len(some)):
        if x in there:
            drop_point(t, line, there.pop(x))
        else:
            there[x] = int(add_point(t, line, np.uint64(x)))
            assert add_point(t, line, np.uint64(x)) == there[x]
    assert len(set(there.values())) == len(there) == pools.spaces[line]
    if there:
        for x in some:
            assert space_at(t, line, np.uint64(x)) == there.get(x, 1)
    for s in there.values():
        drop_point(t, line, s)
    assert pools.root[line] == 0
    assert pools.tree_heads[USED] - 2 == pools.tree_heads[FREE]


# Strings: in layers of seven bytes.

FRONT = b"abcdefghijklmnopqrstuvwxyz" * 5
LENGTHS = (0, 1, 6, 7, 8, 13, 14, 15, 21, 22, 7 * DEEPEST - 1, 7 * DEEPEST)
texts = st.one_of(
    st.sampled_from([FRONT[:length] for length in LENGTHS]),
    st.tuples(st.sampled_from(LENGTHS[:-1]), st.binary(max_size=2)).map(
        lambda two: (FRONT[: two[0]] + two[1])[: 7 * DEEPEST]
    ),
    st.lists(st.sampled_from((b"\0", b"a", b"b", b"\xff")), max_size=17).map(b"".join),
)


def words(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array(bytearray(text), np.uint8)


def located_text(pools: Pools, line: int, text: bytes, by: int = 0) -> int:
    return int(locate_text(pools.handle, line, words(text), 0, len(text), by))


@given(one=texts, other=texts)
@patient
def test_slices_have_the_order_of_strings(one: bytes, other: bytes) -> None:
    def all_of(text: bytes) -> list[int]:
        return [int(slice_at(words(text), 0, len(text), layer)) for layer in range(DEEPEST)]

    assert (all_of(one) < all_of(other)) == (one < other)
    assert (all_of(one) == all_of(other)) == (one == other)


@patient
@given(cuts=st.lists(st.tuples(texts, st.booleans()), max_size=12), more=st.lists(texts, max_size=8))
@example(cuts=[(b"", False), (b"", True)], more=[b"\0"])
@example(cuts=[(FRONT[:7], True), (FRONT[:8], False)], more=[FRONT[:7] + b"\0"])
@example(cuts=[(FRONT[:n], behind) for n in LENGTHS for behind in (False, True)], more=[])
def test_strings_are_told_apart_where_they_are_cut(cuts: list[tuple[bytes, bool]], more: list[bytes]) -> None:
    pools, line = Pools(1), 12
    pools.make_room(1, 1 << 14, 0)  # for all that a test does
    open_line(pools.handle, line)
    for text, behind in cuts:
        s = int(cut_text(pools.handle, line, words(text), 0, len(text), int(behind)))
        hold_border(pools.handle, s, 1)
    order = {s: rank for rank, s in enumerate(chain(pools, line))}
    assert len(order) == pools.spaces[line]
    places = sorted(
        {text + b"\0" if behind else text for text, behind in cuts}
    )  # each names the string right behind it
    some = {
        b"",
        *more,
        *places,
        *(text for text, _ in cuts),
        *(text[:-1] for text in places),
        *(t + b"\0" for t in more),
    }
    ranks = []
    for text in sorted(some):
        rank = order[located_text(pools, line, text)]
        ranks.append((rank, bisect_right(places, text)))
    assert ranks == sorted(ranks)
    parts = dict[int, int]()
    for rank, part in ranks:
        assert parts.setdefault(rank, part) == part  # no space on both sides of a cut
    for text, behind in cuts:
        first, then = (0, 1) if behind else (-1, 0)
        if text or behind:
            following = next_space(pools.handle, located_text(pools, line, text, first))
            assert following == located_text(pools, line, text, then)


def test_strings_that_go_too_deep_are_not_cut() -> None:
    pools, line = Pools(1), 12
    pools.make_room(1, 1 << 14, 0)  # for all that a test does
    open_line(pools.handle, line)
    long = FRONT[: 7 * DEEPEST] + b"!"
    assert cut_text(pools.handle, line, words(long), 0, len(long), 0) == -1
    assert located_text(pools, line, long) == located_text(pools, line, b"")
    assert pools.spaces[line] == 1
