"""Events as JSON texts: read by a kernel into an event buffer, without a Python object for any of their values.

    Branches     the names that rules name, as the kernel follows them (json_kernels.py), for a state of `Attributes`
    JsonReader   these, what is special about attributes, the strings, and one event buffer: the kernel's argument

What an event means is what `decoded_event` and `Encoder.encode` say. The kernel gives the same entries; where it is not
sure, of one event in a batch or the only one, these two do it.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eligo.compile import json_kernels
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, U8
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.json_texts import JsonEvents, decoded_event
from eligo.errors import EventError
from eligo.jit import entry

U64: TypeAlias = NDArray[np.uint64]

_SPARSE: Final = 4  # slots for each branch: most keys of an event are no branch, and meet a free slot at once
_DOT: Final = ord(".")


class Branches:
    """What the kernel follows, for so many attributes, in arrays (json_kernels.py); and the node of each name."""

    def __init__(self, attributes: int, nodes: dict[str, int], *arrays: *tuple[U8, I64, I32, I64, U64]) -> None:
        self.attributes, self.nodes = attributes, nodes
        self.names, self.branches, self.slots, self.node_meta, self.node_filter = arrays
        self.handle = json_kernels.make_json_names(*arrays)


class JsonReader:
    """The kernel's argument, `handle`, and of what state of its parts it is made."""

    __slots__ = ("attributes", "call", "encoder", "enter", "events", "handle", "strings", "waited")

    def __init__(self, encoder: Encoder, buffer: EventBuffer) -> None:
        self.encoder, self.events = encoder, buffer.handle
        # First the state of the strings: a table that is newer has all that this one has.
        self.strings, table = encoder.strings.state, encoder.strings.table()
        branches = _branches(encoder.attributes)
        self.attributes = branches.attributes
        flags = np.zeros(len(branches.nodes) + 1, np.uint8)
        for name, special in encoder.special.items():
            node = branches.nodes.get(name)
            if node is not None:
                flags[node] = special
        seen, stack = np.zeros(len(flags), np.int64), np.zeros(json_kernels.DEPTH, np.int64)
        clock, begin, end = np.zeros((3, 1), np.int64)
        self.handle = json_kernels.make_json_reader(
            branches.handle, flags, *table, self.events, seen, clock, stack, begin, end
        )
        self.enter: Any = None  # the machine code that reads one event
        self.call: Any = None  # what reads events and searches (segments/live_events.py)
        self.waited = 0  # events since that was good for the rules

    def is_for(self, encoder: Encoder, buffer: EventBuffer) -> bool:
        """Whether it reads what rules name now, into the buffer as it is now."""
        return (
            self.encoder is encoder
            and self.events is buffer.made
            and self.strings is encoder.strings.state
            and self.attributes == len(encoder.metas)
        )


def encode_json(encoder: Encoder, event: bytes, buffer: EventBuffer) -> None:
    """Put the event that a JSON text is into an empty buffer."""
    while True:
        known = buffer.json
        if known is None or not known.is_for(encoder, buffer):
            known = reader(encoder, buffer)
        if known.enter is None:
            known.enter = entry(json_kernels.read_event, known.handle, event)
        ended, _, count, texts, text_end = known.enter(known.handle, event)
        if ended == json_kernels.DONE:
            buffer.events, buffer.texts, buffer.text_end = 1, texts, text_end
            buffer.count = buffer.widest = count
            return None
        if ended == json_kernels.IS_ODD:
            return encoder.encode(decoded_event(event), buffer)
        _make_room(buffer, ended, len(event))


def encode_json_batch(events: JsonEvents, encoder: Encoder, buffer: EventBuffer, first: int) -> None:
    """Put many events into an empty buffer; `first` is the number of the first of them in messages."""
    data, begin, end, refused = events.data, events.begin, events.end, events.refused
    if refused:  # by an encoder that is not the newest any more
        for number in [number for number in refused if number >= first]:
            del refused[number]
    buffer.make_event_room(len(events))
    while True:
        ended, at, buffer.count, buffer.texts, buffer.text_end = json_kernels.read_batch(
            reader(encoder, buffer).handle, data, begin, end, buffer.events, buffer.count, buffer.texts, buffer.text_end
        )
        buffer.events = at
        if ended == json_kernels.DONE:
            break
        if ended == json_kernels.IS_ODD:
            try:
                encoder.encode(events[at], buffer)
            except EventError as error:
                if refused is None:
                    raise EventError(f"event {first + at}: {error}") from None
                refused[first + at] = str(error)
                buffer.close_event(buffer.count)
        else:
            _make_room(buffer, ended, int(end[at] - begin[at]))
    buffer.widest = int(np.diff(buffer.offsets[: buffer.events + 1]).max(initial=0))


def _make_room(buffer: EventBuffer, ended: int, size: int) -> None:
    if ended == json_kernels.NO_ENTRIES:
        buffer.grow()
    else:
        buffer.make_text_room(len(buffer.text_number) + 1, buffer.text_end + size)


def reader(encoder: Encoder, buffer: EventBuffer) -> JsonReader:
    """The kernel's argument for an encoder and a buffer as they are now."""
    known: JsonReader | None = buffer.json
    if known is None or not known.is_for(encoder, buffer):
        known = buffer.json = JsonReader(encoder, buffer)
    return known


def _branches(attributes: Attributes) -> Branches:
    """The branches for the names that there are now. Names only ever come: those that are known stay as they are."""
    known: Branches | None = attributes.branches
    metas = attributes.metas
    if known is None or known.attributes != len(metas):
        if known is None:
            none, whole, bits = np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(1, np.uint64)
            known = Branches(0, {}, none, whole, np.zeros(16, np.int32), np.full(1, -1, np.int64), bits)
        known = attributes.branches = _extended(known, list(metas.items()))
    return known


def _extended(known: Branches, metas: list[tuple[str, int]]) -> Branches:
    """Branches for more attributes. Others may read the ones that are known, so these are copied."""
    nodes = known.nodes.copy()
    names = bytearray()
    words: list[int] = []
    for given, _ in metas[known.attributes :]:
        try:
            given.encode()
        except UnicodeEncodeError:
            continue  # half a character: no JSON has such a name
        dots = [place for place, character in enumerate(given) if character == "."]
        for name in (*(given[:dot] for dot in dots), given):
            if name not in nodes:
                nodes[name] = len(nodes) + 1
                raw = name.encode()
                begin = len(known.names) + len(names)
                names += raw
                for start in (0, *(place + 1 for place, byte in enumerate(raw) if byte == _DOT)):
                    parent = nodes[raw[: start - 1].decode()] if start else 0
                    words += 0, parent, begin + start, len(raw) - start, nodes[name]
    node_meta = np.full(len(nodes) + 1, -1, np.int64)
    node_meta[: len(known.node_meta)] = known.node_meta
    for name, meta in metas[known.attributes :]:
        if name in nodes:
            node_meta[nodes[name]] = meta
    node_filter = np.zeros(len(node_meta), np.uint64)
    node_filter[: len(known.node_filter)] = known.node_filter
    first, branches = len(known.branches) // 5, np.concatenate((known.branches, np.array(words, np.int64)))
    slots, count = known.slots.copy(), len(branches) // 5
    if _SPARSE * count > len(slots):
        slots, first = np.zeros(1 << (2 * _SPARSE * count).bit_length(), np.int32), 0
    data = np.concatenate((known.names, np.frombuffer(bytes(names), np.uint8)))
    json_kernels.enter_branches(data, branches, slots, node_filter, first)
    return Branches(len(metas), nodes, data, branches, slots, node_meta, node_filter)
