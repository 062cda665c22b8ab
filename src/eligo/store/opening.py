"""Opening: the matcher of a version, or of a plain snapshot.

    version 7   shard A   shard B   delta p               a segment that this process has open is taken as it is;
    version 8   shard A   shard B   delta p   delta q     a file is compared with its checksums once in a process

Segments never change, and what they hold has one meaning in a lineage, so matchers of several versions share them. What
differs from version to version is small: which rows are dead, and the dictionary, which only grows.

A matcher keeps its version from being swept away for as long as it lives. It may be changed; that changes nothing on
disk.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Final, cast

import numpy as np

from eligo.arguments import directory_path, flag, whole_number
from eligo.compile.compiled import U8, Arrays
from eligo.engine import Engine
from eligo.errors import OptionError, SnapshotError
from eligo.forking import INNER, fork_lock
from eligo.segments.rule_set import RuleSet
from eligo.segments.segment import Recipe, Segment, restore_segment
from eligo.segments.view import ALL
from eligo.store.arrays import ArrayFile, map_arrays
from eligo.store.journal import SyncPolicy, sync_interval
from eligo.store.snapshot import empty_engine, open_snapshot, open_writable
from eligo.store.tables import Texts, tabled
from eligo.store.versions import DATA, Content, Held, Part, hold, is_versioned, manifest_path, place

_DIRECTORIES: Final = 4  # whose newest version's segments are kept, even if no matcher has them
_REMEMBERED: Final = 16_384  # files that need not be verified again

Key = tuple[str, str, str, str, str, bool]  # directory, lineage, index, evaluator, file, verified

_lock = fork_lock(sys.modules[__name__], "_lock", INNER)  # so that two threads do not map one version twice
_segments: weakref.WeakValueDictionary[Key, Segment] = weakref.WeakValueDictionary()
_latest: OrderedDict[str, tuple[Segment, ...]] = OrderedDict()
_texts: weakref.WeakValueDictionary[tuple[str, str, bool], Texts] = weakref.WeakValueDictionary()
_verified: OrderedDict[tuple[str, int, int], None] = OrderedDict()


@dataclass(frozen=True)
class Opened:
    """An engine, and the version it is of. The version is held for as long as the engine lives."""

    engine: Engine
    content: Content
    held: Held[Content]

    @property
    def rules(self) -> RuleSet:
        return cast(RuleSet, self.engine.rules)


def open_engine(
    path: str | PathLike[str],
    *,
    verify: bool = True,
    version: int | None = None,
    writable: bool = False,
    sync: SyncPolicy = "always",
) -> Engine:
    """Returns the engine of what was saved or compiled there; see `eligo.open`."""
    opened, verified = directory_path("path", path), flag("verify", verify)
    number = None if version is None else whole_number("version", version)
    sync_interval(sync)
    if flag("writable", writable) and is_versioned(opened):
        raise OptionError(
            f"{opened}: holds versions, which `spark.update_rules` changes; leave writable=True out, or open it, save "
            "it to another path, and open that"
        )
    if is_versioned(opened):
        return open_held(opened, number, verify=verified).engine
    if number is not None:
        raise OptionError(f"{opened}: is a plain snapshot, which has no versions; leave version={number} out")
    return open_writable(opened, sync, verify=verified) if writable else open_snapshot(opened, verify=verified)


def open_held(
    path: str | PathLike[str],
    version: int | None = None,
    *,
    verify: bool = True,
    shards: Sequence[int] | None = None,
    patience: float = 0.0,
) -> Opened:
    """Opens a version, by default the current one, with all shards or some of them. The deltas come with shard 0.

    The version is held until the engine is gone. `patience` is that of `hold`.
    """
    held = hold(os.path.abspath(path), version, patience=patience)
    try:
        engine = _engine(held.directory, held.content, verify, shards)
    except BaseException:
        held.close()
        raise
    weakref.finalize(engine, held.close)
    return Opened(engine, held.content, held)


def _engine(directory: Path, content: Content, verify: bool, shards: Sequence[int] | None) -> Engine:
    """Returns an engine with the rules of these shards, or of all."""
    if shards is None:
        parts = content.parts
    else:
        if not all(0 <= number < max(1, len(content.shards)) for number in shards):
            raise OptionError(f"{directory}: version {content.version} has {len(content.shards)} shards, not {shards}")
        parts = tuple(content.shards[number] for number in sorted(set(shards)) if content.shards)
        parts += content.deltas if 0 in shards else ()
    try:
        # In segments also where the index would change in place.
        engine = empty_engine(content, RuleSet, _mapped(directory, content.strings, verify))
        rules = cast(RuleSet, engine.rules)
        with _lock:
            texts = _texts_of(directory, content, verify)
            segments = [_segment(directory, content, part, rules.recipe, texts, verify) for part in parts]
            _keep(directory, segments)
        rules.restore(segments, _masks(directory, content, parts, verify))
    except FileNotFoundError as error:
        named = manifest_path(directory, content.version)
        raise SnapshotError(f"{error.filename}: missing, though {named} names it; compile the rules again") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SnapshotError(f"{directory}: made by eligo {content.eligo}, cannot be used here: {error}") from error
    rules.count = sum(part.rules - part.dead for part in parts)
    rules.next_sequence = content.next_sequence
    engine.loader.id_type = {"int": int, "str": str}.get(content.id_type) if content.rules else None
    return engine


def _segment(directory: Path, content: Content, part: Part, recipe: Recipe, texts: Texts, verify: bool) -> Segment:
    """Returns the segment of a part: the one that this process has open, or a new one."""
    key = (str(directory), content.lineage, content.index, content.evaluator, part.segment.file, verify)
    segment = _segments.get(key)
    if segment is None or segment.table.texts_apart is not texts:
        restored = restore_segment(_mapped(directory, part.segment, verify), recipe)
        if len(restored) != part.rules:
            raise ValueError(f"{part.segment.file} has {len(restored)} rules, not {part.rules}")
        segment = _segments[key] = replace(restored, table=tabled(restored.table, texts))
    return segment


def _texts_of(directory: Path, content: Content, verify: bool) -> Texts:
    """Returns the texts of a lineage, one object for all its versions: tables that share it are merged without reading
    it.

    If a unit means another file than before, as after a backup was restored, it is a new object: segments are then
    opened anew as well.
    """
    key = (str(directory), content.lineage, verify)
    texts = _texts.get(key)
    if texts is None or not texts.adopt(content.texts):
        texts = _texts[key] = Texts(directory / DATA, content.texts, verify=verify)
    return texts


def _keep(directory: Path, segments: Sequence[Segment]) -> None:
    """Keeps the segments of the version opened last, so that the next one can use them."""
    _latest[str(directory)] = tuple(segments)
    _latest.move_to_end(str(directory))
    while len(_latest) > _DIRECTORIES:
        _latest.popitem(last=False)


def let_go(directory: str | PathLike[str]) -> None:
    """Drops the segments that are kept of a directory. Those that a matcher has stay."""
    with _lock:
        _latest.pop(os.path.abspath(directory), None)


def _masks(directory: Path, content: Content, parts: Sequence[Part], verify: bool) -> list[U8]:
    """Returns for every part the mask of its living rows, empty if all are alive."""
    dead = _mapped(directory, content.dead, verify) if content.dead is not None else {}
    masks = []
    for part in parts:
        rows = dead.get(part.segment.file, np.zeros(0, np.int32))
        if len(rows) != part.dead:
            raise ValueError(f"{part.segment.file} has {len(rows)} dead rows, not {part.dead}")
        mask = ALL
        if part.dead:
            mask = np.ones(part.rules, np.uint8)
            mask[rows] = 0
        masks.append(mask)
    return masks


def _mapped(directory: Path, described: ArrayFile, verify: bool) -> Arrays:
    """Returns the arrays of a file, which is verified if this process has not done so before."""
    path = place(directory, described.file)
    found = path.stat()
    known = (str(path), found.st_ino, found.st_mtime_ns)
    with _lock:
        arrays = map_arrays(path.parent, described, verify and known not in _verified)
        if verify:
            _verified[known] = None
            while len(_verified) > _REMEMBERED:
                _verified.popitem(last=False)
    return arrays
