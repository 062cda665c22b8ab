"""`update_rules`: changes to a rule set as a new version, without compiling the rest again; `compact_rules`.

    parent   [ shard ][ shard ][ delta ]                        dead: rows of any of them
    update   [ shard ][ shard ][ delta ][ delta of the changes ]     the same shards; more is dead
    compact  [ shard ][ shard ]                                 same rules, nothing dead, no deltas

One update runs at a time on a rule set, in one task: it has to know which ids are there. Matching goes on meanwhile.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from eligo.arguments import flag, one_of
from eligo.compile.signature import BUCKETS
from eligo.errors import RuleTypeError, SnapshotError
from eligo.spark import changes, compact
from eligo.spark.arguments import check_frame, check_session
from eligo.spark.changes import Changed
from eligo.spark.compact import Renumbering, Used
from eligo.spark.compile import built_shards, report_rejects
from eligo.spark.jobs import run_partitions, run_tasks
from eligo.spark.preflight import check_once, folder_of
from eligo.spark.published import Published, published
from eligo.spark.rule_columns import rule_columns
from eligo.store.publish import Staging, publish, publishing
from eligo.store.snapshot import MANIFEST
from eligo.store.versions import Content, Part, current_version, hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("eligo.spark")

# Share of the rules in shards that may be dead or in deltas before the shards are made anew.
COMPACT_AT: Final = 0.25
COMPACT_LEAST: Final = 10_000  # below so many, deltas cost next to nothing
GROWN: Final = 1.5  # times the size wanted, before a shard is cut


def update_rules(
    path: str | os.PathLike[str],
    changes_df: DataFrame,
    *,
    on_error: Literal["collect", "raise"] = "collect",
    compact: bool | None = None,
) -> Published:
    """Add, replace and remove rules of the rule set at `path`, and publish the outcome as a new version.

    changes_df  columns id, expression, and, if there, weight, tags, owner and change: "put" (the default) adds a rule
                or replaces the one with that id, "add" and "replace" do just that, "remove" needs no expression
    on_error    "collect" applies the good changes and keeps the bad ones in `Published.rejects`; "raise" publishes
                nothing if one is bad
    compact     make the shards anew afterwards, as a version of its own: always, never, or (None) when a quarter of
                the rules, and at least 10,000, are dead or in deltas
    """
    started = time.perf_counter()
    one_of("on_error", on_error, ("collect", "raise"))
    if compact is not None:
        flag("compact", compact)
    folder = versioned_folder(path)
    changes_df = check_frame("changes_df", changes_df)
    rows, id_type = rule_columns(changes_df, ("change",))
    session = changes_df.sparkSession
    check_once(session, folder, writing=True)
    content = publish_changes(
        folder,
        lambda version, staged: _applied(rows, folder, version, staged),
        id_type=id_type,
        strict=on_error == "raise",
    )
    done = published(folder, content, time.perf_counter() - started)
    log.info("version %d: %d rules, %d deltas, %.1f s", done.version, done.rules, done.deltas, done.seconds)
    if compact or (compact is None and is_due(content)):
        try:
            compact_rules(path, session)
        except Exception as error:  # the update is there, and the next one tries again
            log.warning("version %d is published, but was not compacted: %s", done.version, error)
    return done


def publish_changes(
    folder: str, change: Callable[[int, str], Changed | None], *, id_type: str = "", strict: bool = False
) -> Content:
    """Publish what `change` makes of the current version in a folder for its files; the version that is current then.

    `strict`: nothing is published if a change is rejected.
    """
    with publishing(folder), hold(folder) as held, Staging.begin(folder) as staging:
        parent = held.content
        if parent.rules and id_type and parent.id_type != id_type:
            raise RuleTypeError(
                f"ids in {folder} are {_PLURAL[parent.id_type]}, those of the changes {_PLURAL[id_type]}: cast the "
                "column id"
            )
        changed = change(parent.version, str(staging.folder))
        if changed is None:
            return msgspec.structs.replace(parent, rejects=(), rejected=0)  # those are of the update before
        if changed.rejected:
            report_rejects("changes", changed.rejected, changed.given, changed.examples[0], strict)
        return publish(staging, changed.files, _content(parent, changed), expect_parent=parent.version)


def versioned_folder(path: str | os.PathLike[str]) -> str:
    """The folder of a rule set that has versions."""
    folder = folder_of(path)
    if os.path.exists(os.path.join(folder, MANIFEST)):
        raise SnapshotError(
            f"{folder} is a plain snapshot: change it with a Matcher and save it again, or compile_rules into another "
            "folder and update that"
        )
    current_version(folder)
    return folder


_PLURAL: Final = {"int": "integers", "str": "strings", "": "of any kind"}


def _applied(rows: DataFrame, folder: str, version: int, staging: str) -> Changed | None:
    """Applies the changes in one task. Returns None if there are none."""
    ordered = rows.repartition(1).sortWithinPartitions("id")
    made = run_partitions(ordered, lambda batches: changes.apply_changes(folder, version, staging, batches), Changed)
    return made[0] if made and made[0].given else None


def _content(parent: Content, changed: Changed) -> Content:
    """The version that the changes make of its parent."""
    texts = dict(parent.texts)
    if changed.texts is not None:
        texts[parent.next_unit] = changed.texts
    return msgspec.structs.replace(
        parent,
        id_type=changed.id_type,
        rules=changed.rules,
        next_sequence=changed.next_sequence,
        next_unit=parent.next_unit + 1,
        multi=changed.multi,
        attributes=changed.attributes,
        naming=changed.naming,
        joining=changed.joining,
        strings=changed.strings or parent.strings,
        shards=changed.shards,
        deltas=changed.deltas,
        dead=changed.dead,
        texts=_used(texts, (*changed.shards, *changed.deltas)),
        rejects=() if changed.rejects is None else (changed.rejects,),
        rejected=changed.rejected,
    )


def _used(texts: dict[int, Any], parts: Sequence[Part]) -> dict[int, Any]:
    units = {unit for part in parts for unit in part.units}
    return {unit: table for unit, table in texts.items() if unit in units}


def is_due(content: Content) -> bool:
    """Whether so much is dead or in deltas that making the shards anew pays."""
    settled = sum(part.rules for part in content.shards)
    loose = sum(part.rules for part in content.deltas) + sum(part.dead for part in content.shards)
    return loose > max(COMPACT_LEAST, COMPACT_AT * settled)


def compact_rules(path: str | os.PathLike[str], session: SparkSession) -> Published:
    """Make the shards of the rule set at `path` anew, a task each, and publish the same rules as a new version.

    What only rules that are gone had named, strings and attributes, is left out.
    """
    started = time.perf_counter()
    session = check_session(session)
    folder = versioned_folder(path)
    with publishing(folder), hold(folder) as held, Staging.begin(folder) as staging:
        parent = held.content
        staged = str(staging.folder)
        version = parent.version
        check_once(session, folder, writing=True)
        ranges, parts = shards_anew(parent), len(parent.parts)
        used = run_tasks(session, parts, lambda part: compact.used(folder, version, staged, part), Used)
        (tables,) = run_tasks(session, 1, lambda _: compact.renumber(folder, version, staged, used), Renumbering)
        shards, naming, joining = built_shards(
            session, ranges, lambda first, stop: compact.compact(folder, version, staged, first, stop)
        )
        if sum(part.rules for part in shards) != parent.rules:
            raise SnapshotError(
                f"{folder}: version {version} has {parent.rules:,} rules, and its shards made anew "
                f"{sum(part.rules for part in shards):,}; nothing was published. compile_rules makes them from texts"
            )
        content = msgspec.structs.replace(
            parent,
            lineage=staging.job,
            attributes=tables.attributes,
            naming=naming,
            joining=joining,
            strings=tables.strings,
            shards=tuple(shards),
            deltas=(),
            dead=None,
            texts=_used(parent.texts, shards),
            rejects=(),
            rejected=0,
        )
        files = [tables.strings.file, *(part.segment.file for part in shards)]
        content = publish(staging, files, content, expect_parent=parent.version)
    done = published(folder, content, time.perf_counter() - started)
    log.info("version %d: %d shards made anew, %.1f s", done.version, done.shards, done.seconds)
    return done


def shards_anew(content: Content) -> list[tuple[float, float]]:
    """Returns the positions of the new shards: those of the old ones, where one that has grown too large is cut."""
    places, most = content.shard_positions(), content.shard_bytes
    if not most and places:  # their number was given
        return places
    loose = sum(part.segment.size for part in content.deltas)
    settled = sum(part.rules for part in content.shards)
    found: list[tuple[float, float]] = []
    for part, (first, stop) in zip(content.shards, places, strict=False):
        size = part.segment.size * (1 - part.dead / part.rules) + loose * part.rules / settled
        parts = 1 if size <= GROWN * most else -(-int(size) // most)
        borders = [first + (stop - first) * i / parts for i in range(parts)]
        found += pairwise([*borders, stop])
    return found or [(0.0, float(BUCKETS))]
