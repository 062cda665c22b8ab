"""Paths as people give them: text, `os.PathLike`, or a file: URL. Rules are memory-mapped: other URLs are refused."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote

from eligo.errors import OptionError, SnapshotError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # of two letters or more: C:/ is a drive


def path_of(path: object, what: str = "the path of the rules") -> str:
    """The path, text that is not empty; a file: URL becomes the path that it means, other URLs stay what they are."""
    try:
        named = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    except Exception:  # of a foreign class
        named = None
    if not isinstance(named, str):
        raise OptionError(f"{what} is text or a pathlib.Path, not {path!r:.60}")
    if not named or "\0" in named:
        raise OptionError(f"{what} is {'empty' if not named else f'no path: {named!r:.60}'}: name a folder")
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
    """The scheme of a URL, in lower case; nothing for a path."""
    found = _SCHEME.match(path)
    return found[1].lower() if found else ""


def local_path(path: object, what: str = "the path of the rules") -> str:
    """The path of rules on this machine."""
    named = path_of(path, what)
    if scheme_of(named):
        raise SnapshotError(
            f"{named!r} is a URL, but rules are memory-mapped: use a folder that this machine, and on Spark every "
            "worker, sees under one path (a shared mount, or a local disk that all of them fill), as a path or "
            "as a file:/// URL"
        )
    return named
