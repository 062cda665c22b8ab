"""The top of a tree as text, so that a person sees how the space was cut; and its measures, for `stats`.

    all rules                            3 here     10,000 in all
    ├─ a17, a number                     0           1,034           a p-node with its top bucket
    │  ├─ 0 ≤ a17 < 8                   14             520           a bucket; here: what lies in neither half
    │  │  ├─ a4, a number               11             506           a p-node in that bucket's p-directory
    │  │  └─ … 3 more                                   92
    │  └─ a17 = 11                      20              20
    └─ … 388 more                                    7,000

A bucket that has no rows of its own and no p-directory only leads to others, and these stand in its place. Reads pools
and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf, isnan

import numpy as np

from eligo.compile.compiled import I64
from eligo.compile.strings import Strings
from eligo.index.be_tree.nodes import ATOMIC, CHILDREN, CLUSTERS, DEAD, DIRECTORY, LEAF, PREFIX, SHAPE, TOP, UP, Pools
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.line import ANY, BOOLEAN, NUMBER, STRING, TIME
from eligo.jit import kernel

_BOOLEANS = ("false", "true", "an object")
_KINDS = {NUMBER: "a number", BOOLEAN: "a Boolean", TIME: "a time", STRING: "a string", ANY: "there"}
_LISTED = 4  # strings of a bucket that are named
_BAR = 40  # characters of the longest bar
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Part:
    """A node of the drawing: rows in its own l-node, rows in all, and the parts that are shown."""

    title: str
    here: int
    below: int
    parts: list[Part] = field(default_factory=list)
    more: int = 0  # parts that are not shown,
    more_below: int = 0  # and rows in them


@dataclass(frozen=True)
class Measures:
    """How large a tree is. `depth`: most c-nodes on a way down, the root among them; `cuts`: most p-nodes on one."""

    c_nodes: int
    p_nodes: int
    depth: int
    cuts: int
    sizes: I64  # rows of the l-nodes that have some, ascending

    def leaf_sizes(self) -> str:
        """`2,310 with 1 to 160 rows, 12 in the middle`."""
        if not len(self.sizes):
            return "none with rows"
        least, middle, most = self.sizes[[0, len(self.sizes) // 2, -1]].tolist()
        return f"{len(self.sizes):,} with {least:,} to {most:,} rows, {middle:,} in the middle"


def measure(pools: Pools) -> Measures:
    """Count the nodes, by a pass over all of them."""
    rows, _, depth, cuts, p_nodes = survey(pools.cluster, pools.partition, pools.state[CLUSTERS])
    return Measures(int((rows >= 0).sum()), int(p_nodes), int(depth.max()), int(cuts), np.sort(rows[rows > 0]))


@kernel
def survey(cluster, partition, clusters):
    """Of each c-node rows of its l-node (-1: it is free), rows in all, c-nodes on the way to it; then the most p-nodes
    on a way, and all p-nodes.
    """
    rows, below = np.full(clusters, -1, np.int64), np.zeros(clusters, np.int64)
    depth, cuts = np.zeros(clusters, np.int32), np.zeros(clusters, np.int32)
    way = np.empty(clusters, np.int64)
    p_nodes, deepest = 0, 1
    depth[0] = 1
    for c in range(clusters):
        if cluster[8 * c + SHAPE] & 0x7F == DEAD:
            continue
        rows[c] = upper(cluster[8 * c + LEAF])
        n, d = 0, np.int64(c)
        while depth[d] == 0:
            way[n] = d
            n += 1
            d = upper(cluster[8 * d + UP])
        while n > 0:
            n -= 1
            d = way[n]
            up, p = upper(cluster[8 * d + UP]), lower(cluster[8 * d + UP])
            is_top = partition[4 * p + TOP] == d
            p_nodes += is_top
            depth[d], cuts[d] = depth[up] + 1, cuts[up] + is_top
            deepest = max(deepest, depth[d])
    first = np.zeros(deepest + 2, np.int64)  # c-nodes in the order of their depth
    for d in depth:
        first[d + 1] += 1
    first = np.cumsum(first)
    for c in range(clusters):
        way[first[depth[c]]] = c
        first[depth[c]] += 1
    for i in range(clusters - 1, -1, -1):
        c = way[i]
        if rows[c] >= 0:
            below[c] += rows[c]
            if c:
                below[upper(cluster[8 * c + UP])] += below[c]
    return rows, below, depth, cuts.max(), p_nodes


def top(pools: Pools, strings: Strings, names: Sequence[str], depth: int, width: int) -> Part:
    """The first levels of the tree, with the parts of each that have the most rows."""
    rows, below, _, _, _ = survey(pools.cluster, pools.partition, pools.state[CLUSTERS])
    return _Walk(pools, strings, names, rows, below, width).cluster("all conjunctions", 0, -1, depth)


def drawn(pools: Pools, strings: Strings, names: Sequence[str], depth: int = 3, width: int = 8) -> list[str]:
    """The top of the tree as lines of text: measures, the drawing, and how large l-nodes are."""
    measures = measure(pools)
    lines = [
        f"c-nodes  {measures.c_nodes:,}",
        f"p-nodes  {measures.p_nodes:,}",
        f"l-nodes  {measures.leaf_sizes()}",
        f"depth    {measures.depth:,} c-nodes, cut by up to {measures.cuts:,} attribute{'s' * (measures.cuts != 1)}",
        "",
    ]
    shown = [("", "here", "in all"), *_rows(top(pools, strings, names, depth, width))]
    wide = max(len(title) for title, _, _ in shown)
    for title, here, under in shown:
        lines.append(f"{title:<{wide}}  {here:>9}  {under:>11}".rstrip())
    return [*lines, "", *_histogram(measures.sizes)]


def _rows(part: Part, before: str = "", after: str = "") -> Iterator[tuple[str, str, str]]:
    """A line for each part: its title, rows here, rows in all. `before` stands before its title, `after` before what
    lies below it.
    """
    yield f"{before}{part.title}", f"{part.here:,}", f"{part.below:,}"
    for number, one in enumerate(part.parts, 1):
        last = number == len(part.parts) and not part.more
        yield from _rows(one, f"{after}{'└─ ' if last else '├─ '}", f"{after}{'   ' if last else '│  '}")
    if part.more:
        yield f"{after}└─ … {part.more:,} more", "", f"{part.more_below:,}"


def _histogram(sizes: I64) -> Iterator[str]:
    """How many l-nodes have 1, 2–3, 4–7, … rows."""
    if not len(sizes):
        return
    counts = np.bincount(np.log2(sizes).astype(np.int64))
    yield "rows of an l-node"
    for power, count in enumerate(counts.tolist()):
        low, high = 1 << power, (2 << power) - 1
        span = f"{low:,}" if low == high else f"{low:,} – {high:,}"
        yield f"{span:>17}  {count:>9,}  {'█' * -(-_BAR * count // int(counts.max()))}".rstrip()


class _Walk:
    """The tree from its root, as far as it is drawn."""

    def __init__(self, pools: Pools, strings: Strings, names: Sequence[str], rows: I64, below: I64, width: int) -> None:
        self._p, self._strings, self._names = pools, strings, names
        self._rows, self._below, self._width = rows, below, width

    def cluster(self, title: str, c: int, key: int, depth: int) -> Part:
        """A c-node with what lies below it: the buckets within it, then its p-nodes."""
        part = Part(title, int(self._rows[c]), int(self._below[c]))
        buckets, tops = self._buckets(c), self._directory(c)
        found = sorted([*buckets, *(top for _, top in tops)], key=lambda one: -self._below[one])
        kept = set(found[: self._width]) if depth > 0 else set()
        part.more = len(found) - len(kept)
        part.more_below = sum(int(self._below[one]) for one in found if one not in kept)
        part.parts = [self.cluster(self._range(one, key), one, key, depth - 1) for one in buckets if one in kept]
        chosen = sorted((one for one in tops if one[1] in kept), key=lambda one: -self._below[one[1]])
        part.parts += [self.cluster(self._attribute(its), one, its, depth - 1) for its, one in chosen]
        return part

    def _buckets(self, c: int) -> list[int]:
        """The buckets in a bucket, in the order of values; one that only leads to others is replaced by them."""
        found: list[int] = []
        waiting = [child for child in reversed(_pair(self._word(c, CHILDREN))) if child >= 0]
        while waiting:
            one = waiting.pop()
            if self._rows[one] or self._word(one, DIRECTORY):
                found.append(one)
            else:
                waiting += [child for child in reversed(_pair(self._word(one, CHILDREN))) if child >= 0]
        return found

    def _directory(self, c: int) -> list[tuple[int, int]]:
        """The p-nodes of a c-node: key and top bucket."""
        first, count = _pair(self._word(c, DIRECTORY))
        return [_pair(int(word)) for word in self._p.words[first : first + count]]

    def _word(self, c: int, field: int) -> int:
        return int(self._p.cluster[8 * c + field])

    def _attribute(self, key: int) -> str:
        number, kind = key >> 3, key & 7
        name = self._names[number] if number < len(self._names) else f"attribute {number}"
        return f"{name}, {_KINDS[kind]}" if kind != ANY else f"{name} is there"

    def _range(self, c: int, key: int) -> str:
        """The values that a bucket stands for."""
        name, kind = self._names[key >> 3] if key >> 3 < len(self._names) else f"attribute {key >> 3}", key & 7
        prefix, bits = self._word(c, PREFIX) & (2**64 - 1), min(self._word(c, SHAPE) & 0x7F, ATOMIC)
        low = (prefix >> (64 - bits) << (64 - bits)) - 2**63 if bits else -(2**63)
        return values_of(name, kind, low, low + (1 << (64 - bits)) - 1, self._strings)


def values_of(name: str, kind: int, low: int, high: int, strings: Strings) -> str:
    """What an attribute is whose coordinate lies from low to high, both included, in the words of a rule."""
    if kind == STRING:
        first, last = max(low, 0), min(high, len(strings) - 1)
        some = [f"'{strings.text(number)}'" for number in range(first, min(last, first + _LISTED - 1) + 1)]
        if len(some) == 1 and first == last:
            return f"{name} = {some[0]}"
        rest = f", … {last - first + 1 - len(some):,} more" if last - first + 1 > len(some) else ""
        return f"{name} in ({', '.join(some)}{rest})"
    if kind == BOOLEAN:
        return f"{name} is {' or '.join(_BOOLEANS[max(low, 0) : high + 1])}"
    if kind == NUMBER:
        least, above = _number(low), _number(high + 1)
        if low == high or f"{least:.6g}" == f"{above:.6g}":
            return f"{name} = {least:.6g}"
        return _between(name, "" if least == -inf else f"{least:.6g}", "" if above == inf else f"{above:.6g}")
    if low == high:
        return f"{name} = {_time(low)}"
    return _between(name, _time(low), _time(high + 1))


def _between(name: str, low: str, high: str) -> str:
    if low and high:
        return f"{low} ≤ {name} < {high}"
    return f"{name} ≥ {low}" if low else f"{name} < {high}" if high else f"{name} is anything"


def _number(coordinate: int) -> float:
    """The float of which this is the ordered bits; beyond the infinities, these."""
    if not -(2**63) <= coordinate < 2**63:
        return inf
    bits = coordinate if coordinate >= 0 else coordinate ^ 0x7FFFFFFFFFFFFFFF
    value = float(np.array([bits], np.int64).view(np.float64)[0])
    if isnan(value):
        return inf if coordinate > 0 else -inf
    return value + 0.0  # no negative zero


def _time(microseconds: int) -> str:
    """A time as a rule has it; "" beyond the years that there are."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(" ").removesuffix("+00:00")
    except OverflowError:
        return ""


def _pair(word: int) -> tuple[int, int]:
    low = word & 0xFFFF_FFFF
    return word >> 32, low - (1 << 32) if low >> 31 else low
