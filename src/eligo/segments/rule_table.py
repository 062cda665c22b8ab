"""The columns of a segment's rules beside their meaning: id, text, weight, tags, and the order of adding.

    sequence                      int64, ascending: the order of adding; a rule that replaces another takes its number
    ids                           int64 ids, or for strings id_offsets and id_data (UTF-8)
    text_offsets, text_data       the rule as it was written (or rendered, if it was not written as text)
    weight                        float64
    tag_offsets, tag              tags of a rule as numbers of tag_name_offsets / tag_name_data
    slots                         hash of the id to row + 1, linear probing, at most half full

Hidden tags, which no user gave, begin with a character that Unicode keeps free for such uses:

    MENTION    the rule names an attribute in its text that its normal form does not (`a = 1 and a = 2`); should the
               attribute become multi-valued, the rule has to be compiled again
    JOINED     what is to be asked of documents where the rest of the rule holds (language/quantified.py)
    OWNER      whose rule it is

If texts are in a table of their own, a subclass has locators in `text_data` and finds them there (`store/tables.py`).

No Python object stands for a rule: ten million rules would otherwise stop the process at every garbage collection.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arguments import RESERVED
from eligo.arrow import arrow_of, room
from eligo.compile.compiled import I32, I64, U8, Arrays, kept_slices, mixed, permuted_slices
from eligo.compile.strings import fill_slots, find_bytes, slots_for
from eligo.forking import cached_property
from eligo.jit import kernel
from eligo.rule import Rule, RuleId

HIDDEN = RESERVED
MENTION, JOINED, OWNER = HIDDEN
FEW = 8  # integer ids up to which reading them one by one is faster than NumPy
MANY = 16  # string ids up to which decoding them one by one is faster than Arrow
KEPT = 1 << 22  # rules of a segment up to which string ids are kept as Python objects
NO_TEXTS: tuple[I64, U8] = np.zeros(1, np.int64), np.zeros(0, np.uint8)


def is_id(rule: object) -> TypeGuard[RuleId]:
    """Tests whether a value can be the id of a rule: a valid string or an integer of 64 bits, but no Boolean."""
    if type(rule) is int:
        return -(2**63) <= rule < 2**63
    if type(rule) is not str:
        return False
    try:
        rule.encode()
    except UnicodeEncodeError:
        return False
    return True


def rule_of(rule: RuleId, text: str, weight: float, tags: Iterable[str]) -> Rule:
    """Returns a rule as users get it. `tags` are all its tags; hidden ones are left out, but for the owner."""
    every = tuple(tags)
    if not any(tag.startswith(HIDDEN) for tag in every):
        return Rule(rule, text, weight, every)
    owner = next((tag[1:] for tag in every if tag.startswith(OWNER)), None)
    return Rule(rule, text, weight, tuple(tag for tag in every if not tag.startswith(HIDDEN)), owner)


@dataclass(frozen=True)
class RuleTable:
    """The columns of the rules of a segment: the arrays drawn above."""

    sequence: I64
    ids: I64
    id_offsets: I64
    id_data: U8
    text_offsets: I64
    text_data: U8
    weight: NDArray[np.float64]
    tag_offsets: I64
    tag: I32
    tag_name_offsets: I64
    tag_name_data: U8
    slots: I32

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def has_text_ids(self) -> bool:
        """Whether ids are strings. False if there are no rules."""
        return len(self.ids) == 0 and len(self.sequence) > 0

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(RuleTable)}

    @property
    def texts_apart(self) -> object:
        """The table to which the locators in `text_data` lead, or None if `text_data` has the texts themselves."""
        return None

    def written(self) -> RuleTable:
        """Returns the same rules with their texts in the table's own arrays."""
        return self

    def made_of(self, arrays: Mapping[str, NDArray[Any]]) -> RuleTable:
        """Returns a table of these arrays whose texts are where those of this table are."""
        return RuleTable(**arrays)

    def row(self, rule: RuleId) -> int:
        """Returns the row of an id, or -1."""
        if isinstance(rule, str):
            if not self.has_text_ids:
                return -1
            raw = np.frombuffer(rule.encode(), np.uint8)
            return int(find_bytes(self.id_data, self.id_offsets, self.id_offsets[1:], self.slots, raw, 0, len(raw)))
        return int(find_integer(self.ids, self.slots, rule)) if len(self.ids) else -1

    def integer_ids(self, rows: I32) -> I64:
        """Returns the ids of some rows, in a table whose ids are integers."""
        ids = room(len(rows))
        take_integers(self.ids, rows, ids)
        return ids

    def rows_of(self, ids: Sequence[RuleId]) -> I32:
        """Returns the rows of ids, which must be of one type and at least one, with -1 for those that are not here."""
        if isinstance(ids[0], str):
            if not self.has_text_ids:
                return np.full(len(ids), -1, np.int32)
            offsets, data = packed(ids)  # type: ignore[arg-type]
            rows: I32 = find_texts(self.id_data, self.id_offsets, self.id_offsets[1:], self.slots, data, offsets)
            return rows
        wanted = np.array(ids, np.int64)
        return find_integers(self.ids, self.slots, wanted) if len(self.ids) else np.full(len(ids), -1, np.int32)

    def id(self, row: int) -> RuleId:
        if len(self.ids):
            return int(self.ids[row])
        return bytes(self.id_data[self.id_offsets[row] : self.id_offsets[row + 1]]).decode()

    def id_list(self, rows: I32) -> list[RuleId]:
        """Returns the ids of some rows. Strings are kept, because making one takes longer than finding a match; an
        integer is made as fast as it would be found in memory.
        """
        if len(self.ids):
            if len(rows) <= FEW:
                ids = self._id_view
                return [ids[row] for row in rows.tolist()]
            return self.ids.take(rows).tolist()  # type: ignore[no-any-return]
        objects, known = self._objects
        if len(rows) <= MANY:
            texts = list(map(objects.item, some := rows.tolist()))
            if None in texts:
                texts = list(map(self.id, some))
                if len(self) <= KEPT:
                    for row, text in zip(some, texts, strict=True):
                        objects[row] = text
                        known[row] = 1  # when the object is there
            return texts
        found = objects[rows]
        missing = known[rows] == 0
        if missing.any():
            new = rows[missing]
            made = self.id_array().take(arrow_of(new)).to_pylist()
            found[missing] = made
            if len(self) <= KEPT:
                objects[new] = made
                known[new] = 1  # when the object is there
        return found.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _id_view(self) -> memoryview:
        """Integer ids as a view from which one is read in a third of the time."""
        return memoryview(self.ids)  # type: ignore[arg-type]

    @cached_property
    def _objects(self) -> tuple[NDArray[Any], U8]:
        """String ids that were asked for, as Python objects by row, and a byte for each row that has one."""
        return np.empty(len(self), np.object_), np.zeros(len(self), np.uint8)

    def id_array(self) -> pa.Array:
        """Returns all ids as an Arrow array over the same memory."""
        if not self.has_text_ids:
            return arrow_of(self.ids)
        return pa.Array.from_buffers(
            pa.large_string(), len(self), [None, pa.py_buffer(self.id_offsets), pa.py_buffer(self.id_data)]
        )

    def id_column(self, rows: I32) -> pa.Array:
        """Returns the ids of some rows as an Arrow array."""
        if self.has_text_ids:
            return self.id_array().take(arrow_of(rows))
        return arrow_of(self.integer_ids(rows))

    def text_array(self) -> pa.Array:
        """Returns all texts as an Arrow array over the same memory."""
        return pa.Array.from_buffers(
            pa.large_string(), len(self), [None, pa.py_buffer(self.text_offsets), pa.py_buffer(self.text_data)]
        )

    def text(self, row: int) -> str:
        return bytes(self.text_data[self.text_offsets[row] : self.text_offsets[row + 1]]).decode()

    def texts_of(self, rows: I64) -> list[str]:
        """Returns the texts of some rows."""
        return [self.text(row) for row in rows.tolist()]

    def tag_names(self) -> list[str]:
        """Returns the names of all tags, hidden ones included, by number."""
        return unpacked(self.tag_name_offsets, self.tag_name_data)

    def rule(self, row: int, text: str | None = None) -> Rule:
        """Returns the rule of a row. `text` is its text, if the caller knows it."""
        names = (self.tag_name_offsets, self.tag_name_data)
        tags = (
            bytes(names[1][names[0][tag] : names[0][tag + 1]]).decode()
            for tag in self.tag[self.tag_offsets[row] : self.tag_offsets[row + 1]]
        )
        return rule_of(self.id(row), self.text(row) if text is None else text, float(self.weight[row]), tags)

    def rules(self) -> list[Rule]:
        """Returns all rules, of a table that has their texts itself."""
        names, tags = self.tag_names(), self.tag.tolist()
        ids = self.id_list(np.arange(len(self), dtype=np.int32))
        columns = zip(ids, strings_of(self.text_offsets, self.text_data), self.weight.tolist(), strict=True)
        ends = pairwise(self.tag_offsets.tolist())
        return [
            rule_of(rule, text, weight, [names[tag] for tag in tags[first:stop]])
            for (rule, text, weight), (first, stop) in zip(columns, ends, strict=True)
        ]

    @cached_property
    def joins(self) -> tuple[I32, list[str]] | None:
        """For every row the number of the tag that says what to ask of documents, or -1, and the names of all tags
        without their first character. None if no rule has such a tag.
        """
        names = self.tag_names()
        marked = np.array([name.startswith(JOINED) for name in names], np.bool_)
        if not marked.any():
            return None
        number = np.full(len(self), -1, np.int32)
        rows = np.repeat(np.arange(len(self)), np.diff(self.tag_offsets))
        chosen = marked[self.tag]
        number[rows[chosen]] = self.tag[chosen]
        return number, [name[1:] for name in names]

    def rows_with_tags(self, tags: Container[str]) -> U8:
        """Returns a byte for every row: whether the rule has one of the tags."""
        names = self.tag_names()
        chosen = np.array([name in tags for name in names], np.bool_)
        mask = np.zeros(len(self), np.uint8)
        if chosen.any():
            rows = np.repeat(np.arange(len(self)), np.diff(self.tag_offsets))
            mask[rows[chosen[self.tag]]] = 1
        return mask


