"""Which rules belong together: those that share conjunctions, whoever compiled them and under whatever numbers.

    predicate     hash of its attribute's name, flags, pattern and runs, strings by their bytes
    conjunction   sum of the hashes of its predicates, so that their order does not matter
    rule          the least hash of its conjunctions (min-hash): the more conjunctions two rules share, the likelier
                  it is the same; equal rules always have the same. Its bucket is 8 bits of that.

    0        1        2                        256      the line that shards cut
    ├────────┼────────┼──── …  ────────┼────────┤
     bucket 0, its rules spread by their sequence numbers

Equal content gives equal buckets in every process, so shards cut between buckets keep sharing rules together. A bucket
may hold more than a shard should, as when many rules have one conjunction; then it is cut too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eligo.compile.codes import STRING_CUT
from eligo.compile.compiled import F64, I64, Compiled, mixed
from eligo.compile.strings import StringArrays, hash_bytes
from eligo.jit import inline, kernel

BUCKETS = 256
_SHIFT = np.uint64(56)  # 64 bits less the 8 of a bucket
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)  # odd: a product with it, taken from the top, is spread over all numbers
_TOLERATED = 0.1  # of a shard: so much more or less for a cut between buckets
_NEVER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # of a rule without conjunctions


def rule_buckets(compiled: Compiled, attributes: Sequence[str], strings: StringArrays) -> I64:
    """The bucket of every rule."""
    raw = [name.encode() for name in attributes]
    names = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(name) for name in raw], dtype=np.int64)))
    attribute_hashes, string_hashes = slice_hashes(names, ends), slice_hashes(*strings)
    keys = np.stack((compiled.low_key, compiled.low_key2, compiled.high_key, compiled.high_key2), axis=1)
    least = least_hashes(
        attribute_hashes[compiled.attribute],
        compiled.flags,
        compiled.pattern,
        compiled.run_offsets,
        np.stack((compiled.low_kind, compiled.high_kind), axis=1),
        keys,
        string_hashes,
        compiled.conjunction_offsets,
        compiled.conjunction,
        compiled.part_offsets,
        compiled.part,
        compiled.tree_offsets,
        compiled.tree,
    )
    # The least of several hashes is small: most rules of many conjunctions would be in the first buckets.
    buckets: I64 = ((least * _SPREAD) >> _SHIFT).astype(np.int64)
    return buckets


def positions(buckets: I64, sequence: I64) -> F64:
    """Where rules lie on the line from 0 to BUCKETS."""
    within: F64 = ((sequence.astype(np.uint64) * _SPREAD) >> np.uint64(24)).astype(np.float64) / 2.0**40
    return buckets + within


def cut_evenly(counts: Sequence[int], parts: int) -> list[tuple[float, float]]:
    """Parts of the line with about as many rules each, of so many rules in each bucket; at most `parts`."""
    ends = np.cumsum(counts)
    share = float(ends[-1]) / parts
    borders = [0.0]
    for number in range(1, parts):
        wanted = share * number
        bucket = int(np.searchsorted(ends, wanted))
        left, right = wanted - float(ends[bucket] - counts[bucket]), float(ends[bucket]) - wanted
        if min(left, right) <= share * _TOLERATED:
            border = float(bucket if left < right else bucket + 1)
        else:
            border = bucket + left / counts[bucket]
        if borders[-1] < border < BUCKETS:
            borders.append(border)
    return list(pairwise([*borders, float(BUCKETS)]))


@kernel
def slice_hashes(data, offsets):
    """The hash of each slice of bytes."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(data, offsets[i], offsets[i + 1])
    return hashes


@kernel
def least_hashes(
    attribute,
    flags,
    pattern,
    run_offsets,
    kinds,
    keys,
    strings,
    offsets,
    items,
    part_offsets,
    part,
    tree_offsets,
    tree,
):
    """For every rule the least hash of its conjunctions."""
    predicates = np.empty(len(attribute), np.uint64)
    for p in range(len(attribute)):
        h = mixed(attribute[p], flags[p])
        if pattern[p] >= 0:
            h = mixed(h, strings[pattern[p]])
        for r in range(run_offsets[p], run_offsets[p + 1]):
            for side in range(2):
                kind, key = kinds[r, side], keys[r, 2 * side]
                h = mixed(h, kind)
                if kind == STRING_CUT:
                    h = mixed(h, strings[key >> 1] + np.uint64(key & 1))
                else:
                    h = mixed(mixed(h, key), keys[r, 2 * side + 1])
        predicates[p] = h
    # What tokens stand for: conjunctions and, behind them, parts, which name only parts of lower numbers.
    conjunctions, parts = len(offsets) - 1, len(part_offsets) - 1
    tokens = np.empty(conjunctions + parts, np.uint64)
    for c in range(conjunctions):
        total = np.uint64(offsets[c + 1] - offsets[c])
        for i in range(offsets[c], offsets[c + 1]):
            total += predicates[items[i]]
        tokens[c] = mixed(np.uint64(0), total)
    for p in range(parts):
        tokens[conjunctions + p] = least_of(tokens, part, part_offsets[p], part_offsets[p + 1])
    least = np.empty(len(tree_offsets) - 1, np.uint64)
    for n in range(len(least)):
        least[n] = least_of(tokens, tree, tree_offsets[n], tree_offsets[n + 1])
    return least


@inline
def least_of(hashes, tokens, first, stop):
    """The least hash of the tokens of a tree."""
    best = _NEVER
    for t in range(first, stop):
        if tokens[t] >= 0:
            best = min(best, hashes[tokens[t]])
    return best


def spread(buckets: I64) -> tuple[NDArray[np.int64], I64]:
    """The order of rules by bucket, each bucket's in the order they have, and where every bucket starts."""
    order = np.argsort(buckets, kind="stable")
    starts = np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
    return order, starts.astype(np.int64)
