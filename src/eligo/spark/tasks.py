"""What the workers do when rules are compiled.

    read_unit       rows of rules, sorted by id  ──▶  a piece (segments/pieces.py), a table of texts, a table of rejects
    merge_units     the strings of all pieces    ──▶  one dictionary, and for each unit its numbers in it
    build_shard     its share of all pieces      ──▶  a segment: arrays, index, labels

Every task writes files named by their content into the job's folder and returns what names them. A task that
runs twice, because a worker died or was slow, makes the same files again; what nobody names is swept away.

Rules of a unit are numbered by their row in its table of texts; the driver knows how many rules stand in the units
before it, and a shard adds that. So the order of rules is the order of their ids, whatever the partitioning.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of, texts_of
from eligo.bulk import MANY, Columns, table_columns, text_column
from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import I64, Arrays, kept_slices
from eligo.compile.naming import attribute_counts
from eligo.compile.strings import Strings, merge_strings
from eligo.errors import DuplicateRuleError, EligoError, RuleTypeError
from eligo.evaluate.registry import choose as choose_evaluator
from eligo.forking import cached_property
from eligo.index.registry import choose as choose_index
from eligo.language import Limits, Quantified
from eligo.reading import NOTHING, check_id, normal_form, owner_of, read_rule, tags_of, weight_of
from eligo.segments.joining import Joining, joining_of
from eligo.segments.pending import BulkPending, Pending
from eligo.segments.pieces import join_pieces, make_piece, restore_piece
from eligo.segments.segment import Recipe, Segment
from eligo.store.arrays import ArrayFile, map_arrays, write_arrays
from eligo.store.tables import REJECTS_SCHEMA, ROW_BITS, RULES_SCHEMA, TableWriter, locator_text, read_statistics
from eligo.store.versions import Part, TableFile

if TYPE_CHECKING:
    from eligo.compile.rule_text.reader import ReadRules, TextReader

_WRITTEN = 16_384  # rules held as Python objects before they go to the table


@dataclass(frozen=True)
class Settings:
    """How rules are compiled; travels inside the query."""

    index: str
    evaluator: str
    absent: str
    multi: frozenset[str]  # declared, or used with `contains` somewhere
    limits: Limits
    options: dict[str, Any] = field(default_factory=dict)

    def recipe(self, attributes: Attributes, strings: Strings) -> Recipe:
        return Recipe(
            choose_index(self.index),
            choose_evaluator(self.evaluator),
            attributes,
            strings,
            limits=self.limits,
            options=self.options,
            batches=True,
        )

    @cached_property
    def check(self) -> Any:
        """Refuses a rule in normal form that is more than the evaluator takes."""
        evaluator = choose_evaluator(self.evaluator)
        settings = evaluator.settings(self.limits, self.options)
        return lambda normal: evaluator.check(normal, **settings)

    def doubtful(self, found: ReadRules) -> NDArray[np.bool_]:
        """Marks the rules that may be more than the evaluator takes: `check` has to decide."""
        evaluator = choose_evaluator(self.evaluator)
        return evaluator.doubtful(found.compiled, found.leaves, **evaluator.settings(self.limits, self.options))


class Unit(msgspec.Struct, frozen=True):
    """What reading one unit left in the job's folder."""

    unit: int
    rules: int
    rejected: int
    piece: ArrayFile
    texts: TableFile
    rejects: TableFile | None
    attributes: tuple[str, ...]
    buckets: tuple[int, ...]  # rules in each
    examples: tuple[tuple[str, str], ...]  # the first rejects: id and message
    seconds: float


class Built(msgspec.Struct, frozen=True):
    """A shard, how many of its rules look at each attribute, and how many ask about documents."""

    part: Part
    naming: dict[str, int]
    joining: Joining


class Merged(msgspec.Struct, frozen=True):
    """The dictionary of all units, and their numbers in it: an array a unit."""

    strings: ArrayFile
    numbers: ArrayFile


class Job(msgspec.Struct, frozen=True):
    """All that tasks after the reading need to know; a file in the job's folder, as it grows with the units."""

    units: tuple[Unit, ...]
    attributes: tuple[str, ...]
    statistics: tuple[str, TableFile] | None = None  # folder and file of what was learned of events


