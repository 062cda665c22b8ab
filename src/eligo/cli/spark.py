"""`--engine spark`: Spark reads the files itself and uses all cores. `eligo match` has the same answer from it, and
`eligo compile` a rule set with versions.

    events ─ read by Spark, numbered ─ eligo.spark.match ─ Parquet parts in a temporary folder ─ one output file

Matches go through files, so that an answer larger than memory is no trouble. Spark numbers rows within a partition; the
count of the partitions before it makes that the row's number in the file. Into a folder Spark writes the events with
their matches itself.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eligo.cli.events import EventOptions
from eligo.cli.files import InputError, Source, format_of, is_folder, is_snapshot, source
from eligo.cli.rejects import BadRow, Rejects, for_shell
from eligo.cli.results import output
from eligo.cli.rules import RuleOptions, empty_matcher, load
from eligo.cli.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from eligo.spark import Published

_NUMBER: Final = "eligo_event"
_BROKEN: Final = "eligo_broken"
_SHIFT: Final = 33  # monotonically_increasing_id: the partition above, the row within it below


def match_on_spark(
    rules: str,
    rule_options: RuleOptions,
    events: str,
    format: str | None,
    event_options: EventOptions,
    out: str | None,
    form: str,
    refused: Rejects,
    tags: tuple[str, ...] | None = None,
    master: str | None = None,
    conf: list[str] | None = None,
) -> int:
    """Match and write; how many matches there were."""
    import eligo
    from eligo import spark

    if events == "-":
        raise InputError("Spark reads files, not standard input: use --engine local")
    folder_given = "://" in events or os.path.isdir(events)
    origin = Source(events, format_of(events.rstrip("/"), format)) if folder_given else source(events, format)
    with tempfile.TemporaryDirectory(prefix="eligo-") as folder:
        snapshot = rules
        if is_snapshot(rules):
            rule_type = eligo.open(rules).rule_type
        else:
            matcher = load(rules, rule_options, refused)
            snapshot, rule_type = os.path.join(folder, "rules.eligo"), matcher.rule_type
            matcher.save(snapshot)
        with spark_session("eligo match", master, conf) as session:
            from pyspark.sql.functions import monotonically_increasing_id

            try:
                frame = _read(session, origin, event_options)
                if out is not None and is_folder(out):
                    return _write_folder(frame, snapshot, origin, out, form, tags, refused)
                refuse_cluster(session)
                frame = frame.withColumn(_NUMBER, monotonically_increasing_id())
                starts = _starts(frame, origin)
                frame = _without_broken(frame, origin, starts, refused)
                parts = os.path.join(folder, "matches")
                spark.match(frame, snapshot, keep=[_NUMBER], tags=tags).write.parquet(parts)
            except Exception as error:
                raise _readable(error, origin) from error
        with output(out, form, rule_type) as result:
            for part in sorted(Path(parts).glob("part-*.parquet")):
                for batch in pq.ParquetFile(part).iter_batches():
                    numbers = _plain(np.asarray(batch.column(_NUMBER)), starts)
                    result.write(pa.table({"event": pa.array(numbers, pa.int64()), "rule": batch.column("rule")}))
    return result.matches


def refuse_cluster(session: SparkSession) -> None:
    """Matches go through files of this machine, which other machines do not see."""
    master = session.conf.get("spark.master", "") or ""
    if not master.startswith("local") or not hasattr(session, "sparkContext"):
        raise InputError(
            f"Spark runs elsewhere ({master or 'through Spark Connect'}), so its workers have to write the matches: "
            "end OUT with a slash, or give a URL"
        )


def _write_folder(
    frame: DataFrame,
    snapshot: str,
    origin: Source,
    out: str,
    form: str,
    tags: tuple[str, ...] | None,
    refused: Rejects,
) -> int:
    """The events with their matches, written by the workers; nothing but rows that cannot be read comes here."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from eligo import spark

    if "://" not in out and os.path.exists(out):
        raise InputError(f"{out}: is there already; choose another name")
    events, broken, seen = frame, Observation("eligo broken"), Observation("eligo")
    if origin.format != "parquet":
        counted = frame.observe(broken, f.count(_BROKEN).alias("rows"))
        events = _readable_rows(counted)
    target = out if "://" in out else os.path.abspath(out)
    writer = spark.match(events, snapshot, tags=tags, observe=seen).write
    writer.format({"ndjson": "json"}.get(form, form)).option("header", True).save(target)
    if origin.format != "parquet" and broken.get["rows"]:
        for row in _broken(frame).toLocalIterator():
            refused.add(BadRow(-1, -1, _unreadable(row[_BROKEN])))
    return int(seen.get["matches"])


def _read(session: SparkSession, origin: Source, options: EventOptions) -> DataFrame:
    """The events. Text is read twice: once for the types of its columns, once with a column for what cannot be read."""
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    path = origin.path if "://" in origin.path else os.path.abspath(origin.path)
    forced = dict.fromkeys(options.timestamps, TimestampType()) | dict.fromkeys(options.strings, StringType())
    if origin.format == "parquet":
        if forced:
            raise InputError("a Parquet file has types of its own: --string and --timestamp are for text")
        return session.read.parquet(path)
    reader = session.read.option("columnNameOfCorruptRecord", _BROKEN).option("mode", "PERMISSIVE")
    if origin.format == "csv":
        reader = reader.option("header", True).option("enforceSchema", False).option("columnPruning", False)
        found = reader.option("inferSchema", True).csv(path).schema
    else:
        found = reader.json(path).schema
    fields = [field for field in found.fields if field.name != _BROKEN]
    if not fields:
        raise InputError(f"{origin.name}: no event can be read")
    fields = [StructField(field.name, forced.get(field.name, field.dataType)) for field in fields]
    reader = reader.schema(StructType([*fields, StructField(_BROKEN, StringType())]))
    return reader.csv(path) if origin.format == "csv" else reader.json(path)


