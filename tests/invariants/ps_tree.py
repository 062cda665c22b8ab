"""Whether an index on PS-Trees keeps its books; for tests and for doubtful moments."""

from __future__ import annotations

from collections import Counter

import numpy as np

from eligo.compile.compiled import I64
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.bloom_insert import NO_LINE
from eligo.index.ps_tree.cover import borders_at, check_on, cover
from eligo.index.ps_tree.keys import find_block
from eligo.index.ps_tree.lines import PRESENT, is_range
from eligo.index.ps_tree.nodes import COUNTS, LINKS, LOW, node_words, stretch
from eligo.index.ps_tree.pools import (
    ACCESSES,
    ALWAYS,
    COPIES,
    FREE_SPACE,
    GAP,
    HIGHEST,
    KEYS,
    ROWS,
    SIGNATURES,
    SLOTS,
    SPACES,
)
from eligo.index.ps_tree.postings import ROWS as ROWS_IN
from eligo.index.ps_tree.postings import directory_of
from eligo.index.ps_tree.signatures import bits_of_rule, spread
from eligo.index.ps_tree.spaces import LAYER
from eligo.index.rows.allocator import FREE, USED, heap_class, heap_words
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import kernel

_LAST = 2**64 - 1


def verify_index(index: PsIndex) -> None:
    """Raise an AssertionError that says where something is wrong."""
    _Books(index).check()


