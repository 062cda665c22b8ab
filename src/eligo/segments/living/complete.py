"""From satisfied conjunctions to the rules that they complete, in the order in which these were added.

The evaluator `interval` (evaluate/interval.py) over trees that come and go (pools.py). While one event is evaluated:

    truth      a bit for each conjunction: is it satisfied?         needed only where there are trees
    seen       a bit for each row that was met: it matches, or its tree was evaluated and is not complete
    matched    the rows that match; failed: the others that were met

Invariant: between events all bits are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.compiled import I32, I64, U8
from eligo.evaluate.base import Completion, EvaluatorScratch
from eligo.evaluate.interval import NARROW, ONE, covered
from eligo.evaluate.leaves import clear_truth, set_truth
from eligo.evaluate.leaves import in_order as sort_rows
from eligo.jit import handle, inline, kernel
from eligo.segments.living.pools import CONJUNCTIONS, DISORDERED, HIDDEN, ROWS, TREES, WIDEST, Pools
from eligo.segments.living.records import HEAD

_FEW = 32  # rows that are sorted by insertion
_DIGIT = 11  # bits of a digit by which more are sorted


# The memory of one evaluation as one argument of kernels; satisfied[0] counts conjunctions, in all events so far.
make_completion = handle(
    "CompletionHandle", ("truth", "seen", "matched", "failed", "reached", "other", "keys", "satisfied")
)


class CompletionScratch(EvaluatorScratch):
    """Private memory of one evaluation at a time. It grows as rules are added."""

    handle: Any
    pools_type: Any = None  # type of the handle that `enter` takes

    def __init__(self) -> None:
        super().__init__(0)
        self.rows = self.conjunctions = self.widest = -1
        self.satisfied = np.zeros(1, np.int64)

    def fit(self, state: I64) -> None:
        """Makes room to evaluate rules whose pools have this state."""
        rows, conjunctions, widest = int(state[ROWS]), int(state[CONJUNCTIONS]), int(state[WIDEST])
        if rows <= self.rows and conjunctions <= self.conjunctions and widest <= self.widest:
            return
        self.rows = max(5 * rows // 4 + 64, self.rows)
        self.conjunctions = max(5 * conjunctions // 4 + 64, self.conjunctions)
        self.widest = max(2 * widest, self.widest)
        self.matched = np.zeros(2 * self.rows, np.int32)
        self.handle = make_completion(
            np.zeros(self.conjunctions // 64 + 1, np.uint64),
            np.zeros(self.rows // 64 + 1, np.uint64),
            self.matched,
            np.zeros(self.rows, np.int32),
            np.zeros(self.widest + 1, np.uint8),
            np.zeros(self.rows, np.int32),
            np.zeros(2 * self.rows, np.int64),
            self.satisfied,
        )


class PooledCompletion(Completion):
    """Finds the rows of pools that conjunctions complete. `allowed` has a byte for each tag, 1 for those of which a
    rule must have one, or is empty if any rule will do.
    """

    def __init__(self, pools: Pools) -> None:
        self._pools = pools

    def scratch(self) -> CompletionScratch:
        return CompletionScratch()

    def evaluate_batch(
        self, found: I32, offsets: I64, events: int, allowed: U8, scratch: CompletionScratch, ends: I64
    ) -> int:
        pools = self._pools
        scratch.fit(pools.state)
        args = pools.handle, found, offsets, events, allowed, scratch.handle, ends
        if pools.handle._type is not scratch.pools_type:
            scratch.pools_type = None  # Ctrl-C may come between any two steps
            scratch.bind(complete_many, args)
            scratch.pools_type = pools.handle._type
        return scratch.enter(*args)  # type: ignore[no-any-return]


@inline
def is_wide_complete(blocks, at, leaves, truth, reached):
    """Tests whether a tree with more leaves than a word has bits is complete."""
    reached[: leaves + 1] = 0
    reached[0] = 1
    furthest = 0
    for q in range(at + 2, at + 2 + 3 * leaves, 3):
        if blocks[q + 1] > furthest:
            break
        c = np.uint64(blocks[q])
        if truth[c >> np.uint64(6)] >> (c & np.uint64(63)) & ONE and reached[blocks[q + 1]]:
            reached[blocks[q + 2]] = 1
            furthest = max(furthest, blocks[q + 2])
    return reached[leaves] != 0


@inline
def complete_rows(p, found, first, stop, s, start):
    """Writes the rows that found[first:stop] completes from matched[start] on, in any order. Returns where they end."""
    owner, blocks = p.owner, p.blocks
    truth, seen, matched, failed, reached = s.truth, s.seen, s.matched, s.failed, s.reached
    with_trees = p.state[TREES] > 0
    if with_trees:
        set_truth(truth, found, first, stop)
    k, misses = start, 0
    for i in range(first, stop):
        v = np.int64(owner[found[i]])
        at, entries = np.int64(0), 1
        if v == -1:
            continue
        if v < -1:
            at = (-2 - v) << 1
            entries = np.int64(blocks[at])
        for j in range(entries):
            entry = np.uint64(v) if v >= 0 else np.uint64(blocks[at + 2 + j])
            if entry & ONE == 0:
                row = entry >> ONE
                word, bit = row >> np.uint64(6), ONE << (row & np.uint64(63))
                matched[k] = row
                k += seen[word] & bit == 0
                seen[word] |= bit
                continue
            tree = np.int64(entry) - 1
            row = np.uint64(blocks[tree])
            word, bit = row >> np.uint64(6), ONE << (row & np.uint64(63))
            if seen[word] & bit:
                continue
            seen[word] |= bit
            leaves = np.int64(blocks[tree + 1])
            if leaves <= NARROW:
                cover = ONE
                for q in range(tree + 2, tree + 2 + 3 * leaves, 3):
                    c = np.uint64(blocks[q])
                    holds = truth[c >> np.uint64(6)] >> (c & np.uint64(63))
                    cover = covered(cover, np.uint64(blocks[q + 1]), np.uint64(blocks[q + 2]), holds)
                complete = cover >> np.uint64(leaves) & ONE != 0
            else:
                complete = is_wide_complete(blocks, tree, leaves, truth, reached)
            if complete:
                matched[k] = row
                k += 1
            else:
                failed[misses] = row
                misses += 1
    if with_trees:
        clear_truth(truth, found, first, stop)
    for i in range(misses):
        seen[failed[i] >> 6] = 0
    for i in range(start, k):
        seen[matched[i] >> 6] = 0
    return k


@inline
def leave_out(p, matched, start, stop, wanted):
    """Keeps the rows of matched[start:stop] that readers see and, unless `wanted` is empty, that have one of the wanted
    tags. Returns where they end.
    """
    status, record, records = p.status, p.record, p.records
    k = start
    for i in range(start, stop):
        row = matched[i]
        keep = status[row] & 1 != 0
        if keep and len(wanted):
            at, keep = record[row] + HEAD, False
            for j in range(at, at + records[at - 1]):
                keep = keep or (records[j] < len(wanted) and wanted[records[j]] != 0)
        matched[k] = row
        k += keep
    return k


@inline
def in_order(p, s, start, stop):
    """Sorts matched[start:stop] by sequence number: through a bitmap if the pool's rows are in that order, otherwise
    few rows by insertion and many by radix sort.
    """
    matched, sequence, other, keys = s.matched, p.sequence, s.other, s.keys
    n = stop - start
    if p.state[DISORDERED] == 0:
        sort_rows(matched, start, stop, s.seen)
    elif n <= _FEW:
        for i in range(start + 1, stop):
            row = matched[i]
            j = i - 1
            while j >= start and sequence[matched[j]] > sequence[row]:
                matched[j + 1] = matched[j]
                j -= 1
            matched[j + 1] = row
    else:
        low = high = sequence[matched[start]]
        for i in range(n):
            keys[i] = sequence[matched[start + i]]
            low, high = min(low, keys[i]), max(high, keys[i])
        shift, half = np.int64(0), np.int64(len(keys) // 2)
        counts = np.empty((1 << _DIGIT) + 1, np.int64)
        while (high - low) >> shift > 0:
            counts[:] = 0
            for i in range(n):
                counts[(((keys[i] - low) >> shift) & ((1 << _DIGIT) - 1)) + 1] += 1
            for d in range(1 << _DIGIT):
                counts[d + 1] += counts[d]
            for i in range(n):
                d = ((keys[i] - low) >> shift) & ((1 << _DIGIT) - 1)
                other[counts[d]], keys[half + counts[d]] = matched[start + i], keys[i]
                counts[d] += 1
            for i in range(n):
                matched[start + i], keys[i] = other[i], keys[half + i]
            shift += _DIGIT


@kernel
def complete_many(p, found, offsets, events, wanted, s, ends):
    """Writes the rows that the conjunctions of many events complete into s.matched, in order, as far as there is room.
    Event i has found[offsets[i]:offsets[i+1]], and gets matched[ends[i]:ends[i+1]]. Returns how many events were done.
    """
    k = i = 0
    ends[0] = 0
    while i < events and len(s.matched) - k > p.state[ROWS]:  # one more: a row is written before it is known to be new
        stop = complete_rows(p, found, offsets[i], offsets[i + 1], s, k)
        if len(wanted) or p.state[HIDDEN] > 0:
            stop = leave_out(p, s.matched, k, stop, wanted)
        in_order(p, s, k, stop)
        k = stop
        i += 1
        ends[i] = k
    s.satisfied[0] += offsets[i] - offsets[0]
    return i