def read_unit(settings: Settings, folder: str, id_type: str, batches: Iterator[pa.RecordBatch]) -> Unit:
    """Read the rows of one partition: columns id, expression, weight, tags (as JSON), owner, sorted by id."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    reader = _UnitReader(settings, Path(folder), context.partitionId(), id_type)
    try:
        for batch in batches:
            reader.read(batch)
        return reader.finish()
    except BaseException:
        reader.abort()
        raise


class _UnitReader:
    """Rules of one unit on their way into a piece."""

    def __init__(self, settings: Settings, folder: Path, unit: int, id_type: str) -> None:
        self.settings, self.folder, self.unit = settings, folder, unit
        self.started = time.perf_counter()
        self.attributes, self.strings = Attributes(), Strings()
        self.pending = BulkPending(
            Pending(Builder(self.attributes, self.strings, absent=settings.absent, multi=settings.multi))
        )
        self.taken = 0
        self.rows: list[tuple[Any, ...]] = []
        self.schema = RULES_SCHEMA(id_type)
        self.texts = TableWriter(folder, "rules", self.schema)
        self.rejects = RejectTable(folder)
        self.last: object = None  # the id taken last: equal ids are neighbours

    def read(self, batch: pa.RecordBatch) -> None:
        """Take the rows of one batch."""
        columns = columns_of(batch)
        if columns is not None:
            self._read_columns(batch, columns)
            return
        for row in rows_of(batch):
            self._take_or_reject(row)
        if len(self.rows) >= _WRITTEN:
            self._write()

    def _read_columns(self, batch: pa.RecordBatch, columns: Columns) -> None:
        """Take the rows of one batch, usual ones together."""
        ids = columns.ids
        differs = np.array([a != b for a, b in pairwise((self.last, *ids, None))], np.bool_)  # from the one before it
        usual = columns.usual & differs[:-1] & differs[1:]
        for first, stop in self.reader.chunks(columns.text_offsets):
            found = self.reader.read(columns.text_data, columns.text_offsets[first : stop + 1], usual[first:stop])
            fast = found.read & ~self.settings.doubtful(found)
            self._write()
            taken, start = fast.copy(), self.taken
            before: I64 = np.cumsum(fast) - fast
            for i in np.flatnonzero(~fast).tolist():
                self.taken = start + int(before[i]) + len(self.rows)
                taken[i] = self._take_or_reject(next(rows_of(batch.slice(first + i, 1))))
            self.taken = start + int(taken.sum())
            self._write_mixed(batch.slice(first, stop - first), columns, first, fast, taken)
            if fast.any():
                compiled = found.numbered(self.attributes, self.strings)
                tree, offsets = kept_slices(compiled.tree, compiled.tree_offsets, fast)
                sequence = start + np.flatnonzero(fast[taken])
                table = columns.block(first, stop, None if fast.all() else fast, sequence, found.mentions, texts=False)
                self.pending.blocks.append((table, replace(compiled, tree=tree, tree_offsets=offsets)))
            if fast[-1]:
                self.last = ids[stop - 1]

    def _write_mixed(
        self, batch: pa.RecordBatch, columns: Columns, first: int, fast: NDArray[np.bool_], taken: NDArray[np.bool_]
    ) -> None:
        """Write the rules that were taken: those of the batch, and those that wait, in the order of both."""
        chosen, places = pa.Table.from_batches([batch]), np.flatnonzero(fast) + first
        if not fast.all():
            chosen = chosen.filter(arrow_of(fast))
        weights = arrow_of(columns.weights[places])
        tags = _tag_lists([columns.tags.get(place, ()) for place in places.tolist()] if columns.tags else len(places))
        together = pa.table([chosen.column("id"), chosen.column("expression"), weights, tags], self.schema.names).cast(
            self.schema
        )
        if self.rows:
            slow = taken & ~fast
            order = np.where(fast, np.cumsum(fast) - 1, int(fast.sum()) + np.cumsum(slow) - 1)[taken]
            waiting = pa.Table.from_batches([rows_as(self.rows, self.schema)])
            together, self.rows = pa.concat_tables([together, waiting]).take(arrow_of(order)), []
        self.texts.write(together)

    def _take_or_reject(self, row: tuple[Any, ...]) -> bool:
        """Take a rule, or note what is wrong with it; whether it was taken."""
        try:
            self._take(*row)
        except EligoError as error:
            self.rejects.add(row[0], row[1], str(error), getattr(error, "position", -1))
            return False
        return True

    def _take(self, rule: Any, expression: Any, weight: Any, tags: Any, owner: Any) -> None:
        check_id(rule, None)
        if rule == self.last:
            raise DuplicateRuleError(f"another row has the id {rule!r}, and is kept: give every rule an id of its own")
        if expression is None:
            raise RuleTypeError("the rule has no expression (null)")
        if isinstance(expression, bytes):
            raise RuleTypeError(f"the expression is no valid UTF-8 text: {expression!r:.60}")
        settings = self.settings
        root, text, _ = read_rule(expression, settings.limits, no_deliveries)
        number, labels = weight_of(weight), tags_of(tags_in(tags))
        normal, hidden = normal_form(root, settings.multi, settings.absent, owner_of(owner))
        settings.check(normal)
        self.pending.pending.add(rule, normal, "", number, (*labels, *hidden), self.taken)
        self.rows.append((rule, text, number, labels))
        self.taken += 1
        self.last = rule

    def _write(self) -> None:
        if self.rows:
            self.texts.write(rows_as(self.rows, self.schema))
        self.rows = []

    @cached_property
    def reader(self) -> TextReader:
        from eligo.compile.rule_text.reader import TextReader

        return TextReader(self.settings.limits, self.settings.absent, self.settings.multi)

    def finish(self) -> Unit:
        """Write what was read."""
        self._write()
        texts, rejects = self.texts.close(), self.rejects.close()
        piece = make_piece(self.pending, self.attributes, self.strings)
        offsets, data = locator_text(np.full(len(piece), self.unit, np.int64), piece.table.sequence)
        piece = replace(piece, table=replace(piece.table, text_offsets=offsets, text_data=data))
        return Unit(
            unit=self.unit,
            rules=len(piece),
            rejected=self.rejects.count,
            piece=write_arrays(self.folder, "piece", piece.arrays()),
            texts=texts,
            rejects=rejects,
            attributes=piece.attributes,
            buckets=tuple(np.diff(piece.bucket_offsets).tolist()),
            examples=tuple(self.rejects.examples),
            seconds=time.perf_counter() - self.started,
        )

    def abort(self) -> None:
        self.texts.abort()
        self.rejects.abort()


class RejectTable:
    """Collects rules or changes that are refused, and writes them to a table."""

    def __init__(self, folder: Path) -> None:
        self.count = 0
        self.examples: list[tuple[str, str]] = []  # the first of them: id and message
        self._rows: list[tuple[Any, ...]] = []
        self._writer = TableWriter(folder, "rejects", REJECTS_SCHEMA)

    def add(self, rule: object, expression: object, message: str, position: int) -> None:
        self.count += 1
        if len(self.examples) < 3:
            self.examples.append((str(rule), message))
        written = None if expression is None else str(expression)
        self._rows.append((None if rule is None else str(rule), message, position, written))
        if len(self._rows) >= _WRITTEN:
            self._write()

    def _write(self) -> None:
        if self._rows:
            self._writer.write(rows_as(self._rows, REJECTS_SCHEMA))
        self._rows = []

    def close(self) -> TableFile | None:
        """The table; none if nothing was refused."""
        self._write()
        return self._writer.close_if_any()

    def abort(self) -> None:
        self._writer.abort()


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of a batch. Text that is no valid UTF-8, which Spark lets through, is given as bytes."""
    try:
        columns = [column.to_pylist() for column in batch.columns]
    except UnicodeDecodeError:
        columns = [_readable(column) for column in batch.columns]
    return zip(*columns, strict=True)


