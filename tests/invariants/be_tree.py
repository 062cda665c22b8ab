"""Whether a tree keeps its invariance (the BE-Tree paper §4.3) and its books; for tests and for doubtful moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from eligo.index.be_tree.blocks import block_room, find_partition
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    CLUSTERS,
    DIRECTORY,
    FILL,
    FREE_CLUSTER,
    KEY,
    LEAF,
    PARTITIONS,
    PREFIX,
    ROOT,
    ROWS,
    SHAPE,
    SPLIT,
    TOP,
    UP,
    Pools,
)
from eligo.index.be_tree.rank import directory_key, interval_of
from eligo.index.rows.allocator import FREE, USED
from eligo.index.rows.line import ANY
from eligo.index.rows.packed_predicate import check_words, first_check, row_words, words_in_use
from eligo.jit import kernel


def verify_tree(pools: Pools) -> None:
    """Raise an AssertionError that names the node where something is wrong."""
    walk = _Walk(pools)
    walk.cluster(0, (), -1)
    state = pools.state
    assert walk.rows == state[ROWS], f"{walk.rows} rows in l-nodes, {state[ROWS]} counted"
    assert walk.clusters + walk.free_clusters() == state[CLUSTERS], "c-nodes that nobody has"
    assert walk.partitions + walk.free_partitions() == state[PARTITIONS], "p-nodes that nobody has"
    assert walk.words + pools.heads[FREE] == pools.heads[USED], "blocks that nobody has"
    twice = [c for c, times in walk.seen.items() if times > 1]
    assert not twice, f"conjunction {twice[0]} has {walk.seen[twice[0]]} rows"
    counted = {key: int(count) for key, count in enumerate(pools.popular) if count}
    assert counted == walk.popular, "the popularity of keys"


class _Walk:
    def __init__(self, pools: Pools) -> None:
        self.p = pools
        self.rows = self.clusters = self.partitions = self.words = 0
        self.seen: Counter[int] = Counter()
        self.popular: Counter[int] = Counter()

    def word(self, c: int, field: int) -> int:
        return int(self.p.cluster[8 * c + field])

    def cluster(self, c: int, used: tuple[int, ...], key: int) -> int:
        """Check a c-node and all below it; how many rows it has in all."""
        self.clusters += 1
        rows, cap = _pair(self.word(c, LEAF))
        room = _pair(self.word(c, FILL))[1]
        shape = self.word(c, SHAPE)
        bits = shape & 0x7F
        left, right = _pair(self.word(c, CHILDREN))
        assert rows <= cap, f"c-node {c}: {rows} rows, capacity {cap}"
        assert (c == 0) == (bits == ROOT), f"c-node {c}: shape {shape}"
        if room:
            assert block_room(room) == room, f"c-node {c}: block of {room}"
            self.words += room
        found = list(self.rows_of(c))
        assert len(found) == rows, f"c-node {c}: {len(found)} rows, {rows} counted"
        for at in found:
            self.row(c, at, used, key, bits, shape)
        total = rows
        if bits < ATOMIC and not shape & SPLIT:
            assert left == right == -1, f"bucket {c} has children and was not split"
            assert self.word(c, DIRECTORY) == 0, f"bucket {c} could be split and has a p-directory"
        for side, child in enumerate((left, right)):
            if child >= 0:
                assert _pair(self.word(child, UP)) == (c, _pair(self.word(c, UP))[1]), f"bucket {child}: its way up"
                prefix, deep = self.word(child, PREFIX) & (2**64 - 1), self.word(child, SHAPE) & 0x7F
                assert bits < deep <= ATOMIC, f"bucket {child} is no smaller than {c}"
                mine = self.word(c, PREFIX) & (2**64 - 1)
                assert (prefix ^ mine) >> (64 - bits) == 0 if bits else True, f"bucket {child} lies outside of {c}"
                assert prefix >> (63 - bits) & 1 == side, f"bucket {child} lies in the other half of {c}"
                total += self.cluster(child, used, key)
        self.rows += rows
        return total + self.directory(c, used)

    def directory(self, c: int, used: tuple[int, ...]) -> int:
        """Check a p-directory and all below it; how many rows there are."""
        first, count = _pair(self.word(c, DIRECTORY))
        entries = [_pair(int(word)) for word in self.p.words[first : first + count]]
        assert len({key for key, _ in entries}) == count, f"c-node {c}: a key twice in its p-directory"
        if count:
            self.words += int(block_room(count))
        total = 0
        for key, top in entries:
            p = _pair(self.word(top, UP))[1]
            assert find_in_directory(self.p.handle, c, key) == p, f"c-node {c}: key {key} is not found"
            assert _pair(int(self.p.partition[4 * p + KEY])) == (key, c), f"p-node {p}: its key"
            assert int(self.p.partition[4 * p + TOP]) == top, f"p-node {p}: its top bucket"
            total += self.partition(p, c, used)
        if c == 0:
            assert int((self.p.crown > 0).sum()) == count, "the crown has other keys than the root's p-directory"
        return total

    def partition(self, p: int, c: int, used: tuple[int, ...]) -> int:
        self.partitions += 1
        key, _ = _pair(int(self.p.partition[4 * p + KEY]))
        top = int(self.p.partition[4 * p + TOP])
        assert key >> 3 not in used, f"p-node {p}: attribute {key >> 3} is used above"
        assert _pair(self.word(top, UP)) == (c, p), f"bucket {top}: its way up"
        below = self.cluster(top, (*used, key >> 3), key)
        counted = int(self.p.partition[4 * p + BELOW])
        assert below == counted, f"p-node {p}: {below} expressions, {counted} counted"
        return below

    def row(self, c: int, at: int, used: tuple[int, ...], key: int, bits: int, shape: int) -> None:
        words = self.p.words
        conjunction = int(words[at] >> 32)
        self.seen[conjunction] += 1
        assert self.p.where[conjunction] == c, f"conjunction {conjunction}: in c-node {c}, said to be elsewhere"
        keys, using, size = row_keys(words, at)
        assert 0 <= using <= size, f"conjunction {conjunction}: {using} of {size} words in use"
        self.popular.update(one for one in keys.tolist() if one >= 0)
        if key < 0:
            return
        assert set(used) <= {one >> 3 for one in keys if one >= 0}, f"conjunction {conjunction} lacks an attribute"
        where, low, high = interval_of_row(words, at, key)
        assert where >= 0, f"conjunction {conjunction} has no check of its p-node"
        if key & 7 == ANY:
            return
        prefix = self.word(c, PREFIX) & (2**64 - 1)
        if bits > 0:
            inside = (int(low) ^ prefix) >> (64 - bits) == 0 and (int(high) ^ prefix) >> (64 - bits) == 0
            assert inside, f"conjunction {conjunction} lies outside of its bucket {c}"
        if shape & SPLIT and bits < ATOMIC:
            same = int(low) >> (63 - bits) == int(high) >> (63 - bits)
            assert not same, f"conjunction {conjunction} belongs into a half of bucket {c}"

    def rows_of(self, c: int) -> Iterator[int]:
        at = self.word(c, BLOCK)
        end = at + _pair(self.word(c, FILL))[0]
        while at < end:
            yield at
            at += int(words_of_row(self.p.words, at))

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
def words_of_row(words, at):  # type: ignore[no-untyped-def]
    return row_words(words, at)


@kernel
def find_in_directory(t, c, key):  # type: ignore[no-untyped-def]
    return find_partition(t, c, key)


@kernel
def row_keys(words, at):  # type: ignore[no-untyped-def]
    """Keys of a row's checks, words in use, words of all checks."""
    q, end = first_check(words, at), at + row_words(words, at)
    keys, n = np.empty(end - q, np.int64), 0
    while q < end:
        keys[n] = directory_key(words[q])
        q += check_words(words[q])
        n += 1
    return keys[:n], words_in_use(words, at), end - first_check(words, at)
