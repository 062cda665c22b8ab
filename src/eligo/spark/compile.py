"""`compile_rules`: a DataFrame of rules to a rule set that is ready to match.

    check      columns and their types; do the workers have eligo and see the folder; how many rules
    contains   which attributes hold several values: a rule's normal form depends on that (only rules that say so)
    units      sorted by id, up to 250,000 a task: read, checked, normalised, encoded under the task's own numbers
    merge      one dictionary of all strings
    shards     as many as the memory budget asks: joined, indexed, labelled, each in a task of its own
    publish    the driver puts the version in place, which is one rename

Rules and their strings never pass through the driver: it sees one line a task.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from eligo.arguments import one_of, whole_number
from eligo.compile.signature import cut_evenly
from eligo.engine import Engine
from eligo.errors import RuleSyntaxError, RuleTypeError, SnapshotError
from eligo.language import Limits
from eligo.options import differing
from eligo.segments.joining import NO_JOINS, Joining
from eligo.spark import tasks
from eligo.spark.arguments import check_frame
from eligo.spark.jobs import run_partitions, run_tasks
from eligo.spark.preflight import check_workers, folder_of
from eligo.spark.published import Published, published
from eligo.spark.rule_columns import IdType, rule_columns
from eligo.spark.tasks import Built, Job, Merged, Settings, Unit
from eligo.store.publish import Staging, publish
from eligo.store.versions import CURRENT, DATA, Content, Held, Part, hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("eligo.spark")

# A unit pays for every different predicate once, so large units are cheaper; but its task holds them all, encoded.
UNIT_RULES: Final = 250_000
LEAST_RULES: Final = 5_000  # fewer are not worth a task, a file and an entry in the manifest
# Bytes of segment for a byte of piece: the index, the labels and the spaces come on top.
_GROWN: Final = 2.2


def compile_rules(
    rules_df: DataFrame,
    path: str | os.PathLike[str],
    *,
    index: str = "auto",
    evaluator: str = "auto",
    absent: Literal["fails", "classical"] = "fails",
    multi: Iterable[str] = (),
    limits: Limits | Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
    on_error: Literal["collect", "raise"] = "collect",
    shard_bytes: int = 512 << 20,
    shards: int | None = None,
    units: int | None = None,
) -> Published:
    """Compile the rules of a DataFrame and publish them at `path`, as a new version if a rule set is there.

    rules_df     columns id (string or integer), expression (text or JSON form), and, if there, weight, tags and owner
    path         a folder that the driver and all workers reach under this path
    index … options   as for `Matcher`
    on_error     "collect" publishes the good rules and keeps the bad ones in `Published.rejects`; "raise" publishes
                 nothing if a rule is bad
    shard_bytes  about how large a shard may be, now and after updates; `shards` says how many there are instead
    units        into how many tasks the reading is cut
    """
    stages = Stages()
    rules_df = check_frame("rules_df", rules_df)
    one_of("on_error", on_error, ("collect", "raise"))
    shards = None if shards is None else whole_number("shards", shards, least=1)
    units = None if units is None else whole_number("units", units, least=1)
    shard_bytes = whole_number("shard_bytes", shard_bytes, least=1)
    model = Engine(index, evaluator, absent, multi, limits, options)  # checks all of these, and is not used otherwise
    folder = folder_of(path)
    rules, id_type = rule_columns(rules_df)
    session = rules_df.sparkSession
    with Staging.begin(Path(folder)) as staging, _held(folder) as held:
        slots = check_workers(session, folder, writing=staging.folder)
        stages.done("workers looked at")
        settings = Settings(index, model.evaluator, absent, model.rules.multi, model.limits, dict(model.options))
        count = rules.count()
        if not count:
            raise RuleTypeError("the table of rules is empty: there is nothing to compile")
        settings = _with_containing(rules, settings)
        stages.done("rules counted")
        units = units or max(min(slots, -(-count // LEAST_RULES)), -(-count // UNIT_RULES))
        log.info("%d rules in %d units", count, units)
        read = read_units(rules, settings, staging, units, id_type)
        stages.done("rules read")
        if sum(unit.rules + unit.rejected for unit in read) != count:
            raise RuleTypeError(
                f"the rules changed while they were read: {count:,} rows were counted, and "
                f"{sum(unit.rules + unit.rejected for unit in read):,} read; write them to a table first"
            )
        rejected = sum(unit.rejected for unit in read)
        if rejected:
            example = next(example for unit in read for example in unit.examples)
            report_rejects("rules", rejected, count, example, on_error == "raise" or rejected == count)
        attributes = tuple(sorted({name for unit in read for name in unit.attributes}))
        statistics = None if held is None else held.content.statistics
        known = None if statistics is None else (str(Path(folder) / DATA), statistics)
        job = str(staging.folder / "job.json")
        Path(job).write_bytes(msgspec.json.encode(Job(units=read, attributes=attributes, statistics=known)))
        (merged,) = run_tasks(session, 1, lambda _: tasks.merge_units(job), Merged)
        stages.done("strings merged")
        parts, naming, joining = built_shards(
            session,
            cut(read, shard_bytes, shards),
            lambda first, stop: tasks.build_shard(settings, job, merged, first, stop),
        )
        stages.done("shards built")
        content = Content(
            lineage=staging.job,
            index=index,
            evaluator=model.evaluator,
            absent=absent,
            multi=tuple(sorted(settings.multi)),
            limits=model.limits,
            options=differing(model.options, (model.rules.recipe.index, model.rules.recipe.evaluator)),
            id_type=id_type,
            rules=sum(unit.rules for unit in read),
            next_sequence=sum(unit.rules for unit in read),
            next_unit=units,
            attributes=attributes,
            strings=merged.strings,
            shards=tuple(parts),
            deltas=(),
            dead=None,
            texts={unit.unit: unit.texts for unit in read},
            rejects=tuple(unit.rejects for unit in read if unit.rejects is not None),
            rejected=rejected,
            statistics=statistics,
            shard_bytes=shard_bytes if shards is None else 0,
            naming=naming,
            joining=joining,
        )
        tables = [*content.texts.values(), *content.rejects]
        files = [merged.strings.file, *(part.segment.file for part in parts), *(table.file for table in tables)]
        content = publish(staging, files, content)
        if content.parent != staging.since:
            log.warning(
                "version %d was published while these rules were compiled, and is replaced: if it was an update, "
                "give it again",
                content.parent,
            )
    stages.done("published")
    done = published(folder, content, sum(stages.seconds.values()), stages.seconds)
    log.info("version %d: %d rules in %d shards, %.1f s", done.version, done.rules, done.shards, done.seconds)
    return done


class Stages:
    """Measures how long each stage takes, and logs it when the stage is done."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def done(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._since
        self._since = now
        log.info("%s: %.1f s", stage, self.seconds[stage])


