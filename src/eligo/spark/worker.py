"""What runs inside Spark's Python workers: Arrow batches of events in, Arrow batches of matches out.

An incoming batch holds the columns that `match` selected, named by number (a dot or a backquote in a column's own
name is a syntax error inside `mapInArrow`), those to keep first:

    c0 … ck │ ck+1 … cn │ version     attributes that are not kept, flattened: the field `age` of `user` is one column
    ╰── given back untouched  ╰── in a stream of a rule set with versions: that of this micro-batch

    exploded:  kept columns, rule[, weight][, version]         one row a match
    array:     kept columns, rules[, weights][, version]       one row an event
    ranked:    kept columns, array of (order, sequence, rule, weight)      one row an event, of one shard of several

Spark takes the columns of the answer by position, so this file is the one place where their order and types are made:
kept columns keep the Arrow types they came with, and the others have the types that the driver declared to Spark.

For `observe` two more columns come last: ASIDE, the number of rules that are set aside, and PARTIAL, of how many events
something could not be asked (`partial_events.py`): of a row that is an event 0 or 1. Where a row is a match, events
without one have no row; so there is one row more, with the number for a batch, which is no match and is dropped once it
is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.arrow import arrow_of
from eligo.compile.compiled import I64
from eligo.errors import SnapshotError
from eligo.segments.batch_rejects import without
from eligo.segments.encoding import Events
from eligo.segments.pace import Found, Pace
from eligo.spark.arrow_types import bare
from eligo.spark.batch_limits import by_event, bytes_by_row, cuts
from eligo.spark.current import admit
from eligo.spark.event_columns import column_names
from eligo.spark.memory import give_back, keep_little
from eligo.spark.partial_events import ROW, Names, found_in, found_in_texts
from eligo.spark.row_groups import Files
from eligo.spark.variant import attribute_column
from eligo.spark.worker_cache import Open, Source, asked_documents, opened

RANKED: Final = "ranked"
ASIDE: Final = "eligo_set_aside"
PARTIAL: Final = "eligo_partial"

_Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """All that a worker needs to know; travels inside the query."""

    source: Source  # where the rules are
    kept: tuple[str, ...]  # names of the first incoming columns, which are given back
    attributes: tuple[tuple[str, int], ...]  # what rules look at: the attribute and the number of its column
    columns: int  # how many come in
    output: str  # "exploded", "array", or RANKED
    integers: bool  # rule ids are integers, not strings
    version_column: str | None = None  # name of the answer's column for it
    version_place: int | None = None  # number of the incoming column with it
    version_least: int = 0  # and no older one than this is taken
    top_k: int | None = None
    tags: tuple[str, ...] | None = None
    variants: tuple[tuple[str, int, tuple[str, ...]], ...] = ()  # attributes in Variants: column, and keys in it
    counts_aside: bool = False  # the answer has a column with the number of rules that are set aside, for `observe`
    counts_partial: bool = False  # and one with the number of events of which something could not be asked
    files: Files | None = None  # the events are in files: what comes in are numbers of tasks
    documents: int = 0  # version of the documents, 0: it comes with the events, or there are none
    documents_place: int | None = None  # number of the incoming column with it
    documents_least: int = 0  # and no older one than this is taken
    json: str | None = None  # the events are JSON texts: the one attribute, with their column


def run(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function given to `mapInArrow`."""
    keep_little()
    try:
        yield from _answers(plan, batches)
    finally:
        give_back()


