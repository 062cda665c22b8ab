"""A workload made ready for measuring: rules compiled once, events encoded once, whoever is measured on them.

    workload ── the first n rules ──▶ compiled ──▶ conjunctions      shared by all indexes
             ── the first m events ─▶ places[i] = (buffer, row)      encoded as a matcher encodes a table
                                      dicts[i]                       the same event as a dict, without absent attributes

Rules have the ids 0 … n-1, which are also their rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import I64, Compiled, permuted_slices, unique
from eligo.compile.conjunctions import Conjunctions, build_conjunctions
from eligo.compile.encode import PATTERN, SEVERAL, TEXT, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings, slots_for
from eligo.index.rows.row_encoder import text_attributes_of
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.reference import multi_valued
from eligo.segments.encoding import encoded_slices
from eligo.segments.rule_table import RuleTable, fill_integers
from eligo_lab.workload.base import Workload
from eligo_lab.workload.draft import Draft

_ENCODINGS = 3  # repetitions of which the best counts


@dataclass
class Prepared:
    """Rules and events in the form that contenders work on; see the top of this file."""

    workload: Workload
    rules: int
    absent: str
    multi: frozenset[str]
    attributes: Attributes
    strings: Strings
    compiled: Compiled
    conjunctions: Conjunctions
    encoder: Encoder
    events: pa.Table
    buffers: list[EventBuffer]
    figures: dict[str, float] = field(default_factory=dict)

    @cached_property
    def places(self) -> list[tuple[EventBuffer, int]]:
        """For every event the buffer that holds it, and its number in there."""
        return [(buffer, row) for buffer in self.buffers for row in range(buffer.events)]

    @cached_property
    def dicts(self) -> list[dict[str, Any]]:
        return as_dicts(self.events)

    @cached_property
    def table(self) -> RuleTable:
        """Ids as a matcher keeps them; the texts are left out, because nothing that is measured reads them."""
        n = self.rules
        numbers = np.arange(n, dtype=np.int64)
        slots = slots_for(n)
        fill_integers(numbers, slots)
        return RuleTable(
            sequence=numbers,
            ids=numbers,
            id_offsets=np.zeros(1, np.int64),
            id_data=np.zeros(0, np.uint8),
            text_offsets=np.zeros(n + 1, np.int64),
            text_data=np.zeros(0, np.uint8),
            weight=np.ones(n),
            tag_offsets=np.zeros(n + 1, np.int64),
            tag=np.zeros(0, np.int32),
            tag_name_offsets=np.zeros(1, np.int64),
            tag_name_data=np.zeros(0, np.uint8),
            slots=slots,
        )

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Some rules as text."""
        return texts(self.workload, rows)

    def shared_bytes(self) -> int:
        """What all indexes stand on: compiled rules, spaces, predicates, strings."""
        return bytes_below(self.compiled, self.conjunctions, self.strings)


def bytes_below(compiled: Compiled, conjunctions: Conjunctions, strings: Strings) -> int:
    """What an index and an evaluator stand on: compiled rules, spaces, predicates, strings."""
    arrays = [*compiled.arrays().values(), *conjunctions.arrays().values(), *strings.arrays()]
    return sum(array.nbytes for array in arrays)


def prepare(workload: Workload, rules: int, events: int, absent: str = "fails") -> Prepared:
    """Compile the first rules and encode the first events of a workload."""
    attributes, strings = Attributes(), Strings()
    started = time.perf_counter()
    multi: frozenset[str] = frozenset()
    if workload.draft is not None:
        compiled = workload.draft.slice(rules).compile(attributes, strings, absent)
    else:
        compiled, multi = compile_texts(texts(workload, range(rules)), attributes, strings, absent)
    compiled_at = time.perf_counter()
    compiled, conjunctions = build_conjunctions(compiled, strings, len(attributes))
    figures = {"compile_s": compiled_at - started, "spaces_s": time.perf_counter() - compiled_at}
    encoder = Encoder(attributes, strings, special_attributes(conjunctions, attributes, multi))
    table = workload.events.slice(0, events)
    prepared = Prepared(
        workload, rules, absent, multi, attributes, strings, compiled, conjunctions, encoder, table, [], figures
    )
    prepared.buffers = [buffer for _, _, buffer in encoded_slices(table, encoder)]
    figures["encode_ns"] = _encode_time(table, encoder)
    figures["encode_dict_ns"] = _encode_dict_time(prepared.dicts[:1000], encoder)
    return prepared


