"""The live segment: rules that were added one by one and are not sealed yet. It is searched by looking at all of them.

    words               rows of conjunctions (index/rows/packed_predicate.py), one after the other
    tree, tree_offsets  the tree of each rule, as `Compiled` has it
    ids, texts, …       Python lists, an item a rule

Nothing is built when a rule is added: its conjunctions are packed and written behind the others. Arrays and lists are
only ever appended to, so a `LivePart`, which is the segment as it was at one moment, never changes, and is read without
a lock. Removed rules are left out by the view's mask, as in every other segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import F64, I32, I64, U8, Arrays
from eligo.compile.dict_events import encode_event, few, read_rest
from eligo.compile.encode import Encode, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.forking import cached_property
from eligo.index.rows.content import text_checks
from eligo.index.rows.event_view import view_event
from eligo.index.rows.growable import with_room
from eligo.index.rows.packed_predicate import BEHIND, attribute_of, check_words, first_check, flags_of, row_words
from eligo.index.rows.pooled_index import PooledScratch
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_rows
from eligo.jit import handle, inline, kernel
from eligo.language.tree import Node
from eligo.rule import Rule, RuleId
from eligo.segments.base import NO_ROWS, MaskedSegment
from eligo.segments.pending import Pending
from eligo.segments.row_builder import RowBuilder
from eligo.segments.rule_table import JOINED, RuleTable, make_rule_table, rule_of

_QUICK = 4096  # words that may be searched while the interpreter's lock is held
_loaded = False  # whether the kernels that read and search in one call are loaded
LOOKED_AT, MATCHED = 1, 2  # what living rules do with an attribute: look at it, match it with a pattern

make_live = handle("LiveHandle", ("words", "tree", "tree_offsets", "strings"))
make_live_scratch = handle("LiveScratchHandle", ("truth", "stack", "starts", "ends", "found", "counters", "matched"))


class LiveSegment(Pending):
    """The growing segment, which belongs to the writer. Readers get a `part` of it."""

    builder: RowBuilder

    def __init__(self, builder: RowBuilder, strings: Strings) -> None:
        super().__init__(builder)
        self.strings = strings
        self.conjunctions = self.end = 0  # rows, and their words
        self.text: set[int] = set()  # attributes whose events must bring the bytes of their strings
        self.pattern: set[int] = set()  # those with a pattern
        self.deepest = 1  # tokens of the largest tree
        self.in_order = True  # rows are in the order of their sequence numbers
        self.scratches: deque[LiveScratch] = deque()
        self._words, self._tree = np.zeros(256, np.int64), np.zeros(64, np.int32)
        self._tree_offsets = np.zeros(64, np.int64)
        self._handle: Any = None
        self._known_strings = -1

    def add(self, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...], sequence: int) -> None:
        """Appends a rule in normal form. Nothing has changed for readers if this fails."""
        before = self.builder.rules
        try:
            self.builder.add(root)
            words, offsets = self.builder.rows_from(self.conjunctions)
            self._append(words, offsets, self.builder.last_tree())
        except BaseException:
            self.builder.forget_from(before)
            raise
        if self.sequence and sequence < self.sequence[-1]:
            self.in_order = False
        self.append(rule, text, weight, tags, sequence)

    def _append(self, words: I64, offsets: I64, tree: I32) -> None:
        """Writes rows and a tree behind the others."""
        n, end = len(self.ids), self.end + len(words)
        begin, stop = int(self._tree_offsets[n]), int(self._tree_offsets[n]) + len(tree)
        with_words = with_room(self._words, end + BEHIND, self.end)
        with_tree = with_room(self._tree, stop, begin)
        with_offsets = with_room(self._tree_offsets, n + 2, n + 1)
        if with_words is not self._words or with_tree is not self._tree or with_offsets is not self._tree_offsets:
            self._words, self._tree, self._tree_offsets, self._handle = with_words, with_tree, with_offsets, None
        if len(words):
            checks = text_checks(words, offsets)
            words[offsets[:-1]] += self.conjunctions << 32  # the number of each conjunction
            self._words[self.end : end] = words
            for check in checks.tolist():
                self.text.add(check >> 1)
                if check & 1:
                    self.pattern.add(check >> 1)
        self._tree[begin:stop] = tree
        self._tree_offsets[n + 1] = stop
        self.conjunctions += len(offsets) - 1
        self.deepest = max(self.deepest, len(tree))
        self.end = end

    def part(self, attributes: int) -> tuple[LivePart, U8]:
        """Returns the segment as it is now, and the mask of its living rules, which is empty if all are alive.
        `attributes` is above the numbers of all attributes.
        """
        arrays = self._words, self._tree, self._tree_offsets
        if self._handle is None or self._known_strings != self.strings.taken:
            self._known_strings = self.strings.taken
            self._handle = make_live(*arrays, make_string_handle(*self.strings.spans()))
        alive = np.zeros(0 if len(self.rows) == len(self.ids) else len(self.ids), np.uint8)
        if len(alive):
            alive[list(self.rows.values())] = 1
        return LivePart(self, attributes, arrays, self._handle), alive


class LiveScratch(PooledScratch):
    """Private memory of one search: an event in coordinates, and the truth of each conjunction."""

    handle: Any = None
    live_type: Any = None  # type of the handle that `enter` takes
    conjunctions = rules = deepest = 0
    state: I64 | None = None  # state of the part that was searched last

    def fit(self, state: I64, entries: int) -> None:
        """Makes room for the part with this state, and for events of so many entries."""
        self.state = None
        attributes, conjunctions, rules, deepest, _ = state.tolist()
        self.fit_event(attributes, entries, conjunctions + 1)
        if self.handle is None or self.conjunctions < conjunctions or self.rules < rules or self.deepest < deepest:
            self.conjunctions, self.rules, self.deepest = len(self.found), 2 * rules, 2 * deepest
            self.matched = np.zeros(64 * rules + 64, np.int32)
            self.handle = make_live_scratch(
                np.zeros(self.conjunctions, np.uint8), np.zeros(self.deepest + 1, np.uint8), np.zeros(1, np.int64),
                np.zeros(1, np.int64), self.found, self.counters, self.matched,
            )  # fmt: skip
        self.state = state


class LivePart(MaskedSegment):
    """The live segment with the rules that it had at one moment."""

    def __init__(self, segment: LiveSegment, attributes: int, arrays: tuple[NDArray[Any], ...], handle: Any) -> None:
        self._scratches, self._arrays, self._handle = segment.scratches, arrays, handle
        self._state = np.array(
            [attributes, segment.conjunctions, len(segment.ids), segment.deepest, segment.end], np.int64
        )
        self._end, self._in_order = segment.end, segment.in_order
        self.table = LiveTable(segment, len(segment.ids))
        self.text_attributes, self.pattern_attributes = list(segment.text), list(segment.pattern)
        self.conjunctions = segment.conjunctions

    def match(self, events: EventBuffer, event: int, allowed: U8) -> I32:
        scratch = self._scratch(events)
        self._search(events, event, event + 1, scratch, allowed, scratch.offsets)
        count = scratch.places[1]
        rows: I32 = scratch.matched[:count].copy() if count else NO_ROWS
        self._scratches.append(scratch)
        return rows if self._in_order or count < 2 else rows[np.argsort(self.table.sequence[rows])]

    def match_event(self, encoder: Encoder, event: Any, buffer: EventBuffer, allowed: U8, encode: Encode) -> I32:
        reader = given = None
        if type(event) is dict:
            reader, given = buffer.dicts, id(event)
        elif encode is not encode_event:  # JSON
            reader, given = buffer.json, event
        if reader is None or self._end > _QUICK or not reader.is_for(encoder, buffer):
            encode(encoder, event, buffer)
            return self.match(buffer, 0, allowed)
        scratch = self._scratch(buffer)
        call = reader.call
        if call is None or call.state is not self._state:
            call = self._call(reader, given, scratch, allowed)
        ended = -1 if call is None else call.enter(call.handle, given, scratch.event_view, scratch.handle, allowed)
        rows: I32 = scratch.matched[:ended].copy() if ended > 0 else NO_ROWS
        self._scratches.append(scratch)
        if ended < 0:
            if call is None or given is event or not read_rest(reader, ended, encoder, buffer):
                encode(encoder, event, buffer)
            return self.match(buffer, 0, allowed)
        return rows if self._in_order or ended < 2 else rows[np.argsort(self.table.sequence[rows])]

    def _call(self, reader: Any, given: Any, scratch: LiveScratch, allowed: U8) -> Any:
        """Returns the call that reads and searches in one, or None while there were too few events to load it."""
        global _loaded
        reader.waited += 1
        if reader.waited <= few(_loaded):
            return None
        from eligo.segments.live_events import LiveCall, match_dict, match_text

        _loaded = True
        one = match_dict if isinstance(given, int) else match_text
        given = given, scratch.event_view, scratch.handle, allowed
        reader.call = LiveCall(one, reader.handle, self._handle, self._state, given)
        return reader.call

    def match_batch(self, events: EventBuffer, allowed: U8) -> tuple[I64, I32]:
        scratch = self._scratch(events)
        counts, pieces, first = [np.zeros(1, np.int64)], [NO_ROWS], 0
        ends = np.zeros(events.events + 1, np.int64)
        while first < events.events:
            stop = self._search(events, first, events.events, scratch, allowed, ends)
            counts.append(np.diff(ends[: stop - first + 1]))
            pieces.append(scratch.matched[: ends[stop - first]].copy())
            first = stop
        self._scratches.append(scratch)
        found = np.cumsum(np.concatenate(counts))
        rows: I32 = np.concatenate(pieces)
        if not self._in_order:
            numbers = np.repeat(np.arange(events.events), np.diff(found))
            rows = rows[np.lexsort((self.table.sequence[rows], numbers))]
        return found, rows

    def _search(self, events: EventBuffer, first: int, stop: int, scratch: LiveScratch, allowed: U8, ends: I64) -> int:
        given = events.handle
        args = self._handle, given, first, stop, self._state, scratch.event_view, scratch.handle, allowed, ends
        known = given._type is scratch.event_type and self._handle._type is scratch.live_type
        if not known:
            scratch.bind(search_live, args)
            scratch.live_type = self._handle._type
        return scratch.enter(*args)  # type: ignore[no-any-return]

    def _scratch(self, events: EventBuffer) -> LiveScratch:
        try:
            scratch = self._scratches.pop()
        except IndexError:
            scratch = LiveScratch()
        if scratch.state is not self._state or scratch.entries < events.widest or not scratch.shares():
            scratch.fit(self._state, events.widest)
        return scratch

    def arrays(self) -> Arrays:
        """Returns the arrays by name, so that `stats` can count their bytes."""
        return dict(zip(("words", "tree", "tree_offsets"), self._arrays, strict=True))

    @property
    def predicates(self) -> int:
        """Number of checks in all conjunctions; equal ones are counted wherever they stand."""
        return int(checks_in(self._arrays[0], self._end))

    def counters(self) -> NDArray[np.int64]:
        return sum((s.counters[:2] for s in list(self._scratches)), np.zeros(2, np.int64))

    def asked(self, names: Sequence[str], alive: U8) -> tuple[list[str], list[str]]:
        seen = self._walked(alive, np.zeros(int(self._state[0]), np.bool_))[0]
        named, patterned = (
            [names[number] for number in np.nonzero(some)[0].tolist()] for some in (seen, seen == MATCHED)
        )
        return named, patterned

    def naming(self, alive: U8, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns for each rule whether it is alive and looks at a wanted attribute. wanted[a] is for attribute a."""
        return self._walked(alive, wanted)[1]

    def _walked(self, alive: U8, wanted: NDArray[np.bool_]) -> tuple[U8, NDArray[np.bool_]]:
        seen, marks = np.zeros(len(wanted), np.uint8), np.zeros(len(self), np.bool_)
        mark_named(self._handle, self._end, alive, wanted, seen, marks)
        return seen, marks


