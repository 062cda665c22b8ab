"""Events of which an attribute cannot be asked: for them the rules that look at it are set aside, and no others.

    rows of a slice     0      1                 2      3
    unusable there      -      v.a               -      v.a, v.b
    matched with        all    all but v.a's     all    all but v.a's and v.b's

The types of columns tell most of what cannot be asked before a query starts (`set_aside.py`). What is in a Variant,
whether two keys of maps make one attribute, or whether bytes are text is seen only when rows are encoded, which then
raises `UnusableValuesError` with all the rows at fault. These rows are parted from the others, and both are tried
again, until each group is matched; the answers of all groups are put back into the order of the rows.

Events that are JSON texts have no columns. A text that is no event, or one that `Matcher.match_json` would refuse,
matches nothing at all.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.arrow import arrow_of, numpy_of
from eligo.compile.compiled import I64, U8
from eligo.compile.encode import Encoder
from eligo.compile.json_texts import JsonEvents
from eligo.compile.unusable import UnusableValuesError
from eligo.engine import Engine
from eligo.rule import Reject
from eligo.segments.batch_rejects import matched_beside_rejected
from eligo.segments.encoding import Events
from eligo.segments.pace import Found
from eligo.segments.rule_set import RuleSet
from eligo.segments.screen import Screen
from eligo.segments.view import View
from eligo.spark.set_aside import ids_naming, rows_looking

log = logging.getLogger("eligo.spark")

ROW: Final = "row"  # the column with the number of an event in its batch

_REMEMBERED: Final = 32  # attributes whose rules are known
_WITHOUT: Final = "events are matched without the rules that look at an attribute which cannot be asked of them"
_UNUSABLE: Final = "events match nothing whose JSON text cannot be used"
_PLACE: Final = re.compile(r"event \d+: ")  # a number within a batch of Spark's, which says nothing to anybody

Names = frozenset[str]
Search = Callable[[pa.RecordBatch, Names], Iterator[Found]]

_warned: object = None  # the task of this process that wrote a warning last


class Searcher:
    """The answers of one engine, with the rules that look at some attributes or without them."""

    def __init__(self, engine: Engine, asked: Names) -> None:
        """`asked` are all attributes that rules look at, of all shards, though the engine may have some."""
        self._engine, self._attributes = engine, asked
        self._for_texts: tuple[View, View] | None = None  # the engine's view, and the one made of it
        self._naming: OrderedDict[str, Any] = OrderedDict()

    def search(
        self,
        events: pa.RecordBatch | JsonEvents,
        tags: tuple[str, ...] | None,
        top_k: int | None,
        ranked: bool,
        without: Names,
        screen: Screen | None = None,
    ) -> Iterator[Found]:
        """The matches of some events; of the best k with weights, ranked also with sequence numbers.

        What rules with quantifiers leave to be asked of documents is asked of `screen`.
        """
        view: View = self._view_for_texts() if isinstance(events, JsonEvents) else self._engine.rules.view
        view = view if screen is None else view.asking(screen)
        if not without:
            return _asked(view, events, tags, top_k, ranked)
        if view.changes:
            return self._search_living(view, events, tags, top_k, without)
        masks: list[U8] = list(view.allowed(tags))
        for name in without:
            for i, others in enumerate(self._named(name, self._others_in_segments)):
                masks[i] = masks[i] & others if len(masks[i]) else others
        left = View(view.segments, masks, view.encoder, view.names)
        return _asked(left if screen is None else left.asking(screen), events, None, top_k, ranked)

    def _view_for_texts(self) -> View:
        """The view that refuses the same texts whichever shards it has: an encoder goes by the rules of its engine."""
        view = self._engine.rules.view
        if view.changes:
            return view
        if self._for_texts is None or self._for_texts[0] is not view:  # which has a better index, now and then
            known = view.encoder
            encoder = Encoder(known.attributes, known.strings, known.special, lambda: (self._attributes, known.special))
            made = View(view.segments, view.alive, encoder.narrowed() or encoder, view.names)
            self._for_texts = view, made
        return self._for_texts[1]

    def _search_living(
        self, view: View, events: pa.RecordBatch, tags: tuple[str, ...] | None, top_k: int | None, without: Names
    ) -> Iterator[Found]:
        """Rules that change in place have no masks: they are left out of the answers, the best k are chosen then."""
        every = None if top_k is None else self._engine.rules.count
        for numbers, rules, *weights in _asked(view, events, tags, every, False):
            kept = np.ones(len(numbers), np.bool_)
            for name in without:
                kept &= ~numpy_of(pc.is_in(rules, value_set=self._named(name, self._ids).cast(rules.type)))
            if top_k is not None:
                before: I64 = np.cumsum(kept) - kept  # matches that stay, before each
                kept &= before - before[np.searchsorted(numbers, numbers)] < top_k
            yield numbers[kept], rules.filter(arrow_of(kept)), *(weight[kept] for weight in weights)

    def _named(self, attribute: str, find: Callable[[str], Any]) -> Any:
        """What was found for an attribute, remembered for some of them."""
        if attribute not in self._naming:
            self._naming[attribute] = find(attribute)
            if len(self._naming) > _REMEMBERED:
                self._naming.popitem(last=False)
        self._naming.move_to_end(attribute)
        return self._naming[attribute]

    def _others_in_segments(self, attribute: str) -> list[U8]:
        """For the rows of each segment, whether the rule does not look at the attribute."""
        rules = self._engine.rules
        assert isinstance(rules, RuleSet)
        names = frozenset({attribute})
        return [(~rows_looking(rules, segment, names)).astype(np.uint8) for segment in rules.view.segments]

    def _ids(self, attribute: str) -> pa.Array:
        ids = ids_naming(self._engine, frozenset({attribute}))
        return pa.array(ids, pa.int64() if self._engine.loader.id_type is int else pa.string())


def _asked(
    view: Any, events: pa.RecordBatch | JsonEvents, tags: tuple[str, ...] | None, top_k: int | None, ranked: bool
) -> Iterator[Found]:
    if ranked:
        return view.ranked(events, tags, top_k)  # type: ignore[no-any-return]
    return view.batch(events, tags, None) if top_k is None else view.best(events, tags, top_k)  # type: ignore[no-any-return]


def found_in(events: pa.RecordBatch, search: Search, partial: NDArray[np.bool_], path: str) -> Iterator[Found]:
    """The matches of a slice of events, which are encoded before the first of their matches comes.

    Events of which something cannot be asked are marked in `partial`, by their numbers in the column ROW; the first of
    a task is warned of.
    """
    try:
        found = search(events, frozenset())
        first = next(found, None)
    except UnusableValuesError as error:
        groups = _parted(np.arange(events.num_rows), frozenset(), error)
        warn_once(path, _WITHOUT, _PLACE.sub("", str(error), count=1))
        yield from _found_by_group(events, search, groups, partial)
        return
    if first is not None:
        yield first
        yield from found


def found_in_texts(
    texts: pa.RecordBatch,
    search: Callable[[Events], Iterator[Found]],
    partial: NDArray[np.bool_],
    path: str,
) -> Iterator[Found]:
    """The same for events that are JSON texts, in the first column; null is none.

    Events that are marked are matched as ones without attributes: whoever asked leaves that out.
    """
    from eligo.compile.ndjson import json_blocks

    rejects: list[Reject] = []
    (events,) = json_blocks(texts.column(0))
    found = list(matched_beside_rejected(search, events, rejects))
    if rejects:
        first = min(rejects, key=lambda reject: reject.row)
        partial[numpy_of(texts.column(ROW))[[reject.row for reject in rejects]]] = True
        warn_once(path, _UNUSABLE, first.message)
    return iter(found)


def _found_by_group(
    events: pa.RecordBatch, search: Search, groups: list[tuple[I64, Names]], partial: NDArray[np.bool_]
) -> Iterator[Found]:
    """Matches of groups of rows, each without the rules on its attributes, in the order of the rows."""
    numbers = numpy_of(events.column(ROW))
    parts: list[Found] = []
    while groups:
        rows, without = groups.pop()
        try:
            found = list(search(events.take(arrow_of(rows)), without))
        except UnusableValuesError as error:
            groups += _parted(rows, without, error)
            continue
        parts += [(rows[mine], *others) for mine, *others in found]
        if without:
            partial[numbers[rows]] = True
    if parts:
        order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
        yield tuple(_in_order(columns, order) for columns in zip(*parts, strict=True))


def _parted(rows: I64, without: Names, error: UnusableValuesError) -> list[tuple[I64, Names]]:
    """The rows that an error blames, to be asked without its attribute, and the others."""
    bad = np.full(len(rows), error.rows is None)
    if error.rows is not None:
        bad[error.rows] = True
    if not error.attribute or error.attribute in without or not bad.any():
        raise error
    groups = [(rows[~bad], without), (rows[bad], without | {error.attribute})]
    return [group for group in groups if len(group[0])]


def _in_order(columns: tuple[Any, ...], order: I64) -> Any:
    if isinstance(columns[0], pa.Array):
        return pa.concat_arrays(columns).take(arrow_of(order))
    return np.concatenate(columns)[order]


def warn_once(path: str, consequence: str, why: str) -> None:
    """Say once a task what could not be asked of the first such event, and what that means."""
    from pyspark import TaskContext

    global _warned
    context = TaskContext.get()
    task = None if context is None else context.taskAttemptId()
    if task is None or task != _warned:
        _warned = task
        log.warning("%s: %s, of the first one: %s", path, consequence, why)
