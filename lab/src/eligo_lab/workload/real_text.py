"""Real text that a machine has anyway: names of people, one-line titles, and prose.

    debian   package lists of apt, the status file of dpkg, copyright files: maintainers and authors; packages with
             their one-line descriptions, as `apt-cache search` prints them; descriptions as long as they are there
    python   the standard library and the packages that eligo needs: "name <address>", first paragraphs of documentation
             strings, documentation strings; and the names of airports, if eligo-lab[flights] is installed
    a path   a file of the user's own, one string a line

`auto` is all that is there of the first two. Nothing is downloaded. What a machine has differs from the next, so the
text comes with its hash: same hash, same lines in the same order.
"""

from __future__ import annotations

import hashlib
import importlib.util
import lzma
import platform
import re
import sysconfig
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from eligo.errors import EligoError, OptionError
from eligo_lab.workload import flights

Kind: TypeAlias = Literal["people", "titles", "prose"]

_ROOT: Final = Path("/")
_PACKAGES: Final = ("numpy", "numba", "llvmlite", "pyarrow", "rich", "typer")  # with eligo, wherever it is installed
_SKIPPED: Final = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "ensurepip"}

# Two to four words with a capital each, before an address: who wrote it.
_NAME: Final = re.compile(r"((?:[^\W\d_][\w'’-]*\.? ){1,3}[^\W\d_][\w'’-]+),? ?[<(][\w.+-]+@")
_NOBODY: Final = re.compile(
    r"\b(team|teams|maintainers?|developers?|project|group|debian|ubuntu|foundation|inc|ltd|gmbh|corp|corporation|"
    r"authors?|packag\w*|the|and|by|contributors?|community|software|systems|company|university|list|from|for|of|"
    r"copyright|written|contributed|maintained|thanks|mail|email|contact|bugs?|http\w*)\b",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"\b(airport|airfield|field|intl|international|municipal|muni|regional|rgnl|county|co|seaplane|base|heliport|airpark|"
    r"aerodrome|station|memorial|mem|afb|aaf|aas|naf|nas|lrrs|executive|exec|metro|metropolitan|the|of|and|at)\b",
    re.IGNORECASE,
)


class Text(NamedTuple):
    """Distinct lines in lower-case ASCII, where they are from, and a hash of all."""

    lines: list[str]
    source: str
    digest: str


def read(kind: Kind, source: str) -> Text:
    """All lines of a kind that the source has."""
    return _found(kind, source) if source in ("auto", "debian", "python") else _own(source)


@cache
def _found(kind: Kind, source: str) -> Text:
    parts = []
    lines: list[str] = []
    if source in ("debian", "auto"):
        packaged = list(debian(kind))
        parts += [f"debian ({len(packaged):,} lines)"] if packaged else []
        lines += packaged
    if source in ("python", "auto"):
        documented = list(python(kind))
        parts += [f"python {platform.python_version()} ({len(documented):,} lines)"]
        lines += documented
    if not lines:
        raise OptionError(
            f"source={source!r}: this machine has no {kind} of that kind; run apt-get update, or give source='python' "
            "or the path of a text file with one string a line"
        )
    return _text(lines, " + ".join(parts))


def _own(source: str) -> Text:
    path = Path(source).expanduser()
    if not path.is_file():
        raise OptionError(
            f"source={source!r} is neither auto, debian or python nor the path of a file; give a text file with one "
            "string a line"
        )
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"source={source!r} cannot be read as UTF-8 text: {error}") from None
    text = _text(lines, path.name)
    if not text.lines:
        raise OptionError(f"source={source!r} has no lines; give a text file with one string a line")
    return text


def _text(lines: Iterable[str], source: str) -> Text:
    distinct = sorted({line for line in map(plain, lines) if line})
    digest = hashlib.blake2b("\n".join(distinct).encode(), digest_size=8).hexdigest()
    return Text(distinct, source, digest)


