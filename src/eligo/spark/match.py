"""`match`: which rules does every row of a DataFrame make true?

    events ─ select kept columns and those that rules name ─ mapInArrow(worker.run) ─ kept columns, rule, version

In a stream the version of a micro-batch comes with its events, as a column: the file CURRENT is read once for each, as
the small side of a join (`current.py`). So a micro-batch sees one version.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from eligo.arguments import flag, one_of, shown, tag_names, whole_number
from eligo.errors import EligoError, OptionError, SnapshotError
from eligo.spark import worker
from eligo.spark.arguments import check_frame, columns_named, name_given
from eligo.spark.current import with_version
from eligo.spark.document_cache import searched_names, searches, too_many
from eligo.spark.document_files import uneven_attributes
from eligo.spark.documents import ensure_values
from eligo.spark.event_columns import (
    Path,
    column_names,
    few,
    hint_of,
    holds_lists,
    leaves_of,
    locate,
    quoted,
    sent_columns,
)
from eligo.spark.preflight import check_once, folder_of
from eligo.spark.set_aside import rules_asking
from eligo.spark.shards import matched_by, spread
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Facts, Source, facts, look_aside
from eligo.store.opening import open_engine
from eligo.store.versions import DATA, hold_documents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger("eligo.spark")

_FEW_COLUMNS: Final = 32  # of a stream: so many are all sent, whether rules name them already or not
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNMEASURED: Final = 2**31 - 1  # the one value of it at which Spark does not look how large a batch is
VERSION: Final = "rules_version"
MOST_DOCUMENTS: Final = 5_000_000  # some 60 bytes for each attribute, and twice that while they are read

_warned: set[str] = set()  # applications that were told of this setting


def match(
    events_df: DataFrame,
    path: str | os.PathLike[str],
    *,
    output: Literal["exploded", "array"] = "exploded",
    keep: Iterable[str] | None = None,
    top_k: int | None = None,
    tags: Iterable[str] | None = None,
    version: int | None = None,
    version_column: str | None = VERSION,
    columns: Literal["named", "all"] | None = None,
    key: Iterable[str] | None = None,
    memory: int = 2 << 30,
    observe: str | Observation | None = None,
    check: bool = True,
    documents: str | os.PathLike[str] | None = None,
    most_documents: int = MOST_DOCUMENTS,
    json: str | None = None,
) -> DataFrame:
    """Match every row of `events_df`, a batch or a stream, against the rules at `path`.

    path     what `compile_rules` or `Matcher.save` made, readable under this path on every worker
    output   "exploded": one row for each match, the kept columns and `rule`; events without a match do not appear.
             "array": one row for each event, the kept columns and `rules`, which may be empty.
    keep     names of the event's columns to give back, in this order; None gives all of them.
    top_k    only the best k matches of an event, by weight; a column `weight` or `weights` says which weight
    tags     only rules with one of these tags
    version  of a rule set with versions: this one instead of the newest
    version_column  the name of the column that says which version a row was matched with; None leaves it out. A plain
             snapshot has no versions and no such column.
    columns  of a stream: "named" sends the columns that rules name now, "all" those too that later versions may name
    key      columns that tell events apart, if the rules are more than `memory` and one row an event is wanted
    memory   bytes of rules that a machine maps at a time
    observe  a name or an `Observation`: counts of events and matches, see docs/spark.md
    check    compare the checksums of the rules, and see once whether the workers have eligo and reach the path
    documents  what `compile_documents` made, for rules with `exists d (…)` and `forall d (…)`: the version that is
             current now or, in a stream, when a micro-batch starts
    most_documents  so many documents at most are held by a worker for rules that ask several things of one document
    json     the column whose values, strings or binary, are the events as JSON texts; rules look at no other column

    Only kept columns and those that rules name leave the JVM. The dotted attribute `user.age` is the column of that
    very name, or else the field `age` of the struct (or the key `age` of the map, or of the object in the Variant)
    `user`. An attribute that the DataFrame lacks is absent in every event.
    """
    events_df = check_frame("events_df", events_df)
    if columns is not None:
        one_of("columns", columns, ("named", "all"))
        if json is not None:
            raise OptionError(
                f"columns={columns!r} says which columns rules may name, and with json={shown(json)} they name what is "
                "in a text: leave one of them out"
            )
    folder = folder_of(path)
    version, key, memory = check_options(version, version_column, key, memory, observe, check)
    found, source = facts_and_source(events_df.sparkSession, folder, version, documents, most_documents, check)
    schema = events_df.schema
    plan = begin_plan(schema, source, found, output, keep, top_k, tags, version_column, json)
    plan = plan_documents(events_df.sparkSession, plan, found)
    following = bool(events_df.isStreaming and found.version and version is None)
    attributes, plan, aside = locate_attributes(schema, found, plan)
    if columns == "all" or (columns is None and following and json is None):
        leaves = leaves_of(schema)
        if columns == "all" or len(leaves) <= _FEW_COLUMNS:
            attributes = {**{name: (path,) for name, path in leaves.items()}, **attributes}
    sent = sent_columns(schema, plan.kept, attributes)
    plan = replace(plan, attributes=sent.attributes, variants=sent.variants)
    selected = sent.columns()
    if any(map(holds_lists, sent.types)):
        _warn_of_measuring(events_df.sparkSession)
    if following:
        source = replace(plan.source, version=0, manifest="", aside=frozenset())
        if json is None:
            source = replace(source, schema=schema.json(), sent=sent.names)
        plan = replace(plan, source=source, version_place=len(selected), version_least=found.version)
        events_df, at = with_version(events_df, folder, found.version)
        selected.append(at)
    if events_df.isStreaming and source.documents:
        plan = replace(plan, documents=0, documents_place=len(selected), documents_least=plan.documents)
        events_df, at = with_version(events_df, source.documents, plan.documents_least)
        selected.append(at)
    changing = len(selected) > len(sent.paths)  # only the workers see what is set aside of a version to come
    plan = replace(plan, columns=len(selected), counts_aside=changing and observe is not None)
    names = column_names(len(selected))
    chosen = events_df.select(*(column.alias(name) for column, name in zip(selected, names, strict=True)))
    return matched(chosen, schema, plan, found, key, memory, observe, aside)


def facts_and_source(
    session: SparkSession, folder: str, version: int | None, documents: Any, most_documents: object, check: bool
) -> tuple[Facts, Source]:
    """Look at the rules, and refuse what cannot work before anything is done: rules that ask about documents where
    there are none, and workers that do not reach the folders.
    """
    found = facts(folder, version, check)
    source, most = (
        Source(folder, found.manifest, found.version),
        whole_number("most_documents", most_documents, least=0),
    )
    if documents is not None:
        source = replace(source, documents=folder_of(documents), most_documents=most)
        if not os.path.isdir(source.documents):
            raise SnapshotError(
                f"there are no documents at {source.documents!r}: `spark.compile_documents` writes them"
            )
    elif found.joining.rules:
        raise OptionError(
            f"{found.joining.rules:,} of the rules at {folder!r} ask about documents seen before: say where these are, "
            "documents='/shared/documents'; spark.compile_documents makes them of a DataFrame"
        )
    for path in filter(None, (folder, source.documents)) if check else ():
        check_once(session, path)
    return found, source


def plan_documents(session: SparkSession, plan: Plan, found: Facts) -> Plan:
    """The plan with the documents as they are now; what rules ask of their attributes is made, if nobody did."""
    path, most = plan.source.documents, plan.source.most_documents
    if not path:
        return plan
    with hold_documents(path) as held:
        content = held.content
        if found.joining.rules:
            where = os.path.join(path, DATA)
            ensure_values(session, path, where, content.tables, content.schema, sorted(found.joining.compared))
            uneven = uneven_attributes(path, content.tables, found.joining.even)
            if searched_names(found.joining, uneven) is not None and content.documents > most:
                engine = open_engine(plan.source.path, version=found.version, verify=False)
                those = rules_asking(engine, lambda needs: searches(needs, uneven), too_many(content, most))
                raise OptionError(those.sentence(set_aside=False))
    return replace(plan, documents=content.version)


def check_options(
    version: object, version_column: object, key: object, memory: object, observe: object, check: object
) -> tuple[int | None, tuple[str, ...], int]:
    """Refuse options of `match` and `match_files` that make no sense, before anything is done: version, key, memory."""
    if version_column is not None:
        name_given("version_column", version_column, VERSION)
    # An Observation, of Spark Connect too, has `get`; asking itself would wait.
    if observe is not None and not hasattr(type(observe), "get"):
        name_given("observe", observe, "eligo")
    flag("check", check)
    return (
        None if version is None else whole_number("version", version, least=1),
        () if key is None else columns_named("key", [key] if isinstance(key, str) else key),
        whole_number("memory, in bytes,", memory, least=1),
    )


def begin_plan(
    schema: StructType,
    source: Source,
    found: Facts,
    output: str,
    keep: Iterable[str] | None,
    top_k: int | None,
    tags: Iterable[str] | None,
    version_column: str | None,
    json: str | None = None,
) -> Plan:
    """Begins the plan, without the columns that rules look at; options that make no sense are refused."""
    plan = Plan(
        source=source,
        kept=(),
        attributes=(),
        columns=0,
        output=one_of("output", output, ("exploded", "array")),
        integers=found.integers,
        version_column=version_column if found.version else None,
        top_k=None if top_k is None else whole_number("top_k", top_k, least=1),
        tags=None if tags is None else tag_names("tags", tags),
        json=None if json is None else _text_column(schema, json),
    )
    return replace(plan, kept=tuple(_kept(schema, keep, plan)))


def matched(
    chosen: DataFrame,
    schema: StructType,
    plan: Plan,
    found: Facts,
    key: tuple[str, ...],
    memory: int,
    observe: str | Observation | None,
    aside: int,
) -> DataFrame:
    """The answer of a plan that is complete; `chosen` is what goes to the workers, `aside` rules are set aside."""
    plan = replace(plan, source=replace(plan.source, memory=memory), counts_partial=observe is not None)
    answer = answer_schema(schema, plan)
    if len(found.shard_bytes) > 1 and found.bytes > memory:
        answers = spread(chosen, plan, answer, found, key, memory)
    else:
        answers = matched_by(chosen, plan, answer)
    return _observed(answers, observe, plan, aside)


def locate_attributes(schema: StructType, found: Facts, plan: Plan) -> tuple[dict[str, tuple[Path, ...]], Plan, int]:
    """Where the attributes are that rules look at, the plan with those whose rules are set aside, and how many rules.

    Warnings say which rules are set aside, and that no attribute at all is there. Of events that are JSON texts nothing
    is known before they are read.
    """
    if plan.json is not None:
        return {plan.json: ((plan.json,),)}, plan, 0
    located = locate(schema, found.attributes, found.multi)
    if found.attributes and not located.paths and not located.unusable:
        # Rules that name other columns than there are match little, and nothing else would say why.
        log.warning(
            "none of the %d attributes that rules name (%s) is a column of the DataFrame (%s): all are absent",
            len(found.attributes),
            few(found.attributes),
            few(schema.names),
        )
    aside = look_aside(plan.source.path, found, located.unusable)
    return located.paths, replace(plan, source=replace(plan.source, aside=frozenset(located.unusable))), aside.rules


def _warn_of_measuring(session: SparkSession) -> None:
    """Below its highest value this setting has Spark measure a batch after each row, which for lists takes long."""
    from pyspark.errors import PySparkException

    try:
        value = session.conf.get(_BATCH_BYTES) or ""
    except PySparkException:  # this Spark has no such setting, and measures nothing
        return
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", value.strip().lower())
    application = session.conf.get("spark.app.id", None) or str(id(session))
    if found is None or int(found[1]) << 10 * " kmgtp".index(found[2] or " ") >= _UNMEASURED or application in _warned:
        return
    _warned.add(application)
    log.warning(
        "columns of arrays or maps are sent to Python and %s is %s, so that Spark measures each batch after every row, "
        "which is slow for them: set it to %db; batches are still bounded by their rows",
        _BATCH_BYTES,
        value,
        _UNMEASURED,
    )


def _observed(matched: DataFrame, observe: str | Observation | None, plan: Plan, aside: int) -> DataFrame:
    """Count what comes out, between which versions, how many rules were set aside, and of how many events some."""
    if observe is None:
        return matched
    from pyspark.sql import functions as f

    partial = f.col(worker.PARTIAL)
    if plan.output == "exploded":
        counts = [f.count(f.when(partial == 0, 1)).alias("matches")]
    else:
        counts = [f.count(f.lit(1)).alias("events"), f.sum(f.size("rules")).alias("matches")]
    if plan.version_column is not None:
        column = f.col(quoted(plan.version_column))
        counts += [f.min(column).alias("version_min"), f.max(column).alias("version_max")]
    # Without `counts_aside` it is known beforehand; but what is observed has to be an aggregate.
    aside_now = f.max(f.col(worker.ASIDE)) if plan.counts_aside else f.count(f.lit(1)) * 0 + aside
    counts += [aside_now.alias("set_aside"), f.coalesce(f.sum(partial), f.lit(0)).alias("events_set_aside")]
    observed = matched.observe(observe, *counts)
    observed = observed.where(partial == 0) if plan.output == "exploded" else observed
    return observed.drop(worker.ASIDE, worker.PARTIAL)


def _kept(schema: StructType, keep: Iterable[str] | None, plan: Plan) -> list[str]:
    """The names of the columns to give back, checked."""
    kept = list(schema.names if keep is None else columns_named("keep", keep))
    answers = {field.name.casefold(): field.name for field in worker.answer_fields(plan)}
    for name in kept:
        _refuse_unknown(schema, "keep", name)
        if name.casefold() in answers:
            answer = answers[name.casefold()]
            raise EligoError(
                f"the event column {name!r} and the answer's column {answer!r} would have one name: rename it with "
                f"events_df.withColumnRenamed({name!r}, 'event_{answer}'), or leave it out of keep=[…]"
            )
    twice = sorted({name for name in kept if kept.count(name) > 1 or schema.names.count(name) > 1})
    if twice:
        raise EligoError(f"two columns have the name {twice[0]!r}: rename one, or leave it out of keep=[…]")
    return kept


def _text_column(schema: StructType, json: object) -> str:
    """The name of the column with events as JSON texts, checked."""
    from pyspark.sql.types import BinaryType, CharType, StringType, VarcharType

    name = name_given("json", json, "value")
    _refuse_unknown(schema, "json", name)
    if schema.names.count(name) > 1:
        raise EligoError(f"json names {name!r}, and two columns have that name: rename one")
    kind = schema[name].dataType
    if not isinstance(kind, StringType | CharType | VarcharType | BinaryType):
        raise EligoError(
            f"json names {name!r}, a column of type {kind.simpleString()}, and JSON texts are strings or binary: leave "
            f"json={name!r} out if rules name columns, and what is in them"
        )
    return name


def _refuse_unknown(schema: StructType, argument: str, name: str) -> None:
    if name not in schema.names:
        hint = hint_of(name, schema.names, "it has")
        raise EligoError(f"{argument} names {name!r}, which is not a column of the DataFrame; {hint}")


def answer_schema(schema: StructType, plan: Plan) -> StructType:
    """Returns the schema of the answer: the kept columns, then those of `worker.answer_fields`."""
    from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

    rule = LongType() if plan.integers else StringType()
    kinds: dict[str, Any] = {
        "rule": rule,
        "weight": DoubleType(),
        "rules": ArrayType(rule, containsNull=False),
        "weights": ArrayType(DoubleType(), containsNull=False),
    }
    fields = [schema[name] for name in plan.kept]
    for field in worker.answer_fields(plan):
        fields.append(StructField(field.name, kinds.get(field.name, LongType()), nullable=False))
    return StructType(fields)
