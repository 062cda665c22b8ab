"""An event against a live segment in one call of a kernel, which reads it from JSON or a dict and searches.

A few rules are searched in less time than Python takes for the steps between reading and searching. An event that the
kernel does not finish, because it is odd or there is no room, is read and searched in two steps, as for other segments.
"""

from __future__ import annotations

from typing import Any

from eligo.compile.dict_kernels import ENTRIES, MORE, ODD_VALUES, TEXT_BYTES, TEXTS, read_dict
from eligo.compile.json_kernels import DONE, read_events
from eligo.jit import entry, handle, holding, kernel
from eligo.segments.live import scan_live

# The reader of events, and the rules.
make_live_call = handle("LiveCall", ("reader", "live", "state"))


class LiveCall:
    """The machine code that reads an event and searches a live segment in one state, and its first argument."""

    __slots__ = ("enter", "handle", "state")

    def __init__(self, one: Any, reader: Any, live: Any, state: Any, given: tuple[Any, ...]) -> None:
        self.state, self.handle = state, make_live_call(reader, live, state)
        self.enter = entry(one, self.handle, *given)


@kernel
def match_text(call, text, event_view, scratch, allowed):
    """Writes the rules that an event matches, given as JSON, into scratch.matched. Returns how many, or a negative
    number if the event is to be read and searched in steps.
    """
    r = call.reader
    r.begin[0], r.end[0] = 0, len(text)
    ended, _, n, _, _ = read_events(r, text, r.begin, r.end, 0, 0, 0, 0)
    if ended != DONE or 4 * n > len(event_view.low):
        return -1
    return scan_live(call.live, call.state, r.events, 0, event_view, scratch, allowed, 0)


@holding
def match_dict(call, event, event_view, scratch, allowed):
    """Does the same for a dict, given by its address. A negative result says what is left to be done to read it."""
    w = call.reader
    n = read_dict(w, event)
    if n == MORE and w.ends[ODD_VALUES] == 0:
        n = w.ends[ENTRIES]
    elif n >= 0:
        w.ends[ENTRIES], w.ends[TEXTS], w.ends[TEXT_BYTES], w.ends[ODD_VALUES] = n, 0, 0, 0
    if n < 0:
        return n
    if 4 * n > len(event_view.low):
        return MORE
    return scan_live(call.live, call.state, w.reader.events, 0, event_view, scratch, allowed, 0)
