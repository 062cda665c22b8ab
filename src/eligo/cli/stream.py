"""`eligo stream`: match events as they come, until it is stopped."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from eligo.cli import options
from eligo.cli.files import InputError, is_snapshot
from eligo.cli.session import Conf, Master, spark_session
from eligo.cli.terminal import FINDINGS, plural, say

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = {"ndjson": "json", "csv": "csv", "parquet": "parquet", "orc": "orc"}
_TEXT: Final = ("ndjson", "csv")
_BROKEN: Final = "eligo_broken"  # a column with the text of an event that cannot be read, null for others
_REJECTS: Final = "eligo_rejects"
_STOPPED: Final = "an event cannot be read: "


def stream_events(
    rules: Annotated[str, typer.Argument(metavar="RULES", help="What `eligo compile` wrote.")],
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A folder that gets new files; kafka: host:port/topic; redis: a key."),
    ],
    out: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write the matches to.")],
    checkpoint: Annotated[
        str, typer.Option(metavar="DIR", help="Where Spark notes how far it has come; the same one to go on.")
    ],
    format: Annotated[
        str, typer.Option(help="Of the events: parquet, ndjson, csv, orc, kafka, redis, or a source that Spark knows.")
    ] = "parquet",
    schema: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="The columns of the events; needed unless files of them are there already."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The column whose JSON texts are the events: `value` of kafka and of lines (ndjson)."
        ),
    ] = None,
    source_option: Annotated[
        list[str] | None,
        typer.Option("--source-option", metavar="KEY=VALUE", help="An option of the source; may be repeated."),
    ] = None,
    trigger: Annotated[
        str, typer.Option(help="How often: `10 seconds`, or `available-now`: what is there, then stop.")
    ] = "10 seconds",
    keep: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A column to give back; may be repeated; else all.")
    ] = None,
    array: Annotated[bool, typer.Option("--array", help="One row an event with an array of rules.")] = False,
    top_k: Annotated[int | None, typer.Option(min=1, help="Only so many matches of an event, by weight.")] = None,
    tags: options.TagValues = None,
    output_format: Annotated[str, typer.Option(help="parquet, ndjson, csv or orc.")] = "parquet",
    on_error: Annotated[
        str,
        typer.Option(metavar="collect|raise", help="Events that cannot be read: count them and go on, or stop."),
    ] = "collect",
    batches: Annotated[
        bool, typer.Option("--batches", help="A folder for each micro-batch instead of Spark's file sink.")
    ] = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Match a stream and write its matches, each exactly once. Stopped and started again, it goes on where it was.

    New versions of the rules are taken up between micro-batches. A line on stderr for each micro-batch says how many
    events and matches it had, and which version.

    Events that cannot be read are left out and counted in that line; the exit code is then 1.
    """
    from eligo.spark import BatchWriter, match

    if not is_snapshot(rules):
        raise InputError(f"{rules}: is no compiled rule set: `eligo compile --engine spark` makes one")
    if output_format not in _FILES:
        raise InputError(f"unknown format {output_format!r}: --output-format is one of {', '.join(_FILES)}")
    if on_error not in ("collect", "raise"):
        raise InputError(f"--on-error is collect or raise, not {on_error!r}")
    if json is not None and on_error == "raise":
        raise InputError("--on-error raise is for events that Spark reads: give --schema instead of --json")
    settings: dict[str, Any] = {"availableNow": True} if trigger == "available-now" else {"processingTime": trigger}
    refused = 0
    with spark_session("eligo stream", master, conf) as session:
        from pyspark.errors import PySparkException

        try:
            given = dict(_pair(text) for text in source_option or ())
            events = _events(session, source, format, schema, json is not None, given)
            matched = match(
                readable(events, on_error),
                rules,
                keep=keep,
                output="array" if array else "exploded",
                top_k=top_k,
                tags=tags,
                observe="eligo",
                json=json,
            )
            writer = matched.writeStream.option("checkpointLocation", _place(checkpoint)).trigger(**settings)
            form = _FILES[output_format]
            if batches:
                writer = writer.foreachBatch(BatchWriter(out, form, checkpoint=_place(checkpoint)))
            else:
                writer = writer.format(form).option("path", _place(out))
            refused = _follow(writer.start(), json is not None)
        except PySparkException as error:
            raise InputError(f"{source}: {_sentence(error)}") from error
    if refused:
        raise typer.Exit(FINDINGS)


def _events(
    session: SparkSession, source: str, form: str, schema: str | None, texts: bool, given: dict[str, str]
) -> DataFrame:
    """The events as they come; `texts`: JSON stays the text that it is."""
    from pyspark.sql.types import StructType

    kind: Any = StructType.fromDDL(schema) if schema is not None else None
    if texts and form in ("ndjson", "kafka") and kind is not None:
        raise InputError(f"--schema says what the JSON of {form} is read as, and --json that it is not: leave one out")
    if texts and form == "ndjson":
        lines = session.readStream.options(**given).text(_place(source))
        return lines.where(lines["value"].rlike(r"\S"))  # blank ones are no events
    if form in _FILES:
        if kind is None:
            kind = _found_schema(session, source, form, given)
        reader = session.readStream
        if form in _TEXT:
            kind = StructType([*kind.fields, _broken_field()])
            reader = reader.option("columnNameOfCorruptRecord", _BROKEN)
            if form == "csv":  # else Spark does not look at columns that nobody asks for
                reader = reader.option("columnPruning", False).option("header", True)
        return reader.schema(kind).options(**given).format(_FILES[form]).load(_place(source))
    if form == "kafka":
        servers, slash, topic = source.partition("/")
        if not slash or (kind is None and not texts):
            raise InputError(
                "a kafka SOURCE is host:port/topic, and --schema says what the JSON of its values holds; or --json "
                "value, for rules that look at the JSON itself"
            )
        values = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        rows = values.option("subscribe", topic).options(**given).load()
        return rows if texts else of_json(rows, kind)
    if form == "redis":
        from eligo.spark import RedisStreams

        session.dataSource.register(RedisStreams)
        entries = session.readStream.format("redis-streams").options(**{"keys": source, **given}).load()
        return entries if kind is None else of_fields(entries, kind)
    reader = session.readStream.format(form).options(**given)
    return (reader.schema(schema) if schema is not None else reader).load()