class _Books:
    def __init__(self, index: PsIndex) -> None:
        self.index, self.p = index, index.pools
        self.predicates: Counter[int] = Counter()
        self.bounds: Counter[int] = Counter()
        self.entries: Counter[tuple[int, ...]] = Counter()
        self.members: Counter[int] = Counter()
        self.words = 0
        self.blooms = bool(self.p.state[SIGNATURES])

    def check(self) -> None:
        state, rows = self.p.state, 0
        for number in range(int(state[HIGHEST])):
            if self.p.where[number] > 0:
                rows += 1
                self.row(number)
        assert rows == state[ROWS], f"{rows} rows, {int(state[ROWS])} counted"
        assert sum(self.entries.values()) == state[COPIES], "copies of rows"
        spaces = self.trees()
        for s in spaces:
            self.space(s)
        free, s = 0, int(state[FREE_SPACE])
        while s >= 0:
            free, s = free + 1, int(self.p.space[4 * s])
        assert len(spaces) + free + GAP + 1 == state[SPACES], "spaces that nobody has"
        self.blocks(spaces)

    # -- rows

    def row(self, number: int) -> None:
        row = self.index.row(number)
        assert (row[:1] >> 32).tolist() == [number], f"conjunction {number}: its row"
        most = int(self.p.state[ACCESSES])
        lines = self.p.access[number * (most + 1) : (number + 1) * (most + 1)].tolist()
        covered = [self.cover(row, line, i) for i, line in enumerate(lines) if line >= 0]
        if self.blooms:
            self.bloom_row(number, lines, covered)
            return
        beside = covered.pop()[0] if lines[most] >= 0 else ALWAYS
        keys: list[tuple[int, ...]] = [()]
        for some in covered or [[ALWAYS]]:
            keys = [(*key, s) for key in keys for s in some]
        for key in keys:
            o = block_of(self.p.handle, np.array(key, np.int64))
            assert o > 0, f"conjunction {number}: no block for {key}"
            d = int(directory_of(self.p.handle, o)) + 1
            found = [
                e for e in self.p.words[d : d + (self.p.words[o + ROWS_IN] >> 32)] if self.number_at(o, e) == number
            ]
            assert len(found) == 1, f"conjunction {number}: {len(found)} rows in the block of {key}"
            assert found[0] >> 32 == beside, f"conjunction {number}: the space beside it in the block of {key}"
            self.entries[key] += 1

    def number_at(self, o: int, entry: int) -> int:
        return int(self.p.words[o + (entry & 0xFFFF_FFFF)] >> 32)

    def bloom_row(self, number: int, lines: list[int], covered: list[list[int]]) -> None:
        link, each = int(self.p.where[number]), len(lines)
        self.words += int(block_words(row_size(self.p.words, 2 * link)))
        for s in covered[0] if lines[0] >= 0 else [ALWAYS]:
            o = int(self.p.posting[s])
            assert o > 0, f"conjunction {number}: no list at space {s}"
            halves = self.p.words[o + 1 : o + int(self.p.words[o] & 0xFFFF_FFFF)].view(np.int32)
            some = halves[: each * int(self.p.words[o] >> 32)].reshape(-1, each)
            mine = some[some[:, 0] == link].tolist()
            wanted = [link, *(line if line >= 0 else NO_LINE for line in lines[1:])]
            assert mine == [wanted], f"conjunction {number}: {mine} in the list of space {s}, not {wanted}"
            self.entries[s,] += 1
        for line, some_spaces in zip(lines[1:], covered[1:], strict=False):
            for s in some_spaces if line & 15 != PRESENT else ():
                self.members[s] += 1
                o = int(self.p.extra[s])
                assert o > 0, f"conjunction {number}: no signature at space {s}"
                assert in_signature(self.p.words, o, link), f"conjunction {number}: not in the signature of space {s}"

    def cover(self, row: I64, line: int, place: int) -> list[int]:
        """The spaces that a row covers on a line; they are counted, as far as the books have them."""
        if self.blooms and place and line & 15 == PRESENT:
            return []
        made = int(self.p.state[SPACES])
        spaces, first, behind = covered_by(self.p.handle, row, line, self.index._strings)
        assert self.p.state[SPACES] == made, f"line {line}: a space is missing"
        self.predicates.update(spaces.tolist())
        self.bounds.update(s for s in (first, behind) if s >= 0)
        return spaces.tolist()  # type: ignore[no-any-return]

    # -- spaces

    def trees(self) -> list[int]:
        """All spaces, layers too."""
        found: list[int] = []
        self.nodes = 0
        for line in np.nonzero(self.p.root)[0].tolist():
            count = len(found)
            self.tree(line, int(self.p.root[line]), found)
            layers = sum(int(self.p.space[4 * s + COUNTS] >> 32) == LAYER for s in found[count:])
            said = int(self.p.spaces[line])
            assert len(found) - count - layers == said, f"line {line}: {len(found) - count - layers} spaces, not {said}"
        assert self.nodes + self.p.tree_heads[FREE] + 2 == self.p.tree_heads[USED], "nodes that nobody has"
        return found

    def tree(self, cell: int, root: int, found: list[int]) -> None:
        self.nodes += int(words_of_tree(self.p.handle, root))
        x, before = 0, -1
        while True:
            s, last = stretch(self.p.tree, self.p.tree.view(np.int32), root, np.uint64(x))
            if s != before and s != GAP:
                assert int(self.p.space[4 * s + LOW]) & _LAST == x, f"space {s} of cell {cell} begins elsewhere"
                assert (int(self.p.space[4 * s + LINKS]) << 32) >> 32 & 0xFFFF_FFFF == cell & 0xFFFF_FFFF, (
                    f"space {s}: cell"
                )
                found.append(int(s))
                if int(self.p.space[4 * s + COUNTS] >> 32) == LAYER:
                    self.bounds[int(s)] += 1
                    behind, _ = stretch(self.p.tree, self.p.tree.view(np.int32), root, np.uint64(x + 1))
                    self.bounds[int(behind)] += 1
                    link = int(self.p.space[4 * s + 3]) & 0xFFFF_FFFF
                    self.tree(~int(s), link - (1 << 32) if link >> 31 else link, found)
            before = s
            if int(last) == _LAST:
                return
            x = int(last) + 1

    def space(self, s: int) -> None:
        count = int(self.p.space[4 * s + COUNTS])
        if count >> 32 != LAYER:
            assert count >> 32 == self.predicates[s], f"space {s}: {self.predicates[s]} predicates, {count >> 32} said"
        if self.p.space[4 * s + LOW] or count >> 32 == LAYER:
            said = count & 0xFFFF_FFFF
            assert said == self.bounds[s] or not self.is_range(s), f"space {s}: {self.bounds[s]} bounds, {said} said"

    def is_range(self, s: int) -> bool:
        cell = (int(self.p.space[4 * s + LINKS]) & 0xFFFF_FFFF) ^ (1 << 31)
        cell -= 1 << 31
        return cell < 0 or bool(is_range(cell & 15))

    # -- blocks

    def blocks(self, spaces: list[int]) -> None:
        words, p = self.words, self.p
        for s in (ALWAYS, *spaces):
            if p.posting[s]:
                words += self.posting(int(p.posting[s]), self.entries[s,])
            if p.uses[s]:
                words += self.room(int(p.uses[s]))
            if self.blooms and p.extra[s]:
                assert int(p.words[p.uses[s]] >> 32) == self.members[s], f"space {s}: members of its signature"
                words += int(block_words(1 + (1 << int(p.words[p.extra[s]] >> 32))))
        if not self.blooms:
            keys = p.slots[::2]
            taken = keys[keys != -1]
            assert len(taken) == p.state[SLOTS] == p.state[KEYS], "keys"
            assert len(taken) == sum(len(key) > 1 for key in self.entries), "keys without rules"
            words += sum(self.posting(int(o), -1) for o in p.slots[1::2][keys != -1])
        assert words + p.heads[FREE] + 2 == p.heads[USED], "blocks that nobody has"

    def posting(self, o: int, rows: int) -> int:
        """Words of a posting, all in all, which should have so many rows, -1: whatever it has."""
        if self.blooms:
            assert self.p.words[o] >> 32 == rows, f"{int(self.p.words[o] >> 32)} entries in a list, not {rows}"
            return self.room(o)
        count = int(self.p.words[o + ROWS_IN] >> 32)
        assert rows in (-1, count), f"{count} rows in a block, not {rows}"
        assert count <= self.p.words[o + ROWS_IN] & 0xFFFF_FFFF, "more rows than the directory has room for"
        return self.room(o)

    def room(self, o: int) -> int:
        room = int(self.p.words[o] & 0xFFFF_FFFF)
        assert block_words(room) == room, f"a block of {room} words"
        return room