def columns_of(batch: pa.RecordBatch) -> Columns | None:
    """The rows of a batch as columns, if they are worth it and their ids are text."""
    if batch.num_rows < MANY:
        return None
    try:
        columns = table_columns(batch, read_tags=lambda text: tags_of(tags_in(text)))
    except UnicodeDecodeError:
        return None
    return columns if isinstance(columns, Columns) else None


def _tag_lists(tags: list[tuple[str, ...]] | int) -> pa.Array:
    """Lists of tags, or so many empty ones."""
    if isinstance(tags, int):
        return pa.ListArray.from_arrays(arrow_of(np.zeros(tags + 1, np.int32)), texts_of([]))
    offsets = np.concatenate((np.zeros(1, np.int32), np.cumsum([len(some) for some in tags], dtype=np.int32)))
    return pa.ListArray.from_arrays(arrow_of(offsets), texts_of([tag for some in tags for tag in some]))


def _readable(column: pa.Array) -> list[Any]:
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    found: list[Any] = []
    for raw in column.cast(pa.binary()).to_pylist():
        try:
            found.append(raw if raw is None else raw.decode())
        except UnicodeDecodeError:
            found.append(raw)
    return found


def tags_in(text: str | None) -> Any:
    """The tags that rows bring as JSON: a list, or a string with `;` between them."""
    return () if text is None else msgspec.json.decode(text)


