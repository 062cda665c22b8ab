"""A living set: rules in one structure that changes in place, for an index that inserts and deletes by itself.

    one rule       compiled while readers go on; then, with the gate closed once, its new conjunctions are inserted into
                   the index, the rule into the pools, and the rule that it replaces is removed from them
    many           some hundred at a time, so that readers never wait for all of them. New rules are COMING, and removed
                   ones GOING, until the last is there; then one step shows the former and hides the latter

The index adjusts itself a little after each update and, if readers need not wait for it, after some hundred events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import numpy as np

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, Arrays, Compiled
from eligo.compile.strings import Strings
from eligo.index.rows.content import looks_at
from eligo.language.tree import Node
from eligo.rule import RuleId
from eligo.segments.base import NO_ROWS
from eligo.segments.living.arrivals import Arrivals, many_arrivals, one_arrival
from eligo.segments.living.pools import COMING, CONJUNCTIONS, FREE, GOING, LIVING, USED_CONJUNCTIONS
from eligo.segments.living.structure import SOME, Structure
from eligo.segments.living.view import LivingView
from eligo.segments.living.write_rules import rows_naming, turn
from eligo.segments.row_builder import RowBuilder
from eligo.segments.rule_table import MENTION, RuleTable
from eligo.segments.rules import Figures, Place, Rules
from eligo.segments.sample import Sample

_EFFORT = 2048  # of each step in which the index adjusts itself to observed events


class LivingSet(Rules):
    """Rules in one structure that changes in place; see the top of this file. The places of rules are rows."""

    kind: ClassVar[Literal["segments", "living"]] = "living"

    def begin(self, arrays: Arrays | None = None) -> None:
        """Begins without rules, or with those of a snapshot's arrays."""
        self._quiet = False
        self._coming: list[I32] = []
        self._going: list[I32] = []
        self.structure = Structure(self.recipe, self.multi, arrays)
        self.segments = (self.structure,)
        self._view = LivingView(self.structure, self)
        self._builder: RowBuilder | None = None

    def restore(self, arrays: Arrays) -> None:
        """Restores the structure from the arrays that a snapshot kept."""
        self.begin(arrays)

    # -- reading

    @property
    def view(self) -> LivingView:
        return self._view

    def find(self, rule: RuleId) -> Place | None:
        row = self.structure.table.row(rule, LIVING, COMING)
        return None if row < 0 else (0, row)

    def rules_naming(self, names: Iterable[str], *, mentioned: bool) -> list[Place]:
        structure, wanted = self.structure, self.wanted(names)
        pools, index = structure.pools, structure.index
        looking = np.zeros(int(pools.state[CONJUNCTIONS]), np.bool_)
        for number in np.nonzero(pools.uses[: len(looking)])[0].tolist():
            looking[number] = looks_at(index.row(number), wanted)
        tags = structure.tags.wanted({MENTION + name for name in names} if mentioned else ())
        return [(0, row) for row in rows_naming(pools.handle, looking, tags).tolist()]

    def figures(self) -> Figures:
        structure = self.structure
        candidates, evaluations = structure.counters().tolist()
        with self.lock:
            return Figures(
                conjunctions=int(structure.pools.state[USED_CONJUNCTIONS]),
                predicates=int(structure.counts.checks.sum()),
                segments=1,
                candidates=candidates,
                evaluations=evaluations,
                bytes={name: array.nbytes for name, array in structure.arrays().items()},
                notes=structure.index.notes(),
                false_candidates=max(candidates - structure.satisfied(), 0),
            )

    # -- writing

    def put(
        self, place: Place | None, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...]
    ) -> None:
        sequence = self.next_sequence if place is None else self.sequence_at(place)
        comes = one_arrival(rule, text, weight, tags, sequence, *self._compiler().one(root))
        if self._quiet or comes.conjunctions > SOME:
            with self.quietly():
                if place is not None:
                    self.remove_many([place])
                self.extend([comes])
                self.next_sequence = max(self.next_sequence, sequence + 1)
        else:
            self.structure.prepare(comes)
            with self.structure.gate:
                self.structure.insert(comes, LIVING, prepared=True)
                if place is not None:
                    self.structure.forget(np.array([place[1]], np.int32))
                self.count += place is None
                self.next_sequence = max(self.next_sequence, sequence + 1)
            self.forget_unused()

    def _compiler(self) -> RowBuilder:
        """Returns the builder of single rules, a new one if other attributes have become multi-valued."""
        if self._builder is None or self._builder.multi != self.multi:
            tables = self.recipe.attributes, self.recipe.strings
            self._builder = RowBuilder(*tables, absent=self.absent, multi=self.multi)
        return self._builder

    def remove(self, place: Place) -> None:
        if self._quiet:
            self.remove_many([place])
        else:
            self.structure.prepare(None)
            with self.structure.gate:
                self.structure.forget(np.array([place[1]], np.int32))
                self.count -= 1
            self.forget_unused()

    def made(self, table: RuleTable, compiled: Compiled) -> Arrivals:
        return many_arrivals(table, compiled, self.recipe.strings)

    def extend(self, made: Iterable[Arrivals]) -> None:
        with self.quietly():
            for comes in made:
                self._coming.append(self.structure.insert(comes, COMING))
                self.count += len(comes)

    def remove_many(self, places: Sequence[Place]) -> None:
        if not places:
            return
        with self.quietly():
            rows = np.array([row for _, row in places], np.int32)
            status = self.structure.pools.status[rows]
            going, unseen = rows[status == LIVING], rows[status == COMING]
            turn(self.structure.pools.handle, going, COMING, GOING)
            self._going.append(going)
            if len(unseen):
                self._coming = [some[~np.isin(some, unseen)] for some in self._coming]
                self.structure.forget(unseen)
            self.count -= len(places)

    @contextmanager
    def quietly(self) -> Iterator[None]:
        if self._quiet:
            yield
            return
        count, structure = self.count, self.structure
        self._quiet, self._coming, self._going = True, [], []
        try:
            yield
        except BaseException:
            turn(structure.pools.handle, np.concatenate((NO_ROWS, *self._going)), COMING, LIVING)
            structure.forget(np.concatenate((NO_ROWS, *self._coming)))
            self.count = count
            raise
        else:
            coming, going = np.concatenate((NO_ROWS, *self._coming)), np.concatenate((NO_ROWS, *self._going))
            with structure.gate:
                turn(structure.pools.handle, coming, LIVING, LIVING)
                turn(structure.pools.handle, going, COMING, FREE)
                if self.multi != structure.multi:
                    structure.follow(self.multi)
            structure.forget(going)
        finally:
            self._quiet = False
        self.forget_unused()

    def may_forget(self) -> bool:
        return not self._quiet

    def use_tables(self, attributes: Attributes, strings: Strings) -> None:
        self.recipe.attributes, self.recipe.strings = attributes, strings
        self._builder = None
        self.structure.use_tables(attributes, strings)

    def observe(self, events: object) -> None:
        structure = self.structure
        sample = Sample(events, structure.encoder)
        with self.lock:
            for buffer in sample.buffers:
                with structure.gate:
                    structure.index.observe(buffer)
        for _ in range(2):  # to the end of the round under way, and one more
            more = True
            while more:
                with self.lock, structure.gate:
                    more = structure.index.adjust(_EFFORT)
