"""Snapshots: a matcher on disk.

    rules.eligo/
      manifest.json              format version, settings, attributes, and what lies in which file
      strings-<hash>.bin         the string table
      segment-<hash>.bin         rules, compiled arrays, index and labels; one file a shard
      living-<hash>.bin          instead, where rules change in place: their pools and index
      documents-<hash>.log       the documents that rules ask about, if they do
      journal-<hash>.log         changes since (journal.py); the hash is that of the manifest that they follow

A snapshot becomes visible when its manifest is put in place, which is one rename: a reader finds the old one or the new
one, whole. Files that the new manifest does not name are removed afterwards; processes that have them mapped keep them.

A journal is named by its manifest, and put in place before it. So a reader finds the old snapshot with its journal or
the new one with its own, which holds the changes that were made while it was written: no change is lost, and none is
made twice.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast
from uuid import uuid4

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.arguments import local_path
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import Arrays
from eligo.compile.renumber import mark_used
from eligo.compile.strings import Strings
from eligo.engine import Engine
from eligo.errors import JournalError, SnapshotError
from eligo.language.limits import Limits
from eligo.options import differing
from eligo.segments.living.living import LivingSet
from eligo.segments.rule_set import RuleSet
from eligo.segments.segment import merge_segments, restore_segment
from eligo.store.arrays import ArrayFile, map_arrays, write_arrays
from eligo.store.files import locked, sync_directory, write_through
from eligo.store.journal import HEADER, Journal, SyncPolicy, is_locked, read_journal
from eligo.store.manifest import sealed, unsealed
from eligo.store.replay import replay
from eligo.store.versions import Content as Version
from eligo.store.versions import is_versioned

FORMAT = 9
MANIFEST = "manifest.json"
_OURS = re.compile(
    r"manifest\.json|(strings|segment|living)-[0-9a-f]{32}\.bin|(journal|documents)-[0-9a-f]{32}\.log|"
    r"(manifest|strings|segment|living|journal)-[0-9a-f]{32}\.tmp|documents-[0-9a-f]{32}\.new"
)


class Content(msgspec.Struct, frozen=True):
    """The content of a manifest, without its checksum."""

    eligo: str
    index: str
    evaluator: str
    absent: Literal["fails", "classical"]
    multi: tuple[str, ...]
    limits: Limits
    id_type: str
    rules: int
    next_sequence: int
    attributes: tuple[str, ...]
    strings: ArrayFile
    kind: Literal["segments", "living"]  # of structure: many shards, or one
    shards: tuple[ArrayFile, ...]
    options: dict[str, bool | int | float | str] = {}  # those that are not the default
    documents: str = ""  # the file with those that the rules ask about


def save(engine: Engine, path: str | PathLike[str], documents: Callable[[Path], str] | None = None) -> None:
    """Writes all rules to a directory, and replaces a snapshot that is there. Matching and updating go on meanwhile.

    `documents` writes those that the rules ask about to the directory, and returns the name of the file. If the engine
    keeps its changes, a new journal begins, with those that were made meanwhile.
    """
    directory = Path(local_path(path))
    _make_directory(directory)
    with locked(directory):
        journal = _own_journal(engine, directory)
        with engine.rules.lock:
            facts, attributes, strings, saved = _state(engine)
            since = 0 if journal is None else journal.size
        prefix = "living" if facts["kind"] == "living" else "segment"
        shards, (names, texts) = saved()
        kept = strings.without(~texts)
        data, offsets = kept.arrays()
        content = Content(
            strings=write_arrays(directory, "strings", {"data": data, "offsets": offsets, "slots": kept.slots}),
            shards=tuple(write_arrays(directory, prefix, arrays) for arrays in shards),
            attributes=tuple(attributes.without(~names).names),
            documents="" if documents is None else documents(directory),
            **facts,
        )
        raw = sealed(content, FORMAT)
        with _new_journal(directory, raw, journal, since) as take_over:
            _replace(directory / MANIFEST, raw, take_over)
        _sweep(directory, content, raw)


def documents_path(path: str | PathLike[str]) -> Path | None:
    """Returns the file of the documents that were saved with a snapshot, or None if there are none."""
    directory = Path(local_path(path))
    if is_versioned(directory) or not (directory / MANIFEST).exists():
        return None
    name = _read_manifest(directory)[0].documents
    if name and not (directory / name).exists():
        raise SnapshotError(f"{directory / name}: missing, though the manifest names it; save the rules again")
    return directory / name if name else None


def journal_path(directory: Path, raw: bytes) -> Path:
    """Returns the path of the journal of changes since the snapshot with this manifest."""
    return directory / f"journal-{_digest(raw)}.log"


def kept_changes(directory: Path, raw: bytes) -> bytes:
    """Returns the bytes of the changes since the snapshot with this manifest, as in the journal."""
    try:
        return journal_path(directory, raw).read_bytes()[HEADER:]
    except FileNotFoundError:
        return b""


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _own_journal(engine: Engine, directory: Path) -> Journal | None:
    """Returns this engine's journal if it is in the directory, or None. Raises JournalError if another is open."""
    own = engine.journal
    if isinstance(own, Journal) and own.is_open_in(directory):
        return own
    for path in directory.glob("journal-*.log"):
        if is_locked(path):
            raise JournalError(
                f"{directory}: another process, or another matcher of this one, has these rules open for writing; save "
                "with that one, close it first, or save to another path"
            )
    return None


