"""The rules that change: sealed segments, a small live one beside them, and the merges that keep them few.

    segments   [ 1,000,000 rules ][ 4,096 ][ 300 ][ 64 ]      never changed; removed rules are masked out (`alive`)
    live       [ 17 ]                                         appended to, and searched by looking at all of it

A full live segment is sealed: compiled and indexed. When four segments are of about one size they are merged into one:
small ones at once, large ones by a thread beside, which takes the lock only to put its result in place. Merging works
on arrays alone; no rule is parsed again.

One lock serves all writers. Readers take `view`, which never waits while there is nothing new to compile.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I64, U8, Compiled
from eligo.compile.naming import rules_naming
from eligo.compile.strings import Strings
from eligo.index.auto import Auto
from eligo.interrupts import uninterrupted
from eligo.language.tree import Node
from eligo.rule import RuleId
from eligo.segments.base import MaskedSegment, encoder_for
from eligo.segments.live import LivePart, LiveSegment, LiveTable
from eligo.segments.planning import described
from eligo.segments.row_builder import RowBuilder
from eligo.segments.rule_table import MENTION, RuleTable
from eligo.segments.rules import Figures, Place, Rules
from eligo.segments.sample import Sample
from eligo.segments.segment import Segment, merge_segments, with_tables
from eligo.segments.view import ALL, View, asked_attributes

log = logging.getLogger("eligo")

SEALED = 64  # rules of the live segment when it is sealed: looking at them all takes a microsecond
FANOUT = 4  # segments of one size before they are merged
AT_ONCE = 20_000  # predicates of conjunctions, and runs of predicates, that are merged without a thread


class RuleSet(Rules):
    """The sealed segments and the live one of a matcher."""

    kind: ClassVar[Literal["segments", "living"]] = "segments"

    def begin(self) -> None:
        self.segments: list[Segment] = []
        self.alive: list[U8] = []
        self.dead: list[int] = []
        self.live = self._new_live()
        self._view: View | None = None
        self._held: View | None = None
        self._merging: threading.Thread | None = None
        self._busy: list[Segment] = []  # segments that this thread is merging
        self.settled: list[Segment] = []  # segments that are never merged here, because their owner does that

    def _new_live(self) -> LiveSegment:
        attributes, strings = self.recipe.attributes, self.recipe.strings
        return LiveSegment(RowBuilder(attributes, strings, absent=self.absent, multi=self.multi), strings)

    def restore(self, segments: Sequence[Segment], alive: Sequence[U8] = ()) -> None:
        """Appends segments as they were saved, with the masks of their living rows, if there are any."""
        for segment, mask in zip(segments, alive or [ALL] * len(segments), strict=True):
            self._append(segment)
            self.alive[-1] = mask
            self.dead[-1] = int(len(mask) - mask.sum())

    # -- reading

    @property
    def view(self) -> View:
        """The current view. Waits only while a writer is at work that has not left its view for readers."""
        while True:
            view = self._held or self._view
            if view is not None:
                return view
            # A writer that takes long puts a view into `_held` first, so readers do not wait for all of its work.
            with uninterrupted():
                lock = self.lock
                if lock.acquire(timeout=0.002):
                    try:
                        if self._held is None and self._view is None:
                            self._view = self._new_view()
                    finally:
                        lock.release()

    def find(self, rule: RuleId) -> Place | None:
        """Returns the number of the segment (-1 for the live one) and the row of a rule, or None if it is not there."""
        row = self.live.rows.get(rule)
        if row is not None:
            return -1, row
        for number in range(len(self.segments) - 1, -1, -1):
            row = self.segments[number].table.row(rule)
            if row >= 0 and (not len(self.alive[number]) or self.alive[number][row]):
                return number, row
        return None

    def known(self, ids: Sequence[RuleId]) -> NDArray[np.bool_]:
        found = np.array([rule in self.live.rows for rule in ids], np.bool_)
        for segment, alive in zip(self.segments, self.alive, strict=True):
            rows = segment.table.rows_of(ids)
            found |= rows >= 0 if not len(alive) else (rows >= 0) & (alive[rows] != 0)
        return found

    # -- writing

    def put(
        self, place: Place | None, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...]
    ) -> None:
        sequence = self.next_sequence if place is None else self.sequence_at(place)
        self.live.add(rule, root, text, weight, tags, sequence)  # replaces a rule of the live segment itself
        self.next_sequence = max(self.next_sequence, sequence + 1)
        self.count += place is None
        self._view = None
        if place is not None and place[0] >= 0:
            self.count += 1
            self.remove(place)
        if len(self.live) >= SEALED:
            self.seal()

    def made(self, table: RuleTable, compiled: Compiled) -> Segment:
        return self.recipe.build(table, compiled, planning=False)

    def extend(self, made: Iterable[Segment]) -> None:
        for segment in made:
            self._append(segment)
            self.count += len(segment)
        self._view = None
        self._tidy()

    def remove(self, place: Place) -> None:
        self.remove_many([place])

    def remove_many(self, places: Sequence[Place]) -> None:
        by_segment: dict[int, list[int]] = {}
        for number, row in places:
            by_segment.setdefault(number, []).append(row)
        for number, rows in by_segment.items():
            if number < 0:
                for row in rows:
                    self.live.drop(self.live.ids[row])
                if not self.live.rows:
                    self.live = self._new_live()  # the next rules may have ids of another kind
                continue
            # A view may hold the old mask, so a new one is made.
            mask = self.alive[number]
            mask = mask.copy() if len(mask) else np.ones(len(self.segments[number]), np.uint8)
            mask[rows] = 0
            self.alive[number] = mask
            self.dead[number] += len(rows)
        self.count -= len(places)
        self._view = None
        if any(2 * dead > len(segment) for dead, segment in zip(self.dead, self.segments, strict=True)):
            self._tidy()
            self.forget_unused()

    def table(self, number: int) -> RuleTable | LiveTable:
        return LiveTable(self.live, len(self.live)) if number < 0 else self.segments[number].table

    def seal(self) -> None:
        """Turns the live segment into a sealed one."""
        self._seal_live()
        self._tidy()
        self.forget_unused()

    def _seal_live(self) -> None:
        if len(self.live.rows):
            self._append(self.recipe.build(*self.live.finish()))
        self.live = self._new_live()
        self._view = None

    def may_forget(self) -> bool:
        """Seals the live segment if no view is held and no merge is under way. Returns whether this was so."""
        if self._held is not None or self._busy:
            return False
        self._seal_live()
        return True

    def use_tables(self, attributes: Attributes, strings: Strings) -> None:
        self.recipe.attributes, self.recipe.strings = attributes, strings
        self.segments = [with_tables(segment, self.recipe) for segment in self.segments]
        self.live = self._new_live()
        self._view = None

    def _append(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.alive.append(ALL)
        self.dead.append(0)

    def rules_naming(self, names: Iterable[str], *, mentioned: bool) -> list[Place]:
        found: list[Place] = []
        wanted, tags = self.wanted(names), {MENTION + name for name in names} if mentioned else set()
        for number, (segment, alive) in enumerate(zip(self.segments, self.alive, strict=True)):
            named = rules_naming(segment.whole(), wanted)
            if tags:
                named |= segment.table.rows_with_tags(tags).astype(np.bool_)
            if len(alive):
                named &= alive.astype(np.bool_)
            found.extend((number, int(row)) for row in np.nonzero(named)[0])
        part, alive = self.live.part(len(wanted))
        marks = part.naming(alive, wanted)
        found.extend((-1, row) for row in self.live.rows.values() if marks[row] or tags & set(self.live.tags[row]))
        return found

    def leave_out(self, marks: Sequence[NDArray[np.bool_]]) -> None:
        """Hides the marked rows of each segment from readers. `count` and `dead` stay as they are."""
        for number, marked in enumerate(marks):
            if marked.any():
                alive = self.alive[number]
                self.alive[number] = (~marked).astype(np.uint8) & (alive if len(alive) else np.uint8(1))
        self._view = None

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Returns a context whose changes readers see together at its end. If one fails, all are undone."""
        outer = self._held
        self._held = outer or self.view
        before = list(self.segments), list(self.alive), list(self.dead), self.live, self.count, self.next_sequence
        alive = dict(self.live.rows)
        try:
            yield
        except BaseException:
            self.segments, self.alive, self.dead, self.live, self.count, self.next_sequence = before
            self.live.rows = alive  # rules added since keep their rows, and are dead
            raise
        finally:
            self._held = outer
            self._view = None
        if outer is None:
            self.forget_unused()

    def observe(self, events: Any) -> None:
        """Keeps a sample of the events, and builds all indexes anew with it."""
        self.wait()
        sample = Sample(events, self.view.encoder)
        self.recipe.sample = sample if sample.events else None  # for the segments made from now on
        for segment in list(self.segments):
            better = self.recipe.reindexed(segment)
            better.warm()
            with self.lock:
                self._forget_lost_merge()
                # A segment that is being merged, or was, gets its new index from the merge.
                if not any(segment is busy for busy in self._busy):
                    self._exchange(segment, better)

    def figures(self) -> Figures:
        view = self.view
        sealed = [segment for segment in view.segments if isinstance(segment, Segment)]
        sizes: dict[str, int] = {}
        notes: dict[str, Any] = {}
        for segment in sealed:
            for name, array in segment.arrays().items():
                sizes[name] = sizes.get(name, 0) + array.nbytes
            for name, value in {**segment.index.notes(), **segment.evaluator.notes(), **segment.blocks.notes()}.items():
                notes[name] = notes[name] + value if name in notes and isinstance(value, int) else value
        if gated := sum(int(segment.facts.counts[5]) for segment in sealed):
            notes["conjunctions with a gate"] = gated
        sizes["alive"] = sum(mask.nbytes for mask in view.alive)
        live = [part for part in view.segments if isinstance(part, LivePart)]
        for part in live:
            sizes |= {f"live/{name}": array.nbytes for name, array in part.arrays().items()}
        candidates, evaluations = sum((part.counters() for part in view.segments), np.zeros(2, np.int64)).tolist()
        return Figures(
            conjunctions=sum(int(s.facts.counts[0]) for s in sealed) + sum(part.conjunctions for part in live),
            predicates=sum(int(s.facts.counts[1]) for s in sealed) + sum(part.predicates for part in live),
            segments=len(view.segments),
            candidates=candidates,
            evaluations=evaluations,
            bytes=sizes,
            notes=notes,
            plans=tuple(map(described, sealed)) if self.recipe.index is Auto else (),
        )

    # -- views

    def _new_view(self) -> View:
        """Returns a view of all segments as they are now."""
        segments: list[MaskedSegment] = list(self.segments)
        alive = list(self.alive)
        if len(self.live.rows):
            part, mask = self.live.part(len(self.recipe.attributes))
            segments.append(part)
            alive.append(mask)
        attributes, strings = self.recipe.attributes, self.recipe.strings
        asked = cache(partial(asked_attributes, segments, alive, attributes.names))
        encoder = encoder_for(segments, attributes, strings, self.multi, asked)
        return View(segments, alive, encoder, attributes.names)

    # -- merging

    def _tidy(self) -> None:
        """Merges segments that are due, small ones at once. Starts the merging thread if there is work for it."""
        self._forget_lost_merge()
        while True:
            group = self._group()
            if not group and self._unplanned() is None:
                return
            if not group or sum(self.segments[i].size for i in group) > AT_ONCE:
                if self._merging is None:
                    self._merging = threading.Thread(target=self._merge_loop, name="eligo-merge", daemon=True)
                    try:
                        self._merging.start()
                    except RuntimeError:  # no more threads: a later change tries again
                        self._merging = None
                return
            self._replace(group, *self._merged(group))

    def _forget_lost_merge(self) -> None:
        """Forgets a merge whose thread is gone. That happens in a forked child, which has no other threads."""
        if self._merging is not None and not self._merging.is_alive():
            self._merging, self._busy = None, []

    def _group(self) -> list[int]:
        """Returns the numbers of the segments to merge: a size class with enough members and all smaller ones, or one
        that is mostly dead. Returns an empty list if no merge is due.
        """
        living = {
            i: len(segment) - self.dead[i]
            for i, segment in enumerate(self.segments)
            if not any(segment is other for other in (*self._busy, *self.settled))
        }
        classes = Counter(_size_class(size) for size in living.values())
        for size in sorted(classes):
            if classes[size] >= FANOUT:
                return [i for i, n in living.items() if _size_class(n) <= size]
        return [i for i, n in living.items() if 2 * n < len(self.segments[i])][:1]

    def _merged(self, group: list[int]) -> tuple[Segment, list[I64]]:
        return merge_segments([self.segments[i] for i in group], [self.alive[i] for i in group], self.recipe)

    def _replace(self, group: list[int], merged: Segment, moved: list[I64]) -> None:
        """Replaces segments by the one they were merged into. Rules that were removed meanwhile are masked in it."""
        mask = np.ones(len(merged), np.uint8)
        for i, rows in zip(group, moved, strict=True):
            if len(self.alive[i]):
                gone = rows[(self.alive[i] == 0) & (rows >= 0)]
                mask[gone] = 0
        chosen = set(group)
        self.segments = [s for i, s in enumerate(self.segments) if i not in chosen]
        self.alive = [a for i, a in enumerate(self.alive) if i not in chosen]
        self.dead = [d for i, d in enumerate(self.dead) if i not in chosen]
        if len(merged):
            self.segments.append(merged)
            self.alive.append(ALL if mask.all() else mask)
            self.dead.append(int(len(mask) - mask.sum()))
        self._view = None

    def _unplanned(self) -> Segment | None:
        """Returns a segment that was built fast and has yet to be planned, or None. Merges that are due come first."""
        if self._group():
            return None
        for segment in self.segments:
            if self.recipe.is_unplanned(segment) and not any(segment is other for other in self.settled):
                return segment
        return None

    def _merge_loop(self) -> None:
        """Merges and plans segments until nothing is due. Holds the lock only to choose and to replace them."""
        while True:
            with self.lock:
                group, unplanned = self._group(), self._unplanned()
                if not group and unplanned is None:
                    self._merging = None
                    return
                chosen = self._busy = [self.segments[i] for i in group] if unplanned is None else [unplanned]
                alive = [self.alive[i] for i in group]
            try:
                if unplanned is None:
                    made, moved = merge_segments(chosen, alive, self.recipe)
                else:
                    made = self.recipe.reindexed(unplanned)
                    made.blocks.follow(unplanned.blocks)
                made.warm()
            except BaseException:
                # The segments are still there, and the next change tries again.
                log.exception("merging %d segments failed", len(chosen))
                with self.lock:
                    self._busy, self._merging = [], None
                return
            with self.lock:
                self._busy = []  # as long as they were here, no other thread replaced these segments
                if unplanned is not None:
                    self._exchange(unplanned, made)
                    continue
                places = [next(i for i, s in enumerate(self.segments) if s is segment) for segment in chosen]
                self._replace(places, made, moved)
                log.debug("merged %d segments into one of %d rules", len(places), len(made))
                self.forget_unused()

    def _exchange(self, segment: Segment, better: Segment) -> None:
        """Puts the same rules with another index in the place of a segment."""
        self.segments = [better if one is segment else one for one in self.segments]
        self._view = None

    def wait(self, seconds: float | None = None) -> None:
        """Waits until no merge is under way, at most so many seconds."""
        merging = self._merging
        if merging is not None:
            merging.join(seconds)


def _size_class(rules: int) -> int:
    """Returns the class of a size. Sizes within a factor of four are of one class."""
    return max(0, (rules // SEALED).bit_length() - 1) // 2