def _starts(frame: DataFrame, origin: Source) -> Any:
    """For each partition the number of its first row."""
    from pyspark.sql import functions as f

    partition = f.shiftright(f.col(_NUMBER), _SHIFT).alias("partition")
    figures = [f.count("*").alias("rows")]
    if origin.format != "parquet":
        # Named so that text is read in full: counting alone, Spark takes blank lines for rows.
        figures.append(f.max(f.hash(*(name for name in frame.columns if name != _NUMBER))))
    counts = {row["partition"]: row["rows"] for row in frame.groupBy(partition).agg(*figures).collect()}
    sizes = [counts.get(number, 0) for number in range(max(counts, default=-1) + 1)]
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _plain(numbers: Any, starts: Any) -> Any:
    return starts[numbers >> _SHIFT] + (numbers & ((1 << _SHIFT) - 1))


def _without_broken(frame: DataFrame, origin: Source, starts: Any, refused: Rejects) -> DataFrame:
    """The rows that Spark could read; the others are reported."""
    if origin.format == "parquet":
        return frame

    for row in _broken(frame).toLocalIterator():
        number = int(_plain(np.int64(row[_NUMBER]), starts))
        refused.add(BadRow(number, -1, _unreadable(row[_BROKEN])))
    return _readable_rows(frame)


def _readable_rows(frame: DataFrame) -> DataFrame:
    """The rows that Spark could read. It refuses to look at the column of the others alone, as it would where rules
    name no column, so another one goes with it, in a condition that always holds.
    """
    from pyspark.sql import functions as f

    other = next(name for name in frame.columns if name not in (_BROKEN, _NUMBER))
    looked_at = f.length(f.hash(frame[f"`{other.replace('`', '``')}`"]).cast("string")) > 0
    return frame.where(f.col(_BROKEN).isNull() & looked_at).drop(_BROKEN)


def _broken(frame: DataFrame) -> DataFrame:
    """Rows that Spark could not read. It refuses to look at the column of these alone, so all columns go with it."""
    return frame.where(frame[_BROKEN].isNotNull())


def _unreadable(text: str) -> str:
    return f"cannot be read: {text!r:.80}"


def _readable(error: Exception, origin: Source) -> Exception:
    """What went wrong in a worker, without the two stack traces around it."""
    from pyspark.errors import PySparkException

    from eligo.spark import reason

    if not isinstance(error, PySparkException):
        return error
    return InputError(f"{origin.name}: Spark could not match the events: {reason(error)}")


# -- rules


def compile_on_spark(
    rules: str,
    options: RuleOptions,
    out: str,
    shards: int | None,
    master: str | None,
    conf: list[str] | None,
    refused: Rejects,
) -> Published:
    """Compile and publish; what was made."""
    from eligo import spark

    if rules == "-":
        raise InputError("Spark reads files, not standard input: use --engine local")
    model = empty_matcher(options)
    with spark_session("eligo compile", master, conf) as session:
        frame = read_rules(session, rules, format_of(rules.rstrip("/"), options.format), options.integer_ids)
        done = spark.compile_rules(
            frame,
            out,
            index=options.index,
            evaluator=options.evaluator,
            absent=model.absent,
            multi=options.multi,
            options=dict(model.options),
            shards=shards,
        )
        for row in done.rejects(session).toLocalIterator():
            refused.add(BadRow(-1, -1, for_shell(row["message"]), row["id"], row["position"]))
    return done


def read_rules(session: SparkSession, path: str, form: str, integer_ids: bool) -> DataFrame:
    """A file or folder of rules. A line that is no JSON becomes a rule without id, with the line as its text."""
    from pyspark.sql import functions as f

    if "://" not in path:
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file")
        path = os.path.abspath(path)
    if form == "parquet":
        return session.read.parquet(path)
    whole = "bigint" if integer_ids else "string"
    if form == "csv":
        frame = session.read.option("header", True).csv(path)
        changed: dict[str, Any] = {}
        if "weight" in frame.columns:
            number, wrong = f.col("weight").try_cast("double"), f.lit(float("nan"))  # a rule with that is rejected
            changed["weight"] = f.when(f.col("weight").isNotNull(), f.coalesce(number, wrong))
        if integer_ids:
            changed["id"] = f.col("id").try_cast("bigint")
        return frame.withColumns(changed) if changed else frame
    reader = session.read.option("columnNameOfCorruptRecord", _BROKEN)
    found = {field.name: field.dataType.simpleString() for field in reader.json(path).schema.fields}
    kinds = {"id": "bigint" if found.get("id") == "bigint" else whole, "expression": "string"}
    kinds |= {"weight": "double", "tags": "string" if found.get("tags") == "string" else "array<string>"}
    schema = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
    frame = reader.schema(f"{schema}, {_BROKEN} string").json(path)
    broken = f.col(_BROKEN).isNotNull()
    # A row that is not as the others is rejected: no rule has a weight that is no number.
    weight = f.when(broken, f.lit(float("nan"))).otherwise(f.col("weight"))
    return frame.withColumns({"expression": f.coalesce("expression", _BROKEN), "weight": weight}).drop(_BROKEN)