def texts(workload: Workload, rows: Iterable[int]) -> list[str]:
    """Some rules of a workload as text; only these are written out, of a million."""
    numbers = np.array(list(rows), np.int64)
    if workload.draft is not None:
        column = picked(workload.draft, numbers).table().column("expression")
    else:
        column = workload.rules.column("expression").take(pa.array(numbers))
    return [str(text) for text in column.to_pylist()]


def picked(draft: Draft, rows: I64) -> Draft:
    """Some rules of a draft, in the order given and perhaps some twice, each with conjunctions of its own."""
    tree, tree_offsets = permuted_slices(draft.tree, draft.tree_offsets, rows)
    leaves = tree >= 0
    places = np.arange(draft.predicates, dtype=np.int64)
    predicates, conjunction_offsets = permuted_slices(places, draft.conjunction_offsets, tree[leaves].astype(np.int64))
    operand, operand_offsets = permuted_slices(draft.operand, draft.operand_offsets, predicates)
    tree[leaves] = np.arange(int(leaves.sum()), dtype=np.int32)
    return replace(
        draft,
        attribute=draft.attribute[predicates],
        operator=draft.operator[predicates],
        operand_offsets=operand_offsets,
        operand=operand,
        conjunction_offsets=conjunction_offsets,
        tree_offsets=tree_offsets,
        tree=tree,
    )


def compile_texts(
    given: Sequence[str], attributes: Attributes, strings: Strings, absent: str
) -> tuple[Compiled, frozenset[str]]:
    """Rules that exist as text alone, compiled as a matcher does it."""
    roots = [parse(text) for text in given]
    multi = frozenset().union(*(multi_valued(root) for root in roots))
    builder = Builder(attributes, strings, absent=absent, multi=multi)
    for root in roots:
        builder.add(normalize(root, multi=multi, absent=absent))
    return unique(builder.finish()), multi


def special_attributes(conjunctions: Conjunctions, attributes: Attributes, multi: Iterable[str]) -> dict[str, int]:
    """What an encoder has to know about some attributes, whichever index reads the events."""
    special = dict.fromkeys(multi, SEVERAL)
    text = text_attributes_of(conjunctions.compiled, conjunctions.attributes)
    text[conjunctions.text_attributes()] = True
    for flag, numbers in ((TEXT, np.nonzero(text)[0]), (PATTERN, conjunctions.pattern_attributes())):
        for number in numbers.tolist():
            name = attributes.names[number]
            special[name] = special.get(name, 0) | flag
    return special


def as_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """Every row as a dict of what is present. By column: a sparse table has thousands of them, nearly all null."""
    rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
    for name, column in zip(table.column_names, table.columns, strict=True):
        present = np.nonzero(column.is_valid().to_numpy())[0]
        for row, value in zip(present.tolist(), column.drop_null().to_pylist(), strict=True):
            rows[row][name] = value
    return rows


def _encode_time(table: pa.Table, encoder: Encoder) -> float:
    """Nanoseconds an event, as a table; the kernels are warm, because the events were encoded before."""
    best = float("inf")
    for _ in range(_ENCODINGS):
        started = time.perf_counter_ns()
        for _ in encoded_slices(table, encoder):
            pass
        best = min(best, time.perf_counter_ns() - started)
    return best / max(int(table.num_rows), 1)


def _encode_dict_time(dicts: list[dict[str, Any]], encoder: Encoder) -> float:
    """Nanoseconds an event, one dict after another."""
    best = float("inf")
    buffer = EventBuffer()
    for _ in range(_ENCODINGS):
        started = time.perf_counter_ns()
        for event in dicts:
            buffer.clear()
            encoder.encode(event, buffer)
        best = min(best, time.perf_counter_ns() - started)
    return best / max(len(dicts), 1)
