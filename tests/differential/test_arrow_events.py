"""Tables that kernels read give the entries, or the error, of reading every column the readable way."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eligo.compile import arrow_reader, codes
from eligo.compile.arrow_events import TableEvents
from eligo.compile.arrow_plan import Plan
from eligo.compile.arrow_reader import Reader, Stretches
from eligo.compile.attributes import Attributes
from eligo.compile.encode import PATTERN, SEVERAL, TEXT, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.errors import EventError

NAMES = ("a", "b", "c", "d", "m", "s", "s.x", "s.y", "m.k", "m.q", "m.k.x", "s.x.z", "s.m.k", "s.m", "unused", "")
KEYS = ("k", "q", "k.x", "é", "", "unknown", "x", "a", "b", "s.x")
WORDS = ("", "x", "y", "é", "value", "a longer value of many words", "unknown", "ünknown", "\0", "𝄞")
BAD = (b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"12345678\x80", b"\xf4\x90\x80\x80")
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
PLAIN = (
    *INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.string_view(), pa.date32(), pa.date64(),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
)  # fmt: skip
ODD = (
    pa.float16(), pa.decimal128(20, 3), pa.binary(), pa.time64("us"), pa.duration("s"), pa.null(),
    pa.list_(pa.list_(pa.int8())), pa.list_(pa.int64(), 2), pa.map_(pa.int32(), pa.int32()),
    pa.map_(pa.string(), pa.struct([("x", pa.int64())])), pa.list_(pa.struct([("x", pa.int8())])),
)  # fmt: skip


class Tables:
    """Draws tables of every type: with nulls, offsets and chunks, and some with values that are errors."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bad = self.random.choice((0.0, 0.0, 0.02))
        self.nulls = self.random.choice((0.0, 0.1, 0.6, 1.0))
        self.odd = self.random.choice((0.0, 0.0, 0.15))

    def kind(self, depth: int = 0) -> pa.DataType:
        chance = self.random.random()
        if self.random.random() < self.odd:
            return self.random.choice(ODD)
        if chance < 0.6 or (depth > 2 and chance > 0.74):
            return self.random.choice(PLAIN)
        if chance < 0.68:
            return pa.dictionary(self.random.choice(INTEGERS), self.random.choice(PLAIN))
        if chance < 0.74:
            kinds = self.random.sample((*PLAIN, pa.null(), pa.struct([("x", pa.int8())])), 3)
            fields = [pa.field(str(i), kind) for i, kind in enumerate(kinds)]
            # Arrow flattens lists with sparse unions, and some nulls, into arrays that it cannot read itself.
            mode = "dense" if depth else self.random.choice(("sparse", "dense"))
            return pa.union(fields, mode, type_codes=[5, 0, 2])
        if chance < 0.76:
            key = self.random.choice((pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())))
            fields = [pa.field("name", key), pa.field("value", self.kind(3))]
            return self.random.choice((pa.list_, pa.large_list))(pa.struct(fields))
        if chance < 0.82:
            return self.random.choice((pa.list_, pa.large_list))(self.kind(3))
        if chance < 0.92:
            names = self.random.choices(("x", "y", "m", "k", "x.z", "m.k"), k=self.random.randint(0, 3))
            return pa.struct([pa.field(name, self.kind(depth + 1)) for name in names])
        key = self.random.choice((pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())))
        return pa.map_(key, self.kind(1 if self.random.random() < 0.2 else 3))

    def array(self, kind: pa.DataType, count: int, nulls: float | None = None) -> pa.Array:
        """So many values, which begin somewhere within a longer array."""
        before, behind = self.random.choice((0, 0, 1, 3, 8, 65)), self.random.choice((0, 0, 2))
        made = self.whole(kind, before + count + behind, self.nulls if nulls is None else nulls)
        return made.slice(before, count)

    def whole(self, kind: pa.DataType, count: int, nulls: float) -> pa.Array:
        types = pa.types
        missing = [self.random.random() < nulls for _ in range(count)]
        if types.is_dictionary(kind):
            size = self.random.choice((1, 3, 100))
            values = self.array(kind.value_type, size, self.random.choice((0.0, 0.0, 0.3)))
            indices = pa.array([None if gone else self.random.randrange(size) for gone in missing], kind.index_type)
            return pa.DictionaryArray.from_arrays(indices, values)
        if types.is_union(kind):
            codes_of = pa.array(self.random.choices(kind.type_codes, k=count), pa.int8())
            if kind.mode == "sparse":
                parts = [self.array(kind.field(i).type, count) for i in range(kind.num_fields)]
                return pa.UnionArray.from_sparse(codes_of, parts, ["0", "1", "2"], kind.type_codes)
            parts = [self.array(kind.field(i).type, 7) for i in range(kind.num_fields)]
            places = pa.array([self.random.randrange(7) for _ in range(count)], pa.int32())
            return pa.UnionArray.from_dense(codes_of, places, parts, ["0", "1", "2"], kind.type_codes)
        mask = pa.array(missing, pa.bool_())
        if types.is_struct(kind):
            if not kind.num_fields:
                return pa.array([None if gone else {} for gone in missing], kind)
            parts = [self.array(kind.field(i).type, count) for i in range(kind.num_fields)]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
        if types.is_fixed_size_list(kind):
            return pa.array([None if gone else [1, None] for gone in missing], kind)
        if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
            lengths = [self.random.choice((0, 1, 1, 2, 5)) for _ in range(count)]
            if types.is_map(kind):
                return self.map(kind, lengths, missing)
            offsets = pa.array(np.cumsum([0, *lengths]), pa.int32() if types.is_list(kind) else pa.int64())
            of = pa.ListArray if types.is_list(kind) else pa.LargeListArray
            return of.from_arrays(offsets, self.array(kind.value_type, sum(lengths)), type=kind, mask=mask)
        if kind == pa.string_view() and self.bad:
            return pa.array([None if gone else self.text() for gone in missing], pa.binary_view()).view(kind)
        if types.is_string(kind) or types.is_large_string(kind):
            raw = [None if gone else self.text() for gone in missing]
            binary = pa.array(raw, pa.binary() if types.is_string(kind) else pa.large_binary())
            return pa.Array.from_buffers(kind, count, binary.buffers(), binary.null_count)
        return self.numbers(kind, missing)

    def map(self, kind: pa.DataType, lengths: list[int], missing: list[bool]) -> pa.Array:
        keys: list[str] = []
        for length in lengths:
            twice = self.random.random() < self.bad
            keys += self.random.choices(KEYS, k=length) if twice else self.random.sample(KEYS, length)
        raw = [self.random.choice(BAD) if self.random.random() < self.bad / 3 else key.encode() for key in keys]
        if pa.types.is_dictionary(kind.key_type):
            texts: Any = pa.array(keys, pa.string()).dictionary_encode().cast(kind.key_type)
        elif pa.types.is_integer(kind.key_type):
            texts = pa.array(range(len(keys)), kind.key_type)
        else:
            is_small = pa.types.is_string(kind.key_type)
            binary = pa.array(raw, pa.binary() if is_small else pa.large_binary())
            texts = pa.Array.from_buffers(kind.key_type, len(binary), binary.buffers())
        items = self.array(kind.item_type, len(keys))
        offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
        pairs = pa.StructArray.from_arrays([texts, items], fields=[kind.key_field, kind.item_field])
        valid = pa.array([not gone for gone in missing], pa.bool_()).buffers()[1] if any(missing) else None
        return pa.Array.from_buffers(kind, len(lengths), [valid, offsets.buffers()[1]], children=[pairs])

    def text(self) -> bytes:
        if self.random.random() < self.bad:
            return self.random.choice(BAD)
        return self.random.choice((*WORDS, *KEYS)).encode()

    def numbers(self, kind: pa.DataType, missing: list[bool]) -> pa.Array:
        types = pa.types

        def drawn(make: Callable[[], Any]) -> pa.Array:
            return pa.array([None if gone else make() for gone in missing], kind)

        def storage(make: Callable[[], int], plain: pa.DataType) -> pa.Array:
            values = pa.array([None if gone else make() for gone in missing], plain)
            return pa.Array.from_buffers(kind, len(values), values.buffers(), values.null_count)

        def far(few: tuple[int, ...], many: int, unit: int = 1) -> Callable[[], int]:
            return lambda: (
                self.random.choice(few)
                if self.random.random() < self.bad
                else unit * self.random.choice((0, 1, -1, 7, many, -many))
            )

        if types.is_integer(kind):
            low, high = (
                (0, 2**kind.bit_width - 1)
                if "uint" in str(kind)
                else (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
            )
            least = high if kind != pa.uint64() else 2**63 - 1
            return drawn(
                lambda: self.random.choice((low, least, 0, 1, 5, high if self.random.random() < self.bad else 2))
            )
        if types.is_floating(kind):
            few = (0.0, -0.0, 1.5, -2.0, float("nan"), float("inf"), 1e-3)
            return drawn(
                lambda: np.float16(self.random.choice(few)) if kind == pa.float16() else self.random.choice(few)
            )
        if types.is_boolean(kind):
            return drawn(lambda: self.random.random() < 0.5)
        if types.is_timestamp(kind):
            most = {"s": 2**63 // 10**6, "ms": 2**63 // 1000, "us": 2**63 - 1, "ns": 2**63 - 1}[kind.unit]
            return storage(far((most + 1, -most - 1) if most < 2**62 else (most, -most - 1), most - 1), pa.int64())
        if types.is_date32(kind):
            return storage(far((2**31 - 1, -(2**31)), 106_751_990), pa.int32())
        if types.is_date64(kind):
            return storage(far((1, -1, 2**63 - 1), 106_751_990, 86_400_000), pa.int64())
        if types.is_decimal(kind):
            return drawn(lambda: Decimal(self.random.choice(("1.5", "-3", "0"))))
        if types.is_duration(kind):
            return drawn(lambda: timedelta(1))
        if kind == pa.string_view():
            return drawn(lambda: self.random.choice(WORDS))
        return (
            pa.nulls(len(missing), kind)
            if self.random.random() < 0.5 or types.is_null(kind)
            else drawn(lambda: b"1" if types.is_binary(kind) else None)
        )

    def column(self, kind: pa.DataType, count: int) -> pa.ChunkedArray:
        cuts = sorted(self.random.randint(0, count) for _ in range(self.random.choice((0, 0, 1, 3))))
        bounds = [0, *cuts, count]
        chunks = [self.array(kind, high - low) for low, high in pairwise(bounds)]
        if self.random.random() < 0.3:  # which have one dictionary then
            whole = self.array(kind, count)
            chunks = [whole.slice(low, high - low) for low, high in pairwise(bounds)]
        return pa.chunked_array(chunks, kind)

    def table(self) -> pa.Table | pa.RecordBatch:
        count = self.random.choice((0, 1, 5, 63, 64, 65, 130, 200))
        names = self.random.choices(NAMES, k=self.random.choice((0, 1, 3, 8)))
        if self.random.random() < 0.7:
            names = list(dict.fromkeys(names))
        columns = [self.column(self.kind(), count) for _ in names]
        if names and self.random.random() < 0.3:
            arrays = [self.array(column.type, count) for column in columns]
            return pa.RecordBatch.from_arrays(arrays, names)
        return pa.Table.from_arrays(columns, names)

    def pairs(self, table: pa.Table | pa.RecordBatch) -> int:
        """A column of maps, or of what is like a map, if there is one."""
        types = pa.types
        return next(
            (i for i, kind in enumerate(table.schema.types) if types.is_map(kind) or types.is_large_list(kind)), -1
        )

    def encoder(self) -> Encoder:
        names = self.random.sample(NAMES[:-1], self.random.choice((1, 5, len(NAMES) - 1)))
        special = {
            name: self.random.choice((TEXT, PATTERN, SEVERAL, SEVERAL | TEXT))
            for name in names
            if self.random.random() < 0.5
        }
        strings = Strings()
        for word in WORDS:
            if "nknown" not in word:
                strings.intern(word)
        return Encoder(Attributes(names), strings, special)


def rows_of(buffer: EventBuffer) -> list[list[tuple[int, Any]]]:
    """The entries of each event, with a string's number and bytes in place of its row in the text table."""
    rows = []
    for low, high in zip(buffer.offsets[: buffer.events], buffer.offsets[1 : buffer.events + 1], strict=True):
        row: list[tuple[int, Any]] = []
        for meta, key in zip(buffer.meta[low:high].tolist(), buffer.key[low:high].tolist(), strict=True):
            if meta & 255 == codes.TEXT:
                text = buffer.text[buffer.text_low[key] : buffer.text_high[key]].tobytes()
                row.append((meta, (int(buffer.text_number[key]), text)))
            else:
                row.append((meta, key))
        rows.append(row)
    return rows


def outcome(reader: Reader, first: int, events: TableEvents) -> Any:
    buffer = EventBuffer()
    try:
        reader.encode(first, events, buffer)
    except EventError as error:
        rows = getattr(error, "rows", None)
        return type(error), str(error), getattr(error, "attribute", None), None if rows is None else rows.tolist()
    assert buffer.widest == max(map(len, rows_of(buffer)), default=0)
    return rows_of(buffer)


def by_attribute(rows: Any) -> Any:
    """The entries of maps have no order, except that those of one attribute stand together, in theirs."""
    if not isinstance(rows, list):
        return rows
    for row in rows:
        attributes = [meta >> 8 for meta, _ in row]
        changes = sum(one != other for one, other in pairwise(attributes))
        assert changes == max(0, len(set(attributes)) - 1)
    return [sorted(row, key=lambda entry: entry[0] >> 8) for row in rows]


def check(seed: int) -> bool:
    """Compares all rows of a table, and some of its slices. Returns whether kernels read all of its columns."""
    tables = Tables(seed)
    table, encoder = tables.table(), tables.encoder()
    pairs = tables.pairs(table) if tables.random.random() < 0.3 else -1
    plan = Plan(table.schema, encoder, pairs)
    quick = Reader(Stretches(table.select(plan.read), plan), encoder)
    readable = Reader(Stretches(table, Plan(table.schema, encoder, pairs, range(table.num_columns))), encoder)
    for _ in range(4):
        first = tables.random.randint(0, len(table))
        events = TableEvents(table).slice(first, tables.random.choice((0, 1, 7, 64, 100, 1000)))
        for some, start in ((TableEvents(table), 0), (events, first)):
            found, wanted = outcome(quick, start, some), outcome(readable, start, some)
            if plan.has_maps or pairs >= 0:
                found, wanted = by_attribute(found), by_attribute(wanted)
            assert found == wanted, (seed, table.schema)
    return bool(plan.read) and not plan.slow


@pytest.mark.parametrize("seed", range(20))
def test_kernels_read_tables_as_the_readable_way_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3:  # chunks stay as they are, however short
        monkeypatch.setattr(arrow_reader, "_SHORT", 0)
    read = [check(1000 * seed + number) for number in range(40)]
    assert sum(read) > 5
