"""A sealed segment: rules compiled, indexed and never changed.

Removed rules stay in its arrays. The view's `alive` mask leaves them out of answers, until a merge drops them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled, concatenate, permuted_slices, trees_alone
from eligo.compile.conjunctions import Conjunctions, build_conjunctions, restore_conjunctions
from eligo.compile.events import EventBuffer
from eligo.compile.naming import attribute_counts
from eligo.compile.renumber import mark_used
from eligo.compile.strings import Strings
from eligo.evaluate.base import Evaluator
from eligo.evaluate.gating import gate, gated
from eligo.evaluate.straight import Straight
from eligo.forking import cached_property
from eligo.index.auto import Auto, kind_of
from eligo.index.base import Index
from eligo.index.native import NativeIndex
from eligo.index.selectivity import likelihood
from eligo.language.limits import DEFAULT_LIMITS, Limits
from eligo.options import Value, own
from eligo.segments.base import NO_ROWS, IndexedSegment, MaskedSegment, ends_of
from eligo.segments.blocks import Blocks
from eligo.segments.planning import LEAST, UNPLANNED, Plan, planned
from eligo.segments.rule_table import RuleTable, join_rule_tables
from eligo.segments.sample import Sample, rank_by
from eligo.segments.statistics import Statistics
from eligo.threads import ALONE, Team


@dataclass(frozen=True)
class Facts:
    """What is asked of a segment again and again.

    `counts`: conjunctions, predicates, items of both (predicates of conjunctions, runs of predicates), whether there
    are no trees, the kind of index that was planned, and conjunctions with a gate (evaluate/gating.py). Then the
    attributes whose strings events must bring as bytes, those with a pattern that only the text can answer, and the
    trials of planning.py, a row each.
    """

    counts: I64
    text_attributes: I32
    pattern_attributes: I32
    tried: F64

    @property
    def plan(self) -> Plan:
        return Plan(int(self.counts[4]), self.tried)

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Segment(MaskedSegment, IndexedSegment):
    """Rules in all their forms: table, compiled arrays, conjunctions, index and evaluator.

    If the index keeps the conjunctions itself, `compiled` has only the trees and `conjunctions` is None.
    """

    table: RuleTable
    compiled: Compiled
    conjunctions: Conjunctions | None
    index: Index
    evaluator: Evaluator
    facts: Facts
    blocks: Blocks = field(default_factory=Blocks)
    _scratches: deque[tuple[Any, Any]] = field(default_factory=deque)
    _asked: list[tuple[list[str], list[str]]] = field(default_factory=list)  # what `asked` found of all rules

    @property
    def size(self) -> int:
        """Work of a merge: predicates of conjunctions, runs of predicates, and rules."""
        return int(self.facts.counts[2]) + len(self)

    def whole(self) -> Compiled:
        """Returns the compiled rules with their predicates, read back from the index if this keeps them."""
        if self.conjunctions is not None:
            return self.compiled
        return replace(self.compiled, **self.index.predicates(int(self.facts.counts[0])))

    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        if self.conjunctions is None and isinstance(self.index, NativeIndex):
            self.index.mark(attributes, strings)
        else:
            mark_used(self.whole(), attributes, strings)

    def asked(self, names: Sequence[str], alive: U8) -> tuple[list[str], list[str]]:
        if not len(alive) and self._asked:
            return self._asked[0]
        rules = self.whole()
        named = list(attribute_counts(rules, names, alive if len(alive) else None))
        if self.pattern_attributes and len(alive):
            rules = concatenate([rules], [alive.astype(np.bool_)])
        found = named, [names[number] for number in np.unique(rules.attribute[rules.pattern >= 0]).tolist()]
        if not len(alive):
            self._asked.append(found)
        return found

    def spelt_out(self) -> tuple[Compiled, Conjunctions]:
        """Returns the compiled rules with their predicates, and their conjunctions with spaces."""
        if self.conjunctions is not None:
            return self.compiled, self.conjunctions
        rules = self.whole()
        return build_conjunctions(rules, self.index.strings, int(rules.attribute.max(initial=-1)) + 1)

    def match_batch(
        self, events: EventBuffer, allowed: U8, *, named: bool = False, team: Team = ALONE
    ) -> tuple[I64, I32 | I64]:
        """Matches all n events of the buffer. Returns n + 1 ends, and the rows that each event matches, ascending; or,
        if `named`, their ids, which must be integers. `team` are the threads that share the work.
        """
        if self.index.blocks != "never":
            engine = self.blocks.engine(self, events)
            if engine is not None:
                return engine.match(events, allowed, self.table.ids if named else None, team)
        counts, pieces = self.match_between(events, 0, events.events, allowed)
        rows = np.concatenate((NO_ROWS, *pieces))
        return ends_of(counts), self.table.integer_ids(rows) if named else rows

    def counters(self) -> NDArray[np.int64]:
        return super().counters() + self.blocks.counters()

    @property
    def text_attributes(self) -> list[int]:
        return self.facts.text_attributes.tolist()  # type: ignore[no-any-return]

    @property
    def pattern_attributes(self) -> list[int]:
        return self.facts.pattern_attributes.tolist()  # type: ignore[no-any-return]

    def warm(self) -> None:
        """Makes what the first match would make, so that no reader waits for it."""
        self._scratches.append(self._scratch())

    def arrays(self) -> Arrays:
        """Returns the arrays that a snapshot keeps and `stats` counts."""
        parts: tuple[tuple[str, Arrays], ...] = (
            ("rules", self.table.arrays()),
            ("compiled", self.compiled.trees() if self.conjunctions is None else self.compiled.arrays()),
            ("spaces", {} if self.conjunctions is None else self.conjunctions.arrays()),
            ("facts", self.facts.arrays()),
            ("index", self.index.arrays()),
            ("evaluator", self.evaluator.arrays()),
            ("blocks", self.blocks.kept(alone=self.conjunctions is None)),
        )
        return {f"{part}/{name}": array for part, arrays in parts for name, array in arrays.items()}


class HasArrays(Protocol):
    """A part of a segment that has arrays."""

    def arrays(self) -> Arrays: ...


@dataclass
class Recipe:
    """What the segments of one matcher are made with: index and evaluator with the options of both, the tables that
    they share, and the observed events that tell how often predicates hold, if there are any.
    """

    index: type[Index]
    evaluator: type[Evaluator]
    attributes: Attributes
    strings: Strings
    sample: Sample | Statistics | None = None
    limits: Limits = DEFAULT_LIMITS
    options: Mapping[str, Value] = field(default_factory=dict)
    count: Callable[[], int] = lambda: 0  # returns the number of rules in all segments together
    batches: bool = False  # all events come in batches, so the arrays for blocks are built with the segments

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments for the evaluator's own methods."""
        return self.evaluator.settings(self.limits, self.options)

    def build(self, table: RuleTable, compiled: Compiled, planning: bool = True) -> Segment:
        """Builds a segment of these rules. Without `planning` it is built fast, to be planned later."""
        if self.index.by_least_likely and self.evaluator.has_trees:
            compiled = gate(compiled)
        arranged = self.evaluator.arrange(compiled, **self.settings)
        return self._indexed(table, *build_conjunctions(arranged, self.strings, len(self.attributes)), planning)

    def reindexed(self, segment: Segment) -> Segment:
        """Returns the same segment with its index and labels built anew."""
        return self._indexed(segment.table, *segment.spelt_out())

    def is_unplanned(self, segment: Segment) -> bool:
        """Tests whether a segment's index has yet to be planned."""
        return self.index is Auto and len(segment) >= LEAST and not len(segment.facts.tried)

    def _indexed(
        self, table: RuleTable, compiled: Compiled, conjunctions: Conjunctions, planning: bool = True
    ) -> Segment:
        rank = often = None
        kind = Straight if Straight.takes(compiled) else self.evaluator
        if self.sample is not None and (kind.by_likelihood or not self.index.keeps_rows):
            held = self.sample.held(conjunctions)
            rank, often = rank_by(held, conjunctions), held / self.sample.events
        elif kind.by_likelihood:
            often = likelihood(conjunctions)
        evaluator = kind.build(compiled, often)
        chosen, plan, room = self.index, UNPLANNED, np.inf
        if chosen is Auto:
            room = self.room(len(table), table, compiled, conjunctions, evaluator)
            plan = planned(conjunctions, self.sample, room) if planning or room < np.inf else UNPLANNED
            chosen = kind_of(plan.kind)
        index = chosen.build(conjunctions, rank, **own(chosen, self.options))
        segment = segment_of(table, compiled, conjunctions, index, evaluator, plan)
        segment.blocks.room, segment.blocks.sample = room - index.bytes(), self.sample
        if self.batches and chosen.blocks != "never":
            segment.blocks.build(compiled, conjunctions, alone=segment.conjunctions is None)
        return segment

    def room(self, rules: int, *parts: HasArrays) -> float:
        """Returns the bytes that these parts leave of the share of the option `memory` that a segment of so many rules
        has. Without that option it is infinite.
        """
        memory = self.options.get("memory", 0)
        if not memory:
            return np.inf
        held = sum(array.nbytes for part in parts for array in part.arrays().values())
        return float(memory) * rules / max(rules, self.count(), 1) - held


