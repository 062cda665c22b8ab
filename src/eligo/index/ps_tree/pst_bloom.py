"""`pst-bloom`: rules in lists by one predicate each, pruned by signatures of others (the PS-Tree paper §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from eligo.compile.compiled import I64
from eligo.index.dynamic.pooled_index import PooledScratch
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.bloom_search import make_work, search_many
from eligo.index.ps_tree.pools import ATTRIBUTES, BY_DEPTH, COPIES, FORMS, HIGHEST, Pools
from eligo.options import Option

_MOST_KEYS = 64  # spaces of an access predicate when it is inserted


class BloomScratch(PooledScratch):
    """An event in coordinates, the spaces that it lies in, the signatures to ask."""

    copies = -1

    def fit(self, state: I64, entries: int) -> None:
        fresh = self.fit_event(int(state[ATTRIBUTES]), entries, int(state[HIGHEST]))
        if fresh or state[COPIES] > self.copies:
            self.copies = 5 * int(state[COPIES]) // 4 + 64
            room = 16 * self.entries + 64
            self.work = make_work(
                np.empty(room, np.int64), np.empty(room, np.int64),
                np.zeros(FORMS * max(self.attributes, 1), np.int32), np.empty(room + 2, np.int64),
                np.empty(room + 2, np.int64), np.empty(self.copies + 1, np.int64),
            )  # fmt: skip


class PstBloom(PsIndex):
    """Lists and signatures of spaces; bloom_insert.py and signatures.py draw them."""

    name = "pst-bloom"
    summary = "lists of predicate spaces, pruned by Bloom signatures of other attributes' spaces (PSTBloom)"
    options: ClassVar[Mapping[str, Option]] = {
        "signatures": Option(
            1, "predicates of a rule, beside its access predicate, that are in signatures", least=1, most=6
        ),
    }
    search_many = staticmethod(search_many)
    scratch_type = BloomScratch

    @classmethod
    def no_pools(cls, *, signatures: int = 1) -> Pools:
        return Pools(signatures, _MOST_KEYS, signatures)

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        return {
            **self.common_notes(),
            "entries of lists": int(state[COPIES]),
            "always verified": int(state[BY_DEPTH]),
        }