@contextmanager
def _held(folder: str) -> Iterator[Held[Content] | None]:
    """The version that is there now, if there is one: what was learned of events for it is used, so it has to stay."""
    held = None
    if os.path.exists(os.path.join(folder, CURRENT)):
        try:
            held = hold(folder)
        except SnapshotError as error:  # compiling is what heals it
            log.warning("nothing is taken over from the version that is there: %s", error)
    with held or nullcontext():
        yield held


def _with_containing(rules: DataFrame, settings: Settings) -> Settings:
    """The settings with the attributes that some rule uses with `contains`."""
    from dataclasses import replace

    from pyspark.sql.functions import col, lower

    some = rules.where(lower(col("expression")).contains("contains")).select("expression")
    found = run_partitions(some, lambda batches: tasks.containing_of(settings, batches), list[str])
    return replace(settings, multi=settings.multi.union(*found))


def read_units(rules: DataFrame, settings: Settings, staging: Staging, units: int, id_type: IdType) -> tuple[Unit, ...]:
    """Read all rules, equal ids side by side; what each unit left in the job's folder."""
    folder = str(staging.folder)
    ordered = rules.repartitionByRange(units, "id") if units > 1 else rules.coalesce(1)
    ordered = ordered.sortWithinPartitions(*ordered.columns)
    read = run_partitions(ordered, lambda batches: tasks.read_unit(settings, folder, id_type, batches), Unit)
    return tuple(sorted(read, key=lambda unit: unit.unit))


def report_rejects(what: str, rejected: int, given: int, example: tuple[str, str], strict: bool) -> None:
    """Say how many of the rules or changes are bad; `strict` raises instead of warning."""
    words = f"{rejected:,} of {given:,} {what} were rejected, among them {example[0]!r}: {example[1]}"
    if strict:
        remedy = "on_error='collect' publishes the good ones" if rejected < given else "there is no good one among them"
        raise RuleSyntaxError(f"nothing was published: {remedy}. {words}")
    log.warning("%s; all of them: Published.rejects(session)", words)


def built_shards(
    session: Any, ranges: Sequence[tuple[float, float]], build: Callable[[float, float], list[Built]]
) -> tuple[list[Part], dict[str, int], Joining]:
    """Build each part of the line of positions as a segment, in a task of its own. Returns those that are not empty,
    how many rules look at each attribute, and those that ask about documents.
    """
    made = run_tasks(session, len(ranges), lambda i: build(*ranges[i]), list[Built])
    shards = [shard for some in made for shard in some]
    total: Counter[str] = Counter()
    for shard in shards:
        total.update(shard.naming)
    naming = dict(sorted(total.items()))
    return [shard.part for shard in shards], naming, reduce(Joining.plus, (one.joining for one in shards), NO_JOINS)


def cut(read: Sequence[Unit], shard_bytes: int, shards: int | None) -> list[tuple[float, float]]:
    """Cuts the line of positions into parts of about equally many rules: `shards`, or as many as `shard_bytes` asks."""
    buckets = [sum(counts) for counts in zip(*(unit.buckets for unit in read), strict=True)]
    if shards is None:
        expected = _GROWN * sum(unit.piece.size for unit in read)
        shards = max(1, -(-int(expected) // shard_bytes))
    return cut_evenly(buckets, shards)
