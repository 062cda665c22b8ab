"""Many rules at once: tuples, dicts or an Arrow table to rows of (id, expression, weight, tags, owner), or to columns.

    Rows       rows as they were given, few of them
    Columns    ids, texts and weights as arrays, tags and owners by row, for what reads many rules together

Columns mark the rows that are usual. One that has no id, or a weight that is none, or is no rule at all, is not: it has
to be read as it was given, by `Columns.row`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arguments import plain_id, shown
from eligo.arrow import numpy_of, view_of
from eligo.compile.compiled import F64, I64, U8, kept_slices
from eligo.errors import EligoError, EventError, RuleTypeError
from eligo.reading import owner_of, tags_of, weight_of
from eligo.rule import RuleId
from eligo.segments.encoding import from_frame
from eligo.segments.rule_table import MENTION, OWNER, RuleTable, column_table, is_id

Row = tuple[Any, Any, Any, Any, Any]
_COLUMNS = ("id", "expression", "weight", "tags", "owner")
MANY = 1_000  # rows that are worth being read together: fewer are read in less time than it takes to load the kernel
_PIECE = 16_384  # rows that are read together


@dataclass
class Rows:
    """Some rows, and the number of the first."""

    first: int
    rows: Sequence[Row | EligoError]


@dataclass
class Columns:
    """Some rows as columns, and the number of the first. `row` gives one as it came."""

    first: int
    ids: list[RuleId | None]  # of usual rows all of one type
    id_array: I64 | tuple[I64, U8]  # the same; anything for rows that are not usual
    text_offsets: I64
    text_data: U8
    weights: F64
    tags: dict[int, tuple[str, ...]]  # of rows that have some
    owners: dict[int, str]
    usual: NDArray[np.bool_]
    row: Callable[[int], Row | EligoError]

    def __len__(self) -> int:
        return len(self.ids)

    def block(
        self,
        first: int,
        stop: int,
        keep: NDArray[np.bool_] | None,
        sequence: I64,
        mentions: Mapping[int, Sequence[str]],
        texts: bool = True,
    ) -> RuleTable:
        """Returns the rows from `first` to below `stop`, or those of them to keep, as a table of rules, with or without
        texts.

        `mentions` are attributes that rules only mention (rule_table.py), by row from `first` on.
        """
        ids: I64 | tuple[I64, U8]
        if isinstance(self.id_array, tuple):
            ids = _slices(*self.id_array, first, stop, keep)
        else:
            ids = self.id_array[first:stop] if keep is None else self.id_array[first:stop][keep]
        weights, tags = self.weights[first:stop], dict[int, tuple[str, ...]]()
        if self.tags or self.owners or mentions:
            row = np.arange(stop - first) if keep is None else np.where(keep, np.cumsum(keep) - 1, -1)
            for i in self.tags.keys() | self.owners.keys() | {first + i for i in mentions}:
                if first <= i < stop and row[i - first] >= 0:
                    owner = (OWNER + self.owners[i],) if i in self.owners else ()
                    hidden = (MENTION + name for name in mentions.get(i - first, ()))
                    tags[int(row[i - first])] = (*self.tags.get(i, ()), *owner, *hidden)
        written = np.zeros(len(sequence) + 1, np.int64), np.zeros(0, np.uint8)
        if texts:
            written = _slices(self.text_offsets, self.text_data, first, stop, keep)
        return column_table(sequence, ids, written, weights if keep is None else weights[keep], tags)


def _slices(offsets: I64, data: U8, first: int, stop: int, keep: NDArray[np.bool_] | None) -> tuple[I64, U8]:
    """Returns the offsets and the bytes of some of the slices data[offsets[i]:offsets[i + 1]]."""
    begin = int(offsets[first])
    kept, moved = kept_slices(data[begin : offsets[stop]], offsets[first : stop + 1] - begin, keep)
    return moved, kept


def pieces_of(rules: Any, text_of: Callable[[object], str]) -> Iterator[Rows | Columns]:
    """Yields all rows, piece by piece, in input order. `text_of` returns the text of an expression in another form, so
    that it is read together with the others, or raises an `EligoError`.
    """
    if not isinstance(rules, pa.Table | pa.RecordBatch) and hasattr(rules, "__arrow_c_stream__"):
        rules = _frame_table(rules)
    first = 0
    if isinstance(rules, pa.Table | pa.RecordBatch) and rules.num_rows >= MANY:
        _require(rules.schema.names)
        for first in range(0, rules.num_rows, _PIECE):
            yield table_columns(rules.slice(first, _PIECE), first)
        return
    rows = rows_of(rules)
    while some := list(islice(rows, _PIECE)):
        yield Rows(first, some) if len(some) < MANY else _row_columns(some, first, text_of)
        first += len(some)


def _row_columns(rows: Sequence[Row | EligoError], first: int, text_of: Callable[[object], str]) -> Rows | Columns:
    count = len(rows)
    ids: list[Any] = [None] * count
    texts: list[bytes] = [b""] * count
    weights, usual = np.ones(count), np.zeros(count, np.bool_)
    tags, owners = dict[int, tuple[str, ...]](), dict[int, str]()
    for i, row in enumerate(rows):
        if isinstance(row, EligoError):
            continue
        ids[i] = plain_id(row[0])
        # What can be iterated only once, such as a generator of tags, is left for when the row itself is read.
        if is_id(ids[i]) and isinstance(row[3], tuple | list | str | None):
            try:
                text = row[1] if type(row[1]) is str and row[1][:1] != "{" else text_of(row[1])
            except EligoError:
                continue  # the error is raised where the row itself is read
            texts[i] = str.encode(text, "utf-8", "surrogatepass")  # refused when the text is read
            usual[i] = _has_usual_rest(i, row, weights, tags, owners)
    return _with_ids(first, ids, _joined(texts), weights, tags, owners, usual, rows.__getitem__) or Rows(first, rows)


def _has_usual_rest(
    i: int,
    row: Row,
    weights: F64,
    tags: dict[int, tuple[str, ...]],
    owners: dict[int, str],
    read_tags: Callable[[Any], tuple[str, ...]] = tags_of,
) -> bool:
    """Notes what a row says beside id and expression. Returns False if something is wrong with it."""
    try:
        if row[2] is not None:
            weights[i] = weight_of(row[2])
        if row[3] is not None and (some := read_tags(row[3])):
            tags[i] = some
        if (owner := owner_of(row[4])) is not None:
            owners[i] = owner
    except EligoError:
        return False
    return True


def _joined(texts: Sequence[bytes]) -> tuple[I64, U8]:
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), view_of(pa.py_buffer(b"".join(texts)), np.uint8)


def _with_ids(
    first: int,
    ids: list[Any],
    texts: tuple[I64, U8],
    weights: F64,
    tags: dict[int, tuple[str, ...]],
    owners: dict[int, str],
    usual: NDArray[np.bool_],
    row: Callable[[int], Row | EligoError],
) -> Columns | None:
    """Returns columns, or None unless all that may be ids are strings or all are integers."""
    kinds = set(map(type, ids)) - {type(None)}
    id_array: I64 | tuple[I64, U8]
    if kinds == {str}:
        id_array = _joined([b"" if rule is None else rule.encode("utf-8", "surrogatepass") for rule in ids])
    elif kinds == {int}:
        id_array = np.array([rule if is_id(rule) else 0 for rule in ids], np.int64)
    else:
        return None
    return Columns(first, ids, id_array, *texts, weights, tags, owners, usual, row)


def table_columns(
    table: pa.Table | pa.RecordBatch, first: int = 0, read_tags: Callable[[Any], tuple[str, ...]] = tags_of
) -> Rows | Columns:
    """Returns columns of some rows of a table, or rows if ids or expressions are of types that are not usual."""
    columns = {name: _one_array(table.column(name)) for name in _COLUMNS if name in table.schema.names}
    rest = [columns.get(name) for name in _COLUMNS]
    ids, texts = columns["id"], _as_text(columns["expression"])
    whole, named = _as_integers(ids), _as_text(ids)
    if texts is None or (whole is None and named is None):
        return Rows(first, list(_table_rows(table)))
    usual = _valid(ids) & _valid(texts)
    tags, owners = dict[int, tuple[str, ...]](), dict[int, str]()
    weights = _plain_weights(columns.get("weight"), len(ids))
    loose = [None if weights is not None else columns["weight"], columns.get("tags"), columns.get("owner")]
    if weights is None:
        weights = np.ones(len(ids))
    usual &= np.isfinite(weights)
    if any(column is not None and column.null_count < len(column) for column in loose):
        nothing, read_tags = [None] * len(ids), _remembering(read_tags)
        values = (nothing if column is None else column.to_pylist() for column in (None, None, *loose))
        for i, row in enumerate(zip(*values, strict=True)):
            usual[i] &= _has_usual_rest(i, row, weights, tags, owners, read_tags)

    def given(i: int) -> Row:
        return tuple(None if column is None else column[i].as_py() for column in rest)  # type: ignore[return-value]

    return Columns(
        first,
        ids.to_pylist(),
        _bytes_of(named) if whole is None else numpy_of(whole),
        *_bytes_of(texts),
        weights,
        tags,
        owners,
        usual,
        given,
    )


def _remembering(read_tags: Callable[[Any], tuple[str, ...]]) -> Callable[[Any], tuple[str, ...]]:
    """Returns the same function with a memory, for tags that many rules have."""
    known: dict[Any, tuple[str, ...]] = {}

    def read(tags: Any) -> tuple[str, ...]:
        key = tuple(tags) if isinstance(tags, list) else tags
        try:
            found = known.get(key)
        except TypeError:  # no tags, so that reading them raises
            return read_tags(tags)
        if found is None:
            found = known[key] = read_tags(tags)
        return found

    return read


def text_column(column: pa.Array) -> tuple[I64, U8]:
    """Returns the offsets and bytes of a column of texts; nulls are empty."""
    texts = _as_text(column)
    assert texts is not None
    return _bytes_of(texts)


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _as_integers(column: pa.Array) -> pa.Array | None:
    try:
        return column.cast(pa.int64()) if pa.types.is_integer(column.type) else None
    except pa.ArrowInvalid:  # more than 64 bits
        return None


def _as_text(column: pa.Array) -> pa.Array | None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_large_string(column.type):
        return column
    return column.cast(pa.large_string()) if kind in (pa.string(), pa.large_string(), pa.string_view()) else None


def _bytes_of(column: pa.Array) -> tuple[I64, U8]:
    """Returns the offsets and bytes of a column of large strings, over the same memory."""
    _, offsets, data = column.buffers()
    return view_of(offsets, np.int64)[column.offset : column.offset + len(column) + 1], view_of(data, np.uint8)


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    return numpy_of(column.is_valid()).copy()


def _plain_weights(column: pa.Array | None, count: int) -> F64 | None:
    """Returns weights that are numbers, 1 where there is none, or None if the column is of another type."""
    if column is None or column.null_count == count:
        return np.ones(count)
    if pa.types.is_signed_integer(column.type):
        numbers = numpy_of(column.cast(pa.int64())).astype(np.float64)
    elif pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
        numbers = numpy_of(column.cast(pa.float64())).copy()
    else:
        return None
    numbers[~_valid(column)] = 1.0
    return numbers


def rows_of(rules: Any) -> Iterator[Row | EligoError]:
    """Yields rows in the order of the input. One that has no such shape is yielded as the error that says so."""
    if isinstance(rules, pa.Table | pa.RecordBatch):
        yield from _table_rows(rules)
        return
    if isinstance(rules, _Records):
        yield from rules.rows
        return
    if isinstance(rules, Mapping):
        rules = rules.items()
    if isinstance(rules, str | bytes) or not isinstance(rules, Iterable):
        raise RuleTypeError(
            "rules are tuples (id, expression[, weight[, tags[, owner]]]), dicts or an Arrow table, "
            f"not {type(rules).__name__}"
        )
    for rule in rules:
        if isinstance(rule, tuple | list) and 2 <= len(rule) <= 5:
            yield (*rule, *((1.0, (), None)[len(rule) - 2 :]))
        elif isinstance(rule, Mapping) and "id" in rule:
            expression = rule.get("expression", rule.get("expr"))
            yield rule["id"], expression, rule.get("weight"), rule.get("tags"), rule.get("owner") or None
        elif hasattr(rule, "expression") and hasattr(rule, "id"):
            tags, owner = getattr(rule, "tags", ()), getattr(rule, "owner", None)
            yield rule.id, rule.expression, getattr(rule, "weight", 1.0), tags, owner
        else:
            yield RuleTypeError(
                "a rule is (id, expression[, weight[, tags[, owner]]]) or a dict with id and expression, "
                f"not {shown(rule, 80)}"
            )


@dataclass
class _Records:
    """The rows of a data frame that Arrow would not keep as it is."""

    rows: Iterable[Row]


def _frame_table(frame: Any) -> pa.Table | _Records:
    try:
        rules = from_frame(frame)
    except EventError as error:
        raise RuleTypeError(f"rules: {error}") from None
    if isinstance(rules, pa.Table):
        return rules
    _require(list(rules[0]))  # a frame without rows is one that Arrow reads
    # What is missing is NaN or the like in a data frame, and null in a table.
    return _Records(
        tuple(None if _is_missing(value := rule.get(name)) else value for name in _COLUMNS)  # type: ignore[misc]
        for rule in rules
    )


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def _require(names: list[str]) -> None:
    missing = [name for name in _COLUMNS[:2] if name not in names]
    if missing:
        raise RuleTypeError(
            f"a table of rules has columns id and expression; missing {', '.join(missing)}; "
            f"it has {', '.join(map(str, names))}"
        )


def _table_rows(table: pa.Table | pa.RecordBatch) -> Iterator[Row]:
    names = table.schema.names
    _require(names)
    for start in range(0, table.num_rows, 65_536):  # Python values of one slice at a time
        part = table.slice(start, 65_536)
        columns = [part.column(name).to_pylist() if name in names else [None] * part.num_rows for name in _COLUMNS]
        yield from zip(*columns, strict=True)
