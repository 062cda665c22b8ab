"""Values of documents as integers of the same order.

    kind   key                                   rest
    0      a number's nearest float, as ordered   what the number has beyond it: integers above 2**53 are not floats
           bits
    1      false 0, true 1, an object 2           0
    2      a time's microseconds                  0
    3      the first 8 bytes of a string          its number in the table of strings

Two values of one kind compare by key, then by rest; two strings with the same first bytes by their bytes. Kinds come
in the order of language/values.py, so that a cut of theirs is the place right before one such triple.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from eligo.compile.codes import ordered_bits
from eligo.errors import EventError
from eligo.language.decimals import number_of
from eligo.language.ranges import Range
from eligo.language.reference import ABSENT, Moment, lookup
from eligo.language.values import BOOLEAN, INT_MAX, INT_MIN, NUMBER, OBJECT, STRING, TIME, Cut, microseconds

LISTS = (list, tuple, set, frozenset)
LEAST = -(2**63)  # a key below all others
_SHOWN = 60

Key = tuple[int, int, int, bytes]  # kind, key, rest (of a string nothing), a string's bytes


def show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


def number_key(value: int | float) -> tuple[int, int]:
    near = float(value)
    return ordered_bits(near), int(value) - int(near) if type(value) is int and abs(value) > 2**53 else 0


def prefix_key(raw: bytes) -> int:
    return int.from_bytes(raw[:8].ljust(8, b"\0"), "big") - 2**63


def key_of(value: Any) -> Key:
    """Returns kind, key, rest and bytes of one plain value (see `plain`)."""
    kind = type(value)
    if kind is str:
        raw = value.encode()
        return STRING, prefix_key(raw), 0, raw
    if kind is int or kind is float:
        return (NUMBER, *number_key(value), b"")
    if kind is bool:
        return BOOLEAN, int(value), 0, b""
    if isinstance(value, Moment):
        return TIME, int(value), 0, b""
    if isinstance(value, date):
        return TIME, microseconds(value), 0, b""
    return BOOLEAN, OBJECT, 0, b""  # a mapping


def cut_key(cut: Cut) -> Key:
    """Returns the key right before which a cut lies."""
    if len(cut) == 1:
        return cut[0], LEAST, LEAST, b""
    kind, value = cut
    if kind == STRING:
        raw = str(value).encode()
        return STRING, prefix_key(raw), 0, raw
    if kind == NUMBER:
        assert not isinstance(value, str)
        return (NUMBER, *number_key(value), b"")
    assert isinstance(value, int)
    return kind, value, 0, b""


def plain(name: str, value: Any) -> Any:
    """Returns a value as documents keep it: Python's own types, a time beyond Python's as a Moment; refuses others."""
    kind = type(value)
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise EventError(f"attribute {name!r}: {show(value)} is no valid Unicode text (a lone surrogate)") from None
        return value
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        if not INT_MIN <= value <= INT_MAX:
            raise EventError(
                f"attribute {name!r}: {show(value)} does not fit 64 bits; give a float, or a string if an id"
            )
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(f"{name}.{key}", inner) for key, inner in value.items()}
    if isinstance(value, LISTS):
        return [plain(name, one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return _from_numpy(name, value)
    if isinstance(value, Decimal):
        return number_of(value)
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, Moment):
        return value
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return plain(name, int(value))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return plain(name, str.__str__(value))
    if isinstance(value, date):
        return value
    if isinstance(value, Range):
        raise EventError(f"attribute {name!r} holds {value!r}, a range: a document has values")
    raise EventError(
        f"attribute {name!r} holds {show(value)}, of type {type(value).__name__}; a value is a number, string, "
        "Boolean, date or datetime"
    )


def _from_numpy(name: str, value: Any) -> Any:
    if value.dtype.kind == "M":
        whole = value.astype("datetime64[us]")
        if np.any((whole.astype(value.dtype) != value) & ~np.isnat(value)) and value.dtype != np.dtype("M8[ns]"):
            raise EventError(f"attribute {name!r}: {show(value)} lies beyond what 64 bits of microseconds hold")
        number = np.where(np.isnat(whole), LEAST, whole.astype(np.int64)).tolist()
        moments = [None if one == LEAST else Moment(one) for one in np.atleast_1d(number).tolist()]
        return moments if value.ndim else moments[0]
    if value.dtype.kind == "m":
        raise EventError(f"attribute {name!r} holds {show(value)}, a duration: give a number")
    return plain(name, value.tolist())


def values_of(document: Mapping[str, Any], name: str) -> list[Any] | None:
    """Returns the values of an attribute of a plain document or event; None if it is absent."""
    if "." in name or type(document) is not dict:
        value = lookup(document, name)
        if value is ABSENT:
            return None
    else:
        value = document.get(name)
        if value is None or value != value:
            return None
    if isinstance(value, list):
        return [one for one in value if one is not None and one == one]
    return [value]


def plain_document(document: Any) -> dict[str, Any]:
    """Returns a document as it is kept; refuses what no attribute can hold."""
    if not isinstance(document, Mapping):
        raise EventError(
            f"a document is a mapping from attribute to value, not {type(document).__name__}: {show(document)}"
        )
    found = {name: plain(name, value) for name, value in document.items() if isinstance(name, str)}
    if any("." in name or type(value) is dict for name, value in found.items()):
        _check_paths(found)
    return found


def _check_paths(document: dict[str, Any]) -> None:
    """Refuse a document with two ways to one name: an attribute would have two values."""
    seen: set[str] = set()
    todo: list[tuple[str, dict[str, Any]]] = [("", document)]
    while todo:
        prefix, inner = todo.pop()
        for key, value in inner.items():
            name = prefix + key
            if value is None or value != value:
                continue
            if name in seen:
                raise EventError(f"attribute {name!r} is given twice, under its flat name and along its path: drop one")
            seen.add(name)
            if isinstance(value, dict):
                todo.append((f"{name}.", value))


_MOMENT, _DATE, _DATETIME = 1, 2, 3  # what MessagePack has no type for


def _extended(value: Any) -> Any:
    """Returns what MessagePack can hold of a plain value."""
    if isinstance(value, dict):
        return {name: _extended(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_extended(inner) for inner in value]
    if isinstance(value, Moment):
        return msgspec.msgpack.Ext(_MOMENT, int(value).to_bytes(9, "big", signed=True))
    if isinstance(value, date):
        code = _DATETIME if hasattr(value, "hour") else _DATE
        return msgspec.msgpack.Ext(code, value.isoformat().encode())
    return value


def _shortened(code: int, data: memoryview) -> Any:
    if code == _MOMENT:
        return Moment(int.from_bytes(data, "big", signed=True))
    from datetime import datetime

    text = bytes(data).decode()
    return datetime.fromisoformat(text) if code == _DATETIME else date.fromisoformat(text)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ext_hook=_shortened).decode
_DIRECT = frozenset((str, int, float, bool, type(None)))


def packed(document: dict[str, Any]) -> bytes:
    """Returns a plain document as bytes."""
    if all(type(value) in _DIRECT for value in document.values()):
        return _encode(document)
    return _encode(_extended(document))


def unpacked(raw: bytes | memoryview) -> dict[str, Any]:
    """Returns the document that `packed` made bytes of."""
    return _decode(raw)  # type: ignore[no-any-return]


def run_keys(runs: Iterable[tuple[Cut, Cut]]) -> list[tuple[Key, Key]]:
    """Returns runs of values as keys: from the first on, before the second."""
    return [(cut_key(low), cut_key(high)) for low, high in runs]
