"""`pst-hash`: rules in a hash table of spaces of several attributes at once (the PS-Tree paper §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from eligo.compile.compiled import I64
from eligo.index.dynamic.pooled_index import PooledScratch
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.hash_search import make_work, search_many
from eligo.index.ps_tree.pools import ACCESSES, ATTRIBUTES, BY_DEPTH, COPIES, HIGHEST, KEYS, SPACES, Pools
from eligo.options import Option

_MOST_PAIRS = 1 << 20  # keys of two spaces that are looked for; beyond, all rows are verified


class HashScratch(PooledScratch):
    """An event in coordinates, the spaces that it lies in, keys, and stretches of rows."""

    here = np.zeros(0, np.uint64)
    copies = -1

    def fit(self, state: I64, entries: int) -> None:
        fresh = self.fit_event(int(state[ATTRIBUTES]), entries, int(state[HIGHEST]))
        if fresh or state[SPACES] > 64 * len(self.here) or state[COPIES] > self.copies:
            self.copies = 5 * int(state[COPIES]) // 4 + 16
            room = 16 * self.entries + 16
            pairs = min(room * room, _MOST_PAIRS, 16 * self.copies)  # to look for more takes longer than to verify all
            self.here = np.zeros((5 * int(state[SPACES]) // 4 + 127) // 64, np.uint64)
            self.work = make_work(
                np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint64),
                np.empty(pairs, np.int64), np.empty(pairs + room, np.int64), self.here,
                np.empty(self.copies + 1, np.int64), np.empty(self.copies + 1, np.int64),
            )  # fmt: skip


class PstHash(PsIndex):
    """Keys of several spaces, and the rules there; keys.py and postings.py draw them."""

    name = "pst-hash"
    summary = "a hash table of predicate spaces, several attributes at once (PSTHash)"
    options: ClassVar[Mapping[str, Option]] = {
        "accesses": Option(2, "access predicates of a rule", least=1, most=6),
        "crowd": Option(2048, "rules found by one value or range before others there go by a further one", least=1),
        "max_keys": Option(64, "most keys of a rule when it is inserted", least=1, most=1024),
    }

    search_many = staticmethod(search_many)
    scratch_type = HashScratch

    @classmethod
    def no_pools(cls, *, accesses: int = 2, crowd: int = 2048, max_keys: int = 64) -> Pools:
        return Pools(accesses, max_keys, crowd=crowd)

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        depths = range(int(state[ACCESSES]) + 1)
        return {
            **self.common_notes(),
            "keys": int(state[KEYS]),
            "copies of rows": int(state[COPIES]),
            "rules by access predicates": ", ".join(f"{n}: {int(state[BY_DEPTH + n]):,}" for n in depths),
            "always verified": int(state[BY_DEPTH]),
        }