def _broken_field() -> Any:
    from pyspark.sql.types import StringType, StructField

    return StructField(_BROKEN, StringType())


def of_json(rows: DataFrame, kind: Any) -> DataFrame:
    """Events of JSON in the column `value`; what is no object of that kind goes into the column of broken ones."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    text = f.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
    event = f.from_json(text, StructType([*kind.fields, _broken_field()]), options)
    broken = f.when(f.col("event").isNull(), f.coalesce(text, f.lit(""))).otherwise(f.col(f"event.{_BROKEN}"))
    fields = [f.col("event").getField(field.name).alias(field.name) for field in kind.fields]
    return rows.select("value", event.alias("event")).select(*fields, broken.alias(_BROKEN))


def of_fields(entries: DataFrame, kind: Any) -> DataFrame:
    """Events of text in the map `fields`; those with text that is not of its field's type are broken."""
    from pyspark.sql import functions as f

    text = {field.name: f.col("fields")[field.name] for field in kind.fields}
    typed = {field.name: text[field.name].try_cast(field.dataType) for field in kind.fields}
    wrong = [f.when(typed[name].isNull(), f.concat(f.lit(f"{name}: "), text[name])) for name in text]
    columns = [column.alias(name) for name, column in typed.items()]
    return entries.select("key", "id", "at", *columns, f.coalesce(*wrong, f.lit(None)).cast("string").alias(_BROKEN))


def readable(events: DataFrame, on_error: str) -> DataFrame:
    """The events that could be read; the others are counted, or stop the query."""
    from pyspark.sql import functions as f

    if _BROKEN not in events.columns:
        return events
    broken, text = f.col(_BROKEN), f.substring(_BROKEN, 1, 80)
    if on_error == "raise":
        stop = f.raise_error(f.concat(f.lit(_STOPPED), text)).cast("boolean")
        good = events.where(f.when(broken.isNull(), True).otherwise(stop))
    else:
        seen = events.observe(_REJECTS, f.count(broken).alias("rejects"), f.min(text).alias("example"))
        good = seen.where(broken.isNull())
    return good.drop(_BROKEN)


def _sentence(error: Exception) -> str:
    """What went wrong, or what an event that cannot be read was."""
    from eligo.spark import reason

    found = re.search(f"{_STOPPED}.*", str(error))
    return found[0].strip() if found else reason(error)


def _found_schema(session: SparkSession, source: str, form: str, given: dict[str, str]) -> Any:
    """The schema of the files that are there."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    reader = session.read.option("columnNameOfCorruptRecord", _BROKEN).options(**given)
    if form == "csv":
        reader = session.read.option("header", True).option("inferSchema", True).options(**given)
    try:
        found = reader.format(_FILES[form]).load(_place(source)).schema
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"{source}: there are no files that tell the columns; give --schema ({first})") from None
    return StructType([field for field in found.fields if field.name != _BROKEN])


def _follow(query: Any, texts: bool) -> int:
    """Say how it goes until it ends; an interrupt ends it. How many events were left out."""
    seen, refused = -1, 0
    try:
        while query.isActive:
            query.awaitTermination(0.5)
            seen, refused = _say_progress(query, seen, refused, texts)
    except KeyboardInterrupt:
        query.stop()
    _, refused = _say_progress(query, seen, refused, texts)
    error = query.exception()
    if error is not None:
        raise error
    return refused


def _say_progress(query: Any, seen: int, refused: int, texts: bool) -> tuple[int, int]:
    for progress in query.recentProgress:
        if progress.batchId <= seen or not progress.numInputRows:
            continue
        seen = progress.batchId
        figures = progress.observedMetrics.get("eligo")
        bad = progress.observedMetrics.get(_REJECTS)
        matches = getattr(figures, "matches", None) or 0
        rejects = getattr(bad, "rejects", None) or 0
        partial = getattr(figures, "events_set_aside", None) or 0
        version = getattr(figures, "version_max", None)
        if rejects:
            say(f"rejected: batch {seen}: {plural(rejects, 'event')} cannot be read, such as {bad.example!r}")
        if texts:  # one of which something cannot be asked matches nothing
            rejects, partial = rejects + partial, 0
        words = [f"batch {seen}: {plural(progress.numInputRows, 'event')}", plural(int(matches), "match")]
        words += [plural(rejects, "reject")] if rejects else []
        words += [f"version {version}"] if version is not None else []
        aside = getattr(figures, "set_aside", None) or 0
        words += [f"{plural(aside, 'rule')} set aside"] if aside else []
        words += [f"{plural(partial, 'event')} not asked of every rule"] if partial else []
        say(", ".join([*words, f"{progress.durationMs.get('triggerExecution', 0) / 1000:.1f} s"]))
        refused += rejects
    return seen, refused


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"--source-option {text!r}: write it as KEY=VALUE")
    return key, value


def _place(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