def make_rule_table(
    sequence: Sequence[int],
    ids: Sequence[RuleId],
    texts: Sequence[str],
    weights: Sequence[float],
    tags: Sequence[tuple[str, ...]],
) -> RuleTable:
    """Makes a table from Python values. The rules must be in the order of their sequence numbers."""
    names: dict[str, int] = {}
    flat = [names.setdefault(tag, len(names)) for some in tags for tag in dict.fromkeys(some)]
    text_offsets, text_data = packed(texts)
    name_offsets, name_data = packed(list(names))
    with_text = bool(ids) and isinstance(ids[0], str)
    id_offsets, id_data = packed(ids) if with_text else NO_TEXTS  # type: ignore[arg-type]
    whole = np.zeros(0, np.int64) if with_text else np.array(ids, np.int64)
    return RuleTable(
        sequence=np.array(sequence, np.int64),
        ids=whole,
        id_offsets=id_offsets,
        id_data=id_data,
        text_offsets=text_offsets,
        text_data=text_data,
        weight=np.array(weights, np.float64),
        tag_offsets=_offsets([len(set(some)) for some in tags]),
        tag=np.array(flat, np.int32),
        tag_name_offsets=name_offsets,
        tag_name_data=name_data,
        slots=_id_slots(whole, id_offsets, id_data),
    )


