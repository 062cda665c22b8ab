"""`eligo stream`: match events as they come, until it is stopped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from eligo.cli import options
from eligo.cli.session import Conf, Master
from eligo.cli.terminal import plural, say

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = {"ndjson": "json", "csv": "csv", "parquet": "parquet", "orc": "orc"}


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
    batches: Annotated[
        bool, typer.Option("--batches", help="A folder for each micro-batch instead of Spark's file sink.")
    ] = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Match a stream and write its matches, each exactly once. Stopped and started again, it goes on where it was.

    New versions of the rules are taken up between micro-batches. A line on stderr for each micro-batch says how many
    events and matches it had, and which version.
    """
    from eligo.cli.files import InputError, is_snapshot
    from eligo.cli.session import spark_session
    from eligo.spark import BatchWriter, match, reason

    if not is_snapshot(rules):
        raise InputError(f"{rules}: is no compiled rule set: `eligo compile --engine spark` makes one")
    if output_format not in _FILES:
        raise InputError(f"unknown format {output_format!r}: --output-format is one of {', '.join(_FILES)}")
    settings = _triggered(trigger)
    with spark_session("eligo stream", master, conf) as session:
        from pyspark.errors import PySparkException

        try:
            events = _events(session, source, format, schema, dict(_pair(text) for text in source_option or ()))
            matched = match(
                events,
                rules,
                keep=keep,
                output="array" if array else "exploded",
                top_k=top_k,
                tags=tags,
                observe="eligo",
            )
            writer = matched.writeStream.option("checkpointLocation", _place(checkpoint)).trigger(**settings)
            form = _FILES[output_format]
            if batches:
                writer = writer.foreachBatch(BatchWriter(out, form, checkpoint=_place(checkpoint)))
            else:
                writer = writer.format(form).option("path", _place(out))
            _follow(writer.start())
        except PySparkException as error:
            found = reason(error)
            raise InputError(f"{source}: {str(found).strip().splitlines()[0]}") from error


def _events(session: SparkSession, source: str, form: str, schema: str | None, given: dict[str, str]) -> DataFrame:
    from pyspark.sql import functions as f

    from eligo.cli.files import InputError

    if form in _FILES:
        if schema is None:
            schema = _found_schema(session, source, form, given)
        return session.readStream.schema(schema).options(**given).format(_FILES[form]).load(_place(source))
    if form == "kafka":
        servers, slash, topic = source.partition("/")
        if not slash or schema is None:
            raise InputError("a kafka SOURCE is host:port/topic, and --schema says what the JSON of its values holds")
        reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        values = reader.option("subscribe", topic).options(**given).load()
        return values.select(f.from_json(f.col("value").cast("string"), schema).alias("event")).select("event.*")
    if form == "redis":
        from pyspark.sql.types import StructType

        from eligo.spark import RedisStreams

        session.dataSource.register(RedisStreams)
        entries = session.readStream.format("redis-streams").options(**{"keys": source, **given}).load()
        if schema is None:
            return entries
        kind: Any = StructType.fromDDL(schema)
        typed = [f.col("fields")[field.name].try_cast(field.dataType).alias(field.name) for field in kind.fields]
        return entries.select("key", "id", "at", *typed)
    reader = session.readStream.format(form).options(**given)
    return (reader.schema(schema) if schema is not None else reader).load()


def _found_schema(session: SparkSession, source: str, form: str, given: dict[str, str]) -> Any:
    """The schema of the files that are there."""
    from pyspark.errors import PySparkException

    from eligo.cli.files import InputError

    reader = session.read.options(**given)
    if form == "csv":
        reader = reader.option("inferSchema", True)
    try:
        return reader.format(_FILES[form]).load(_place(source)).schema
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"{source}: there are no files that tell the columns; give --schema ({first})") from None


def _follow(query: Any) -> None:
    """Say how it goes until it ends; an interrupt ends it after the batch under way."""
    seen = -1
    try:
        while query.isActive:
            query.awaitTermination(0.5)
            seen = _say_progress(query, seen)
    except KeyboardInterrupt:
        query.stop()
    _say_progress(query, seen)
    error = query.exception()
    if error is not None:
        raise error


def _say_progress(query: Any, seen: int) -> int:
    for progress in query.recentProgress:
        if progress.batchId <= seen or not progress.numInputRows:
            continue
        seen = progress.batchId
        figures = progress.observedMetrics.get("eligo")
        matches = getattr(figures, "matches", None) or 0
        version = getattr(figures, "version_max", None)
        words = f"batch {seen}: {plural(progress.numInputRows, 'event')}, {plural(int(matches), 'match')}"
        took = f"{progress.durationMs.get('triggerExecution', 0) / 1000:.1f} s"
        say(", ".join([words, *([f"version {version}"] if version is not None else []), took]))
    return seen


def _triggered(trigger: str) -> dict[str, Any]:
    if trigger == "available-now":
        return {"availableNow": True}
    return {"processingTime": trigger}


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"--source-option {text!r}: write it as KEY=VALUE")
    return key, value


def _place(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
