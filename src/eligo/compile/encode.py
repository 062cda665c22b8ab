"""From an event as a dict to entries of an event buffer.

This is the single-event path: Python runs a few lines for each attribute, so the usual kinds are told by their exact
type and written through memory views; a rarer value is asked what it is, and an event that cannot be read so goes the
long way, which finds the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from eligo.compile import codes
from eligo.compile.attributes import Attributes
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.errors import EventError
from eligo.language.decimals import number_of
from eligo.language.ranges import Range
from eligo.language.values import Cut, microseconds, range_set

Encode: TypeAlias = Callable[["Encoder", Any, EventBuffer], None]  # puts one event, in whatever form, into a buffer
SEVERAL, TEXT, PATTERN = 1, 2, 4  # what is special about an attribute: several values, bytes needed, a pattern

_SHOWN = 60
_COARSE = frozenset(("Y", "M", "W", "D", "h", "m", "s", "ms"))  # units whose times may not fit 64 bits of microseconds


class Encoder:
    """Encodes events for one state of the rules: their attributes, strings, and what is special about some of them.

    The attributes may be more than rules name, and more of them asked for a pattern: those of removed rules stay until
    the tables are made anew. An event that is refused is tried once more with what rules do ask: `asked` gives the
    attributes that they look at, and those that they ask for a pattern.
    """

    def __init__(
        self,
        attributes: Attributes,
        strings: Strings,
        special: dict[str, int],
        asked: Callable[[], tuple[Iterable[str], Iterable[str]]] | None = None,
    ) -> None:
        self.strings = strings
        self.special = special
        self.metas, self.paths = attributes.metas, attributes.paths
        self.attributes, self._asked = attributes, asked
        self.table_plan: Any = None  # how the last table was read (arrow_events.py)

    def narrowed(self) -> Encoder | None:
        """One that knows what living rules ask, and nothing else; None if there is nothing else."""
        if self._asked is None:
            return None
        named, patterned = map(set, self._asked())
        special = {
            name: flags if name in patterned else flags & ~PATTERN | (flags & PATTERN and TEXT)
            for name, flags in self.special.items()
        }
        if named >= self.metas.keys() and special == self.special:
            return None
        unused = np.array([name not in named for name in self.attributes.names])
        return Encoder(self.attributes.without(unused), self.strings, special)

    def encode(self, event: Mapping[str, Any], buffer: EventBuffer, flat: bool = False) -> None:
        """Append an event to the buffer. On an error the buffer is as before. `flat`: dotted names stand for paths."""
        room = len(event) if isinstance(event, Mapping) else 0
        while buffer.count + room > len(buffer.meta):
            buffer.grow()
        metas, special, hits = self.metas, self.special, self.strings.hits
        meta_view, key_view = buffer.meta_view, buffer.key_view
        n, before = buffer.count, buffer.state()
        try:
            for name, value in event.items():
                meta = metas.get(name)
                if meta is None:
                    if not flat and name in self.paths and isinstance(value, Mapping):
                        buffer.reset(before)
                        return self.encode(self._flat(event), buffer, True)
                    continue
                kind = type(value)
                if kind is str:
                    number = hits.get(value)
                    if number is None:
                        number = self.strings.number(value)
                    if special and special.get(name, 0) & (TEXT | PATTERN):
                        meta_view[n] = meta + 14
                        key_view[n] = buffer.add_text(number, value.encode())
                    else:
                        meta_view[n] = meta + 13
                        key_view[n] = number
                elif kind is int:
                    meta_view[n] = meta + 1
                    key_view[n] = value
                elif kind is float:
                    if value != value:
                        continue
                    meta_view[n] = meta + 3
                    buffer.float_view[n] = value
                elif value is None:
                    continue
                elif kind is bool:
                    meta_view[n] = meta + 5
                    key_view[n] = value
                else:
                    if not flat and name in self.paths and isinstance(value, Mapping):
                        buffer.reset(before)
                        return self.encode(self._flat(event), buffer, True)
                    entries = self.entries(name, value, buffer)
                    while n + len(entries) + room > len(buffer.meta):
                        buffer.grow()
                    meta_view, key_view = buffer.meta_view, buffer.key_view
                    for code, key in entries:
                        meta_view[n], key_view[n] = meta + code, key
                        n += 1
                    continue
                n += 1
        except Exception:  # whatever an odd event does, the long way finds the words for it
            buffer.reset(before)
            return self._encode_all(event, buffer, flat)
        buffer.close_event(n, buffer.runs - before[-1])
        return None

    def _flat(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Nested values under their dotted names; a name given twice is an error."""
        flat: dict[str, Any] = {}
        todo: list[tuple[str, Mapping[str, Any]]] = [("", event)]
        while todo:
            prefix, inner = todo.pop()
            for key, value in inner.items():
                if not isinstance(key, str):
                    continue
                name = prefix + key
                if name in self.paths and isinstance(value, Mapping):  # asking a value what it is takes longest
                    todo.append((f"{name}.", value))
                if name in self.metas and not _is_missing(value):
                    if name in flat:
                        raise EventError(
                            f"attribute {name!r} is given twice, under its flat name and along its path: drop one"
                        )
                    flat[name] = value
        return flat

    def _encode_all(self, event: Mapping[str, Any], buffer: EventBuffer, flat: bool = False) -> None:
        """The long way, for any value."""
        if not isinstance(event, Mapping):
            raise EventError(
                f"an event is a mapping from attribute to value, not {type(event).__name__}: {_show(event)}"
            )
        before = buffer.state()
        n = buffer.count
        try:
            for name, value in event.items():
                if not isinstance(name, str):
                    continue
                if not flat and name in self.paths and isinstance(value, Mapping):
                    buffer.reset(before)
                    return self._encode_all(self._flat(event), buffer, True)
                meta = self.metas.get(name)
                if meta is None:
                    continue
                entries = self.entries(name, value, buffer)
                while n + len(entries) > len(buffer.meta):
                    buffer.grow()
                for kind, key in entries:
                    buffer.meta_view[n] = meta + kind
                    buffer.key_view[n] = key
                    n += 1
        except EventError:
            buffer.reset(before)
            fewer = self.narrowed()
            if fewer is None:
                raise
            return fewer.encode(event, buffer, flat)
        buffer.close_event(n, buffer.runs - before[-1])
        return None

    def entries(self, name: str, value: Any, buffer: EventBuffer) -> list[tuple[int, int]]:
        """Kinds and keys of whatever an attribute holds; none when it is absent."""
        special = self.special.get(name, 0)
        try:
            if isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.ndim):
                if not special & SEVERAL:
                    raise EventError(
                        f"attribute {name!r} holds {_show(value)}, a {type(value).__name__}, but is single-valued: "
                        f"declare it with Matcher(multi=[{name!r}]) or give one value"
                    )
                entries = [entry for one in value if (entry := self._entry(name, one, special, buffer)) is not None]
                return entries or [(codes.NO_VALUE, 0)]
            if isinstance(value, Range):
                return [self._range(name, value, special, buffer)]
            entry = self._entry(name, value, special, buffer)
            return [] if entry is None else [entry]
        except EventError:
            raise
        except Exception as error:
            # A value's own code may raise anything; and an end of a range may fit no float, or be no text.
            raise EventError(
                f"attribute {name!r} holds {_show(value)}, a {type(value).__name__} that cannot be read: {error}"
            ) from error

    def _entry(self, name: str, value: Any, special: int, buffer: EventBuffer) -> tuple[int, int] | None:
        """Kind and key of one value; None for an absent one."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if _is_missing(value):
            return None
        if isinstance(value, np.datetime64):
            return codes.TIME, _moment(name, value)
        if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
            value = value.item()
        if isinstance(value, Decimal):
            value = number_of(value)
        if isinstance(value, bool):
            return codes.BOOLEAN, int(value)
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise EventError(
                    f"attribute {name!r}: {_show(value)} does not fit 64 bits; give a float, or a string if an id"
                )
            return codes.INTEGER, int(value)
        if isinstance(value, float):
            return codes.RAW_FLOAT, int(np.float64(value).view(np.int64))
        if isinstance(value, str):
            text = str.__str__(value)  # an Enum of strings has its own idea of str()
            number = self.strings.number(text) if _is_text(name, text) else -1
            if special & (TEXT | PATTERN):
                return codes.TEXT, buffer.add_text(number, text.encode())
            return codes.STRING, number
        if isinstance(value, date):
            return codes.TIME, int(microseconds(value))
        if isinstance(value, Mapping):
            return codes.BOOLEAN, codes.OBJECT
        raise EventError(
            f"attribute {name!r} holds {_show(value)}, of type {type(value).__name__}; a value is a number, string, "
            "Boolean, date or datetime"
        )

    def _range(self, name: str, value: Range, special: int, buffer: EventBuffer) -> tuple[int, int]:
        if special & SEVERAL:
            raise EventError(
                f"attribute {name!r} has several values, so it cannot hold {value!r}: give a list of values"
            )
        if special & PATTERN:
            raise EventError(
                f"attribute {name!r} is asked for a `like` pattern with an inner wildcard, "
                f"which {value!r} cannot answer: give a plain value"
            )
        runs = range_set(value)
        if not runs:
            raise EventError(f"attribute {name!r}: {value!r} allows no value at all")
        return codes.RANGE, buffer.add_range(
            [(*self._cut(low, buffer), *self._cut(high, buffer)) for low, high in runs]
        )

    def _cut(self, cut: Cut, buffer: EventBuffer) -> tuple[int, int, int]:
        return codes.cut_codes(cut, lambda text: buffer.add_text(-1, text.encode()))


def _is_missing(value: Any) -> bool:
    """None, NaN, and what NumPy and pandas have for them. No value is compared: its `==` may give or raise anything."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NaTType", "NAType")  # pandas is not imported for two names


def _moment(name: str, value: np.datetime64) -> int:
    moment = value.astype("datetime64[us]")
    # NumPy wraps around in silence.
    if np.datetime_data(value.dtype)[0] in _COARSE and moment.astype(value.dtype) != value:
        raise EventError(f"attribute {name!r}: {_show(value)} lies beyond what 64 bits of microseconds hold")
    return int(moment.astype(np.int64))


def _is_text(name: str, value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise EventError(f"attribute {name!r}: {_show(value)} is no valid Unicode text (a lone surrogate)") from None
    return True


def _show(value: object) -> str:
    try:
        shown = repr(value)
    except Exception:
        return "a value without repr"
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