def _new_journal(
    directory: Path, raw: bytes, journal: Journal | None, since: int
) -> AbstractContextManager[Callable[[], None]]:
    """Returns a context in which to put a manifest in place. The journal that is to follow it is put there first."""
    path = journal_path(directory, raw)
    if journal is not None:
        return journal.successor(path, _digest(raw), since)
    if path.exists():  # left by an equal snapshot of earlier times, or it follows the one that is there
        path.unlink()
        sync_directory(directory)
    return nullcontext(lambda: None)


Saved = tuple[list[Arrays], tuple[NDArray[np.bool_], NDArray[np.bool_]]]  # the rules; numbers that they name


def _state(engine: Engine) -> tuple[dict[str, Any], Attributes, Strings, Callable[[], Saved]]:
    """Returns what is to be saved, as of one moment: settings, tables that do not change, and a function that returns
    the rules with the numbers that they name.
    """
    from eligo import __version__

    rules = engine.rules
    with rules.lock:
        saved = _living_shards(rules) if isinstance(rules, LivingSet) else _segment_shards(cast(RuleSet, rules))
        strings = rules.recipe.strings.frozen()
        attributes = Attributes(rules.recipe.attributes.names)
        facts: dict[str, Any] = {
            "eligo": __version__,
            "index": engine.index,
            "evaluator": engine.evaluator,
            "absent": engine.absent,
            "multi": tuple(sorted(rules.multi)),
            "limits": engine.limits,
            "options": differing(engine.options, (rules.recipe.index, rules.recipe.evaluator)),
            "id_type": "int" if engine.loader.id_type is int else "str" if rules.count else "",
            "rules": rules.count,
            "next_sequence": rules.next_sequence,
            "kind": rules.kind,
        }
        return facts, attributes, strings, saved


def _segment_shards(rules: RuleSet) -> Callable[[], Saved]:
    """Returns a function that merges all segments into one: they never change, so it needs no lock."""
    rules.seal()
    segments, alive, recipe = list(rules.segments), list(rules.alive), replace(rules.recipe)
    used = np.zeros(len(recipe.attributes), np.bool_), np.zeros(len(recipe.strings), np.bool_)

    def merged() -> Saved:
        if not segments:
            return [], used
        whole = segments[0]
        if len(segments) > 1 or len(alive[0]):
            whole = merge_segments(segments, alive, recipe)[0]
        mark_used(whole.whole(), *used)
        written = replace(whole, table=whole.table.written())  # a snapshot has the texts in it, wherever they were
        return [written.arrays()] if len(whole) else [], used

    return merged


def _living_shards(rules: LivingSet) -> Callable[[], Saved]:
    """Copies what changes in place. Returns a function that gives the copy. Writers wait for that, readers do not."""
    used, copied = rules.used_numbers(), rules.structure.copied()
    return lambda: ([copied()], used)


def open_snapshot(path: str | PathLike[str], *, verify: bool = True) -> Engine:
    """Returns the engine that was saved there, memory-mapped, with the changes that were kept since. `verify` compares
    the checksums of all its arrays.
    """
    directory = Path(local_path(path))
    while True:
        content, raw = _read_manifest(directory)
        engine = _opened(directory, content, raw, verify)
        records = read_journal(journal_path(directory, raw), _digest(raw)) if engine is not None else []
        if engine is not None and _is_current(directory, raw):  # else its journal may have been removed meanwhile
            replay(engine, records, journal_path(directory, raw))
            return engine


def _is_current(directory: Path, raw: bytes) -> bool:
    try:
        return (directory / MANIFEST).read_bytes() == raw
    except FileNotFoundError:
        return False