def no_deliveries(leaf: Quantified) -> EligoError | None:
    """What is wrong with a quantifier on Spark: nothing is delivered there."""
    if not leaf.received:
        return None
    return RuleTypeError(
        f"{leaf.quantifier} {leaf.variable} in received (…) asks about documents that were delivered to the rule's "
        "owner, and on Spark nothing is delivered",
        hint=f"ask about all documents, {leaf.quantifier} {leaf.variable} (…), or match with an eligo.Matcher",
    )


def containing_of(settings: Settings, batches: Iterator[pa.RecordBatch]) -> list[str]:
    """The attributes that good rules of a partition use with `contains`; bad rules are reported by who reads them."""
    found: set[str] = set()
    for batch in batches:
        for text in _with_others(settings, batch, found):
            try:
                found |= NOTHING if isinstance(text, bytes) else read_rule(text, settings.limits, no_deliveries)[2]
            except EligoError:
                continue
    return sorted(found)


def _with_others(settings: Settings, batch: pa.RecordBatch, known: set[str]) -> Iterator[Any]:
    """The rules of a batch that may use other attributes with `contains` than those that are known by then; the caller
    adds to these what it finds.
    """
    if batch.num_rows < MANY:
        for (text,) in rows_of(batch):
            yield text
        return
    from eligo.compile.rule_text.reader import TextReader

    offsets, data = text_column(batch.column(0))
    first, few = 0, 64
    while first < batch.num_rows:
        # What is read together says `contains` of attributes that are known, or not at all.
        reader, before = TextReader(settings.limits, settings.absent, known), len(known)
        part = offsets[first : first + few + 1]
        few = 2 * few
        for i in np.flatnonzero(~reader.read(data, part).read).tolist():
            yield next(rows_of(batch.slice(first + i, 1)))[0]
            if len(known) > before:
                part, few = part[: i + 2], 64
                break
        first += len(part) - 1


def read_job(path: str) -> Job:
    return msgspec.json.decode(Path(path).read_bytes(), type=Job)


def merge_units(job_path: str) -> Merged:
    """One dictionary of all units' strings."""
    folder, job = Path(job_path).parent, read_job(job_path)
    pieces = [restore_piece(map_arrays(folder, unit.piece, verify=True)) for unit in job.units]
    data, offsets, slots, numbers = merge_strings([piece.strings for piece in pieces])
    by_unit: Arrays = {str(unit.unit): mine for unit, mine in zip(job.units, numbers, strict=True)}
    return Merged(
        strings=write_arrays(folder, "strings", {"data": data, "offsets": offsets, "slots": slots}),
        numbers=write_arrays(folder, "numbers", by_unit),
    )


def build_shard(settings: Settings, job_path: str, merged: Merged, first: float, stop: float) -> list[Built]:
    """A segment of the rules from position `first` to below `stop` (compile/signature.py); none if there are none."""
    folder, job = Path(job_path).parent, read_job(job_path)
    strings = map_arrays(folder, merged.strings, verify=True)
    numbers = map_arrays(folder, merged.numbers, verify=True)
    recipe = settings.recipe(
        Attributes(job.attributes), Strings((strings["data"], strings["offsets"], strings["slots"]))
    )
    if job.statistics is not None:
        where, table = job.statistics
        recipe.sample = read_statistics(Path(where), table, recipe.attributes, recipe.strings)
    pieces = []
    before = 0
    for unit in job.units:
        piece = restore_piece(map_arrays(folder, unit.piece, verify=False))  # verified when the strings were merged
        piece = replace(piece, table=replace(piece.table, sequence=piece.table.sequence + before))
        pieces.append((piece, numbers[str(unit.unit)]))
        before += unit.rules
    segment = join_pieces(pieces, recipe, first, stop)
    return [] if segment is None else [built(folder, segment, recipe, (first, stop))]


def built(folder: Path, segment: Segment, recipe: Recipe, positions: tuple[float, float]) -> Built:
    """Write a segment as the shard between two positions."""
    part = msgspec.structs.replace(part_of(folder, segment), positions=positions)
    return Built(part, attribute_counts(segment.whole(), recipe.attributes.names), joining_of(segment.table))


def part_of(folder: Path, segment: Segment) -> Part:
    """Write a segment without dead rows whose texts are locators."""
    locators = np.ascontiguousarray(segment.table.text_data).view("<i8")
    return Part(
        segment=write_arrays(folder, "segment", segment.arrays()),
        rules=len(segment),
        dead=0,
        conjunctions=int(segment.facts.counts[0]),
        units=tuple(np.unique(locators >> ROW_BITS).tolist()),
    )


def rows_as(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(column), kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema
    )
