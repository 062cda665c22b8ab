"""What a segment of `auto` is searched with.

    few rules                   propagation, which is built fastest: whatever is chosen, an event takes microseconds
    LEAST rules and more        a trial: every kind is built from some of the rules, and searched for some events;
                                pst-hash, unless propagation takes far fewer steps
    too large for `memory`      the fastest of those that fit; if none does, the smallest

A trial counts steps, it takes no time: candidates looked at and predicates evaluated, which grow with the number of
rules, at what a step of each kind costs. So the same rules and events lead to the same plan. (The costs were fitted to
40 measurements, of 10,000 to 1,000,000 rules; they are right within a third, and mostly wrong alike for all kinds.)

Events are those that were observed, if there are such; else they are made from the rules: each satisfies a few
of their conjunctions, with values where the sets of predicates begin or end.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import F64, I64, Compiled, concatenate
from eligo.compile.conjunctions import Conjunctions, build_conjunctions
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.auto import KINDS, kind_of
from eligo.segments.sample import Sample
from eligo.segments.statistics import Statistics

if TYPE_CHECKING:
    from eligo.segments.segment import Segment

LEAST: Final = 16_384  # rules that are worth a trial
_TRIED: Final = 16_384  # rules that it is made with, about
_EVENTS: Final = 64
_FEWER: Final = 0.75  # of the time of an earlier kind, at which a later one is taken. Made events have few matches,
# which makes propagation look better than it is.
# Microseconds: of every event, of a thousand candidates, of a thousand evaluations.
_COSTS: Final = {"propagation": (3.0, 5.0, 3.0), "pst-hash": (6.0, 8.0, 2.0), "scan": (4.0, 2.5, 2.5)}
# The same of one of many events, and of a thousand of its values.
_BATCH_COSTS: Final = {
    "propagation": (2.0, 4.0, 3.0, 100.0),
    "pst-hash": (2.0, 6.0, 3.0, 250.0),
    "scan": (2.0, 2.5, 2.5, 0.0),
}
_TREE_COST: Final = 10.0  # of a thousand candidates, where they are leaves of trees
_BLOCKS_COSTS: Final = (2.0, 10.0, 12.0, 120.0, 2.0, 7.0)  # of an event; of a thousand of what `blocks_time` is given
_ORDER: Final = (KINDS.index("pst-hash"), KINDS.index("propagation"), KINDS.index("scan"))
_FIELDS: Final = ("index", "candidates", "evaluations", "microseconds", "bytes")


@dataclass(frozen=True)
class Plan:
    """The number of the chosen kind of index, and a row of _FIELDS for each kind that was tried."""

    kind: int
    tried: F64


UNPLANNED: Final = Plan(0, np.zeros((0, len(_FIELDS))))


def described(segment: Segment) -> dict[str, Any]:
    """Returns the plan of a segment in the form of `stats`."""
    plan, index = segment.facts.plan, KINDS[segment.facts.plan.kind]
    tried = {
        KINDS[int(row[0])]: dict(zip(_FIELDS[1:], (round(float(value), 1) for value in row[1:]), strict=True))
        for row in plan.tried
    }
    blocks, alone = segment.blocks.times
    batches = {"blocks": round(blocks, 1), index: round(alone, 1)} if blocks else {}
    return {"rules": len(segment), "index": index, "tried": tried, "batches": batches}


def planned(conjunctions: Conjunctions, sample: Sample | Statistics | None, room: float) -> Plan:
    """Chooses the kind of index for these conjunctions. `room` is how many bytes it may take."""
    compiled = conjunctions.compiled
    if compiled.rules < LEAST and room == np.inf:
        return UNPLANNED
    step = max(1, compiled.rules // _TRIED)
    some = conjunctions
    if step > 1:
        kept = np.zeros(compiled.rules, np.bool_)
        kept[::step] = True
        _, some = build_conjunctions(concatenate([compiled], [kept]), conjunctions.strings, conjunctions.attributes)
    scale = len(conjunctions) / max(1, len(some))
    kinds = range(len(KINDS) - (room == np.inf))
    made = nullcontext(events_of(some.compiled, conjunctions.strings, _EVENTS))
    with sample.some() if isinstance(sample, Sample) else made as events:
        tried = np.array([_trial(number, some, events, scale) for number in kinds])
    return Plan(_fastest(tried, room), tried)


def _fastest(tried: F64, room: float) -> int:
    """Returns the number of the kind to take: the earliest one of _ORDER, unless a later one is much faster."""
    fitting = [number for number in _ORDER if number < len(tried) and tried[number, 4] <= room]
    if not fitting:
        return int(tried[:, 4].argmin())
    best = fitting[0]
    for number in fitting[1:]:
        if tried[number, 3] <= _FEWER * tried[best, 3]:
            best = number
    return best


def _trial(number: int, conjunctions: Conjunctions, events: EventBuffer, scale: float) -> tuple[float, ...]:
    """Returns a row of _FIELDS: what a kind of index takes for an event, scaled to `scale` times the conjunctions."""
    index = kind_of(number).build(conjunctions)
    scratch, many = index.scratch(), max(1, min(_EVENTS, events.events))
    for event in range(min(many, events.events)):
        index.search(events, event, scratch)
    candidates, evaluations = (scale * scratch.counters[:2] / many).tolist()
    always, candidate, evaluation = _COSTS[KINDS[number]]
    time = always + (candidate * candidates + evaluation * evaluations) / 1000
    return number, candidates, evaluations, time, scale * index.bytes()


def batch_time(segment: Segment, events: EventBuffer) -> float:
    """Returns the microseconds that a segment's index takes for one of many events, judged by its steps for some."""
    scratch, many = segment.index.scratch(), min(_EVENTS, events.events)
    for event in range(many):
        segment.index.search(events, event, scratch)
    candidates, evaluations = (scratch.counters[:2] / max(1, many)).tolist()
    always, *costs = _BATCH_COSTS[KINDS[segment.facts.plan.kind]]
    costs[0] += 0.0 if segment.facts.counts[3] else _TREE_COST
    steps = candidates, evaluations, events.count / max(1, events.events)
    return always + float(np.dot(costs, steps)) / 1000


