"""Whether a living set keeps its books: uses, entries, free lists, slots, records; for tests and doubtful moments."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from eligo.index.rows.allocator import FIRST, USED, heap_class, heap_words
from eligo.index.rows.allocator import FREE as FREE_WORDS
from eligo.segments.living.counts import CheckCounts
from eligo.segments.living.pools import (
    CONJUNCTIONS,
    FREE,
    FREE_CONJUNCTION,
    FREE_RECORDS,
    FREE_ROW,
    HIDDEN,
    LIVING,
    RECORDS,
    ROWS,
    SLID_TO,
    SLIDING,
    TREES,
    USED_CONJUNCTIONS,
    USED_ROWS,
    Pools,
)
from eligo.segments.living.records import record_words
from eligo.segments.living.structure import Structure


def verify_structure(structure: Structure, rules: int) -> None:
    """Raise an AssertionError that names what is wrong; nothing is coming or going."""
    pools = structure.pools
    rows = _rows(pools)
    assert len(rows) == pools.state[USED_ROWS] == rules, "rows in use"
    assert pools.state[HIDDEN] == 0, "rows that readers do not see"
    assert all(pools.status[row] == LIVING for row in rows), "rows in states between"
    uses, entries, blocks = _leaves(pools, rows)
    _conjunctions(structure, uses)
    blocks += _entries(pools, uses, entries)
    free = _free_blocks(pools)
    assert free == pools.heads[FREE_WORDS], "words in free blocks"
    assert blocks + free == pools.heads[USED], "blocks that nobody has"
    _slots(pools.id_slots, pools.id_hash, rows)
    _slots(pools.conjunction_slots, pools.conjunction_hash, set(uses))
    _records(structure, rows)
    _checks(structure, uses)


def _rows(pools: Pools) -> set[int]:
    free, row = set(), int(pools.state[FREE_ROW])
    while row >= 0:
        assert pools.status[row] == FREE, f"row {row} is free and has a rule"
        assert row not in free, f"row {row} is free twice"
        free.add(row)
        row = int(pools.root[row])
    return set(range(int(pools.state[ROWS]))) - free


def _leaves(pools: Pools, rows: set[int]) -> tuple[Counter[int], set[tuple[int, int]], int]:
    """How often each conjunction is a leaf, which entries there have to be, and words of blocks."""
    uses: Counter[int] = Counter()
    entries: set[tuple[int, int]] = set()
    words = trees = 0
    for row in rows:
        root = int(pools.root[row])
        if root >= 0:
            uses[root] += 1
            entries.add((root, 2 * row))
        elif root < -1:
            at = (-2 - root) << 1
            owner, size = pools.blocks[at : at + 2].tolist()
            assert owner == row, f"row {row}: its leaves are those of {owner}"
            leaves = pools.blocks[at + 2 : at + 2 + 3 * size].reshape(-1, 3).tolist()
            assert all(a[1] <= b[1] for a, b in pairwise(leaves)), f"row {row}: order of leaves"
            words += int(heap_words(heap_class(2 + 3 * size)))
            trees += 1
            for conjunction, before, end in leaves:
                uses[conjunction] += 1
                if before == 0:
                    entries.add((conjunction, 2 * row if end == size else at + 1))
    assert trees == pools.state[TREES], "trees"
    return uses, entries, words


def _conjunctions(structure: Structure, uses: Counter[int]) -> None:
    pools = structure.pools
    free, number = set(), int(pools.state[FREE_CONJUNCTION])
    while number >= 0:
        assert pools.uses[number] == 0, f"conjunction {number} is free and used"
        free.add(number)
        number = int(pools.owner[number])
    assert set(uses) == set(range(int(pools.state[CONJUNCTIONS]))) - free, "conjunctions in use"
    assert len(uses) == pools.state[USED_CONJUNCTIONS], "conjunctions counted"
    for number, times in uses.items():
        assert pools.uses[number] == times, f"conjunction {number}: {times} uses, {pools.uses[number]} counted"
        assert structure.index.row(number)[0] >> 32 == number, f"conjunction {number}: its row in the index"


def _entries(pools: Pools, uses: Counter[int], wanted: set[tuple[int, int]]) -> int:
    """Check who is served by each conjunction; words of blocks."""
    words, found = 0, []
    for number in uses:
        owner = int(pools.owner[number])
        if owner >= 0:
            found.append((number, owner))
        elif owner < -1:
            at = (-2 - owner) << 1
            count, room = pools.blocks[at : at + 2].tolist()
            assert 2 <= count <= room - 2, f"conjunction {number}: {count} entries, room for {room - 2}"
            words += room
            found += [(number, entry) for entry in pools.blocks[at + 2 : at + 2 + count].tolist()]
    assert len(found) == len(set(found)), "an entry twice"
    assert set(found) == wanted, f"entries: {set(found) ^ wanted}"
    return words


def _free_blocks(pools: Pools) -> int:
    words = 0
    for k, first in enumerate(pools.heads[FIRST:].tolist()):
        at = first
        while at >= 0:
            words += int(heap_words(k))
            at = int(pools.blocks[at])
    return words


def _slots(slots: np.ndarray, hashes: np.ndarray, wanted: set[int]) -> None:
    taken = np.nonzero(slots)[0].tolist()
    assert sorted(slots[taken].tolist()) == sorted(number + 1 for number in wanted), "what slots hold"
    assert 2 * len(taken) <= len(slots), "slots too full"
    mask = len(slots) - 1
    for at in taken:
        home = int(hashes[slots[at] - 1]) & mask
        while home != at:
            assert slots[home] != 0, f"slot {at}: a free one before it"
            home = (home + 1) & mask


def _records(structure: Structure, rows: set[int]) -> None:
    pools = structure.pools
    state, records = pools.state, pools.records
    at, free, found = 0, 0, set()
    tags: Counter[int] = Counter()
    while at < state[RECORDS]:
        if at == state[SLID_TO] and state[SLIDING] >= 0:
            at = int(state[SLIDING])
            continue
        row, id_bytes, text_bytes, count = records[at : at + 4].tolist()
        size = int(record_words(id_bytes, text_bytes, count))
        if row < 0:
            free += size
        else:
            assert pools.record[row] == at, f"row {row}: its record"
            found.add(row)
            tags.update(records[at + 4 : at + 4 + count].tolist())
            rule = structure.table.rule(row)
            assert structure.table.row(rule.id, LIVING, LIVING) == row, f"rule {rule.id!r}: its row"
        at += size
    assert found == rows, "records of rows"
    assert free == state[FREE_RECORDS], "words of free records"
    assert {tag: n for tag, n in enumerate(pools.tag_uses.tolist()) if n} == dict(tags), "uses of tags"


def _checks(structure: Structure, uses: Counter[int]) -> None:
    again = CheckCounts()
    for number in uses:
        row = structure.index.row(number)
        again.add(row, np.array([0, len(row)]), 0, 1, 1, len(structure.attributes))
    for name, array in again.arrays().items():
        kept = structure.counts.arrays()[name]
        assert np.array_equal(kept[: len(array)], array[: len(kept)]), f"counted {name}"
        assert not kept[len(array) :].any(), f"counted {name}"
        assert not array[len(kept) :].any(), f"counted {name}"