def column_table(
    sequence: I64,
    ids: I64 | tuple[I64, U8],
    texts: tuple[I64, U8],
    weights: NDArray[np.float64],
    tags: Mapping[int, tuple[str, ...]],
) -> RuleTable:
    """Makes a table from arrays, and tags by row. Its slots are empty, so it finds no row by its id until
    `join_rule_tables` has filled them.
    """
    names: dict[str, int] = {}
    numbers: list[int] = []
    tag_offsets = np.zeros(len(sequence) + 1, np.int64)
    for row in sorted(tags):
        some = dict.fromkeys(tags[row])
        tag_offsets[row + 1] = len(some)
        numbers.extend(names.setdefault(tag, len(names)) for tag in some)
    if names:
        np.cumsum(tag_offsets, out=tag_offsets)
    name_offsets, name_data = packed(list(names)) if names else NO_TEXTS
    id_offsets, id_data = ids if isinstance(ids, tuple) else NO_TEXTS
    return RuleTable(
        sequence=sequence,
        ids=np.zeros(0, np.int64) if isinstance(ids, tuple) else ids,
        id_offsets=id_offsets,
        id_data=id_data,
        text_offsets=texts[0],
        text_data=texts[1],
        weight=weights,
        tag_offsets=tag_offsets,
        tag=np.array(numbers, np.int32),
        tag_name_offsets=name_offsets,
        tag_name_data=name_data,
        slots=np.zeros(16, np.int32),
    )


