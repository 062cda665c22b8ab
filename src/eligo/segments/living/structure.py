"""The structure that readers search while writers change it: gate, index, pools, and how to encode events for them.

    index          rows of conjunctions (index/native.py)      which does an event satisfy?
    pools.py       rules, and the conjunctions that they share  which rules do these complete?
    counts.py      what checks ask of events                    how is an event encoded?

Conjunctions are inserted before the rules that need them, and deleted after them. Equal ones are stored once: they are
found by their hash, and confirmed by comparing their rows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, U8, Arrays, kept_slices
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.native import NativeIndex
from eligo.index.rows.allocator import USED
from eligo.index.rows.content import same_row
from eligo.interrupts import checkpoint
from eligo.options import own
from eligo.segments.base import NO_ROWS, IndexedSegment, Joined, encoder_for, ends_of
from eligo.segments.living.arrivals import Arrivals
from eligo.segments.living.complete import PooledCompletion
from eligo.segments.living.counts import CheckCounts
from eligo.segments.living.gate import Gate
from eligo.segments.living.pools import CONJUNCTIONS, INTEGERS, ROWS, USED_ROWS, Pools
from eligo.segments.living.records import slide, slide_all, tag_of
from eligo.segments.living.table import PooledTable, Tags
from eligo.segments.living.write_rules import candidates, drop_numbers, forget_rules, new_numbers, take_rules, unused
from eligo.segments.segment import Recipe

SOME = 200  # conjunctions, or rules, that are inserted or deleted while the gate is closed once
_EFFORT = 4  # rows that the index may move to adjust itself, for each inserted or deleted
_SLIDE = 4096  # words of records that may move at an update, beside 256 for each rule of it
_STAY = 0.004  # seconds that a batch stays inside


class Structure(IndexedSegment):
    """The segment that readers search inside the gate. Only one thread at a time may call methods that change it."""

    index: NativeIndex
    table: PooledTable

    def __init__(self, recipe: Recipe, multi: frozenset[str], arrays: Arrays | None = None) -> None:
        """Creates an empty structure, or the one whose `arrays` are given."""
        kind = cast(type[NativeIndex], recipe.index)
        self.gate = Gate()
        self._scratches: deque[tuple[Any, Any]] = deque()
        self.searched = 0  # events since the index was last asked to adjust itself
        self.attributes, self.strings = recipe.attributes, recipe.strings
        if arrays is None:
            self.pools, self.counts, self.tags = Pools(), CheckCounts(), Tags()
            self.index = kind.empty(recipe.strings, **own(kind, recipe.options))
        else:
            self.pools = Pools.restored(_part(arrays, "rules/"))
            self.counts = CheckCounts(_part(arrays, "checks/"))
            self.tags = Tags.restored(_part(arrays, "tags/"))
            self.index = kind.revived(recipe.strings, _part(arrays, "index/"))
        self.table = PooledTable(self.pools, self.tags)
        self.evaluator = PooledCompletion(self.pools)
        self.follow(multi)

    def arrays(self) -> Arrays:
        """Returns the arrays that a snapshot keeps and `stats` counts, not copied: later changes show in them."""
        parts = (
            ("rules/", self.pools.arrays()),
            ("index/", self.index.arrays()),
            ("checks/", self.counts.arrays()),
            ("tags/", self.tags.arrays()),
        )
        return {prefix + name: array for prefix, part in parts for name, array in part.items()}

    def copied(self) -> Callable[[], Arrays]:
        """Copies the arrays. Returns a function that returns the copies, with the records of removed rules left out."""
        self.tags.forget_unused(self.pools.tag_uses)
        copied = {name: array.copy() for name, array in self.arrays().items()}

        def cleaned() -> Arrays:
            pools = Pools.restored(_part(copied, "rules/"))
            slide_all(pools.handle)
            return copied | {"rules/" + name: array for name, array in pools.arrays().items()}

        return cleaned

    def follow(self, multi: frozenset[str]) -> None:
        """Makes a new encoder for the checks that there are now, and for several values of the attributes `multi`."""
        self.multi = multi
        asked = partial(self.counts.asked, self.attributes)
        self.encoder = encoder_for([self], self.attributes, self.strings, multi, asked)

    def use_tables(self, attributes: Attributes, strings: Strings) -> None:
        """Replaces the tables. All attributes and strings that rows name must have kept their numbers."""
        with self.gate:
            self.attributes, self.strings = attributes, strings
            self.index.use_strings(strings)
            self.follow(self.multi)

    def moment(self) -> tuple[Encoder, int, int]:
        """Returns a token of the encoding. Events that were encoded earlier are valid as long as it stays equal."""
        return self.encoder, self.strings.taken, self.attributes.taken

    # -- reading, inside the gate

    def __len__(self) -> int:
        return int(self.pools.state[USED_ROWS])

    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        self.index.mark(attributes, strings)

    def present(self, alive: U8) -> I32:
        seen: I32 = np.flatnonzero(self.pools.status[: self.pools.state[ROWS]] & 1).astype(np.int32)
        return seen

    def allowed(self, tags: frozenset[str], alive: U8) -> U8:
        return self.tags.wanted(tags)

    def joined(self, rows: I32) -> Joined | None:
        return tag_of(self.pools.handle, rows, self.tags.joined), self.tags.unmarked

    @property
    def text_attributes(self) -> list[int]:
        return np.flatnonzero(self.counts.text).tolist()

    @property
    def pattern_attributes(self) -> list[int]:
        return np.flatnonzero(self.counts.pattern).tolist()

    def asked(self, names: Sequence[str], alive: U8) -> tuple[list[str], list[str]]:
        return self.counts.asked(self.attributes)

    def satisfied(self) -> int:
        """Returns how many conjunctions all searches so far found satisfied, without those under way."""
        return sum(int(completion.satisfied[0]) for _, completion in list(self._scratches))

    def match(self, events: EventBuffer, event: int, allowed: U8) -> I32:
        self.searched += 1
        return super().match(events, event, allowed)

    def match_batch(self, events: EventBuffer, allowed: U8, first: int = 0) -> tuple[I64, I32]:
        """Matches events from `first` on until a few milliseconds have passed, at least some of them. Returns ends and
        rows, with one end more than events done.
        """
        deadline = time.perf_counter() + _STAY
        counts, rows = [np.zeros(0, np.int64)], [NO_ROWS]
        at, size = first, 8
        while at < events.events and (at == first or time.perf_counter() < deadline):
            stop = min(at + size, events.events)
            some, pieces = self.match_between(events, at, stop, allowed)
            counts.append(some)
            rows += pieces
            at, size = stop, min(2 * size, 512)
        self.searched += at - first
        return ends_of(np.concatenate(counts)), np.concatenate(rows)

    # -- changing

    def prepare(self, comes: Arrivals | None) -> None:
        """Makes room for a small insertion, or with None for a deletion, before the gate is closed. Pools that grow are
        copied, and readers use the old ones meanwhile.
        """
        if comes is None:
            self.index.prepare(0, 0, 0, 0)
            return
        self._make_room_for_rows(len(comes.words), comes.conjunctions)
        self._make_room(comes, 0, len(comes))

    def insert(self, comes: Arrivals, status: int, prepared: bool = False) -> I32:
        """Inserts rules and returns their rows. If it fails nothing is left of them. A caller that must show them
        together with another change closes the gate around both, and calls `prepare` before that.
        """
        number = self._known(comes)
        rows: list[I32] = []
        fresh = np.nonzero(number < 0)[0]
        try:
            self._insert_conjunctions(comes, fresh, number, prepared)
            self._insert_rules(comes, number, status, rows, prepared)
        except BaseException:
            # First the conjunctions that no rule uses yet. The others are deleted with their rules.
            given = number[fresh]
            self._delete(unused(self.pools.handle, given[given >= 0]))
            self.forget(np.concatenate((NO_ROWS, *rows)))
            raise
        return rows[0] if len(rows) == 1 else np.concatenate((NO_ROWS, *rows))

    def _insert_conjunctions(self, comes: Arrivals, fresh: I64, number: I64, prepared: bool) -> None:
        """Inserts the conjunctions `fresh` into the index, and writes their new numbers into `number`."""
        words, offsets, hashes = comes.words, comes.offsets, comes.hashes
        if len(fresh) < len(number):
            words, offsets = kept_slices(words, offsets, number < 0)
            hashes = hashes[fresh]
        attributes = max(1, len(self.attributes))
        for first in range(0, len(fresh), SOME):
            checkpoint()
            stop = min(first + SOME, len(fresh))
            if not prepared:
                self._make_room_for_rows(int(offsets[stop] - offsets[first]), stop - first)
            with self.gate:
                number[fresh[first:stop]] = new_numbers(self.pools.handle, hashes[first:stop], words, offsets[first:])
                self.index.insert(words, offsets, first, stop, attributes)
                if self.counts.add(words, offsets, first, stop, 1, attributes):
                    self.follow(self.multi)
                self.index.adjust(_EFFORT * (stop - first))

    def _insert_rules(self, comes: Arrivals, number: I64, status: int, rows: list[I32], prepared: bool) -> None:
        """Inserts the rules into the pools, and appends their rows to `rows`."""
        table = comes.table
        tag = table.tag
        if len(tag):
            with self.gate:  # a number may get another name, and readers must not see that halfway
                tag = self.tags.numbers(table.tag_names(), self.pools.tag_uses)[tag]
        for first in range(0, len(comes), SOME):
            checkpoint()
            stop = min(first + SOME, len(comes))
            if not prepared or len(tag):  # new tags may have numbers that there is no room for
                self._make_room(comes, first, stop)
            with self.gate:
                self.pools.state[INTEGERS] = len(table.ids) > 0
                rows.append(
                    take_rules(
                        self.pools.handle, first, stop, status, table.sequence, table.ids, table.id_offsets,
                        table.id_data, table.text_offsets, table.text_data, table.weight, table.tag_offsets, tag,
                        comes.leaf_start, comes.leaf, comes.begin, comes.end, number,
                    )
                )  # fmt: skip
                slide(self.pools.handle, _SLIDE + 256 * (stop - first))

    def forget(self, rows: I32) -> None:
        """Removes the rules of some rows, and the conjunctions that no other rule uses."""
        for first in range(0, len(rows), SOME):
            some = rows[first : first + SOME]
            self.index.prepare(0, 0, 0, 0)
            with self.gate:
                self._delete(forget_rules(self.pools.handle, some))
                slide(self.pools.handle, _SLIDE + 256 * len(some))

    def _delete(self, numbers: I64) -> None:
        """Deletes conjunctions that no rule uses from the index, and frees their numbers."""
        if not len(numbers):
            return
        with self.gate:
            # A conjunction whose insertion failed has a number and no row.
            words = [row for number in numbers.tolist() if len(row := self.index.row(number))]
            self.index.delete(numbers)
            drop_numbers(self.pools.handle, numbers)
            if not words:
                return
            offsets = np.array([0, *accumulate(map(len, words))], np.int64)
            content = words[0] if len(words) == 1 else np.concatenate(words)
            if self.counts.add(content, offsets, 0, len(words), -1, 0):
                self.follow(self.multi)
            self.index.adjust(_EFFORT * len(words))

    def _known(self, comes: Arrivals) -> I64:
        """Returns the numbers of the conjunctions that are here already, and -1 for the others."""
        found: I64
        found, count = candidates(self.pools.handle, comes.hashes, -1)
        for i in np.nonzero(found >= 0)[0].tolist() if count else ():
            c = int(found[i])
            while c >= 0 and not same_row(self.index.row(c), 0, comes.words, comes.offsets[i]):
                c = int(candidates(self.pools.handle, comes.hashes[i : i + 1], c)[0][0])
            found[i] = c
        return found

    def _make_room_for_rows(self, words: int, rows: int) -> None:
        """Makes room for conjunctions. Pools that grow are copied, and readers use the old ones meanwhile."""
        self.pools.make_room(0, rows, 0, 0, 0)
        self.index.prepare(words, rows, int(self.pools.state[CONJUNCTIONS]) + rows, max(1, len(self.attributes)))

    def _make_room(self, comes: Arrivals, first: int, stop: int) -> None:
        """Makes room in the pools for rules first … stop-1."""
        table, count = comes.table, stop - first
        if len(comes) == count:
            leaves, given = len(comes.leaf), len(table.text_data) + len(table.id_data) + len(table.tag)
        else:
            leaves = int(comes.leaf_start[stop] - comes.leaf_start[first])
            given = int(table.text_offsets[stop] - table.text_offsets[first])
            given += int(table.tag_offsets[stop] - table.tag_offsets[first])
            given += 0 if len(table.ids) else int(table.id_offsets[stop] - table.id_offsets[first])
        # A tag takes a word. Lists of entries may double, and free blocks may not have the sizes that are needed.
        blocks = 6 * (int(self.pools.heads[USED]) + 8 * leaves + 8 * count)
        self.pools.make_room(count, 0, blocks, given + 8 * count, len(self.tags))


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
