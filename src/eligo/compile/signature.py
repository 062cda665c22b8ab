"""Which rules belong together: those that share conjunctions, whoever compiled them and under whatever numbers.

    predicate     hash of its attribute's name, flags, pattern and runs, strings by their bytes
    conjunction   sum of the hashes of its predicates, so that their order does not matter
    rule          the least hash of its conjunctions (min-hash): the more conjunctions two rules share, the likelier
                  it is the same; equal rules always have the same. Its bucket is the top bits of that.

Equal content gives equal buckets in every process, so shards cut along buckets keep sharing rules together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.compile.codes import STRING_CUT
from eligo.compile.compiled import I64, Compiled, mixed
from eligo.compile.dictionary import StringArrays
from eligo.compile.strings import hash_bytes
from eligo.jit import inline, kernel

BUCKETS = 256
_SHIFT = np.uint64(56)  # 64 bits less the 8 of a bucket
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
    buckets: I64 = (least >> _SHIFT).astype(np.int64)
    return buckets


@kernel
def slice_hashes(data, offsets):  # type: ignore[no-untyped-def]
    """The hash of each slice of bytes."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(hashes)):
        hashes[i] = hash_bytes(data, offsets[i], offsets[i + 1])
    return hashes


@kernel
def least_hashes(  # type: ignore[no-untyped-def]
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
def least_of(hashes, tokens, first, stop):  # type: ignore[no-untyped-def]
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
