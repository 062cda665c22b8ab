"""Whether a tree keeps its invariance (be-tree.txt §4.3) and its books; for tests and for doubtful moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from eligo.index.be_tree.growing import directory_key, interval_of
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    CLUSTERS,
    DIRECTORY,
    FILL,
    FREE_CLUSTER,
    FREE_WORDS,
    KEY,
    LEAF,
    MAX_CAP,
    PARTITIONS,
    PREFIX,
    ROWS,
    SHAPE,
    SPLIT,
    TOP,
    UP,
    WORDS,
    Pools,
    block_class,
    class_words,
)
from eligo.index.dynamic.rows import ANY, HEADER, check_words
from eligo.jit import kernel


def verify_tree(pools: Pools) -> None:
    """Raise an AssertionError that names the node where something is wrong."""
    walk = _Walk(pools)
    walk.cluster(0, (), -1)
    state = pools.state
    assert walk.rows == state[ROWS], f"{walk.rows} rows in l-nodes, {state[ROWS]} counted"
    assert walk.clusters + walk.free_clusters() == state[CLUSTERS], "c-nodes that nobody has"
    assert walk.partitions + walk.free_partitions() == state[PARTITIONS], "p-nodes that nobody has"
    assert walk.words + state[FREE_WORDS] == state[WORDS], "blocks that nobody has"
    twice = [c for c, times in walk.seen.items() if times > 1]
    assert not twice, f"conjunction {twice[0]} has {walk.seen[twice[0]]} rows"


class _Walk:
    def __init__(self, pools: Pools) -> None:
        self.p = pools
        self.rows = self.clusters = self.partitions = self.words = 0
        self.seen: Counter[int] = Counter()

    def word(self, c: int, field: int) -> int:
        return int(self.p.cluster[8 * c + field])

    def cluster(self, c: int, used: tuple[int, ...], key: int) -> int:
        """Check a c-node and all below it; how many rows it has in all."""
        self.clusters += 1
        rows, cap = _pair(self.word(c, LEAF))
        room = _pair(self.word(c, FILL))[1]
        shape = self.word(c, SHAPE)
        bits = shape if shape < 0 else shape & 0xFF
        left, right = _pair(self.word(c, CHILDREN))
        first, count = _pair(self.word(c, DIRECTORY))
        assert rows <= cap, f"c-node {c}: {rows} rows, capacity {cap}"
        assert cap % self.p.state[MAX_CAP] == 0, f"c-node {c}: capacity {cap}"
        if room:
            assert class_words(block_class(room)) == room, f"c-node {c}: block of {room}"
            self.words += room
        found = list(self.rows_of(c))
        assert len(found) == rows, f"c-node {c}: {len(found)} rows, {rows} counted"
        for at in found:
            self.row(c, at, used, key, bits, shape)
        total = rows
        if bits >= 0 and bits != ATOMIC and not shape & SPLIT:
            assert left == right == -1, f"bucket {c} has children and was not split"
            assert count == 0, f"bucket {c} could be split and has a p-directory"
        for side, child in enumerate((left, right)):
            if child >= 0:
                assert _pair(self.word(child, UP)) == (c, _pair(self.word(c, UP))[1]), f"bucket {child}: its way up"
                prefix, deep = self.word(child, PREFIX) & (2**64 - 1), self.word(child, SHAPE) & 0xFF
                assert deep > bits, f"bucket {child} is no smaller than {c}"
                mine = self.word(c, PREFIX) & (2**64 - 1)
                assert (prefix ^ mine) >> (64 - bits) == 0 if bits else True, f"bucket {child} lies outside of {c}"
                assert prefix >> (63 - bits) & 1 == side, f"bucket {child} lies in the other half of {c}"
                total += self.cluster(child, used, key)
        p, number = first, 0
        while p >= 0:
            number += 1
            total += self.partition(p, c, used)
            p = _pair(int(self.p.partition[4 * p + TOP]))[1]
        assert number == count, f"c-node {c}: {number} p-nodes, {count} counted"
        self.rows += rows
        return total

    def partition(self, p: int, c: int, used: tuple[int, ...]) -> int:
        self.partitions += 1
        key, owner = _pair(int(self.p.partition[4 * p + KEY]))
        top, _ = _pair(int(self.p.partition[4 * p + TOP]))
        assert owner == c, f"p-node {p}: of c-node {owner}, found in {c}"
        assert key >> 3 not in used, f"p-node {p}: attribute {key >> 3} is used above"
        assert _pair(self.word(top, UP)) == (c, p), f"bucket {top}: its way up"
        below = self.cluster(top, (*used, key >> 3), key)
        counted = _pair(int(self.p.partition[4 * p + BELOW]))[0]
        assert below == counted, f"p-node {p}: {below} expressions, {counted} counted"
        return below

    def row(self, c: int, at: int, used: tuple[int, ...], key: int, bits: int, shape: int) -> None:
        words = self.p.words
        conjunction = int(words[at] >> 32)
        self.seen[conjunction] += 1
        assert self.p.where[conjunction] == c, f"conjunction {conjunction}: in c-node {c}, said to be elsewhere"
        using, checks = _pair(int(words[at + 1]))
        assert using <= checks, f"conjunction {conjunction}: {using} of {checks} checks in use"
        keys = list(row_keys(words, at))
        if key < 0:
            return
        assert set(used) <= {one >> 3 for one in keys if one >= 0}, f"conjunction {conjunction} lacks an attribute"
        where, low, high = interval_of_row(words, at, key)
        assert where >= 0, f"conjunction {conjunction} has no check of its p-node"
        if key & 7 == ANY or bits <= 0:
            home = bits <= 0 and key & 7 != ANY
            if not home:
                return
        prefix = self.word(c, PREFIX) & (2**64 - 1)
        if bits > 0:
            inside = (int(low) ^ prefix) >> (64 - bits) == 0 and (int(high) ^ prefix) >> (64 - bits) == 0
            assert inside, f"conjunction {conjunction} lies outside of its bucket {c}"
        if shape & SPLIT and bits < 64:
            same = int(low) >> (63 - bits) == int(high) >> (63 - bits)
            assert not same, f"conjunction {conjunction} belongs into a half of bucket {c}"

    def rows_of(self, c: int) -> Iterator[int]:
        at = self.word(c, BLOCK)
        end = at + _pair(self.word(c, FILL))[0]
        while at < end:
            yield at
            at += int(self.p.words[at] & 0xFFFF_FFFF)

    def free_clusters(self) -> int:
        count, c = 0, int(self.p.state[FREE_CLUSTER])
        while c >= 0:
            count, c = count + 1, int(self.p.cluster[8 * c])
        return count

    def free_partitions(self) -> int:
        count, p = 0, int(self.p.state[3])
        while p >= 0:
            count, p = count + 1, int(self.p.partition[4 * p])
        return count


def _pair(word: int) -> tuple[int, int]:
    low = word & 0xFFFF_FFFF
    return word >> 32, low - (1 << 32) if low >> 31 else low


@kernel
def interval_of_row(words, at, key):  # type: ignore[no-untyped-def]
    return interval_of(words, at, key)


@kernel
def row_keys(words, at):  # type: ignore[no-untyped-def]
    checks = words[at + 1] & 0xFFFF_FFFF
    keys = np.empty(checks, np.int64)
    q = at + HEADER
    for i in range(checks):
        keys[i] = directory_key(words[q])
        q += check_words(words[q])
    return keys