def blocks_time(figures: F64) -> float:
    """Returns the microseconds of an event in blocks, by its rows, evaluations, rows asked by trees, slots, matches."""
    return _BLOCKS_COSTS[0] + float(figures @ np.array(_BLOCKS_COSTS[1:])) / 1000


def events_of(compiled: Compiled, strings: Strings, count: int) -> EventBuffer:
    """Makes `count` events that each satisfy some of the rules' conjunctions. Equal rules get equal events."""
    random = np.random.default_rng(compiled.predicates)
    buffer = EventBuffer()
    items, sizes = compiled.conjunction, np.diff(compiled.conjunction_offsets)
    size = max(8, 5 * len(items) // (2 * max(1, compiled.conjunctions)))
    offsets, metas, keys = [0], list[int](), list[int]()
    for _ in range(count):
        # The predicates of a few conjunctions, which thereby hold, as long as they do not contradict each other.
        drawn = random.integers(0, compiled.conjunctions, size) if len(items) else np.zeros(0, np.int64)
        first = compiled.conjunction_offsets[drawn]
        entries: dict[int, tuple[int, int]] = {}
        for p in (int(p) for at, n in zip(first, sizes[drawn], strict=True) for p in items[at : at + n]):
            runs = int(compiled.run_offsets[p]), int(compiled.run_offsets[p + 1])
            attribute = int(compiled.attribute[p])
            if runs[0] < runs[1] and len(entries) < size and attribute not in entries:
                entry = _entry(compiled, int(random.integers(*runs)), strings, buffer)
                if entry is not None:
                    entries[attribute] = entry
        metas += [attribute << 8 | kind for attribute, (kind, _) in entries.items()]
        keys += [key for _, key in entries.values()]
        offsets.append(len(keys))
    widest = int(np.diff(offsets).max(initial=0))
    buffer.replace(np.array(offsets), np.array(metas or [0]), np.array(keys or [0]), widest)
    return buffer


def _entry(compiled: Compiled, run: int, strings: Strings, buffer: EventBuffer) -> tuple[int, int] | None:
    """Returns the kind and key of a value where a run begins, else where it ends, or None if both ends are open."""
    ends: tuple[tuple[int, I64, int], ...] = (
        (int(compiled.low_kind[run]), compiled.low_key, 0),
        (int(compiled.high_kind[run]), compiled.high_key, -1),
    )
    for kind, key, step in ends:
        if kind == codes.NUMBER_CUT:
            return codes.INTEGER, max(int(key[run]) + step, -(2**63))
        if kind == codes.TIME_CUT:
            return codes.TIME, max(int(key[run]) + step, -(2**63))
        if kind == codes.BOOLEAN_CUT:
            return codes.BOOLEAN, int(key[run]) & 1
        if kind == codes.STRING_CUT:
            number = int(key[run]) >> 1
            return codes.TEXT, buffer.add_text(number, strings.text(number).encode())
    return None