class LiveTable:
    """Ids, texts, weights and tags of the first rules of a live segment, as `RuleTable` gives them."""

    def __init__(self, segment: LiveSegment, rules: int) -> None:
        self._segment, self._rules = segment, rules

    def __len__(self) -> int:
        return self._rules

    def row(self, rule: RuleId) -> int:
        """Returns the last row of an id, or -1. Earlier rows of it are of rules that were replaced or removed."""
        ids = self._segment.ids
        for row in range(self._rules - 1, -1, -1):
            if ids[row] == rule:
                return row
        return -1

    def id(self, row: int) -> RuleId:
        return self._segment.ids[row]

    def id_list(self, rows: I32) -> list[RuleId]:
        ids = self._segment.ids
        return [ids[row] for row in rows.tolist()]

    def texts_of(self, rows: I64) -> list[str]:
        return [self._segment.texts[row] for row in rows.tolist()]

    def rule(self, row: int, text: str | None = None) -> Rule:
        s = self._segment
        return rule_of(s.ids[row], text or s.texts[row], s.weights[row], dict.fromkeys(s.tags[row]))

    def tag_names(self) -> list[str]:
        return list(dict.fromkeys(tag for tags in self._segment.tags[: self._rules] for tag in tags))

    @cached_property
    def joins(self) -> tuple[I32, list[str]] | None:
        """The same as `RuleTable.joins`, except that each row with such a tag has a number of its own."""
        every = self._segment.tags[: self._rules]
        names = [next((tag[1:] for tag in tags if tag.startswith(JOINED)), "") for tags in every]
        if not any(names):
            return None
        return np.array([row if name else -1 for row, name in enumerate(names)], np.int32), names

    @cached_property
    def sequence(self) -> I64:
        return np.array(self._segment.sequence[: self._rules], np.int64)

    @cached_property
    def weight(self) -> F64:
        return np.array(self._segment.weights[: self._rules], np.float64)

    @cached_property
    def _whole(self) -> RuleTable:
        s, n = self._segment, self._rules
        return make_rule_table(s.sequence[:n], s.ids[:n], s.texts[:n], s.weights[:n], s.tags[:n])

    @property
    def ids(self) -> I64:
        return self._whole.ids

    def id_column(self, rows: I32) -> pa.Array:
        return self._whole.id_column(rows)

    def rows_with_tags(self, tags: Container[str]) -> U8:
        return self._whole.rows_with_tags(tags)


