"""Snapshots: a matcher on disk.

    rules.eligo/
      manifest.json              format version, settings, attributes, and what lies in which file
      strings-<hash>.bin         the string table
      segment-<hash>.bin         rules, compiled arrays, index and labels; one file a shard
      living-<hash>.bin          instead, where rules change in place: their pools and index

A snapshot becomes visible when its manifest is put in place, which is one rename: whoever opens it finds the old one
or the new one, whole. Files that the new manifest does not name are removed afterwards; those who have them mapped
keep them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
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
from eligo.errors import SnapshotError
from eligo.index.registry import choose as choose_index
from eligo.language.limits import Limits
from eligo.options import differing
from eligo.segments.living.living import LivingSet
from eligo.segments.rule_set import RuleSet
from eligo.segments.rules import Rules
from eligo.segments.segment import Segment, merge_segments, restore_segment
from eligo.store.arrays import ArrayFile, map_arrays, write_arrays
from eligo.store.files import locked, sync_directory, write_through
from eligo.store.manifest import sealed, unsealed
from eligo.store.versions import is_versioned

FORMAT = 7
MANIFEST = "manifest.json"
_OURS = re.compile(
    r"manifest\.json|(strings|segment|living)-[0-9a-f]{32}\.bin|(manifest|strings|segment|living)-[0-9a-f]{32}\.tmp"
)

_PREFIX = {"segments": "segment", "living": "living"}


class Content(msgspec.Struct, frozen=True):
    """What a manifest says, its checksum apart."""

    eligo: str
    index: str
    index_used: str
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


def save(engine: Engine, path: str | PathLike[str]) -> None:
    """Write all rules to a directory, replacing a snapshot that is there. Matching and updating go on meanwhile."""
    directory = Path(local_path(path))
    facts, attributes, strings, saved = _state(engine)
    _make_directory(directory)
    with locked(directory):
        prefix = _PREFIX[facts["kind"]]
        shards, (names, texts) = saved()
        kept = strings.without(~texts)
        data, offsets = kept.arrays()
        content = Content(
            strings=write_arrays(directory, "strings", {"data": data, "offsets": offsets, "slots": kept.slots}),
            shards=tuple(write_arrays(directory, prefix, arrays) for arrays in shards),
            attributes=tuple(attributes.without(~names).names),
            **facts,
        )
        _replace(directory / MANIFEST, sealed(content, FORMAT))
        _sweep(directory, content)


Saved = tuple[list[Arrays], tuple[NDArray[np.bool_], NDArray[np.bool_]]]  # the rules; numbers that they name


def _state(engine: Engine) -> tuple[dict[str, Any], Attributes, Strings, Callable[[], Saved]]:
    """Everything to be saved, as of one moment: tables that nobody changes, and rules, which are to be asked for."""
    from eligo import __version__

    rules = engine.rules
    with rules.lock:
        saved = _living_shards(rules) if isinstance(rules, LivingSet) else _segment_shards(cast(RuleSet, rules))
        strings = rules.recipe.strings.frozen()
        attributes = Attributes(rules.recipe.attributes.names)
        facts: dict[str, Any] = {
            "eligo": __version__,
            "index": engine.index,
            "index_used": rules.recipe.index.name,
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
    """Segments never change, so they are merged once the lock is free again."""
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
        return [_with_texts(whole)] if len(whole) else [], used

    return merged


def _with_texts(segment: Segment) -> Arrays:
    """The arrays of a segment; a snapshot has the texts in it, wherever they were before."""
    return replace(segment, table=segment.table.written()).arrays()


def _living_shards(rules: LivingSet) -> Callable[[], Saved]:
    """What changes in place is copied. Writers wait for that, readers do not: they change nothing."""
    used, copied = rules.used_numbers(), rules.structure.copied()
    return lambda: ([copied()], used)


def open_snapshot(path: str | PathLike[str], *, verify: bool = True) -> Engine:
    """The engine that was saved there, memory-mapped. `verify` compares the checksums of all its arrays."""
    directory = Path(local_path(path))
    content, raw = _read_manifest(directory)
    try:
        strings = map_arrays(directory, content.strings, verify)
        shards = [map_arrays(directory, shard, verify) for shard in content.shards]
    except FileNotFoundError as error:
        if _read_manifest(directory)[1] != raw:
            return open_snapshot(path, verify=verify)  # replaced between the two readings
        raise SnapshotError(
            f"{error.filename}: missing, though {directory / MANIFEST} names it; make it again"
        ) from None
    try:
        engine = Engine(
            content.index,
            content.evaluator,
            content.absent,
            content.multi,
            content.limits,
            content.options,
        )
        rules = _rules_of(engine, content)
        rules.adopt(Attributes(content.attributes), Strings((strings["data"], strings["offsets"], strings["slots"])))
        if isinstance(rules, LivingSet):
            rules.restore(shards[0])
        else:
            # The index that was built, whatever `auto` would choose today.
            saved = replace(rules.recipe, index=choose_index(content.index_used))
            cast(RuleSet, rules).restore([restore_segment(arrays, saved) for arrays in shards])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"{directory}: made by eligo {content.eligo}, cannot be used here: {error}") from error
    rules.count, rules.next_sequence = content.rules, content.next_sequence
    engine.loader.id_type = {"int": int, "str": str}.get(content.id_type)
    return engine


def _rules_of(engine: Engine, content: Content) -> Rules:
    """The engine's rules, in the kind of structure that was saved, whatever `auto` would choose today."""
    if engine.rules.kind != content.kind:
        evaluator = engine.rules.recipe.evaluator
        kind = LivingSet if content.kind == "living" else RuleSet
        index = choose_index(content.index_used)
        engine.take(kind(index, evaluator, content.absent, content.multi, content.limits, engine.options))
    return engine.rules


def _read_manifest(directory: Path) -> tuple[Content, bytes]:
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        missing = "there is nothing there" if not directory.exists() else f"it has no {MANIFEST}"
        raise SnapshotError(
            f"{directory}: not a snapshot, {missing}; Matcher.save and `eligo compile` make one"
        ) from None
    except NotADirectoryError:
        raise SnapshotError(f"{directory}: not a snapshot but a file; Matcher.save makes a directory") from None
    return unsealed(path, raw, FORMAT, Content), raw


def _make_directory(directory: Path) -> None:
    """Make it, or make sure that it holds nothing but a snapshot."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SnapshotError(f"{directory}: is a file; a snapshot is a directory, choose another name") from None
    foreign = [entry.name for entry in directory.iterdir() if not _OURS.fullmatch(entry.name)]
    if is_versioned(directory):
        raise SnapshotError(f"{directory}: holds versions, which `eligo.spark` publishes; save to another path")
    if foreign:
        raise SnapshotError(f"{directory}: holds other things ({foreign[0]}); a snapshot needs a directory of its own")


def _replace(path: Path, raw: bytes) -> None:
    temporary = path.with_name(f"manifest-{uuid4().hex}.tmp")
    try:
        write_through(temporary, raw)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _sweep(directory: Path, content: Content) -> None:
    """Remove what the manifest does not name."""
    named = {MANIFEST, content.strings.file, *(shard.file for shard in content.shards)}
    for entry in directory.iterdir():
        if entry.name not in named and _OURS.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
