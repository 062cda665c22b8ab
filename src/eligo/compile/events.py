"""Events as flat arrays: encoded once, understood by every segment.

    event i       entries offsets[i] … offsets[i+1], those of one attribute next to each other
    entry j       meta[j] = attribute << 8 | kind (codes.py), key[j]
    text table    text_number, text_low, text_high: a string's number (or -1) and its bytes in `text`; only strings of
                  attributes whose predicates look at the bytes stand here
    range table   row r has the runs range_offsets[r] … [r+1] of range_runs: low kind, key, key2, high kind, key, key2;
                  a string cut's key is 2 * row of the text table (+ 1: after it)

A segment turns the entries of one event into spaces with `locate`: at_attribute, at_low, at_high (first and last
space; low above high for a list without values), at_text (row of the text table or -1). One value is one entry,
several values are several, and a range is one for each of its runs: a predicate holds when *some* entry meets its
spaces or, for a negated predicate on several values, when *all* entries lie within them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I64, U8
from eligo.compile.spaces import boolean_cuts, high_space, low_space, number_cuts, space_of_string, time_cuts
from eligo.jit import float_of, handle, inline

_ARRAYS = (
    "offsets", "meta", "key", "text_number", "text_low", "text_high", "text", "range_offsets", "range_runs",
    "at_attribute", "at_low", "at_high", "at_text",
)  # fmt: skip


class EventBuffer:
    """Room for encoded events; reused from one call to the next, and grown when an event does not fit.

    The encoder writes through the memory views (an item costs 30 ns, through an array 90) and calls `close_event`.
    """

    def __init__(self, events: int = 1, entries: int = 64) -> None:
        self.offsets = np.zeros(events + 1, np.int64)
        self.meta = np.zeros(entries, np.int64)
        self.key = np.zeros(entries, np.int64)
        self.text_number = np.zeros(16, np.int64)
        self.text_low = np.zeros(16, np.int64)
        self.text_high = np.zeros(16, np.int64)
        self.text = np.zeros(1024, np.uint8)
        self.range_offsets = np.zeros(1, np.int64)
        self.range_runs = np.zeros((0, 6), np.int64)
        self.located = 0
        self.json: Any = None  # what reads JSON into it (json_events.py)
        self.dicts: Any = None  # what reads dicts into it (dict_events.py)
        self.waited = 0  # events since that was good for the rules
        self.made: Any = None  # the handle; None: to be made anew
        self.clear()
        self._refresh(entries)

    def clear(self) -> None:
        self.events = self.count = self.texts = self.ranges = self.runs = 0
        self.text_end = 0
        self.widest = 0  # located entries of the widest event

    def close_event(self, count: int, runs: int = 0) -> None:
        """End an event whose entries reach up to `count`, of which the ranges have `runs` runs."""
        self.widest = max(self.widest, count - self.count + runs)
        self.count = count
        self.events += 1
        self.make_event_room(self.events)
        self.offsets[self.events] = count

    def state(self) -> tuple[int, int, int, int, int]:
        """What `reset` takes to forget all entries, texts and ranges that come after; the runs of ranges last."""
        return self.count, self.texts, self.text_end, self.ranges, self.runs

    def reset(self, state: tuple[int, int, int, int, int]) -> None:
        self.count, self.texts, self.text_end, self.ranges, self.runs = state

    def grow(self) -> None:
        """Room for more entries."""
        self.meta = _grown(self.meta, 2 * len(self.meta))
        self.key = _grown(self.key, 2 * len(self.key))
        self._refresh(self.located)

    def make_event_room(self, events: int) -> None:
        """Room for so many events."""
        if events >= len(self.offsets):
            self.offsets = _grown(self.offsets, events + 1)
            self.made = None

    def make_text_room(self, rows: int, end: int) -> None:
        """Room for so many strings, whose bytes end there."""
        if rows > len(self.text_number):
            self.text_number = _grown(self.text_number, 2 * rows)
            self.text_low = _grown(self.text_low, 2 * rows)
            self.text_high = _grown(self.text_high, 2 * rows)
            self.made = None
        if end > len(self.text):
            self.text = _grown(self.text, max(end, 2 * len(self.text)))
            self.made = None

    def add_text(self, number: int, raw: bytes) -> int:
        """Put a string into the text table; its row."""
        row, start, end = self.texts, self.text_end, self.text_end + len(raw)
        self.make_text_room(row + 1, end)
        if raw:
            self.text[start:end] = np.frombuffer(raw, np.uint8)
        self.text_number[row], self.text_low[row], self.text_high[row] = number, start, end
        self.text_end = end
        self.texts = row + 1
        return row

    def add_texts(self, numbers: I64, offsets: I64, data: U8) -> I64:
        """Put many strings, data[offsets[i]:offsets[i+1]], into the text table; their rows."""
        first, last = int(offsets[0]), int(offsets[-1])
        shift = self.text_end - first
        rows = np.arange(self.texts, self.texts + len(numbers), dtype=np.int64)
        self.text_number = np.concatenate((self.text_number[: self.texts], numbers))
        self.text_low = np.concatenate((self.text_low[: self.texts], offsets[:-1] + shift))
        self.text_high = np.concatenate((self.text_high[: self.texts], offsets[1:] + shift))
        self.text = np.concatenate((self.text[: self.text_end], data[first:last]))
        self.text_end += last - first
        self.texts += len(numbers)
        self.made = None
        return rows

    def replace(self, offsets: I64, meta: I64, key: I64, widest: int) -> None:
        """Take arrays of many events as they are; only the text table was filled before."""
        self.offsets, self.meta, self.key = offsets, meta, key
        self.events, self.count, self.widest = len(offsets) - 1, int(offsets[-1]), widest
        self._refresh(self.located)

    def add_range(self, runs: list[tuple[int, int, int, int, int, int]]) -> int:
        """Put the runs of a range into the range table; its row."""
        row = self.ranges
        if row + 1 >= len(self.range_offsets):
            self.range_offsets = _grown(self.range_offsets, 2 * row + 4)
        if self.runs + len(runs) > len(self.range_runs):
            self.range_runs = _grown(self.range_runs, 2 * (self.runs + len(runs)))
        self.range_runs[self.runs : self.runs + len(runs)] = runs
        self.runs += len(runs)
        self.ranges = row + 1
        self.range_offsets[self.ranges] = self.runs
        self.made = None
        return row

    @property
    def handle(self) -> Any:
        """The kernels' argument, for the events closed so far."""
        if self.widest > self.located:
            self._refresh(2 * self.widest)
        if self.made is None:
            self.made = make_event_handle(*(getattr(self, name) for name in _ARRAYS))
        return self.made

    def extend(self, other: EventBuffer) -> None:
        """Put the events of another buffer, of which none is a range, behind those of this one."""
        count, events, texts, text_end = self.count, self.events, self.texts, self.text_end
        meta, key = other.meta[: other.count], other.key[: other.count]
        if other.texts:
            key = key + np.where(meta & 255 == codes.TEXT, texts, 0)
            number, low = other.text_number[: other.texts], other.text_low[: other.texts]
            high = other.text_high[: other.texts]
            self.text_number = np.concatenate((self.text_number[:texts], number))
            self.text_low = np.concatenate((self.text_low[:texts], low + text_end))
            self.text_high = np.concatenate((self.text_high[:texts], high + text_end))
            self.text = np.concatenate((self.text[:text_end], other.text[: other.text_end]))
            self.texts, self.text_end = texts + other.texts, text_end + other.text_end
        offsets = np.concatenate((self.offsets[: events + 1], other.offsets[1 : other.events + 1] + count))
        keys = np.concatenate((self.key[:count], key))
        self.replace(offsets, np.concatenate((self.meta[:count], meta)), keys, max(self.widest, other.widest))

    def another_handle(self) -> Any:
        """The same events for one more thread: what `locate` writes is its own."""
        located = [np.zeros(self.located, np.int32) for _ in range(4)]
        return make_event_handle(*(getattr(self, name) for name in _ARRAYS[:-4]), *located)

    def _refresh(self, located: int) -> None:
        if located > self.located:
            self.located = located
            self.at_attribute = np.zeros(located, np.int32)
            self.at_low = np.zeros(located, np.int32)
            self.at_high = np.zeros(located, np.int32)
            self.at_text = np.zeros(located, np.int32)
        self.meta_view = memoryview(self.meta)  # type: ignore[arg-type]
        self.key_view = memoryview(self.key)  # type: ignore[arg-type]
        self.float_view = memoryview(self.key.view(np.float64))  # type: ignore[arg-type]
        self.made = None


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    bigger = np.zeros((max(least, 4), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger


# The arrays of an event buffer as one argument of kernels.
make_event_handle = handle("EventHandle", _ARRAYS)


@inline
def ordered_float(bits):
    """A float's bits as an integer of the same order."""
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@inline
def float_bits(ordered):
    """The float of which these are the ordered bits."""
    return float_of(ordered if ordered >= 0 else ordered ^ np.int64(0x7FFFFFFFFFFFFFFF))


@inline
def space_of_float(s, attribute, bits):
    value = float_of(bits)
    if value == np.floor(value) and -9223372036854775808.0 <= value < 9223372036854775808.0:
        return np.int32(number_cuts(s, attribute, True, np.int64(value)))
    return np.int32(number_cuts(s, attribute, False, ordered_float(bits)))


@inline
def locate(s, e, i):
    """Entries of event i as spaces of one segment; how many. Attributes that it does not know are left out."""
    known = len(s.space_count)
    n = 0
    for j in range(e.offsets[i], e.offsets[i + 1]):
        attribute = np.int32(e.meta[j] >> 8)
        if attribute >= known:
            continue
        kind = e.meta[j] & 255
        key = e.key[j]
        text = np.int32(-1)
        if kind == codes.INTEGER:
            space = np.int32(number_cuts(s, attribute, True, key))
        elif kind == codes.STRING:
            space = space_of_string(s, attribute, key, e, -1)
        elif kind == codes.RAW_FLOAT:
            space = space_of_float(s, attribute, key)
        elif kind == codes.BOOLEAN:
            space = np.int32(s.boolean_base[attribute] + boolean_cuts(s, attribute, key))
        elif kind == codes.TIME:
            space = np.int32(s.time_base[attribute] + time_cuts(s, attribute, key))
        elif kind == codes.TEXT:
            text = np.int32(key)
            space = space_of_string(s, attribute, e.text_number[key], e, key)
        elif kind == codes.RANGE:
            for r in range(e.range_offsets[key], e.range_offsets[key + 1]):
                e.at_attribute[n] = attribute
                e.at_low[n] = low_space(s, attribute, e.range_runs[r, 0], e.range_runs[r, 1], e.range_runs[r, 2], e)
                e.at_high[n] = high_space(s, attribute, e.range_runs[r, 3], e.range_runs[r, 4], e.range_runs[r, 5], e)
                e.at_text[n] = -1
                n += 1
            continue
        else:  # a list without values
            e.at_attribute[n] = attribute
            e.at_low[n] = 0
            e.at_high[n] = -1
            e.at_text[n] = -1
            n += 1
            continue
        e.at_attribute[n] = attribute
        e.at_low[n] = space
        e.at_high[n] = space
        e.at_text[n] = text
        n += 1
    return n
