"""How the columns of an Arrow table are read: which of them rules name, and by which nodes (arrow_nodes.py).

Plain columns, dictionaries and unions of them, structs, lists of plain values, and maps from strings to plain values
are read by kernels. Everything else is *slow*: a column of another type, and every column that could give an event an
attribute that another column gives it as well. Slow columns are read by `arrow.py`, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile import arrow_kernels as kernels
from eligo.compile import arrow_nodes as nodes
from eligo.compile.compiled import I64
from eligo.compile.encode import Encoder
from eligo.compile.strings import Strings

_STRUCT: Final = pa.struct([]).id
_MAP: Final = pa.map_(pa.string(), pa.string()).id
_DICTIONARY: Final = pa.dictionary(pa.int8(), pa.string()).id
_TIMESTAMP: Final = pa.timestamp("us").id
_LISTS: Final = {pa.list_(pa.int8()).id: nodes.LIST, pa.large_list(pa.int8()).id: nodes.LARGE_LIST}
_UNIONS: Final = {
    pa.union([], "sparse").id: nodes.SPARSE_UNION,
    pa.union([], "dense").id: nodes.DENSE_UNION,
}
_PLAIN: Final = {
    pa.null().id: nodes.NOTHING,
    pa.int8().id: nodes.INT8,
    pa.int16().id: nodes.INT16,
    pa.int32().id: nodes.INT32,
    pa.int64().id: nodes.INT64,
    pa.uint8().id: nodes.UINT8,
    pa.uint16().id: nodes.UINT16,
    pa.uint32().id: nodes.UINT32,
    pa.uint64().id: nodes.UINT64,
    pa.float32().id: nodes.FLOAT32,
    pa.float64().id: nodes.FLOAT64,
    pa.bool_().id: nodes.BOOLEAN,
    pa.string().id: nodes.STRING,
    pa.large_string().id: nodes.LARGE_STRING,
    pa.date32().id: nodes.DATE32,
    pa.date64().id: nodes.DATE64,
    _STRUCT: nodes.OBJECT,
    _MAP: nodes.OBJECT,
}
if hasattr(pa, "string_view"):
    _PLAIN[pa.string_view().id] = nodes.STRING_VIEW
_TIMES: Final = {
    "s": nodes.SECONDS, "ms": nodes.MILLISECONDS, "us": nodes.MICROSECONDS, "ns": nodes.NANOSECONDS,
}  # fmt: skip


class _SlowError(Exception):
    """A column has to be read the readable way."""


class Plan:
    """How the columns of a schema are read for an encoder; slow ones have a row of `columns` as a part.

    `numbers` has the number in the table of each column's own column, `read` those that nodes are gathered from. A
    column of *pairs* gives attributes by their names, as columns do; whether an event has one by both is seen when it
    is read.
    """

    def __init__(self, schema: pa.Schema, encoder: Encoder, pairs: int = -1, slow: Iterable[int] = ()) -> None:
        """`pairs`: the number of the column that holds pairs, which comes last; `slow`: columns that are slow whatever
        they are.
        """
        self.schema, self.attributes, self.pairs, self._encoder = schema, len(encoder.metas), pairs, encoder
        metas, paths = encoder.metas, encoder.paths
        named = [(i, name) for i, name in enumerate(schema.names) if i != pairs and (name in metas or name in paths)]
        if pairs >= 0:
            named.append((pairs, schema.field(pairs).name))
        self.slow = {i for i, _ in named}.intersection(slow)
        known = -1
        while len(self.slow) != known:  # once, if no column is slow; else until it is known which are
            known = len(self.slow)
            self._begin()
            for i, name in named:
                self._add_column(i, name, schema)
            self._find_twice()
        del self._encoder  # which has the plan
        self.columns = np.array(self._columns, np.int64).reshape(-1, 5)
        self.numbers = np.array(self._numbers, np.int64)
        self.paths = np.array(self._paths, np.int64).reshape(-1, 5)
        self.branches = np.array(self._branches, np.int64).reshape(-1, nodes.BRANCHES)
        self.names = np.array(self._names, np.int64).reshape(-1, nodes.NAMES)
        self.has_maps = bool((self.columns[:, kernels.COLUMN_MODE] == kernels.PAIRS).any())

    def with_parts(self, slow: set[int]) -> tuple[I64, I64]:
        """The columns, with one part, numbered in turn, for each column of the table that is to be read the readable
        way, and the number in the table of each.
        """
        if not slow:
            return self.columns, self.numbers
        is_slow = np.isin(self.numbers, [*slow])
        again = np.zeros(len(is_slow), np.bool_)
        again[1:] = self.numbers[1:] == self.numbers[:-1]
        kept = ~(is_slow & again)
        columns, is_part = self.columns[kept], is_slow[kept]
        columns[is_part] = 0
        columns[is_part, kernels.COLUMN_MODE] = kernels.PART
        columns[is_part, kernels.COLUMN_NODE] = np.arange(is_part.sum())
        return columns, self.numbers[kept]

    # -- the columns of a schema, one after another

    def _begin(self) -> None:
        self.read: list[int] = []
        self._given: dict[str, int] = {}  # names of attributes to the columns that give them
        self._within: dict[str, int] = {}  # names before a dot, behind which a column may give anything
        self._columns: list[tuple[int, int, int, int, int]] = []
        self._numbers: list[int] = []
        self._paths: list[list[int]] = []
        self._branches: list[list[int]] = []
        self._names: list[list[int]] = []
        self._kept: list[Any] = []  # arrays that are known by their addresses

    def _add_column(self, i: int, name: str, schema: pa.Schema) -> None:
        before = len(self._columns)
        if i not in self.slow:
            try:
                add = self._add_pairs if i == self.pairs else self._add
                add(i, name, schema.field(i).type, -1, len(self.read))
                self.read.append(i)
                return
            except _SlowError:
                self.slow.add(i)
                del self._columns[before:], self._numbers[before:]
        if i != self.pairs:
            self._give(i, name)
            self._open(i, name)
        self._column(i, 0, kernels.PART, 0, 0)

    def _add(self, i: int, name: str, kind: pa.DataType, parent: int, place: int) -> None:
        """A column, or a part of one, that a rule may name."""
        encoder, code, mode = self._encoder, kind.id, kernels.SCALAR
        if code == _MAP:
            node = self._node(nodes.MAP, parent, place)
        elif code in _LISTS:
            node = self._node(_LISTS[code], parent, place)
            self._paths[node][nodes.PATH_CHILD] = self._value(kind.value_type, node, 0)
            mode = kernels.ITEMS
        else:
            node = self._value(kind, parent, place)
        if name in encoder.metas:
            self._give(i, name)
            self._column(i, node, mode, encoder.metas[name], encoder.special.get(name, 0))
        if name not in encoder.paths:
            return
        if code == _STRUCT:
            for k in range(kind.num_fields):
                field = kind.field(k)
                path = f"{name}.{field.name}"
                if path in encoder.metas or path in encoder.paths:
                    self._add(i, path, field.type, node, k)
        elif code == _MAP:
            self._open(i, name)
            self._add_keys(i, f"{name}.", kind.key_type, kind.item_type, node)

    def _add_pairs(self, i: int, name: str, kind: pa.DataType, parent: int, place: int) -> None:
        """A column of maps from attributes to values, or of lists of pairs of both."""
        if kind.id == _MAP:
            node = self._node(nodes.MAP, parent, place)
            self._add_keys(i, "", kind.key_type, kind.item_type, node)
        elif kind.id in _LISTS and kind.value_type.id == _STRUCT and kind.value_type.num_fields == 2:
            node = self._node(_LISTS[kind.id], parent, place)
            key, value = kind.value_type
            self._add_keys(i, "", key.type, value.type, node)
        else:
            raise _SlowError

    def _add_keys(self, i: int, prefix: str, key_type: pa.DataType, value_type: pa.DataType, node: int) -> None:
        """The keys and values of a map: what the keys name has a prefix in rules."""
        text = key_type.value_type if key_type.id == _DICTIONARY else key_type
        is_text = nodes.STRING <= _plain_kind(text) <= nodes.STRING_VIEW
        if not is_text or value_type.id in (_STRUCT, _MAP):
            raise _SlowError
        pairs = self._node(nodes.OBJECT, node, 0)
        self._paths[node][nodes.PATH_CHILD] = self._value(key_type, pairs, 0)
        self._paths[node][nodes.PATH_OTHER] = self._value(value_type, pairs, 1)
        self._column(i, node, kernels.PAIRS, 0, 0, self._names_behind(prefix))

    def _value(self, kind: pa.DataType, parent: int, place: int) -> int:
        """The node of plain values, of a dictionary of these, of a union of them, or of objects."""
        if kind.id == _DICTIONARY:
            node = self._node(nodes.DICTIONARY, parent, place)
            value = _plain_kind(kind.value_type)
            if value in (nodes.NOTHING, nodes.OBJECT):
                raise _SlowError
            self._paths[node][nodes.PATH_CHILD] = self._node(value, node, -1)
            self._paths[node][nodes.PATH_OTHER] = _plain_kind(kind.index_type)
            return node
        if kind.id in _UNIONS:
            node = self._node(_UNIONS[kind.id], parent, place)
            self._paths[node][nodes.PATH_CHILD] = len(self._branches)
            branches = [-1] * nodes.BRANCHES
            self._branches.append(branches)
            for k, code in enumerate(kind.type_codes):
                value = _plain_kind(kind.field(k).type)
                if value == nodes.STRING_VIEW:  # which the readable way refuses, for Arrow cannot take some of them
                    raise _SlowError
                branches[code] = self._node(value, node, k)
            return node
        return self._node(_plain_kind(kind), parent, place)

    def _node(self, kind: int, parent: int, place: int) -> int:
        self._paths.append([kind, parent, place, 0, 0])
        return len(self._paths) - 1

    def _column(self, i: int, node: int, mode: int, meta: int, special: int, names: int = 0) -> None:
        self._columns.append((node, mode, meta, special, names))
        self._numbers.append(i)

    def _names_behind(self, prefix: str) -> int:
        """The names that rules have for the keys of a map, as kernels look them up; the number of this table."""
        encoder = self._encoder
        raw, metas = bytearray(), list[int]()
        ends = [0]
        for other, meta in list(encoder.metas.items()):
            if other.startswith(prefix):
                try:
                    raw += other[len(prefix) :].encode()
                except UnicodeEncodeError:
                    continue  # half a character: no key has such a name
                ends.append(len(raw))
                metas.append(meta | encoder.special.get(other, 0))
        strings = Strings()
        strings.intern_many(np.frombuffer(bytes(raw), np.uint8), np.array(ends))
        table, kept = strings.table(), np.array(metas, np.int64)
        self._kept.append((table, kept))
        self._names.append([*addresses(table), len(table[-1]), *addresses([kept])])
        return len(self._names) - 1

    # -- attributes that two columns may give

    def _give(self, i: int, name: str) -> None:
        """A column gives an attribute."""
        if name in self._given:
            self.slow |= {i, self._given[name]}
        self._given[name] = i

    def _open(self, i: int, name: str) -> None:
        """A column may give any attribute behind a name and a dot."""
        if name in self._within:
            self.slow |= {i, self._within[name]}
        self._within[name] = i

    def _find_twice(self) -> None:
        """Let columns be slow that may give one attribute along different ways; a column without such is the only one
        to give what it gives.
        """
        if not self._within:
            return
        for name, i in (*self._given.items(), *self._within.items()):
            dot = name.find(".")
            while dot >= 0:
                other = self._within.get(name[:dot])
                if other is not None:
                    self.slow |= {i, other}
                dot = name.find(".", dot + 1)


def _plain_kind(kind: pa.DataType) -> int:
    """How values of a type are read; of an object, only whether it is there."""
    found = _PLAIN.get(kind.id)
    if found is None and kind.id == _TIMESTAMP:
        return _TIMES[kind.unit]
    if found is None:
        raise _SlowError
    return found


def addresses(arrays: Iterable[NDArray[Any]]) -> list[int]:
    """Where the items of arrays begin."""
    return [array.__array_interface__["data"][0] for array in arrays]


def plan_for(schema: pa.Schema, encoder: Encoder, pairs: int = -1) -> Plan:
    """How a table is read; the same as the last time, if the tables of a stream are alike."""
    plan: Plan | None = encoder.table_plan
    is_known = plan is not None and plan.attributes == len(encoder.metas) and plan.pairs == pairs
    if plan is None or not is_known or not plan.schema.equals(schema):
        plan = encoder.table_plan = Plan(schema, encoder, pairs)
    return plan
