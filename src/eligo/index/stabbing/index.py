"""The five indexes of the report on profile matching §4.1: a tree an attribute, their answers combined by AND.

    conjunctions  ─ rows: sorted by the attribute that leads to them, then by their interval on it
    attribute a   ─ root[a]: a tree of its intervals (`tree.py`)
                    spoken_place, silent[spoken_offsets[a] … [a+1]]: the words in which some row has a predicate on a,
                    and which of their rows have none. This is the don't-care vector; other words are all don't care

    event  a = 20  ─ tree of a ─▶ part      alive &= part | silent of a
           b = 7   ─ tree of b ─▶ part      alive &= part | silent of b          ─▶ rows that are left
                                            alive: at first, the rows that an attribute of the event leads to

An attribute leads to the rows that have a predicate on it that needs a value; of several such attributes, the one that
the fewest rows speak of does. Rows without one are alive for every event.

What the vectors leave open is verified (rows/verify.py): all rows that are left if an attribute is absent, or its
value is a range or a list without values; otherwise only those in `inexact`, which have a pattern, a negation on
several values, or several predicates on one attribute. `stab-cluster` verifies all, because a cluster only says what
may match.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.errors import LimitError
from eligo.index.access import access_predicates, leading
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.row_encoder import checks_of, rows_in_order
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_stretches
from eligo.index.selectivity import unlikeliness
from eligo.index.stabbing.ordered import grow_ordered
from eligo.index.stabbing.shapes import CLUSTER, ELEMENTARY, LEAF, PAIRS, grow
from eligo.index.stabbing.tree import collect, post, with_vectors
from eligo.index.stabbing.vectors import Vectors, as_words, compress, count_bits, words_of
from eligo.jit import handle, inline, trailing_zeros
from eligo.options import Option

_MOST = 2**31 - 1  # bits of all vectors, and entries of all ordered lists: places are 32 bits
MIN_CLUSTER = 32
_OWN = (
    "nodes", "row", "place", "bits", "bound", "bound_row", "root", "lead_offsets", "spoken_offsets", "spoken_place",
    "silent", "inexact", "conjunction", "words", "word_offsets",
)  # fmt: skip
NO_BITS, ALL_BITS = np.uint64(0), np.uint64(2**64 - 1)
ONE = np.uint64(1)


@dataclass(frozen=True)
class Intervals:
    """The intervals of all attributes: those of attribute a are offsets[a] … [a+1], sorted by row."""

    offsets: I64
    low: I32
    high: I32
    row: I32
    space_count: I32


class _StabbingScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions) -> None:
        rows = len(conjunctions)
        super().__init__(rows)
        self.handle = make_stabbing_scratch(
            np.zeros(words_of(rows), np.uint64),
            np.zeros(words_of(rows), np.uint64),
            np.zeros(rows, np.int64),
            np.zeros(rows, np.int64),
            self.found,
            self.counters,
        )


class Stabbing(ArrayIndex):
    """What the five have in common; see the top of this file. A subclass gives the tree."""

    exact: ClassVar[bool] = True  # its vectors have only what holds a value

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        self.handle = make_stabbing(
            conjunctions.space_handle,
            make_string_handle(*conjunctions.strings.spans()),
            *(arrays[name] for name in _OWN),
            np.array([np.count_nonzero(np.diff(arrays["spoken_offsets"]))]),
        )

    @classmethod
    @abstractmethod
    def tree(cls, intervals: Intervals, **options: Any) -> Arrays:
        """Returns nodes, roots and lists of all attributes: the first seven arrays of the index."""

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None, **options: Any) -> Stabbing:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        p, items, count = conjunctions.predicates, conjunctions.items, len(conjunctions)
        attribute, attributes = p.attribute(), len(p.plain_stop)
        spoken = np.bincount(attribute[items], minlength=attributes)
        lead = access_predicates(conjunctions.offsets, items, spoken[attribute], leading(conjunctions))
        led_by = np.append(attribute, attributes)[lead]  # -1, no lead, takes the last
        order = np.lexsort((np.append(p.low, 0)[lead], led_by)).astype(np.int32)
        row_of = np.empty(count, np.int32)
        row_of[order] = np.arange(count, dtype=np.int32)

        # Rows by attribute, sorted by both; where one comes twice, a row has several predicates on the attribute.
        item_row = np.repeat(row_of, np.diff(conjunctions.offsets))
        by_attribute = np.lexsort((item_row, attribute[items]))
        own, rows = attribute[items][by_attribute].astype(np.int64), item_row[by_attribute]
        flags = p.flags[items][by_attribute]
        inexact = np.full(count, not cls.exact)
        inexact[rows[flags & (codes.RESIDUAL | codes.ALL_VALUES) != 0]] = True
        inexact[rows[1:][(own[1:] == own[:-1]) & (rows[1:] == rows[:-1])]] = True
        speakers = compress(own, rows, attributes, many=1)

        runs = np.diff(p.run_offsets)[items][by_attribute]
        run = np.arange(runs.sum()) + np.repeat(p.run_offsets[:-1][items][by_attribute] - np.cumsum(runs) + runs, runs)
        ends = np.searchsorted(np.repeat(own, runs), np.arange(attributes + 1))
        intervals = Intervals(
            ends, p.run_low[run], p.run_high[run], np.repeat(rows, runs), conjunctions.spaces.space_count
        )
        checks, none = checks_of(conjunctions), np.full(count, -1, np.int32)
        words, word_offsets = rows_in_order(conjunctions.offsets, items, checks, rank, order, none)
        return cls(
            conjunctions,
            {
                **cls.tree(intervals, **options),
                "lead_offsets": np.searchsorted(led_by[order], np.arange(attributes + 2)),
                "spoken_offsets": speakers.word_offsets,
                "spoken_place": speakers.place,
                "silent": ~speakers.bits,
                "inexact": as_words(inexact),
                "conjunction": order,
                "words": words,
                "word_offsets": word_offsets,
            },
        )

    def scratch(self) -> _StabbingScratch:
        return _StabbingScratch(self.conjunctions)

    def notes(self) -> dict[str, object]:
        a = self._arrays
        return {
            "nodes": len(a["nodes"]) - 1,
            "bits in vectors": len(a["row"]) + count_bits(a["bits"]),
            "of them in words": count_bits(a["bits"]),
            "entries of ordered lists": len(a["bound"]),
            "always verified": count_bits(a["inexact"]),
        }


def _checked(entries: int) -> None:
    if entries > _MOST:
        raise LimitError(
            f"the trees of one segment would have {entries:,} entries, and {_MOST:,} is the most; use index='scan'"
        )


def _tree(shape: I32, root: I32, vectors: Vectors, starts: I64, bound: I32, bound_row: I32) -> Arrays:
    nodes = with_vectors(shape, vectors, starts)
    return {
        "nodes": nodes, "row": vectors.row, "place": vectors.place, "bits": vectors.bits, "bound": bound,
        "bound_row": bound_row, "root": root,
    }  # fmt: skip


class _Covered(Stabbing):
    """A tree of bit vectors, whose shape does not depend on where intervals are stored."""

    shape: ClassVar[tuple[int, int]]  # how a tree begins, and what a cluster becomes that is not split

    @classmethod
    def tree(cls, intervals: Intervals, *, min_cluster: int = 1, **options: Any) -> Arrays:
        i = intervals
        shape, root = grow(i.offsets, i.low, i.high, i.space_count, *cls.shape, min_cluster)
        ends, rows = post(i.offsets, i.low, i.high, i.row, i.space_count, shape, root, _MOST)
        _checked(int(ends[-1]))
        vectors = compress(np.repeat(np.arange(len(ends) - 1), np.diff(ends)), rows, len(ends) - 1)
        none = np.zeros(0, np.int32)
        return _tree(shape, root, vectors, np.zeros(len(ends), np.int64), none, none)


class StabCluster(_Covered):
    """The Cluster Index (§4.1.1)."""

    name = "stab-cluster"
    summary = "a tree an attribute splits intervals into clusters at scored keys; what is left is verified"
    exact = False
    shape = CLUSTER, LEAF


class StabInterval(_Covered):
    """The Interval Index (§4.1.2)."""

    name = "stab-interval"
    summary = "a search tree an attribute over elementary intervals, each with the bit vector of its rules"
    shape = ELEMENTARY, LEAF


class StabHybrid(_Covered):
    """The Hybrid Index (§4.1.3)."""

    name = "stab-hybrid"
    summary = "clusters as stab-cluster, and within each of them elementary intervals as stab-interval"
    shape = CLUSTER, ELEMENTARY
    options: ClassVar = {"min_cluster": Option(MIN_CLUSTER, "intervals up to which a cluster is not split", least=1)}

    @classmethod
    def tree(cls, intervals: Intervals, *, min_cluster: int = MIN_CLUSTER, **options: Any) -> Arrays:
        return super().tree(intervals, min_cluster=min_cluster)


class SegmentTree(_Covered):
    """The Segment Tree (§4.1.4)."""

    name = "segment-tree"
    summary = "a segment tree an attribute: an interval in the vectors of the few nodes that it covers wholly"
    shape = PAIRS, LEAF


class IntervalTree(Stabbing):
    """The Interval Tree (§4.1.4)."""

    name = "interval-tree"
    summary = "an interval tree an attribute: an interval in two ordered lists of one node"

    @classmethod
    def tree(cls, intervals: Intervals, **options: Any) -> Arrays:
        i, attribute = intervals, np.repeat(np.arange(len(intervals.offsets) - 1), np.diff(intervals.offsets))
        _checked(2 * len(i.low))
        by_low = np.lexsort((i.low, attribute)).astype(np.int32)
        by_high = np.lexsort((-i.high, attribute)).astype(np.int32)
        shape, root, starts, bound, bound_row = grow_ordered(i.offsets, i.low, i.high, i.row, by_low, by_high)
        vectors = compress(np.zeros(0, np.int64), np.zeros(0, np.int32), 2 * len(shape))
        return _tree(shape, root, vectors, starts, bound, bound_row)


# The index as one argument of kernels; `attributes[0]` is how many attributes rows speak of.
make_stabbing = handle("StabbingHandle", ["spaces", "strings", *_OWN, "attributes"])


# The memory of one search as one argument of kernels; `alive` and `part` are zero between events.
make_stabbing_scratch = handle("StabbingScratchHandle", ["alive", "part", "starts", "ends", "found", "counters"])


@inline
def set_rows(alive, first, stop):
    """Sets the bits of rows first … stop - 1."""
    if first == stop:
        return
    start, last = first >> 6, (stop - 1) >> 6
    head, tail = ALL_BITS << np.uint64(first & 63), ALL_BITS >> np.uint64(63 - ((stop - 1) & 63))
    if start == last:
        alive[start] |= head & tail
        return
    alive[start] |= head
    whole = alive[start + 1 : last]
    for i in range(len(whole)):
        whole[i] = ALL_BITS
    alive[last] |= tail


@inline
def narrow(alive, part, place, silent, first, stop):
    """Clears in `alive` the rows that speak of an attribute and are not in `part`, and clears `part`."""
    start = place[first]
    if place[stop - 1] - start == stop - 1 - first:
        # All words from one to another, as views: their places are never negative, which makes this loop vector
        # instructions and an event take 4.5 µs instead of 7.6 with 100,000 rules.
        count = stop - first
        some, held, others = alive[start : start + count], part[start : start + count], silent[first:stop]
        for i in range(count):
            some[i] &= held[i] | others[i]
            held[i] = NO_BITS
    else:
        for i in range(first, stop):
            alive[place[i]] &= part[place[i]] | silent[i]
            part[place[i]] = NO_BITS


@inline
def take(alive, inexact, verified, conjunction, first, stop, found, k, starts, ends, count):
    """Clears rows first … stop - 1 of `alive` and what shares a word with them, and writes down those that are set.

    Conjunctions go to `found`, and stretches of rows that must be verified to `starts` and `ends`. Returns how many
    there are of both.
    """
    if first == stop:
        return k, count
    start = first >> 6
    words = alive[start : ((stop - 1) >> 6) + 1]
    for i in range(len(words)):
        left = words[i]
        if left == NO_BITS:
            continue
        words[i] = NO_BITS
        unsure = inexact[start + i] | verified
        while left:
            bit = trailing_zeros(left)
            row = np.int32(64 * (start + i) + bit)
            if unsure >> bit & ONE == NO_BITS:
                found[k] = conjunction[row]
                k += 1
            elif count and ends[count - 1] == row:
                ends[count - 1] = row + 1
            else:
                starts[count], ends[count] = row, row + 1
                count += 1
            left &= left - ONE
    return k, count


@inline
def stab_event(index, e, event, event_view, scratch, start):
    """Writes the conjunctions that an event satisfies into `found` from `start` on. Returns where they end."""
    alive, part, starts, ends, counters = scratch.alive, scratch.part, scratch.starts, scratch.ends, scratch.counters
    n = locate(index.spaces, e, event)
    at_attribute, at_low, at_high = e.at_attribute, e.at_low, e.at_high
    nodes, row, place, bits, root = index.nodes, index.row, index.place, index.bits, index.root
    bound, bound_row = index.bound, index.bound_row
    lead_offsets, spoken_offsets = index.lead_offsets, index.spoken_offsets
    always = len(lead_offsets) - 2
    set_rows(alive, lead_offsets[always], lead_offsets[always + 1])
    for j in range(n):
        set_rows(alive, lead_offsets[at_attribute[j]], lead_offsets[at_attribute[j] + 1])
    decided = j = 0
    while j < n:
        a, first = at_attribute[j], j
        values = spoken_offsets[a] < spoken_offsets[a + 1]
        while j < n and at_attribute[j] == a:
            values = values and at_low[j] == at_high[j]
            j += 1
        if values:
            for i in range(first, j):
                counters[1] += collect(nodes, row, place, bits, bound, bound_row, root[a], at_low[i], part)
            narrow(alive, part, index.spoken_place, index.silent, spoken_offsets[a], spoken_offsets[a + 1])
            decided += 1
    verified = NO_BITS if decided == index.attributes[0] else ALL_BITS
    inexact, conjunction, found = index.inexact, index.conjunction, scratch.found
    k, count = take(alive, inexact, verified, conjunction, lead_offsets[always], lead_offsets[always + 1], found, start,
                    starts, ends, 0)  # fmt: skip
    for j in range(n):
        a = at_attribute[j]
        if j == 0 or a != at_attribute[j - 1]:
            k, count = take(alive, inexact, verified, conjunction, lead_offsets[a], lead_offsets[a + 1], found, k,
                            starts, ends, count)  # fmt: skip
    counters[0] += k - start
    if count == 0:
        return k
    view_event(e, event, event_view, len(root))
    return verify_stretches(
        index.words, index.word_offsets, starts, ends, count, event_view, e, index.strings, found, k, counters
    )


Stabbing.search_events = staticmethod(searching(stab_event))