def join_rule_tables(tables: Sequence[RuleTable], keep: Sequence[NDArray[np.bool_] | None], order: I64) -> RuleTable:
    """Joins the kept rows of all tables, one table after another, and then puts them in `order`.

    Texts stay where they are if those of all tables are in one place; otherwise they are read into the new table.
    """
    if any(table.texts_apart is not tables[0].texts_apart for table in tables):
        tables = [table.written() for table in tables]
    joined: dict[str, NDArray[Any]] = {}
    for name in ("sequence", "ids", "weight"):
        joined[name] = np.concatenate([_kept(getattr(t, name), k) for t, k in zip(tables, keep, strict=True)])
    joined["id_data"], joined["id_offsets"] = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    sliced = [("text_data", "text_offsets"), ("tag", "tag_offsets")]
    if any(table.has_text_ids for table in tables):
        sliced.append(("id_data", "id_offsets"))
    for items, offsets in sliced:
        joined[items], joined[offsets] = join_slices(
            [kept_slices(getattr(t, items), getattr(t, offsets), k) for t, k in zip(tables, keep, strict=True)]
        )
    names: dict[str, int] = {}
    parts = []
    for table, k in zip(tables, keep, strict=True):
        kept, every = kept_slices(table.tag, table.tag_offsets, k)[0], table.tag_names()
        numbers = np.zeros(len(every), np.int32)
        for number in np.unique(kept).tolist():  # names that only removed rules had are left out
            numbers[number] = names.setdefault(every[number], len(names))
        parts.append(numbers[kept])
    joined["tag"] = np.concatenate(parts)
    if not np.array_equal(order, np.arange(len(order))):
        for name in ("sequence", "weight"):
            joined[name] = joined[name][order]
        joined["ids"] = joined["ids"][order] if len(joined["ids"]) else joined["ids"]
        for items, offsets in sliced:
            joined[items], joined[offsets] = permuted_slices(joined[items], joined[offsets], order)
    joined["tag_name_offsets"], joined["tag_name_data"] = packed(list(names))
    joined["slots"] = _id_slots(joined["ids"], joined["id_offsets"], joined["id_data"])
    return tables[0].made_of(joined)


def join_slices(parts: Sequence[tuple[NDArray[Any], I64]]) -> tuple[NDArray[Any], I64]:
    """Joins the items of several sliced arrays. Returns all items and all offsets."""
    offsets, end = [np.zeros(1, np.int64)], 0
    for _, part in parts:
        offsets.append(part[1:] - part[0] + end)
        end = int(offsets[-1][-1]) if len(part) > 1 else end
    return np.concatenate([items for items, _ in parts]), np.concatenate(offsets)


def _kept(array: NDArray[Any], keep: NDArray[np.bool_] | None) -> NDArray[Any]:
    return array if keep is None or len(array) == 0 else array[keep]


def packed(texts: Sequence[str]) -> tuple[I64, U8]:
    """Returns offsets and UTF-8 bytes of strings. pyarrow.array would first import pandas, which takes a while."""
    raw = [text.encode() for text in texts]
    return _offsets(list(map(len, raw))), np.frombuffer(bytearray(b"".join(raw)), np.uint8)


def unpacked(offsets: I64, data: U8) -> list[str]:
    """Returns the strings whose offsets and bytes `packed` returned."""
    raw = data.tobytes()
    return [raw[a:b].decode() for a, b in pairwise(offsets.tolist())]


def strings_of(offsets: I64, data: U8) -> list[str]:
    """Does the same as `unpacked`, in the way that is faster for so many strings."""
    if len(offsets) <= MANY:
        return unpacked(offsets, data)
    array = pa.Array.from_buffers(
        pa.large_string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    return array.to_pylist()  # type: ignore[no-any-return]


def _offsets(sizes: Sequence[int]) -> I64:
    return np.fromiter(accumulate(sizes, initial=0), np.int64, len(sizes) + 1)


def _id_slots(ids: I64, offsets: I64, data: U8) -> I32:
    count = len(ids) if len(ids) else len(offsets) - 1
    slots = slots_for(count)
    if len(ids):
        fill_integers(ids, slots)
    else:
        fill_slots(data, offsets, offsets[1:], slots, 0, count)
    return slots


@kernel
def fill_integers(ids, slots):
    """Enters the ids, which must all be different, into the slots."""
    mask = np.uint64(len(slots) - 1)
    for row in range(len(ids)):
        at = mixed(np.uint64(0), ids[row]) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row + 1


@kernel
def find_integers(ids, slots, wanted):
    """Returns the row of each id, or -1."""
    rows = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        rows[i] = find_integer(ids, slots, wanted[i])
    return rows


@kernel
def find_texts(data, begin, end, slots, texts, offsets):
    """Returns the row of each id, or -1, for ids that are strings."""
    rows = np.empty(len(offsets) - 1, np.int32)
    for i in range(len(rows)):
        rows[i] = find_bytes(data, begin, end, slots, texts, offsets[i], offsets[i + 1])
    return rows


@kernel
def find_integer(ids, slots, wanted):
    """Returns the row of an id, or -1."""
    mask = np.uint64(len(slots) - 1)
    at = mixed(np.uint64(0), np.int64(wanted)) & mask
    while slots[at] != 0:
        if ids[slots[at] - 1] == wanted:
            return slots[at] - 1
        at = (at + np.uint64(1)) & mask
    return np.int32(-1)


@kernel
def take_integers(ids, rows, taken):
    """Writes the ids of some rows into `taken`."""
    for k in range(len(rows)):
        taken[k] = ids[rows[k]]
