"""`eligo compile`: a file of rules to a snapshot."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from eligo.cli import options
from eligo.cli.terminal import FINDINGS, show_figures


def compile_rules(
    rules: options.Rules,
    out: Annotated[str, typer.Option("--output", "-o", metavar="SNAPSHOT", help="The snapshot to write, a folder.")],
    index: options.Index = "auto",
    evaluator: options.Evaluator = "interval",
    option: options.OptionValues = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    rejects: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where refused rows go (NDJSON); else SNAPSHOT.rejects.ndjson."),
    ] = None,
    format: Annotated[str | None, typer.Option(help="ndjson, csv or parquet, where the name does not tell.")] = None,
    int_ids: options.IntegerIds = False,
) -> None:
    """Compile rules into a snapshot, which opens without compiling anything.

    Rows that cannot be used are left out and written to the rejects file; the exit code is then 1.
    """
    from eligo.cli.files import source
    from eligo.cli.rejects import Rejects
    from eligo.cli.rules import RuleOptions, compiled

    started = time.perf_counter()
    wanted = RuleOptions(format, int_ids, index, evaluator, absent, tuple(multi or ()), tuple(option or ()))
    origin = source(rules, format)
    place = rejects or f"{out.rstrip('/')}.rejects.ndjson"
    with Rejects(place, always=rejects is not None) as refused:
        matcher = compiled(origin, wanted, refused)
        matcher.save(out)
    stats = matcher.stats()
    show_figures(
        out,
        {
            "rules": len(matcher),
            "rejects": refused.count,
            "attributes": stats["attributes"],
            "predicates": stats["predicates"],
            "conjunctions": stats["conjunctions"],
            "index": stats["index"],
            "evaluator": stats["evaluator"],
            "bytes": stats["total_bytes"],
            "seconds": f"{time.perf_counter() - started:.2f}",
        },
    )
    if refused.count:
        raise typer.Exit(FINDINGS)