def segment_of(
    table: RuleTable,
    compiled: Compiled,
    conjunctions: Conjunctions,
    index: Index,
    evaluator: Evaluator,
    plan: Plan = UNPLANNED,
) -> Segment:
    """Returns a segment of these parts. Conjunctions that the index keeps itself are left out."""
    facts = Facts(
        np.array(
            [
                compiled.conjunctions,
                compiled.predicates,
                len(compiled.conjunction) + len(compiled.low_kind),
                isinstance(evaluator, Straight),
                plan.kind,
                gated(compiled),
            ],
            np.int64,
        ),
        index.text_attributes(conjunctions),
        conjunctions.pattern_attributes(),
        plan.tried,
    )
    if index.keeps_rows:
        return Segment(table, trees_alone(compiled.trees(), compiled.conjunctions), None, index, evaluator, facts)
    return Segment(table, compiled, conjunctions, index, evaluator, facts)


def restore_segment(arrays: Arrays, recipe: Recipe) -> Segment:
    """Returns the segment whose `arrays` a snapshot kept. Nothing is computed."""

    def part(name: str) -> Arrays:
        return {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}

    facts, given, conjunctions = Facts(**part("facts/")), part("compiled/"), None
    made = kind_of(facts.plan.kind) if recipe.index is Auto else recipe.index
    if made.keeps_rows:
        compiled = trees_alone(given, int(facts.counts[0]))
        index = made.restore(Conjunctions(compiled, recipe.strings, len(recipe.attributes)), part("index/"))
    else:
        compiled = Compiled(**given)
        conjunctions = restore_conjunctions(part("spaces/"), compiled, recipe.strings, len(recipe.attributes))
        index = made.restore(conjunctions, part("index/"))
    kind = Straight if facts.counts[3] else recipe.evaluator
    evaluator = kind.restore(compiled, part("evaluator/"))
    segment = Segment(RuleTable(**part("rules/")), compiled, conjunctions, index, evaluator, facts)
    segment.blocks.room = recipe.room(len(segment), segment)
    segment.blocks.restore(part("blocks/"), conjunctions)
    return segment


