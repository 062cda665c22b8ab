"""Making contracts: trees and their conjunctions, natural ones, failing ones, and those on publishers' paths.

    Contracts   trees.tokens[trees.offsets[r] … [r+1]]   rule r in prefix order, leaves by number
                leaves                                   conjunctions; the first `common` belong to the paths

All contracts of one maker have the same common leaves in front, so that joining two shares them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, kept_slices, permuted_slices
from eligo.errors import OptionError
from eligo_lab.workload import tree_kernels as kernels
from eligo_lab.workload.audience import F64, Statistics, added_up

_POOL = 2**16  # failing conjunctions to draw from, at most
_POOL_AT_LEAST = 100
_TRIES = 2**22  # conjunctions to draw in search of failing ones


@dataclass(frozen=True)
class Leaves:
    """Conjunctions as columns; operands are values numbered over all attributes (`Statistics`)."""

    attribute: I32
    excludes: NDArray[np.bool_]
    operand_offsets: I64
    operand: I64
    conjunction_offsets: I64

    def __len__(self) -> int:
        return len(self.conjunction_offsets) - 1

    def kept(self, keep: NDArray[np.bool_]) -> Leaves:
        """The conjunctions with keep[c]."""
        chosen = np.repeat(keep, np.diff(self.conjunction_offsets))
        operand, operand_offsets = kept_slices(self.operand, self.operand_offsets, chosen)
        attribute, offsets = kept_slices(self.attribute, self.conjunction_offsets, keep)
        return Leaves(attribute, self.excludes[chosen], operand_offsets, operand, offsets)


@dataclass(frozen=True)
class Trees:
    """Rules in prefix order."""

    offsets: I64
    tokens: I32

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Contracts:
    """Trees and the conjunctions that they name."""

    trees: Trees
    leaves: Leaves

    def taken(self, rules: I64) -> Contracts:
        """Some of the rules, in that order; the leaves stay, named or not."""
        tokens, offsets = permuted_slices(self.trees.tokens, self.trees.offsets, rules)
        return Contracts(Trees(offsets, tokens), self.leaves)

    def tidied(self) -> Contracts:
        """The same without the leaves that no tree names."""
        tokens = self.trees.tokens
        named = np.zeros(len(self.leaves), np.bool_)
        named[tokens[tokens >= 0]] = True
        number = np.cumsum(named, dtype=np.int32) - np.int32(1)
        moved = np.where(tokens >= 0, number[np.maximum(tokens, 0)], tokens)
        return Contracts(Trees(self.trees.offsets, moved), self.leaves.kept(named))


class Maker:
    """Draws contracts by one set of parameters, from one source of random numbers."""

    def __init__(
        self, rng: np.random.Generator, known: Statistics, min_depth: int, max_depth: int, children: F64, sizes: F64
    ) -> None:
        self.rng = rng
        self.known = known
        self.min_depth = min_depth
        self.max_depth = max_depth
        self.children = children
        self.sizes = sizes
        self.pave(0, 0, 0.0, 0.0)

    def pave(self, paths: int, hops: int, shared: float, zipf: float) -> None:
        """Draw the expressions of paths (§1.1), ORs of conjunctions as a publisher sells: before any contract."""
        self.hops, self.shared = hops, shared
        self.popularity = added_up(np.arange(1.0, paths + 1) ** -zipf) if paths else np.zeros(0)
        tokens, offsets = kernels.grow_trees(self.rng, paths, 1, 2, 2, self.children)
        self.paths = Trees(offsets, tokens)
        self.common = self.leaves(int(np.count_nonzero(tokens >= 0)))

    def contracts(self, rules: int) -> Contracts:
        """Natural contracts."""
        trees = self._shapes(rules)
        return self._on_paths(trees, self.leaves(_leaf_count(trees)))

    def failing(self, rules: int, visits: I64) -> Contracts:
        """Contracts that match none of the visits: some of their leaves are drawn until they fail."""
        trees = self._shapes(rules)
        natural = self.leaves(_leaf_count(trees))
        if rules == 0:
            return self._on_paths(trees, natural)
        must = kernels.leaves_that_must_fail(self.rng, trees.tokens, trees.offsets)
        pool = self._failing_leaves(int(np.count_nonzero(must)), visits)
        number = np.arange(len(must), dtype=np.int32)
        number[must] = len(natural) + self.rng.integers(0, len(pool), int(np.count_nonzero(must)))
        tokens = trees.tokens.copy()
        tokens[tokens >= 0] = number
        return self._on_paths(Trees(trees.offsets, tokens), _concatenated(natural, pool))

    def joined(self, first: Contracts, second: Contracts) -> Contracts:
        """Both, with the common leaves once."""
        common = len(self.common)
        own = second.leaves.kept(np.arange(len(second.leaves)) >= common)
        tokens = second.trees.tokens
        shift = np.where(tokens >= common, len(first.leaves) - common, 0).astype(np.int32)
        return Contracts(
            Trees(
                np.concatenate((first.trees.offsets, first.trees.offsets[-1] + second.trees.offsets[1:])),
                np.concatenate((first.trees.tokens, tokens + shift)),
            ),
            _concatenated(first.leaves, own),
        )

    def matches(self, contracts: Contracts, visits: I64) -> I64:
        """For every rule, how many of the visits make it true."""
        words = -(-visits.shape[1] // (64 * kernels.BLOCK)) * kernels.BLOCK
        truth, known = kernels.truth_of_events(visits, self.known.value_offsets, words)
        leaves = contracts.leaves
        # Bits past the last visit are clear in every row, and nothing here complements a row but within `known`.
        counts: I64 = kernels.count_matches(
            leaves.attribute,
            leaves.excludes,
            leaves.operand_offsets,
            leaves.operand,
            leaves.conjunction_offsets,
            contracts.trees.offsets,
            contracts.trees.tokens,
            truth,
            known,
        )
        return counts

    def leaves(self, conjunctions: int) -> Leaves:
        """Conjunctions as §5.1 draws them: size, then attributes, then targets."""
        rng, known = self.rng, self.known
        sizes = np.searchsorted(self.sizes, rng.random(conjunctions), side="right")
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        attribute, count, excludes = kernels.draw_attributes(rng, offsets, known.targeted, known.lengths, known.shunned)
        operand_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(count, dtype=np.int64)))
        operand = kernels.draw_targets(rng, attribute, operand_offsets, known.value_offsets, known.value_cumulative)
        return Leaves(attribute, excludes, operand_offsets, operand, offsets)

    def _shapes(self, rules: int) -> Trees:
        tokens, offsets = kernels.grow_trees(self.rng, rules, 0, self.min_depth, self.max_depth, self.children)
        return Trees(offsets, tokens)

    def _failing_leaves(self, wanted: int, visits: I64) -> Leaves:
        wanted = min(wanted, _POOL)
        found, tried = self.leaves(0), 0
        batch = 4 * max(wanted, 1_000)
        alone = Trees(np.arange(batch + 1), np.arange(batch, dtype=np.int32))
        while len(found) < wanted and tried < _TRIES:
            drawn = self.leaves(batch)
            failing = self.matches(Contracts(alone, drawn), visits) == 0
            found = _concatenated(found, drawn.kept(failing))
            tried += batch
        if len(found) < min(wanted, _POOL_AT_LEAST):
            raise OptionError(
                f"trees: of {tried:,} conjunctions {len(found):,} match none of the {visits.shape[1]:,} events, too "
                "few to lower the selectivity with; ask for fewer events"
            )
        return found

    def _on_paths(self, trees: Trees, own: Leaves) -> Contracts:
        """Common leaves in front, and the trees ANDed with the paths that they use."""
        tokens = np.where(trees.tokens >= 0, trees.tokens + len(self.common), trees.tokens).astype(np.int32)
        leaves = _concatenated(self.common, own)
        if not len(self.paths):
            return Contracts(Trees(trees.offsets, tokens), leaves)
        chosen = kernels.draw_paths(self.rng, len(trees), self.hops, self.shared, self.popularity)
        tokens, offsets = kernels.with_paths(tokens, trees.offsets, chosen, self.paths.tokens, self.paths.offsets)
        return Contracts(Trees(offsets, tokens), leaves)


def _leaf_count(trees: Trees) -> int:
    return int(np.count_nonzero(trees.tokens >= 0))


def _concatenated(first: Leaves, second: Leaves) -> Leaves:
    return Leaves(
        np.concatenate((first.attribute, second.attribute)),
        np.concatenate((first.excludes, second.excludes)),
        np.concatenate((first.operand_offsets, first.operand_offsets[-1] + second.operand_offsets[1:])),
        np.concatenate((first.operand, second.operand)),
        np.concatenate((first.conjunction_offsets, first.conjunction_offsets[-1] + second.conjunction_offsets[1:])),
    )
