"""Tables beside the arrays: rules as they were written, those that were refused, and what was learned of events.

    rules-<hash>.parquet      id, expression, weight, tags      one file a unit, its rows in any order
      row group 0             rows 0 … 65,535                             every group full but the last
      row group 1             rows 65,536 … 131,071
    rejects-<hash>.parquet    id, message, position, expression
    statistics-<hash>.parquet attribute, what (events, present, value, quantile), kind (bool int float str time),
                              value as JSON, count of events

    locator of a text         unit << 40 | row in the unit's file, 8 bytes, little-endian

Matching needs no texts, so segments hold locators where a `RuleTable` has texts. They are carried through merges as any
text is; to get the text itself (get, explain), one row group is read. A file is compared with its checksum before its
first row is used, and every page has a checksum of its own.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from eligo.arrow import arrow_of
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I64, U8
from eligo.compile.strings import Strings
from eligo.errors import SnapshotError
from eligo.forking import INNER, fork_lock
from eligo.segments.rule_table import RuleTable
from eligo.segments.statistics import Statistics, values_of
from eligo.store.versions import TableFile

GROUP: Final = 65_536  # rows of a row group
ROW_BITS: Final = 40
_ROWS: Final = (1 << ROW_BITS) - 1
_GROUPS_KEPT: Final = 8  # decoded row groups: some 8 MB each
_CHUNK: Final = 1 << 20

REJECTS_SCHEMA: Final = pa.schema(
    [("id", pa.string()), ("message", pa.string()), ("position", pa.int64()), ("expression", pa.string())]
)
STATISTICS_SCHEMA: Final = pa.schema(
    [*((name, pa.string()) for name in ("attribute", "what", "kind", "value")), ("count", pa.float64())]
)


def RULES_SCHEMA(id_type: str) -> pa.Schema:  # noqa: N802 — beside REJECTS_SCHEMA
    """Returns the columns of rules with ids of this type, "int" or "str"."""
    return pa.schema(
        [
            ("id", pa.int64() if id_type == "int" else pa.string()),
            ("expression", pa.string()),
            ("weight", pa.float64()),
            ("tags", pa.list_(pa.string())),
        ]
    )


class TableWriter:
    """Writes one file and names it by its content. All of it is on disk when `close` returns."""

    def __init__(self, folder: str | Path, prefix: str, schema: pa.Schema) -> None:
        self._folder, self._prefix, self._schema = Path(folder), prefix, schema
        self._temporary = self._folder / f"{prefix}-{uuid4().hex}.tmp"
        self._waiting: list[pa.Table] = []
        self._rows = self._pending = 0
        self._writer: Any = pq.ParquetWriter(
            self._temporary, schema, compression="zstd", use_dictionary=False, write_page_checksum=True
        )

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def rows(self) -> int:
        """Number of rows written so far."""
        return self._rows

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        self._waiting.append(table.cast(self._schema))
        self._rows += table.num_rows
        self._pending += table.num_rows
        if self._pending >= GROUP:
            self._flush(self._pending - self._pending % GROUP)

    def _flush(self, count: int) -> None:
        """Writes the first `count` of the waiting rows, which are full groups or the last one."""
        table = pa.concat_tables(self._waiting)
        self._writer.write_table(table.slice(0, count), row_group_size=GROUP)
        self._waiting = [table.slice(count)]
        self._pending -= count

    def close(self) -> TableFile:
        """Ends the file, and returns its description."""
        try:
            if self._pending:
                self._flush(self._pending)
            self._writer.close()
            digest, crc, size = hashlib.blake2b(digest_size=16), 0, 0
            with open(self._temporary, "rb+") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    crc, size = zlib.crc32(chunk, crc), size + len(chunk)
                os.fsync(file.fileno())
            name = f"{self._prefix}-{digest.hexdigest()}.parquet"
            os.replace(self._temporary, self._folder / name)
        except BaseException:
            self.abort()
            raise
        return TableFile(name, size, self._rows, crc)

    def close_if_any(self) -> TableFile | None:
        """Ends the file if rows were written; otherwise removes it and returns None."""
        if self._rows:
            return self.close()
        self.abort()
        return None

    def abort(self) -> None:
        """Removes what was written."""
        self._waiting = []
        with suppress(OSError, pa.ArrowException):  # the disk may be full, which is why it is aborted
            self._writer.close()
        self._temporary.unlink(missing_ok=True)


def locator_text(units: ArrayLike, rows: ArrayLike) -> tuple[I64, U8]:
    """Returns `text_offsets` and `text_data` of a table whose texts are rows of units' files."""
    locators = (np.asarray(units, np.int64) << ROW_BITS) | np.asarray(rows, np.int64)
    data = np.atleast_1d(locators).astype("<i8").view(np.uint8)
    return np.arange(0, len(data) + 1, 8, dtype=np.int64), data