@kernel
def search_live(live, e, first, stop, state, event_view, scratch, allowed, ends):
    """Writes the rules that events first, first + 1, … match into scratch.matched, as far as there is room: those of
    event first + i are matched[ends[i]:ends[i+1]]. Returns the first event not done.
    """
    matched, rules = scratch.matched, state[2]
    k, event = 0, first
    ends[0] = 0
    while event < stop and len(matched) - k >= rules:
        k = scan_live(live, state, e, event, event_view, scratch, allowed, k)
        event += 1
        ends[event - first] = k
    return event


@inline
def scan_live(live, state, e, event, event_view, scratch, allowed, k):
    """Writes the rules that one event matches into scratch.matched from k on. Returns where they end."""
    truth, found, matched, tree, offsets = scratch.truth, scratch.found, scratch.matched, live.tree, live.tree_offsets
    view_event(e, event, event_view, state[0])
    scratch.starts[0], scratch.ends[0] = 0, state[4]
    count = 1 if state[4] > 0 else 0
    one_value = event_view.count[1] == 0
    n = verify_rows(
        live.words,
        scratch.starts,
        scratch.ends,
        count,
        one_value,
        event_view,
        e,
        live.strings,
        found,
        0,
        scratch.counters,
    )
    scratch.counters[0] += state[1]
    for i in range(n):
        truth[found[i]] = 1
    for rule in range(state[2]):
        if len(allowed) == 0 or allowed[rule]:
            matched[k] = rule
            k += is_true(tree, offsets[rule], offsets[rule + 1], truth, scratch.stack)
    for i in range(n):
        truth[found[i]] = 0
    return k


