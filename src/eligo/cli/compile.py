"""`eligo compile`: a file of rules to a snapshot."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from eligo.cli import options
from eligo.cli.files import InputError, source
from eligo.cli.session import Conf, Master
from eligo.cli.terminal import FINDINGS, show_figures


def compile_rules(
    rules: options.Rules,
    out: Annotated[str, typer.Option("--output", "-o", metavar="SNAPSHOT", help="The snapshot to write, a folder.")],
    index: options.Index = "auto",
    evaluator: options.Evaluator = "auto",
    option: options.OptionValues = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    rejects: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where refused rows go (NDJSON); else SNAPSHOT.rejects.ndjson."),
    ] = None,
    format: Annotated[str | None, typer.Option(help="ndjson, csv or parquet, where the name does not tell.")] = None,
    int_ids: options.IntegerIds = False,
    engine: Annotated[
        str, typer.Option(metavar="local|spark", help="Compile in this process, or on Spark: then with versions.")
    ] = "local",
    shards: Annotated[
        int | None, typer.Option(min=1, help="With --engine spark: how many; else as their size asks.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compile rules into a snapshot. It opens without compiling anything.

    Rows that cannot be used are left out and written to the rejects file; the exit code is then 1. With --engine spark
    RULES may be a folder, and SNAPSHOT gets a new version, beside the older ones that are still read.
    """
    from eligo.cli.rejects import Rejects
    from eligo.cli.rules import RuleOptions, compiled

    started = time.perf_counter()
    wanted = RuleOptions(format, int_ids, index, evaluator, absent, tuple(multi or ()), tuple(option or ()))
    if engine not in ("local", "spark"):
        raise InputError(f"--engine is local or spark, not {engine!r}")
    if engine == "local" and (master or conf or shards):
        raise InputError("--master, --conf and --shards are for --engine spark")
    place = rejects or f"{out.rstrip('/')}.rejects.ndjson"
    figures: dict[str, object]
    with Rejects(place, always=rejects is not None) as refused:
        if engine == "spark":
            from eligo.cli.spark import compile_on_spark

            done = compile_on_spark(rules, wanted, out, shards, master, conf, refused)
            figures = {
                "version": done.version,
                "rules": done.rules,
                "rejects": done.rejected,
                "shards": done.shards,
                "bytes": done.bytes,
            }
        else:
            matcher = compiled(source(rules, format), wanted, refused)
            matcher.save(out)
            stats = matcher.stats()
            figures = {
                "rules": len(matcher),
                "rejects": refused.count,
                "attributes": stats.attributes,
                "predicates": stats.predicates,
                "conjunctions": stats.conjunctions,
                "index": stats.index,
                "evaluator": stats.evaluator,
                "bytes": stats.total_bytes,
            }
    show_figures(out, {**figures, "seconds": f"{time.perf_counter() - started:.2f}"})
    if refused.count:
        raise typer.Exit(FINDINGS)
