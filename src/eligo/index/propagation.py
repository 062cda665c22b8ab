"""`propagation`: every conjunction waits in the cluster of one access predicate (Fabret et al., SIGMOD 2001).

    conjunction  →  access predicate, its least likely one  →  cluster, a stretch of rows

    cluster c      cluster[c] … cluster[c+1]: where its rows begin in `words`, and how many rows are before it
                   (rows/packed_predicate.py). By their access predicate there are first the clusters of
    one value      cluster i is that of point i (point_table.py)
    few values     clusters lists[list_start[i]] … [list_start[i+1]] are those that hold for point i
    any other      others[other_start[a]] … are rows of one check each, numbered by cluster; but of
    an interval    with a plain check: those of attribute a are plain[plain_start[a]] … [plain_start[a+1]]
    none           the last cluster: its rows are verified for every event

Invariant: a conjunction stands in exactly one row. An event comes upon a row only if it satisfies the row's access
predicate, or its superset if that has to be asked; where it does not, the row lacks that check.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.index.access import access_predicates, leading
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.point_table import NO_POINT, fill_slots, find_point, first_point, points_of
from eligo.index.rows.content import number_rows
from eligo.index.rows.event_view import FAILS, KIND_VARIOUS, view_event
from eligo.index.rows.line import STRING
from eligo.index.rows.packed_predicate import ASK, DISTANCES, PLACE, PLACES, is_plain_check, shape_of
from eligo.index.rows.row_encoder import checks_of, rows_in_order
from eligo.index.rows.slow_path import ask_check, make_string_handle, string_allowed
from eligo.index.rows.verify import verify_rows
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline, kernel

_ARRAYS = (
    "slots", "point_start", "place", "value", "list_start", "lists", "plain_start", "plain", "other_start", "others",
    "cluster", "words",
)  # fmt: skip
POINT, LIST, OTHER, PLAIN = 0, 1, 2, 3  # kinds of access predicates


class Propagation(ArrayIndex):
    """One access predicate for each conjunction; see the top of this file."""

    name = "propagation"
    summary = "conjunctions wait in the cluster of their least likely predicate"
    by_least_likely = True

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        strings = make_string_handle(*conjunctions.strings.spans())
        self.handle = make_propagation(strings, *(arrays[name] for name in _ARRAYS))

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> Propagation:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        attribute, offsets, items = conjunctions.compiled.attribute, conjunctions.offsets, conjunctions.items
        checks = checks_of(conjunctions)
        access = access_predicates(offsets, items, rank, leading(conjunctions))
        used = np.zeros(len(attribute), np.bool_)
        used[access[access >= 0]] = True
        ends, place, value = points_of(conjunctions, checks)
        count = np.diff(ends)
        plain, asked = sort_checks(*checks)
        kind = np.where(count == 1, POINT, np.where(count > 1, LIST, np.where(plain, PLAIN, OTHER)))

        # Different points, and the access predicates that hold there.
        owner = np.repeat(np.arange(len(count)), count)
        held = np.flatnonzero(used[owner])
        held = held[np.lexsort((value[held], place[held]))]
        place, value, owner = place[held], value[held], owner[held]
        new = np.ones(len(held), np.bool_)
        new[1:] = (place[1:] != place[:-1]) | (value[1:] != value[:-1])
        point, listed = np.cumsum(new) - 1, kind[owner] == LIST
        place, value = place[new], value[new]

        number = np.empty(len(count) + 1, np.int64)  # of each access predicate's cluster; behind them, that of none
        number[owner[~listed]] = point[~listed]
        by_kind, clusters = [], len(place)
        for k in (LIST, OTHER, PLAIN):
            some = np.flatnonzero(used & (kind == k))
            by_kind.append(some[np.argsort(attribute[some], kind="stable")])
            number[by_kind[-1]] = clusters + np.arange(len(some))
            clusters += len(some)
        _, others, plains = by_kind
        number[-1] = clusters
        order = np.argsort(number[access], kind="stable").astype(np.int32)
        guaranteed = np.where(np.append(asked, True)[access], -1, access)[order]
        words, starts = rows_in_order(offsets, items, checks, rank, order, guaranteed)
        edges = np.searchsorted(number[access][order], np.arange(clusters + 2))
        alone, none = np.arange(len(others) + 1), np.full(len(others), -1, np.int32)
        tests, test_starts = rows_in_order(
            alone, others.astype(np.int32), checks, rank, alone[:-1].astype(np.int32), none
        )
        number_rows(tests, test_starts, number[others])
        every = np.arange(conjunctions.attributes + 1)
        return cls(
            conjunctions,
            {
                "slots": fill_slots(place, value),
                "point_start": np.searchsorted(place >> 3, every),
                "place": place,
                "value": value,
                "list_start": np.searchsorted(point[listed], np.arange(len(place) + 1)).astype(np.int32),
                "lists": number[owner[listed]].astype(np.int32),
                "plain_start": np.searchsorted(attribute[plains], every),
                "plain": checks[1][checks[0][plains]],
                "other_start": test_starts[np.searchsorted(attribute[others], every)],
                "others": tests,
                "cluster": np.stack((starts[edges], edges), 1),
                "words": words,
            },
        )

    def scratch(self) -> Scratch:
        scratch, clusters = Scratch(len(self.conjunctions)), len(self._arrays["cluster"])
        most = min(clusters, len(self.conjunctions)) + 1  # clusters with rows
        scratch.handle = make_propagation_scratch(
            np.zeros(clusters, np.int64), np.zeros(1, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64),
            np.zeros(most, np.int32), scratch.found, scratch.counters,
        )  # fmt: skip
        return scratch

    def notes(self) -> dict[str, object]:
        rows = np.diff(self._arrays["cluster"][:, 1])
        points = len(self._arrays["place"])
        return {
            "clusters of one value": int(np.count_nonzero(rows[:points])),
            "clusters of several values": len(rows) - 1 - points,
            "always verified": int(rows[-1]),
        }


@kernel
def sort_checks(starts, checks):
    """Returns of each check whether it is a plain one, and whether it has to be asked."""
    plain, asked = np.empty(len(starts) - 1, np.bool_), np.empty(len(starts) - 1, np.bool_)
    for p in range(len(plain)):
        plain[p], asked[p] = is_plain_check(checks[starts[p]]), shape_of(checks[starts[p]]) == ASK
    return plain, asked


# The index as one argument of kernels.
make_propagation = handle("PropagationHandle", ["strings", *_ARRAYS])


# The memory of one search as one argument of kernels. `clusters` are those that an event comes to.
make_propagation_scratch = handle(
    "PropagationScratchHandle", ["visited", "serial", "starts", "ends", "clusters", "found", "counters"]
)


@inline
def meet_clusters(index, e, event_view, n, w):
    """Writes the clusters whose access predicate an event satisfies, if they have rows, into w.clusters. Returns how
    many there are. `n` is the number of the event's attributes.
    """
    slots, point_start, cluster, list_start, lists = (
        index.slots, index.point_start, index.cluster, index.list_start, index.lists,
    )  # fmt: skip
    plain_start, plain, other_start = index.plain_start, index.plain, index.other_start
    kinds, at, places, present = event_view.kind, event_view.at, event_view.place, event_view.present
    clusters, visited, starts, ends = w.clusters, w.visited, w.starts, w.ends
    last = np.int64(len(cluster) - 2)
    first_plain = last - len(plain)
    m = tests = 0
    for i in range(n):
        a = present[i]
        if other_start[a] < other_start[a + 1]:
            starts[m], ends[m] = other_start[a], other_start[a + 1]
            m += 1
    if m:
        single = event_view.count[1] == 0
        m = verify_rows(index.others, starts, ends, m, single, event_view, e, index.strings, clusters, 0, w.counters)
    w.serial[0] += 1
    serial = w.serial[0]
    for i in range(n):
        a = present[i]
        tests += plain_start[a + 1] - plain_start[a]
        if kinds[a] != KIND_VARIOUS:
            value = np.uint64(places[a])
            for p in range(plain_start[a], plain_start[a + 1]):
                word = np.uint64(plain[p])
                clusters[m] = first_plain + p
                m += value - (word >> np.uint64(PLACE) & np.uint64(PLACES)) <= word & np.uint64(DISTANCES)
            if point_start[a] < point_start[a + 1]:
                c = find_point(slots, np.int64(a) << 3 | np.int64(kinds[a]), at[a])
                if c != NO_POINT:
                    clusters[m] = c
                    m += cluster[c, 1] < cluster[c + 1, 1]
                    for j in range(list_start[c], list_start[c + 1]):
                        clusters[m] = lists[j]
                        m += 1
            continue
        for p in range(plain_start[a], plain_start[a + 1]):
            clusters[m] = first_plain + p
            m += ask_check(plain, p, event_view, e, index.strings) != FAILS
        # A list of values may hold for several of the event's, and so may what is found by coordinates.
        for j in range(event_view.first[a], event_view.stop[a]):
            here, stop = np.int64(a) << 3 | np.int64(event_view.entry_kind[j]), point_start[a + 1]
            c = first_point(index.place, index.value, point_start[a], stop, here, event_view.low[j])
            while c < stop and index.place[c] == here and index.value[c] <= event_view.high[j]:
                # A range of strings has no coordinates.
                any_string = here & 7 == STRING and event_view.source[j] < 0
                if any_string and not string_allowed(index.value[c], event_view.source[j], e, index.strings):
                    c += 1
                    continue
                if visited[c] != serial:
                    visited[c] = serial
                    clusters[m] = c
                    m += cluster[c, 1] < cluster[c + 1, 1]
                    for x in range(list_start[c], list_start[c + 1]):
                        clusters[m] = lists[x]
                        m += visited[lists[x]] != serial
                        visited[lists[x]] = serial
                c += 1
    w.counters[1] += tests
    clusters[m] = last
    return m + (cluster[last, 1] < cluster[last + 1, 1])


@inline
def propagate_event(index, e, event, event_view, scratch, start):
    """Writes the conjunctions that an event satisfies into `found` from `start` on. Returns where they end."""
    cluster, clusters, starts, ends, counters = (
        index.cluster, scratch.clusters, scratch.starts, scratch.ends, scratch.counters,
    )  # fmt: skip
    n = view_event(e, event, event_view, len(index.point_start) - 1)
    m = meet_clusters(index, e, event_view, n, scratch)
    for i in range(m):
        c = np.uint64(clusters[i])
        starts[i], ends[i] = cluster[c, 0], cluster[c + np.uint64(1), 0]
        counters[0] += cluster[c + np.uint64(1), 1] - cluster[c, 1]
    single = event_view.count[1] == 0
    return verify_rows(
        index.words, starts, ends, m, single, event_view, e, index.strings, scratch.found, start, counters
    )


Propagation.search_events = staticmethod(searching(propagate_event))


class Bitmap(Propagation):
    """Blocks of events for every batch, however small (batch/): predicates are bitmaps over the events of a block,
    conjunctions and trees are ANDs and ORs of machine words. One event alone goes as with `propagation`.
    """

    name = "bitmap"
    summary = "batches as bitmaps over their events, single events as propagation"
    blocks = "always"
