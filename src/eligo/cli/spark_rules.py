"""`eligo compile --engine spark`: files of rules, read by Spark, to a rule set with versions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from eligo.cli.files import InputError, format_of
from eligo.cli.rejects import BadRow, Rejects, for_shell
from eligo.cli.rules import RuleOptions, empty_matcher
from eligo.cli.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from eligo.spark import Published

_BROKEN: Final = "eligo_broken"


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
        if "tags" in frame.columns:
            trimmed = f.transform(f.split("tags", ";"), lambda tag: f.trim(tag))
            changed["tags"] = f.filter(trimmed, lambda tag: tag != "")
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
