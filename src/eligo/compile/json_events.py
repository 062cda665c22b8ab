"""Events as JSON texts: read by a kernel into an event buffer, without a Python object for any of their values.

    Branches     the names that rules name, as the kernel follows them (json_kernels.py), for a state of `Attributes`
    JsonReader   these, what is special about attributes, the strings, and one event buffer: the kernel's argument

What an event means is what `decoded_event` and `Encoder.encode` say. The kernel gives the same entries; where it is not
sure, of one event in a batch or the only one, these two do it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from eligo.compile import json_kernels
from eligo.compile.attributes import Attributes
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.json_texts import JsonEvents, decoded_event
from eligo.errors import EventError

_SPARSE: Final = 4  # slots for each branch: most keys of an event are no branch, and meet a free slot at once


class Branches(NamedTuple):
    """What the kernel follows, for so many attributes, and the number of the node of each name."""

    attributes: int
    nodes: dict[str, int]
    handle: Any


class JsonReader:
    """The kernel's argument, `handle`, and of what state of its parts it is made."""

    __slots__ = ("attributes", "encoder", "events", "handle", "strings")

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

    def is_for(self, encoder: Encoder, buffer: EventBuffer) -> bool:
        """Whether it reads what rules name now, into the buffer as it is now."""
        return (
            self.encoder is encoder
            and self.events is buffer.handle
            and self.strings is encoder.strings.state
            and self.attributes == len(encoder.metas)
        )


def encode_json(encoder: Encoder, event: bytes, buffer: EventBuffer) -> None:
    """Put the event that a JSON text is into an empty buffer."""
    while True:
        ended, _, count, texts, text_end = json_kernels.read_event(_reader(encoder, buffer), event)
        if ended == json_kernels.DONE:
            buffer.events, buffer.count, buffer.texts, buffer.text_end = 1, count, texts, text_end
            buffer.widest = count
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
            _reader(encoder, buffer), data, begin, end, buffer.events, buffer.count, buffer.texts, buffer.text_end
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


def _reader(encoder: Encoder, buffer: EventBuffer) -> Any:
    """The kernel's argument for an encoder and a buffer as they are now."""
    reader: JsonReader | None = buffer.json
    if reader is None or not reader.is_for(encoder, buffer):
        reader = buffer.json = JsonReader(encoder, buffer)
    return reader.handle


def _branches(attributes: Attributes) -> Branches:
    branches: Branches | None = attributes.branches
    if branches is None or branches.attributes != len(attributes.metas):
        branches = attributes.branches = _new_branches(dict(attributes.metas))
    return branches


def _new_branches(metas: dict[str, int]) -> Branches:
    nodes: dict[str, int] = {}
    names, branches = bytearray(), []
    for given in metas:
        try:
            given.encode()
        except UnicodeEncodeError:
            continue  # half a character: no JSON has such a name
        dots = [place for place, character in enumerate(given) if character == "."]
        for name in (*(given[:dot] for dot in dots), given):
            if name in nodes:
                continue
            nodes[name] = len(nodes) + 1
            raw = name.encode()
            names += raw
            for start in (0, *(place + 1 for place, byte in enumerate(raw) if byte == ord("."))):
                parent = nodes[raw[: start - 1].decode()] if start else 0
                branches.append((0, parent, len(names) - len(raw) + start, len(raw) - start, nodes[name]))
    node_meta = np.full(len(nodes) + 1, -1, np.int64)
    for name, node in nodes.items():
        node_meta[node] = metas.get(name, -1)
    data = np.frombuffer(bytes(names), np.uint8)
    words = np.array(branches, np.int64).ravel()
    slots = np.zeros(max(16, 1 << (_SPARSE * len(branches)).bit_length()), np.int32)
    filters = np.zeros(len(node_meta), np.uint64)
    json_kernels.enter_branches(data, words, slots, filters)
    return Branches(len(metas), nodes, json_kernels.make_json_names(data, words, slots, node_meta, filters))
