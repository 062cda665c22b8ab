"""Events in Parquet files, read by the workers: rows do not pass through the JVM on their way in.

    files        /data/a.parquet       /data/b.parquet
    row groups   0         1           0         1
    tasks        [0   )[1     )[2            )[3   )      a task is some spans: (file, first row, rows)

Every row is in exactly one span. A row group too large for one task is cut; who begins in the middle of one reads it
from its start, because Parquet has no place to jump to, and drops what lies before its first row.

What a worker makes of its spans are batches as `match` would have sent them, named by number: the kept columns, then
the attributes, in the types that Spark has for them. So the answer and its types are those of `match`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eligo.arrow import arrow_of
from eligo.errors import EventError
from eligo.spark.arrow_types import BARE, bare, is_variant, variant_type
from eligo.spark.event_columns import Path, column_names

_BATCH: Final = 16_384  # rows read and matched at a time
# Rows of a task. Fewer would make the rows that are read in vain more: those before a task that begins in the middle of
# a row group.
_ROWS: Final = 262_144
_FEW_ROWS: Final = 65_536  # where there are so few that not every core would have a task
_FEW_TASKS: Final = 4
_MOST_TASKS: Final = 10_000


class Span(NamedTuple):
    """Some rows of a file."""

    file: int
    first: int
    rows: int


class File(NamedTuple):
    """A file as the driver saw it."""

    path: str
    rows: tuple[int, ...]  # of each row group
    constants: tuple[Any, ...] = ()  # values of the columns that stand in the names of its folders


@dataclass(frozen=True)
class Files:
    """What the workers read; travels inside the query."""

    files: tuple[File, ...]
    tasks: tuple[tuple[Span, ...], ...]
    leaves: tuple[str, ...]  # what to read, in Parquet's way of naming
    wanted: tuple[tuple[Path, pa.DataType], ...]  # of the columns c0 … cn: where they are, and Spark's type for them
    constants: tuple[str, ...] = ()  # names of the columns that stand in the names of folders

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events of the tasks whose numbers come in."""
        names = column_names(len(self.wanted))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for span in self.tasks[number]:
                    file = self.files[span.file]
                    for rows, part in _rows(file, span, self.leaves):
                        columns = [self._column(path, kind, file, rows, part) for path, kind in self.wanted]
                        yield pa.RecordBatch.from_arrays(columns, names=names)

    def _column(self, path: Path, kind: pa.DataType, file: File, rows: int, part: pa.RecordBatch | None) -> pa.Array:
        if not path:  # where rules name no column, a row has to be there all the same
            return arrow_of(np.ones(rows, np.bool_))
        if path[0] in self.constants:
            return pa.repeat(pa.scalar(file.constants[self.constants.index(path[0])], kind), rows)
        assert part is not None
        try:
            return as_type(inner(part.column(path[0]), path[1:]), kind)
        except pa.ArrowException as error:
            raise EventError(
                f"{file.path}: the column {'.'.join(path)} is not {kind} throughout, which is Spark's type: {error}"
            ) from None


def _rows(file: File, span: Span, leaves: tuple[str, ...]) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """The rows of a span, some at a time; without leaves only how many."""
    import pyarrow.parquet as pq

    if not leaves:
        yield from ((min(_BATCH, span.rows - start), None) for start in range(0, span.rows, _BATCH))
        return
    groups, skip = _covering(file.rows, span)
    left = span.rows
    try:
        with pq.ParquetFile(
            file.path,
            pre_buffer=False,  # else a whole row group is in memory, and without the next line a whole column of it
            buffer_size=1 << 20,
            coerce_int96_timestamp_unit="us",  # as Spark has them; nanoseconds end in the year 2262
            page_checksum_verification=True,
        ) as parquet:
            seen = parquet.metadata
            if tuple(seen.row_group(i).num_rows for i in range(seen.num_row_groups)) != file.rows:
                raise EventError(f"{file.path} was replaced since this query was planned: run it again")
            for part in parquet.iter_batches(_BATCH, groups, list(leaves), use_threads=False):
                if part.num_rows <= skip:
                    skip -= part.num_rows
                    continue
                part = part.slice(skip, left)
                skip, left = 0, left - part.num_rows
                yield part.num_rows, part
                if not left:
                    return
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file.path, error) from None


def _covering(rows: Sequence[int], span: Span) -> tuple[list[int], int]:
    """The row groups that hold a span, and how many rows of the first one lie before it."""
    ends = np.cumsum(rows)
    first = int(np.searchsorted(ends, span.first, "right"))
    last = int(np.searchsorted(ends, span.first + span.rows, "left"))
    return list(range(first, last + 1)), span.first - int(ends[first] - rows[first])


def unreadable(path: str, error: Exception) -> EventError:
    """Which file, and what is wrong with it."""
    if isinstance(error, FileNotFoundError):
        return EventError(
            f"{path} is not there: workers read the files themselves, so every machine needs them under one path, and "
            "they must stay until the query is done"
        )
    return EventError(f"{path} cannot be read as Parquet, it is damaged or a file of another kind: {error}")


def cut(files: Sequence[File]) -> tuple[tuple[Span, ...], ...]:
    """All rows of the files, in order, dealt out to tasks of about equal size."""
    total = sum(sum(file.rows) for file in files)
    count = min(max(-(-total // _ROWS), min(_FEW_TASKS, -(-total // _FEW_ROWS))), _MOST_TASKS)
    size = -(-total // max(count, 1))
    tasks: list[tuple[Span, ...]] = []
    spans: list[Span] = []
    room = size
    for number, file in enumerate(files):
        first, rows = 0, sum(file.rows)
        while first < rows:
            # The last rows of a file go with those before them, unless they are worth a task of their own.
            here = rows - first if rows - first <= room + size // 4 else room
            spans.append(Span(number, first, here))
            first += here
            room -= here
            if room <= 0:
                tasks.append(tuple(spans))
                spans, room = [], size
    if spans:
        tasks.append(tuple(spans))
    return tuple(tasks)


def inner(column: pa.Array, path: Path) -> pa.Array:
    """What lies in a column along fields of structs and keys of maps."""
    for name in path:
        if pa.types.is_map(column.type):
            column = pc.map_lookup(column, pa.scalar(name, column.type.key_type), "first")
        else:
            column = pc.struct_field(column, [name])  # null where the struct itself is
    return column


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in Spark's type: other writers have dictionaries, milliseconds, unsigned numbers and so on."""
    if is_variant(kind):
        return _variant(column)
    if kind == BARE:
        return bare(column)
    return column if column.type.equals(kind) else column.cast(kind)


def _variant(column: pa.Array) -> pa.Array:
    """Two binaries, in Spark's order."""
    parts = [column.field("value").cast(pa.binary()), column.field("metadata").cast(pa.binary())]
    return pa.StructArray.from_arrays(parts, fields=list(variant_type()), mask=column.is_null())