def open_writable(path: str | PathLike[str], sync: SyncPolicy, *, verify: bool = True) -> Engine:
    """Opens a snapshot so that every change is kept in its journal. Only one matcher can have it open so."""
    directory = Path(os.path.abspath(local_path(path)))
    if not (directory / MANIFEST).is_file():
        _read_manifest(directory, "; Matcher(…).save(path) makes an empty one, which can then be opened writable")
    with locked(directory):  # so that nobody replaces it until it is opened
        content, raw = _read_manifest(directory)
        where = journal_path(directory, raw)
        journal = Journal.open(where, _digest(raw), sync)
        try:
            engine = _opened(directory, content, raw, verify)
            if engine is None:
                raise SnapshotError(f"{directory}: was replaced though it is locked; open it again")
            replay(engine, journal.replayed, where)
        except BaseException:
            journal.close()
            raise
    engine.keep_changes(journal)
    return engine


def _opened(directory: Path, content: Content, raw: bytes, verify: bool) -> Engine | None:
    """Returns the engine of a manifest without the changes since, or None if another manifest has taken its place."""
    try:
        strings = map_arrays(directory, content.strings, verify)
        shards = [map_arrays(directory, shard, verify) for shard in content.shards]
    except FileNotFoundError as error:
        if _read_manifest(directory)[1] != raw:
            return None
        raise SnapshotError(
            f"{error.filename}: missing, though {directory / MANIFEST} names it; make it again"
        ) from None
    try:
        engine = empty_engine(content, LivingSet if content.kind == "living" else RuleSet, strings)
        rules = engine.rules
        if isinstance(rules, LivingSet):
            rules.restore(shards[0])
        else:
            cast(RuleSet, rules).restore([restore_segment(arrays, rules.recipe) for arrays in shards])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"{directory}: made by eligo {content.eligo}, cannot be used here: {error}") from error
    rules.count, rules.next_sequence = content.rules, content.next_sequence
    engine.loader.id_type = {"int": int, "str": str}.get(content.id_type)
    return engine


def empty_engine(content: Content | Version, kind: type[RuleSet] | type[LivingSet], strings: Arrays) -> Engine:
    """The engine of a manifest, without rules, whatever kind of structure its index would choose now."""
    engine = Engine(content.index, content.evaluator, content.absent, content.multi, content.limits, content.options)
    if not isinstance(engine.rules, kind):
        recipe = engine.rules.recipe
        engine.take(kind(recipe.index, recipe.evaluator, content.absent, content.multi, content.limits, engine.options))
    engine.rules.adopt(Attributes(content.attributes), Strings((strings["data"], strings["offsets"], strings["slots"])))
    return engine


def _read_manifest(directory: Path, remedy: str = "") -> tuple[Content, bytes]:
    """Returns the manifest's content and bytes. Raises SnapshotError, with `remedy` in its text, if there is none."""
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        missing = "there is nothing there" if not directory.exists() else f"it has no {MANIFEST}"
        raise SnapshotError(
            f"{directory}: not a snapshot, {missing}; Matcher.save and `eligo compile` make one{remedy}"
        ) from None
    except NotADirectoryError:
        raise SnapshotError(f"{directory}: not a snapshot but a file; Matcher.save makes a directory") from None
    return unsealed(path, raw, FORMAT, Content), raw


def _make_directory(directory: Path) -> None:
    """Makes the directory. Raises SnapshotError if it holds anything but a snapshot."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SnapshotError(f"{directory}: is a file; a snapshot is a directory, choose another name") from None
    foreign = [entry.name for entry in directory.iterdir() if not _OURS.fullmatch(entry.name)]
    if is_versioned(directory):
        raise SnapshotError(f"{directory}: holds versions, which `eligo.spark` publishes; save to another path")
    if foreign:
        raise SnapshotError(f"{directory}: holds other things ({foreign[0]}); a snapshot needs a directory of its own")


def _replace(path: Path, raw: bytes, done: Callable[[], None]) -> None:
    """Puts a manifest in place, calls `done`, and waits until its name is on disk."""
    temporary = path.with_name(f"manifest-{uuid4().hex}.tmp")
    try:
        write_through(temporary, raw)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    done()
    sync_directory(path.parent)


def _sweep(directory: Path, content: Content, raw: bytes) -> None:
    """Removes files that the manifest does not name, and journals of other manifests."""
    named = {MANIFEST, content.documents, content.strings.file, *(shard.file for shard in content.shards)}
    named.add(journal_path(directory, raw).name)
    for entry in directory.iterdir():
        if entry.name not in named and _OURS.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
