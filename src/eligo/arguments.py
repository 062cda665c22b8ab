"""Arguments of public functions, checked once, where they come in.

Each check returns the argument as the code behind it wants it, or raises an `OptionError`: one sentence that names the
argument, what it may be, and what was given. A path is text, an `os.PathLike`, or a file: URL; rules are memory-mapped,
so that other URLs are refused.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import numpy as np

from eligo.errors import OptionError, SnapshotError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # of two letters or more: C:/ is a drive
MOST = 2**63 - 1  # what a limit beyond 64 bits is cut to: no rule set has more rules
RESERVED = ("\U0010ffff", "\U0010fffe", "\U000ffffe")  # hidden tags begin with these (segments/rule_table.py)


def shown(value: object, most: int = 60) -> str:
    """Returns a value as a message shows it: its repr, cut to a length, or the name of its type if the repr fails."""
    try:
        text = repr(value)
    except Exception:  # of a foreign class, or of an integer of more digits than Python writes
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= most else text[: most - 1] + "…"


def whole_number(name: str, value: object, least: int = 0) -> int:
    """Returns an integer of at least `least`, which may be NumPy's but no Boolean, cut to MOST."""
    try:
        number = index(value) if not isinstance(value, bool | np.bool_) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise OptionError(f"{name} is a whole number of {least} or more, not {shown(value)}")
    return min(number, MOST)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise OptionError(f"{name} is True or False, not {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> Any:
    """Returns the value if it is one of a few words."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise OptionError(f"{name} is {', '.join(others)} or {last}, not {shown(value)}")
    return value


def text(name: str, value: Any, what: str = "a string") -> str:
    if not isinstance(value, str) or not is_unicode(value):
        raise OptionError(f"{name} is {what}, not {shown(value)}")
    return value


def names(name: str, value: object, what: str = "a list of strings of valid Unicode") -> tuple[str, ...]:
    """Returns several strings of valid Unicode, given in any iterable that is neither a mapping nor a string."""
    given = _items(value)
    if given is None or not all(isinstance(one, str) and is_unicode(one) for one in given):
        raise OptionError(f"{name} is {what}, not {shown(value if given is None else list(given))}")
    return tuple(map(str.__str__, given))  # NumPy's strings, and those of an Enum, as Python's own


def attribute_names(name: str, value: object) -> tuple[str, ...]:
    given = names(name, value, "a list of attribute names")
    if "" in given:
        raise OptionError(f"{name} is a list of attribute names, none of them empty, not {shown(list(given))}")
    return given


def tag_names(name: str, value: object) -> tuple[str, ...]:
    """Returns tags, given as a list of strings, or as one string with `;` between them, as in a cell of a CSV file."""
    if isinstance(value, str):
        value = [tag for part in value.split(";") if (tag := part.strip())]
    found = names(name, value, "a list of strings of valid Unicode, or one string with ; between its tags")
    if any(tag.startswith(RESERVED) for tag in found):
        mark = next(tag[0] for tag in found if tag.startswith(RESERVED))
        raise OptionError(f"{name}: no tag begins with U+{ord(mark):X}, which is no character: {shown(value)}")
    return found


def directory_path(name: str, value: object) -> Path:
    """Returns a path, given as a string, an `os.PathLike` of one, or a file: URL. It need not exist."""
    given = local_path(value, name)
    try:
        os.lstat(given)
    except UnicodeEncodeError:
        raise OptionError(f"{name} is no valid Unicode text (a lone surrogate): {shown(value)}") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OptionError(f"{name} is longer than this system allows: {shown(value)}") from None
    return Path(given)


def path_of(path: object, what: str = "the path of the rules") -> str:
    """Returns the path as text that is not empty. A file: URL becomes the path that it means; other URLs stay."""
    try:
        named = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    except Exception:  # of a foreign class
        named = None
    if not isinstance(named, str):
        raise OptionError(f"{what} is text or a pathlib.Path, not {shown(path)}")
    if not named or "\0" in named:
        raise OptionError(f"{what} is {'empty' if not named else f'no path: {shown(named)}'}: name a folder")
    if scheme_of(named) != "file":
        return named
    rest = named[len("file:") :]
    host, slash, inside = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if host not in ("", "localhost"):
        raise OptionError(
            f"{what} {named!r} names the machine {host!r}: a file: URL is file:///folder, with three slashes"
        )
    return unquote(slash + inside)


def scheme_of(path: str) -> str:
    """Returns the scheme of a URL in lower case, or an empty text for a path."""
    found = _SCHEME.match(path)
    return found[1].lower() if found else ""


def local_path(path: object, what: str = "the path of the rules") -> str:
    """Returns the path of rules on this machine. Raises a `SnapshotError` for any URL but a file: URL."""
    named = path_of(path, what)
    if scheme_of(named):
        raise SnapshotError(
            f"{named!r} is a URL, but rules are memory-mapped: use a folder that this machine, and on Spark every "
            "worker, sees under one path (a shared mount, or a local disk that all of them fill), as a path or "
            "as a file:/// URL"
        )
    return named


def plain_id(value: Any) -> Any:
    """Returns an id of NumPy's, or of a subclass of int or str, as Python's own; anything else, bools too, as it is."""
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return index(value) if isinstance(value, int | np.integer) else value


def is_unicode(value: str) -> bool:
    """Tests whether a string is valid Unicode: without lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(value: object) -> tuple[Any, ...] | None:
    """Returns what an iterable holds, or None for what is no list of things."""
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        return None
    try:
        return tuple(value)
    except Exception:  # whatever a foreign iterable raises
        return None