@kernel
def block_words(size):  # type: ignore[no-untyped-def]
    return heap_words(heap_class(size))


@kernel
def row_size(words, at):  # type: ignore[no-untyped-def]
    return row_words(words, at)


@kernel
def block_of(t, spaces):  # type: ignore[no-untyped-def]
    return find_block(t, spaces, len(spaces))[0]


@kernel
def in_signature(words, o, link):  # type: ignore[no-untyped-def]
    h = spread(link)
    size = np.uint64(1) << np.uint64(words[o] >> 32)
    word = np.uint64(words[np.uint64(o + 1) + (h >> np.uint64(20) & (size - np.uint64(1)))])
    return word & bits_of_rule(h) == bits_of_rule(h)


@kernel
def covered_by(t, row, line, strings):  # type: ignore[no-untyped-def]
    q, out = check_on(row, 0, line), np.empty(1100, np.int64)
    n = cover(t, row, q, line, strings, out)
    first = behind = np.int64(-1)
    if is_range(line & 15):
        first, behind = borders_at(t, row, q, line, strings)
    return out[:n].copy(), first, behind


@kernel
def words_of_tree(t, root):  # type: ignore[no-untyped-def]
    """Words of all nodes that a link leads to."""
    waiting, n, total = [np.int64(root)], 1, 0
    while n:
        n -= 1
        link = waiting.pop()
        if link >= 0:
            continue
        o = 2 * ~link
        head = t.tree[o]
        total += heap_words(heap_class(node_words(head)))
        if head >> 8 & 0xFF != 255:
            for i in range(2 * o + 4, 2 * o + 6 + (1 << (head >> 8 & 0xFF))):
                waiting.append(np.int64(t.links[i]))
                n += 1
    return total
