"""`gryphon`: the parallel search tree (Aguilera et al., "Matching Events in a Content-based Subscription System").

    node v      rows node[4v] … node[4v+1]: conjunctions whose tests all lie on the way;  groups node[4v+2] … node[4v+3]
    group g     group[4g]: a test, ascending within a node;  group[4g+1] = attribute << 1 | kind;  its edges
                group[4g+2] … group[4g+3]
    edge x      kind 0, which space?  equal[3x]: the space, ascending;  equal[3x+1], equal[3x+2]: row and target
                kind 1, any other     tested[x]: a predicate;               other[2x], other[2x+1]: row and target
    target      t >= 0: node t;  t < 0: the -t rows from `row` on, each verified for the predicates left of it
    root        node 0;  root_equal[space_base[a] + space]: its edge, root_group[attribute << 1 | kind]: its group
    rows from always_start[0] on    conjunctions that no test leads to: verified for every event

A path from the root names a conjunction's tests in one order for all (gryphon_tree.py). In the plain tree every node
tests one attribute, and what does not care about it goes on by a `*` edge to the next. Here a node and all the nodes
that `*` edges alone lead to from it are one, with a group for each test that occurs among them:

- trivial tests, which only a `*` edge follows, are nowhere (trivial test elimination);
- a `*` edge is taken only as far as a test on an attribute that the event has (delayed branching);
- the root is looked up in place of being searched (factoring).

Invariant: a conjunction stands in exactly one row, and an event comes upon it at most once, by the edges of its path.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.compile.predicates import holds
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.row_encoder import checks_of
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_stretches
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline
from eligo.options import Option
from eligo_lab.rivals.gryphon_tree import LEAF, build_tree, factored
from eligo_lab.rivals.rows import ROW_ARRAYS, group_entries, nothing_located, rows_of

_OWN = (
    "space_base", "root_equal", "root_group", "test_of", "node", "group", "equal", "other", "always_start",
    "tested", *ROW_ARRAYS,
)  # fmt: skip
NOWHERE, SEVERAL_SPACES = -2, -1  # in place of a space: the attribute is absent; it has several values, a range or none
MANY = 4  # groups of a node, for each attribute of the event, before they are searched instead of walked


class _GryphonScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions, nodes: int) -> None:
        super().__init__(len(conjunctions))
        self.handle = make_gryphon_scratch(
            nothing_located(conjunctions),
            np.full(len(conjunctions.spaces.space_count), NOWHERE, np.int32),
            np.zeros(nodes, np.int32),  # a node waits there once at most
            np.zeros(len(conjunctions) + 1, np.int64),  # at least one row in each stretch, but for the last
            np.zeros(len(conjunctions) + 1, np.int64),
            self.found,
            self.counters,
        )


class Gryphon(ArrayIndex):
    """A tree of tests; see the top of this file."""

    name = "gryphon"
    summary = "a tree of tests in one order; an event follows every edge that it satisfies"
    options: ClassVar = {
        "leaf": Option(LEAF, "conjunctions that are looked at one by one instead of being divided by a test", least=1),
        "generic": Option(False, "whether equalities are tested one by one, like anything else"),
    }

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        self.handle = make_gryphon(
            conjunctions.space_handle,
            conjunctions.predicate_handle,
            make_string_handle(*conjunctions.strings.spans()),
            *(arrays[name] for name in _OWN),
        )

    @classmethod
    def build(
        cls, conjunctions: Conjunctions, selectivity: I64 | None = None, *, leaf: int = LEAF, generic: bool = False
    ) -> Gryphon:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        tree = build_tree(conjunctions, leaf, generic)
        space_base = conjunctions.spaces.bases()
        a = tree.arrays
        root_equal, root_group = factored(a["node"], a["group"], a["equal"], len(space_base) - 1, space_base)
        return cls(
            conjunctions,
            {
                "space_base": space_base,
                "root_equal": root_equal,
                "root_group": root_group,
                "always_start": np.array([tree.always], np.int32),
                **tree.arrays,
                "tested": tree.tested,
                **rows_of(tree.order, tree.left_offsets, tree.left, checks_of(conjunctions), rank),
            },
        )

    def scratch(self) -> _GryphonScratch:
        return _GryphonScratch(self.conjunctions, len(self._arrays["node"]) // 4)

    def notes(self) -> dict[str, object]:
        a = self._arrays
        return {
            "nodes": len(a["node"]) // 4,
            "edges of one space": len(a["equal"]) // 3,
            "other edges": len(a["other"]) // 2,
            "always verified": len(self.conjunctions) - int(a["always_start"][0]),
        }


# The index as one argument of kernels.
make_gryphon = handle("GryphonHandle", ["spaces", "predicates", "strings", *_OWN])


# The memory of one search as one argument of kernels.
make_gryphon_scratch = handle(
    "GryphonScratchHandle", ["located", "spot", "stack", "starts", "ends", "found", "counters"]
)


@inline
def follow_event(index, e, event, event_view, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    located, starts, ends, counters = scratch.located, scratch.starts, scratch.ends, scratch.counters
    n = group_entries(e, locate(index.spaces, e, event), located)
    view_event(e, event, event_view, len(index.space_base) - 1)
    present, first, stop, p, tested = located.present, located.first, located.stop, index.predicates, index.tested
    at_low, at_high = e.at_low, e.at_high
    space_base, root_equal, root_group, test_of = index.space_base, index.root_equal, index.root_group, index.test_of
    node, group, equal, other = index.node, index.group, index.equal, index.other
    word_offsets, spot, stack = index.word_offsets, scratch.spot, scratch.stack
    for i in range(n):
        a = present[i]
        j = first[a]
        spot[a] = at_low[j] if stop[a] == j + 1 and at_low[j] == at_high[j] else SEVERAL_SPACES
    count = tests = 0
    top = 1
    stack[0] = 0
    while top > 0:
        top -= 1
        v = stack[top]
        if node[4 * v] < node[4 * v + 1]:
            starts[count], ends[count] = node[4 * v], node[4 * v + 1]
            count += 1
        group_first, group_stop = node[4 * v + 2], node[4 * v + 3]
        walked = v > 0 and group_stop - group_first <= MANY * n
        for turn in range(group_stop - group_first if walked else 2 * n):
            if walked:
                g = group_first + turn
                a = group[4 * g + 1] >> 1
                if spot[a] == NOWHERE:
                    continue
            elif v == 0:
                a = present[turn >> 1]
                g = root_group[a << 1 | turn & 1]
                if g < 0:
                    continue
            else:
                a = present[turn >> 1]
                test = test_of[a << 1 | turn & 1]
                g, high = group_first, group_stop
                while g < high:
                    middle = (g + high) >> 1
                    if group[4 * middle] < test:
                        g = middle + 1
                    else:
                        high = middle
                if g == group_stop or group[4 * g] != test:
                    continue
            x, end = group[4 * g + 2], group[4 * g + 3]
            generic = group[4 * g + 1] & 1
            space = spot[a]
            if generic == 0 and space >= 0:
                # One value: the edge of its space, if there is one.
                if v == 0:
                    x = root_equal[space_base[a] + space]
                    found_it = x >= 0
                else:
                    high = end
                    while x < high:
                        middle = (x + high) >> 1
                        if equal[3 * middle] < space:
                            x = middle + 1
                        else:
                            high = middle
                    found_it = x < end and equal[3 * x] == space
                tests += 1
                end = x + 1 if found_it else x
            else:
                tests += end - x
            for edge in range(x, end):
                if generic:
                    if not holds(p, tested[edge], e, first[a], stop[a]):
                        continue
                    row, target = other[2 * edge], other[2 * edge + 1]
                else:
                    if space == SEVERAL_SPACES:
                        met = False
                        for j in range(first[a], stop[a]):
                            met |= at_low[j] <= equal[3 * edge] and equal[3 * edge] <= at_high[j]
                        if not met:
                            continue
                    row, target = equal[3 * edge + 1], equal[3 * edge + 2]
                if target >= 0:
                    stack[top] = target
                    top += 1
                else:
                    starts[count], ends[count] = row, row - target
                    count += 1
    for i in range(n):
        spot[present[i]] = NOWHERE
    counters[1] += tests
    rows = len(word_offsets) - 1
    if index.always_start[0] < rows:
        starts[count], ends[count] = index.always_start[0], rows
        count += 1
    return verify_stretches(
        index.words, word_offsets, starts, ends, count, event_view, e, index.strings, scratch.found, start, counters
    )


Gryphon.search_events = staticmethod(searching(follow_event))
