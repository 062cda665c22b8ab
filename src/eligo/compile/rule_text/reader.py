"""Rules of a column of texts, read in chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, U8, Compiled, kept_slices, unique
from eligo.compile.renumber import mark_used, renumbered
from eligo.compile.rule_text.grammar import read_rules
from eligo.compile.rule_text.layout import (
    ADDRESS,
    ARRAYS,
    CLASSICAL,
    CONJUNCTIONS,
    DEPTH,
    FRAME,
    ITEMS,
    MENTIONS,
    MOST_DEPTH,
    MOST_VALUES,
    MULTI,
    NAME_BYTES,
    NAMES,
    PREDICATES,
    ROOM,
    STATE,
    TEXT_BYTES,
    TEXTS,
    TREE,
    make_rule_text,
)
from eligo.compile.strings import Strings, fill_slots, slots_for
from eligo.language.limits import Limits

CHUNK = 512 << 10  # bytes of text that are read together
LONGEST = 64 << 10  # bytes of a rule; a longer one takes longer by itself than whatever calls its reader
_SLOTS = 1 << 12  # of names and strings, to begin with


@dataclass(frozen=True)
class ReadRules:
    """Rules that were read, under numbers of their own: `names` and strings, data and offsets, have them in turn."""

    read: NDArray[np.bool_]  # of each text, whether it was: other rules are odd, and have an empty tree
    leaves: I32  # of each rule that was read, the predicates in its text
    compiled: Compiled
    names: list[str]
    data: U8
    offsets: I64
    mentions: dict[int, list[str]]  # of rules whose normal form lacks attributes that they name: these, sorted

    def numbered(self, attributes: Attributes, strings: Strings) -> Compiled:
        """The rules under the numbers of these tables, where all that they use is entered. Writers hold the matcher's
        lock.
        """
        named, used = np.zeros(len(self.names), np.bool_), np.zeros(len(self.offsets) - 1, np.bool_)
        mark_used(self.compiled, named, used)
        names, texts = np.zeros(len(named), np.int32), np.zeros(len(used), np.int32)
        names[named] = [attributes.intern(self.names[number]) for number in np.flatnonzero(named).tolist()]
        texts[used] = strings.intern_many(*kept_slices(self.data, self.offsets, used))
        return renumbered(self.compiled, names, texts)


class TextReader:
    """Reads rules that are texts, chunk by chunk; one thread at a time."""

    def __init__(self, limits: Limits, absent: str = "fails", multi: Iterable[str] = ()) -> None:
        self.limits, self.classical, self.multi = limits, absent == "classical", sorted(multi)
        self._memory: dict[str, NDArray[Any]] = {}

    def chunks(self, offsets: I64) -> Iterator[tuple[int, int]]:
        """Slices of texts, given by their offsets, that are worth being read together."""
        first, count = 0, len(offsets) - 1
        while first < count:
            stop = int(np.searchsorted(offsets, offsets[first] + CHUNK, "right")) - 1
            stop = min(max(stop, first + 1), count)
            yield first, stop
            first = stop

    def read(self, data: U8, offsets: I64, wanted: NDArray[np.bool_] | None = None) -> ReadRules:
        """Read the rules data[offsets[i]:offsets[i + 1]], at most those that are wanted."""
        begin, end = np.array(offsets[:-1], np.int64), np.array(offsets[1:], np.int64)
        sizes = end - begin
        # A rule of fewer bytes has fewer tokens, and those that are too many make `parse` count leaves.
        read = sizes <= min(LONGEST, self.limits.text, self.limits.leaves - 2)
        if wanted is not None:
            read &= wanted
        names = [name.encode() for name in self.multi]
        memory = self._room(int(sizes[read].sum()), len(sizes), int(sizes[read].max(initial=0)), b"".join(names))
        state = memory["state"]
        state[:] = 0
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        memory["name_begin"][1 : len(names)] = ends[:-1]
        memory["name_begin"][:1] = 0
        memory["name_end"][: len(names)] = ends
        state[NAMES] = state[MULTI] = len(names)
        state[NAME_BYTES] = ends[-1] if names else 0
        state[CLASSICAL], state[MOST_DEPTH] = self.classical, self.limits.depth
        state[MOST_VALUES], state[ADDRESS] = self.limits.values, data.ctypes.data
        leaves = np.zeros(len(sizes), np.int32)
        tree_offsets = np.zeros(len(sizes) + 1, np.int64)
        memory.update(data=data, leaves=leaves, tree_offsets=tree_offsets, mark=np.zeros(_SLOTS, np.int64))
        memory["name_slots"], memory["text_slots"] = np.zeros(_SLOTS, np.int32), np.zeros(_SLOTS, np.int32)
        done = 0
        self._grow("name", len(names), 0, names=True)
        while True:
            done = read_rules(make_rule_text(*(memory[name] for name in ARRAYS)), begin, end, read, done)
            if done == len(sizes):
                break
            self._grow("name", int(state[NAMES]), int(sizes[done]), names=True)
            self._grow("text", int(state[TEXTS]), int(sizes[done]))
        return self._result(read, leaves, tree_offsets)

    def _result(self, read: NDArray[np.bool_], leaves: I32, tree_offsets: I64) -> ReadRules:
        memory, state = self._memory, self._memory["state"]
        predicates, runs = int(state[PREDICATES]), int(memory["run_offsets"][state[PREDICATES]])
        cuts, keys = memory["kind"][: 2 * runs].reshape(-1, 2), memory["key"][: 4 * runs].reshape(-1, 4)
        # `unique` copies what it cuts down, but may keep offsets as they are.
        compiled = Compiled(
            attribute=memory["attribute"][:predicates],
            flags=memory["flags"][:predicates],
            pattern=memory["pattern"][:predicates],
            run_offsets=memory["run_offsets"][: predicates + 1].copy(),
            low_kind=np.ascontiguousarray(cuts[:, 0]),
            low_key=np.ascontiguousarray(keys[:, 0]),
            low_key2=np.ascontiguousarray(keys[:, 1]),
            high_kind=np.ascontiguousarray(cuts[:, 1]),
            high_key=np.ascontiguousarray(keys[:, 2]),
            high_key2=np.ascontiguousarray(keys[:, 3]),
            conjunction_offsets=memory["conjunction_offsets"][: int(state[CONJUNCTIONS]) + 1].copy(),
            conjunction=memory["conjunction"][: state[ITEMS]],
            tree_offsets=tree_offsets,
            tree=memory["tree"][: state[TREE]],
        )
        raw = memory["name_data"][: state[NAME_BYTES]].tobytes()
        ends = memory["name_end"][: state[NAMES]].tolist()
        names = [raw[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        texts = np.append(memory["text_begin"][: state[TEXTS]], state[TEXT_BYTES])
        mentions: dict[int, list[str]] = {}
        rules, named = (memory[f"mention_{what}"][: state[MENTIONS]].tolist() for what in ("rule", "name"))
        for rule, name in zip(rules, named, strict=True):
            mentions.setdefault(rule, []).append(names[name])
        mentions = {rule: sorted(some) for rule, some in mentions.items()}
        data = memory["text_data"][: state[TEXT_BYTES]].copy()
        return ReadRules(read, leaves, unique(compiled), names, data, texts, mentions)

    def _grow(self, which: str, count: int, size: int, names: bool = False) -> None:
        """Have slots for so many entries and for those of a rule of that size, and marks for as many attributes."""
        memory = self._memory
        if 2 * (count + size) > len(memory[f"{which}_slots"]) or size == 0:
            slots = slots_for(max(count + size, _SLOTS // 2 - 1))
            fill_slots(memory[f"{which}_data"], memory[f"{which}_begin"], memory[f"{which}_end"], slots, 0, count)
            memory[f"{which}_slots"] = slots
            at = np.flatnonzero(slots)
            memory[f"{which}_at"][slots[at] - 1] = at
            if names:
                memory["mark"] = np.concatenate((memory["mark"], np.zeros(len(slots), np.int64)))

    def _room(self, size: int, rules: int, longest: int, names: bytes) -> dict[str, NDArray[Any]]:
        """Memory for rules of so many bytes together; what was used before if it is large enough."""
        room, few = ROOM * size + 16 * rules + 64, len(names) + len(self.multi) + size + rules + 64
        sizes: dict[str, tuple[int, type]] = {
            "name_data": (few, np.uint8), "name_begin": (few, np.int64), "name_end": (few, np.int64),
            "name_at": (few, np.int64), "text_data": (room, np.uint8), "text_begin": (few, np.int64),
            "text_end": (few, np.int64), "text_at": (few, np.int64), "attribute": (room, np.int32),
            "flags": (room, np.uint8), "pattern": (room, np.int32), "form": (room, np.uint8), "hash": (room, np.uint64),
            "identity": (room, np.uint64), "mention_rule": (few, np.int32), "mention_name": (few, np.int32),
            "run_offsets": (room, np.int64), "kind": (2 * room, np.uint8), "key": (4 * room, np.int64),
            "past": (2 * room, np.uint8), "node_kind": (8 * longest + 64, np.uint8),
            "node_first": (8 * longest + 64, np.int32), "node_count": (8 * longest + 64, np.int32),
            "node_hash": (8 * longest + 64, np.uint64), "child": (16 * longest + 2048, np.int32),
            "stack": (2 * longest + 64, np.int32), "frame": (FRAME * DEPTH, np.int64),
            "conjunction_offsets": (size + rules + 64, np.int64), "conjunction": (size + rules + 64, np.int32),
            "tree": (2 * (size + rules) + 64, np.int32), "state": (STATE, np.int64),
        }  # fmt: skip
        for name, (least, kind) in sizes.items():
            if name not in self._memory or len(self._memory[name]) < least:
                self._memory[name] = np.empty(1 << (least - 1).bit_length(), kind)  # chunks are not all of one size
        self._memory["name_data"][: len(names)] = np.frombuffer(names, np.uint8)
        self._memory["run_offsets"][0] = self._memory["conjunction_offsets"][0] = 0
        return self._memory