@inline
def is_true(tree, first, stop, truth, stack):
    """Returns 1 if the truth of conjunctions makes a tree true, else 0. Read backwards, children come before a node."""
    depth = 0
    for t in range(stop - 1, first - 1, -1):
        token = tree[t]
        if token >= 0:
            stack[depth] = truth[token]
            depth += 1
            continue
        children = -token // 2
        depth -= children
        holds = 0
        for child in range(depth, depth + children):
            holds += stack[child]
        stack[depth] = holds > 0 if token & 1 else holds == children
        depth += 1
    return np.int64(stack[0]) if depth else np.int64(0)


@kernel
def mark_named(live, end, alive, wanted, seen, marks):
    """Sets seen[a] to LOOKED_AT for each attribute that a living rule looks at, and to MATCHED if one has a pattern for
    it. Sets marks[r] for each living rule r that looks at a wanted attribute.
    """
    words, tree, offsets = live.words, live.tree, live.tree_offsets
    places = np.empty(end + 1, np.int64)  # where each row begins
    at, rows = np.int64(0), 0
    while at < end:
        places[rows] = at
        at += row_words(words, at)
        rows += 1
    for rule in range(len(marks)):
        if len(alive) and not alive[rule]:
            continue
        for t in range(offsets[rule], offsets[rule + 1]):
            if tree[t] < 0:
                continue
            at = places[tree[t]]
            q, stop = first_check(words, at), at + row_words(words, at)
            while q < stop:
                a = attribute_of(words[q])
                seen[a] = max(seen[a], np.uint8(MATCHED if flags_of(words[q]) & codes.RESIDUAL else LOOKED_AT))
                marks[rule] = marks[rule] or wanted[a]
                q += check_words(words[q])


@kernel
def checks_in(words, end):
    """Returns how many checks the rows in words[:end] have."""
    n, at = 0, np.int64(0)
    while at < end:
        q, stop = first_check(words, at), at + row_words(words, at)
        while q < stop:
            n += 1
            q += check_words(words[q])
        at = stop
    return n