def _answers(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pace = Pace()
    for batch in batches if plan.files is None else plan.files.read(batches):
        if batch.schema.names != column_names(plan.columns):
            raise RuntimeError(f"Spark sent the columns {batch.schema.names}, planned were c0 … c{plan.columns - 1}")
        version = plan.source.version
        if not batch.num_rows and (plan.version_place, plan.documents_place) != (None, None):
            continue
        if plan.version_place is not None:
            version = _admitted(batch.column(plan.version_place), plan.source.path, plan.version_least)
        if plan.documents_place is not None:
            column = batch.column(plan.documents_place)
            plan = replace(plan, documents=_admitted(column, plan.source.documents, plan.documents_least))
        yield from answers(plan, version, batch, pace)


def answers(plan: Plan, version: int, batch: pa.RecordBatch, pace: Pace | None = None) -> Iterator[pa.RecordBatch]:
    """The matches of some events; the columns to give back are the first ones of `batch`."""
    rules = opened(plan.source, version, plan.integers)
    documents = asked_documents(plan.source, version, plan.integers, plan.documents) if rules.joining.rules else None
    partial = np.zeros(batch.num_rows, np.bool_)

    def search(events: Events, without: Names = frozenset()) -> Iterator[Found]:
        screen = None if documents is None else documents.screen()
        return rules.searcher.search(events, plan.tags, plan.top_k, plan.output == RANKED, without, screen)

    def search_columns(some: pa.RecordBatch, without: Names) -> Iterator[Found]:
        return search(_events(plan, rules, some, without), without)

    def look(some: pa.RecordBatch) -> Iterator[Found]:
        if plan.json is not None:
            return found_in_texts(some, search, partial, plan.source.path)
        return found_in(some, search_columns, partial, plan.source.path)

    found = (pace or Pace()).through(_looked_at(plan, rules, batch), look)
    if plan.json is not None:  # here, where their matches have been counted: they may be many
        found = without(found, partial)
    write = {"exploded": _exploded, "array": _array, RANKED: _ranked}[plan.output]
    yield from write(plan, version, batch, found, partial)


def _looked_at(plan: Plan, rules: Open, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The incoming columns that rules look at, and the number of each row."""
    places = [*plan.attributes, *(part[:2] for part in plan.variants)]
    numbers = sorted({number for name, number in places if name in rules.asked or plan.json is not None})
    columns = {batch.schema.names[number]: batch.column(number) for number in numbers}
    return pa.RecordBatch.from_pydict({**columns, ROW: arrow_of(np.arange(batch.num_rows))})


def _events(plan: Plan, rules: Open, some: pa.RecordBatch, without: Names) -> pa.RecordBatch:
    """What rules look at, by the names of the attributes, but for some of these; one may have several columns."""
    names, parts = column_names(plan.columns), list[tuple[str, pa.Array]]()
    asked = rules.asked - without
    # A struct that is kept comes as a whole; but its fields that rules name come as columns of their own.
    parts += [(name, bare(some.column(names[number]))) for name, number in plan.attributes if name in asked]
    for name, number, keys in plan.variants:
        if name in asked:
            column = attribute_column(name, some.column(names[number]), keys, name in rules.listable)
            parts.append((name, column))
    # A batch without columns would have no rows, and an event of which rules look at nothing is one all the same.
    parts = parts or [("", pa.nulls(some.num_rows))]
    return pa.RecordBatch.from_arrays([column for _, column in parts], names=[name for name, _ in parts])


def _admitted(column: pa.Array, path: str, least: int) -> int:
    """The one version of a micro-batch; one that goes back is refused."""
    found = pc.min_max(column).as_py()
    if column.null_count or found["min"] != found["max"]:
        raise SnapshotError(
            f"one batch of events came with the versions {found['min']} and {found['max']}, {column.null_count} rows "
            "without one: Spark read the file CURRENT of the rule set twice within a micro-batch; start the query again"
        )
    version = int(found["min"])
    admit(path, version, least)
    return version


def _exploded(
    plan: Plan, version: int, batch: pa.RecordBatch, found: Iterator[Found], partial: _Marks
) -> Iterator[pa.RecordBatch]:
    schema = _schema(plan, batch)
    kept = [batch.column(i) for i in range(len(plan.kept))]
    sizes = sum((bytes_by_row(column) for column in kept), np.zeros(batch.num_rows, np.int64))
    for numbers, rules, *weights in found:
        for start, stop in cuts(sizes, numbers):
            rows = arrow_of(numbers[start:stop])
            columns = [column.take(rows) for column in kept]
            columns.append(_ids(plan, rules[start:stop]))
            columns += [arrow_of(part[start:stop]) for part in weights]
            yield _batch(plan, version, columns, schema, np.zeros(len(rows), np.int64))
    # Of several passes over the events, one for each shard, the first one counts them.
    if plan.counts_partial and partial.any() and plan.source.shards in (None, (0,)):
        event = arrow_of(np.flatnonzero(partial)[:1])
        columns = [column.take(event) for column in kept]
        columns.append(pa.array([0 if plan.integers else ""], rule_type(plan)))
        columns += [] if plan.top_k is None else [arrow_of(np.zeros(1))]
        yield _batch(plan, version, columns, schema, np.array([partial.sum()], np.int64))


def _array(
    plan: Plan, version: int, batch: pa.RecordBatch, found: Iterator[Found], partial: _Marks
) -> Iterator[pa.RecordBatch]:
    schema = _schema(plan, batch)
    kind = rule_type(plan)
    for first, events, some in by_event(batch, found):
        offsets = _offsets(first, events.num_rows, some)
        rules = [_ids(plan, part[1]) for part in some] or [pa.nulls(0, kind)]
        columns = [events.column(i) for i in range(len(plan.kept))]
        columns.append(pa.ListArray.from_arrays(offsets, pa.concat_arrays(rules), type=_list(kind)))
        if plan.top_k is not None:
            weights = np.concatenate([part[2] for part in some] or [np.zeros(0)])
            columns.append(pa.ListArray.from_arrays(offsets, arrow_of(weights), type=_list(pa.float64())))
        yield _batch(plan, version, columns, schema, partial[first : first + events.num_rows].astype(np.int64))


def _ranked(
    plan: Plan, version: int, batch: pa.RecordBatch, found: Iterator[Found], partial: _Marks
) -> Iterator[pa.RecordBatch]:
    kind = _list(_match_type(plan))
    kept = [batch.schema.field(i).with_name(name) for i, name in enumerate(plan.kept)]
    counts = [pa.field(PARTIAL, pa.int64(), nullable=False)] if plan.counts_partial else []
    schema = pa.schema([*kept, pa.field("eligo_found", kind, nullable=False), *counts])
    for first, events, some in by_event(batch, found):
        parts = [pa.nulls(0, kind.value_type)]
        for _, rules, weight, sequence in some:
            order = np.zeros(len(weight)) if plan.top_k is None else -weight
            columns = [arrow_of(order), arrow_of(sequence), _ids(plan, rules), arrow_of(weight)]
            parts.append(pa.StructArray.from_arrays(columns, fields=list(kind.value_type)))
        lists = pa.ListArray.from_arrays(_offsets(first, events.num_rows, some), pa.concat_arrays(parts), type=kind)
        columns = [*(events.column(i) for i in range(len(plan.kept))), lists]
        if plan.counts_partial:
            columns.append(arrow_of(partial[first : first + events.num_rows].astype(np.int64)))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _offsets(first: int, events: int, found: list[Found]) -> pa.Array:
    """Where the list of each event begins; `found` are all the matches of these events, the first one is `first`."""
    offsets = np.zeros(events + 1, np.int32)
    for numbers, *_ in found:
        start, stop = int(numbers[0]), int(numbers[-1]) + 1
        offsets[start - first + 1 : stop - first + 1] = np.bincount(numbers - start)
    return arrow_of(np.cumsum(offsets, dtype=np.int32))


def _ids(plan: Plan, rules: pa.Array) -> pa.Array:
    """Ids in Spark's type. Part of an array is copied first: the cast looks where in the whole its characters end."""
    kind = rule_type(plan)
    return rules if rules.type == kind else pa.concat_arrays([rules]).cast(kind)


def _match_type(plan: Plan) -> pa.DataType:
    fields = [("order", pa.float64()), ("sequence", pa.int64()), ("rule", rule_type(plan)), ("weight", pa.float64())]
    return pa.struct([pa.field(name, kind, nullable=False) for name, kind in fields])


def _batch(plan: Plan, version: int, columns: list[pa.Array], schema: pa.Schema, partial: I64) -> pa.RecordBatch:
    rows = len(partial)
    if plan.version_column is not None:
        columns.append(arrow_of(np.full(rows, version, np.int64)))
    if plan.counts_aside:
        aside = opened(plan.source, version, plan.integers).aside.rules
        documents = asked_documents(plan.source, version, plan.integers, plan.documents)
        aside += 0 if documents is None else documents.aside.rules
        columns.append(arrow_of(np.full(rows, aside, np.int64)))
    if plan.counts_partial:
        columns.append(arrow_of(partial))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def answer_fields(plan: Plan) -> list[pa.Field]:
    """The columns that come after the kept ones."""
    fields: list[tuple[str, pa.DataType]]
    if plan.output == "exploded":
        fields = [("rule", rule_type(plan)), ("weight", pa.float64())]
    else:
        fields = [("rules", _list(rule_type(plan))), ("weights", _list(pa.float64()))]
    if plan.top_k is None:
        del fields[1]
    if plan.version_column is not None:
        fields.append((plan.version_column, pa.int64()))
    if plan.counts_aside:
        fields.append((ASIDE, pa.int64()))
    if plan.counts_partial:
        fields.append((PARTIAL, pa.int64()))
    return [pa.field(name, kind, nullable=False) for name, kind in fields]


def _schema(plan: Plan, batch: pa.RecordBatch) -> pa.Schema:
    """What Spark was told, to the letter: it compares names, types and what may be null, inside lists too."""
    kept = (batch.schema.field(i).with_name(name) for i, name in enumerate(plan.kept))
    return pa.schema([*kept, *answer_fields(plan)])


def rule_type(plan: Plan) -> pa.DataType:
    return pa.int64() if plan.integers else pa.string()


def _list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False))