def with_tables(segment: Segment, recipe: Recipe) -> Segment:
    """Returns the same segment with the recipe's tables, where its attributes and strings have the same numbers."""
    again = restore_segment(segment.arrays(), replace(recipe, index=type(segment.index)))
    return replace(again, table=segment.table)


def merge_segments(segments: Sequence[Segment], alive: Sequence[U8], recipe: Recipe) -> tuple[Segment, list[I64]]:
    """Merges the living rules of several segments. Returns the new segment, and for every old one the new row of each
    of its rows, or -1 if the rule is gone.
    """
    keep = [mask.astype(np.bool_) if len(mask) else None for mask in alive]
    sequence = np.concatenate(
        [s.table.sequence if k is None else s.table.sequence[k] for s, k in zip(segments, keep, strict=True)]
    )
    order = np.argsort(sequence, kind="stable")
    compiled = concatenate([segment.whole() for segment in segments], keep)
    if not np.array_equal(order, np.arange(len(order))):
        tree, offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
        compiled = Compiled(**{**compiled.arrays(), "tree": tree, "tree_offsets": offsets})
    table = join_rule_tables([segment.table for segment in segments], keep, order)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    moved, start = [], 0
    for segment, k in zip(segments, keep, strict=True):
        rows = np.full(len(segment), -1, np.int64)
        count = len(segment) if k is None else int(k.sum())
        rows[slice(None) if k is None else k] = place[start : start + count]
        moved.append(rows)
        start += count
    return recipe.build(table, compiled), moved
