"""Events as dicts: read by a kernel into an event buffer, in a few steps of Python for an event, or for a list of them,
where the encoder needs a few for each of its attributes.

What an event means is what `Encoder.encode` says. The kernel (dict_kernels.py) gives the same entries; what it is not
sure of, a value or an event, the encoder reads. The encoder also reads the first events of all, so that a program of
few never loads the kernel, and the first after each change of the rules: to make what the kernel needs of them takes
longer than it saves for these.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

_FIRST: Final = 1000  # events that the encoder reads before the kernel is loaded, which takes 10 ms
_FEW: Final = 8  # and after each change of the rules, one more for so many attributes:
_ATTRIBUTES: Final = 256
_loaded = False


class DictReader:
    """The kernel's machine code, `enter`, and its argument, made for what `json` reads."""

    __slots__ = ("_many", "call", "ends", "enter", "handle", "is_for", "left", "names", "odd", "waited")

    def __init__(self, json: Any) -> None:
        from eligo.compile import dict_kernels, python_values
        from eligo.jit import entry

        self.is_for = json.is_for
        self.call: Any = None  # what reads events and searches (segments/live_events.py)
        self.waited = 0  # events since that was good for the rules
        self.left: list[Any] = []  # values that the kernel leaves to the encoder; else empty
        self.names: list[str] = []  # of nodes, once they are asked for
        way = np.zeros((3, dict_kernels.DEPTH), np.int64)
        odd, ends = np.zeros(dict_kernels.ODD, np.int64), np.zeros(dict_kernels.ENDS, np.int64)
        self.odd, self.ends = memoryview(odd), memoryview(ends)  # type: ignore[arg-type]
        cells, left = np.zeros(python_values.CELLS, np.int64), np.array([id(self.left)], np.int64)
        self.handle = dict_kernels.make_dict_reader(
            json.handle, python_values.types_here(), cells, *way, odd, ends, left
        )
        self.enter = entry(dict_kernels.read_dict, self.handle, 0)
        self._many: Any = None

    @property
    def enter_many(self) -> Any:
        """The machine code that reads a list."""
        if self._many is None:
            from eligo.compile import dict_kernels
            from eligo.jit import entry

            self._many = entry(dict_kernels.read_dicts, self.handle, 0, 0, 0, 0, 0, 0)
        return self._many

    def rest(self, encoder: Encoder, buffer: EventBuffer) -> bool:
        """Put texts and odd values into the buffer, beside the entries that are there, and end the event; False if it
        has to be read by the encoder as a whole.
        """
        count, buffer.texts, buffer.text_end, odds = self.ends
        runs = buffer.runs
        values = self.left[:]
        self.left.clear()
        if odds and not self.names:
            self.names = ["", *encoder.attributes.branches.nodes]
        for node, value in zip(self.odd[:odds], values, strict=True):
            name = self.names[node]
            if name in encoder.paths and isinstance(value, Mapping):
                return False
            meta = encoder.metas.get(name)
            if meta is None:
                continue
            for kind, key in encoder.entries(name, value, buffer):
                if count == len(buffer.meta):
                    buffer.grow()
                buffer.meta_view[count], buffer.key_view[count] = meta + kind, key
                count += 1
        buffer.close_event(count, buffer.runs - runs)
        return True


def few(loaded: bool) -> int:
    """How many events go without a kernel before it is loaded, if that was not done yet, and what it needs is made."""
    return _FEW if loaded else _FIRST


def encode_event(encoder: Encoder, event: Any, buffer: EventBuffer) -> None:
    """Put an event into an empty buffer."""
    if type(event) is dict:
        reader = _reader(encoder, buffer)
        if reader is not None:
            count = reader.enter(reader.handle, id(event))
            if count >= 0:
                buffer.events, buffer.count, buffer.widest = 1, count, count
                return
            if read_rest(reader, count, encoder, buffer):
                return
    encoder.encode(event, buffer)


def encode_events(encoder: Encoder, events: list[Any], buffer: EventBuffer, first: int) -> None:
    """Puts many events into an empty buffer. `first` is the number of the first of them in messages."""
    buffer.make_event_room(len(events))
    while buffer.events < len(events):
        # A range makes another buffer handle, and so another reader: then the encoder alone is faster.
        reader = _reader(encoder, buffer) if not buffer.ranges else None
        if reader is not None:
            ended, buffer.events, buffer.count, buffer.texts, buffer.text_end = reader.enter_many(
                reader.handle, id(events), buffer.events, len(events), buffer.count, buffer.texts, buffer.text_end
            )
            if buffer.events == len(events) or read_rest(reader, ended, encoder, buffer):
                continue
        try:
            encoder.encode(events[buffer.events], buffer)
        except EventError as error:
            raise EventError(f"event {first + buffer.events}: {error}") from None
    buffer.widest = max(buffer.widest, int(np.diff(buffer.offsets[: buffer.events + 1]).max(initial=0)))


def read_rest(reader: DictReader, ended: int, encoder: Encoder, buffer: EventBuffer) -> bool:
    """Does what is left to do for an event that the kernel did not end. Returns whether the event is in the buffer now;
    if not, that is as it was, with more room if some was missing.
    """
    before = buffer.state()
    from eligo.compile import dict_kernels

    if ended == dict_kernels.MORE:
        with suppress(Exception):  # the encoder finds the words for it
            if reader.rest(encoder, buffer):
                return True
        buffer.reset(before)
    reader.left.clear()
    if ended == dict_kernels.NO_ENTRIES:
        buffer.grow()
    elif ended == dict_kernels.NO_TEXTS:
        buffer.make_text_room(len(buffer.text_number) + 1, 2 * len(buffer.text))
    return False


def _reader(encoder: Encoder, buffer: EventBuffer) -> DictReader | None:
    """Returns a reader for an encoder and a buffer as they are now, or None as long as there were few events."""
    global _loaded
    known: DictReader | None = buffer.dicts
    if known is not None and known.is_for(encoder, buffer):
        return known
    buffer.waited += 1
    if buffer.waited <= few(_loaded) + len(encoder.metas) // _ATTRIBUTES:
        return None
    from eligo.compile import json_events, python_values

    buffer.waited, _loaded = 0, True
    if not python_values.READABLE:
        return None
    reader = buffer.dicts = DictReader(json_events.reader(encoder, buffer))
    return reader