class Texts:
    """The texts of a rule set, by locator. Threads may share it."""

    def __init__(self, folder: str | Path, texts: Mapping[int, TableFile], *, verify: bool = True) -> None:
        self._folder = Path(folder)
        self._texts = dict(texts)
        self._verify = verify
        self._lock = fork_lock(self, "_lock", INNER)
        self._verified: set[str] = set()
        self._groups: OrderedDict[tuple[int, int], pa.Array] = OrderedDict()

    def adopt(self, texts: Mapping[int, TableFile]) -> bool:
        """Adds the units of another version. Returns False, and changes nothing, if one of them means another file."""
        with self._lock:
            if any(self._texts.get(unit, file) != file for unit, file in texts.items()):
                return False
            self._texts = {**self._texts, **texts}
        return True

    def text(self, locator: int) -> str:
        """Returns the text of a locator."""
        row = locator & _ROWS
        group = self._group(locator >> ROW_BITS, row // GROUP)
        self._refuse_beyond(locator >> ROW_BITS, row)
        return group[row % GROUP].as_py()  # type: ignore[no-any-return]

    def many(self, locators: ArrayLike) -> pa.Array:
        """Returns the texts of many locators as large strings. Each row group is read once."""
        wanted = np.asarray(locators, np.int64)
        if not len(wanted):
            return pa.array([], pa.large_string())
        order = np.argsort(wanted, kind="stable")
        ordered = wanted[order]
        rows = ordered & _ROWS
        keys = ordered - rows % GROUP  # the locator of the group's first row
        starts = np.concatenate(([0], np.nonzero(np.diff(keys))[0] + 1, [len(keys)]))
        parts = []
        for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            unit, last = int(keys[first]) >> ROW_BITS, int(rows[stop - 1])
            group = self._group(unit, last // GROUP)
            self._refuse_beyond(unit, last)
            parts.append(group.take(arrow_of(rows[first:stop] % GROUP)).cast(pa.large_string()))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(arrow_of(place))

    def _file(self, unit: int) -> TableFile:
        file = self._texts.get(unit)
        if file is None:
            raise SnapshotError(f"{self._folder}: a rule's text is in unit {unit}, which the version does not list")
        return file

    def _refuse_beyond(self, unit: int, row: int) -> None:
        file = self._file(unit)
        if row >= file.rows:
            raise SnapshotError(f"{self._folder / file.file}: has {file.rows:,} rows, and a rule's text is row {row:,}")

    def _group(self, unit: int, number: int) -> pa.Array:
        """Returns the expressions of a row group, of which a few are kept."""
        with self._lock:
            group = self._groups.get((unit, number))
            if group is None:
                group = self._read(unit, number)
                self._groups[unit, number] = group
                while len(self._groups) > _GROUPS_KEPT:
                    self._groups.popitem(last=False)
            self._groups.move_to_end((unit, number))
            return group

    def _read(self, unit: int, number: int) -> pa.Array:
        """Reads the expressions of a row group. Raises SnapshotError if the file is missing or damaged."""
        described = self._file(unit)
        path = self._folder / described.file
        if self._verify and described.file not in self._verified:
            verify_table(path, described)
            self._verified.add(described.file)
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                column = file.read_row_group(number, columns=["expression"])["expression"]
        except FileNotFoundError:
            raise _missing(path) from None
        except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
            raise SnapshotError(f"{path}: damaged, {str(error).splitlines()[0]}; compile the rules again") from None
        if column.null_count or len(column) != min(GROUP, described.rows - number * GROUP):
            raise SnapshotError(f"{path}: damaged, row group {number} is not what it was; compile the rules again")
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def verify_table(path: Path, described: TableFile) -> None:
    """Raises SnapshotError if a file is not, to the bit, the one that was written. Reads all of it, in small pieces."""
    crc, size, buffer = 0, 0, memoryview(bytearray(_CHUNK))
    try:
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                crc, size = zlib.crc32(buffer[:count], crc), size + count
    except FileNotFoundError:
        raise _missing(path) from None
    if size != described.size:
        state = "truncated" if size < described.size else "too long"
        raise SnapshotError(
            f"{path}: {state}, {size:,} bytes where the manifest says {described.size:,}; compile the rules again"
        )
    if crc != described.crc32:
        raise SnapshotError(f"{path}: damaged, its checksum is wrong; compile the rules again")


def read_statistics(folder: Path, described: TableFile, attributes: Attributes, strings: Strings) -> Statistics:
    """Reads a table of statistics, for the numbers of these attributes and strings."""
    path = folder / described.file
    verify_table(path, described)
    table = pq.read_table(path, page_checksum_verification=True)
    rows = zip(*(table[name].to_pylist() for name in STATISTICS_SCHEMA.names), strict=True)
    return Statistics(*values_of(_valued(rows)), attributes, strings)


def _valued(rows: Iterable[tuple[str, str, str, str, float]]) -> Iterator[tuple[str, str, Any, float]]:
    for attribute, what, kind, text, count in rows:
        value = msgspec.json.decode(text) if kind else ""
        if kind == "float":
            value = float(value)
        elif kind == "time":
            value = np.datetime64(value, "us")
        yield attribute, what, value, count


def _missing(path: Path) -> SnapshotError:
    return SnapshotError(f"{path}: missing, though the manifest names it; compile the rules again")


@dataclass(frozen=True)
class TabledRules(RuleTable):
    """A rule table that has locators instead of texts."""

    texts: Texts

    @property
    def locators(self) -> I64:
        """Locator of each row's text."""
        first, last = int(self.text_offsets[0]), int(self.text_offsets[-1])
        found: NDArray[np.int64] = np.ascontiguousarray(self.text_data[first:last]).view("<i8")
        return found

    @property
    def texts_apart(self) -> object:
        return self.texts

    def text(self, row: int) -> str:
        return self.texts.text(int(self.locators[row]))

    def text_array(self) -> pa.Array:
        return self.texts.many(self.locators)

    def texts_of(self, rows: I64) -> list[str]:
        return self.texts.many(self.locators[rows]).to_pylist()  # type: ignore[no-any-return]

    def written(self) -> RuleTable:
        if not len(self):
            return RuleTable(**self.arrays())
        texts = self.text_array()
        _, offsets, data = texts.buffers()
        # Copied, because Arrow's buffers are read-only, and such arrays are another type to the kernels.
        return RuleTable(
            **{
                **self.arrays(),
                "text_offsets": np.frombuffer(offsets, np.int64, len(self) + 1, texts.offset * 8).copy(),
                "text_data": np.frombuffer(data or b"", np.uint8).copy(),
            }
        )

    def made_of(self, arrays: Mapping[str, NDArray[Any]]) -> RuleTable:
        return TabledRules(**arrays, texts=self.texts)


def tabled(table: RuleTable, texts: Texts) -> TabledRules:
    """Returns a table, whose `text_data` has locators, that finds its texts in `texts`."""
    return TabledRules(**table.arrays(), texts=texts)