def plain(text: str) -> str:
    """Lower-case ASCII with single blanks; accents are dropped, so that é is e."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return " ".join(text.lower().split())


def debian(kind: Kind, root: Path = _ROOT) -> Iterator[str]:
    """Lines from what apt and dpkg keep; nothing where they are not."""
    for stanza in _stanzas(root):
        if kind == "people":
            yield from _person(_field(stanza, "Maintainer").partition("<")[0].strip(' "'))
        else:
            first, _, rest = (_field(stanza, "Description") or _field(stanza, "Description-en")).partition("\n")
            if kind == "titles" and first:
                yield f"{_field(stanza, 'Package')} - {first}"
            elif first:
                yield " ".join([_field(stanza, "Package"), first, *(line.strip(" .") for line in rest.splitlines())])
    if kind == "people":
        for path in sorted(root.glob("usr/share/doc/*/copyright")):
            yield from _named(_content(path))


def _stanzas(root: Path) -> Iterator[str]:
    lists = [
        path for path in root.glob("var/lib/apt/lists/*") if "_Packages" in path.name or "_Translation-en" in path.name
    ]
    for path in [*sorted(lists), root / "var/lib/dpkg/status"]:
        yield from _content(path).split("\n\n")


def _field(stanza: str, name: str) -> str:
    """A field of a stanza with its continuation lines, empty where there is none."""
    start = 0 if stanza.startswith(f"{name}: ") else stanza.find(f"\n{name}: ") + 1
    if start == 0 and not stanza.startswith(f"{name}: "):
        return ""
    start += len(name) + 2
    end = stanza.find("\n", start)
    while end >= 0 and stanza.startswith(" ", end + 1):
        end = stanza.find("\n", end + 1)
    return stanza[start:] if end < 0 else stanza[start:end]


def _content(path: Path) -> str:
    """A file's text, unpacked by the ending of its name; empty where it cannot be read."""
    try:
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes()).decode(errors="replace")
        packed = {".lz4": "lz4", ".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}.get(path.suffix)
        with pa.input_stream(str(path), compression=packed) as stream:
            return bytes(stream.read()).decode(errors="replace")
    except (OSError, lzma.LZMAError, pa.ArrowException):
        return ""


def python(kind: Kind) -> Iterator[str]:
    """Lines from the sources of Python and of the packages that eligo needs."""
    for root in _python_folders():
        for path in sorted(root.rglob("*.py")):
            if _SKIPPED.isdisjoint(path.relative_to(root).parts):
                source = _content(path)
                yield from _named(source) if kind == "people" else _documented(source, kind)
    if kind == "people":
        yield from _airports()


def _python_folders() -> Iterator[Path]:
    yield Path(sysconfig.get_paths()["stdlib"])
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            yield Path(spec.submodule_search_locations[0])


def _documented(source: str, kind: Kind) -> Iterator[str]:
    """What stands between triple quotes, as far as it is prose."""
    for text in source.split('"""')[1::2]:
        paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
        prose = [paragraph for paragraph in paragraphs if _is_prose(paragraph)]
        if kind == "prose" and prose:
            yield " ".join(prose)
        elif kind == "titles" and prose and prose[0] == paragraphs[0] and 4 <= prose[0].count(" ") < 20:
            yield prose[0]


def _is_prose(text: str) -> bool:
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return text[:1].isalpha() and letters >= 0.9 * len(text) and "  " not in text


def _named(content: str) -> Iterator[str]:
    """Names before an address. Lines without one are passed over quickly: most are."""
    place = content.find("@")
    while place >= 0:
        start = content.rfind("\n", 0, place) + 1
        end = content.find("\n", place)
        end = end if end >= 0 else len(content)
        for name in _NAME.findall(content[start:end]):
            yield from _person(name)
        place = content.find("@", end)


def _person(name: str) -> Iterator[str]:
    words = name.split()
    if 2 <= len(words) <= 4 and not _NOBODY.search(name) and all(word[0].isupper() for word in (words[0], words[-1])):
        yield name


def _airports() -> Iterator[str]:
    """Airports are named after people and places, in words that names of people are short of without Debian."""
    try:
        airports = flights.read_source(flights.data_folder(), "airports")
    except EligoError:  # not installed
        return
    for name in airports["name"].to_pylist():
        yield from _person(" ".join(re.sub(r"[^A-Za-z' -]", " ", _PLACE.sub(" ", name)).split()))
