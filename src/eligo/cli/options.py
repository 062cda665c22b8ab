"""Arguments and options that several commands take, each described once."""

from __future__ import annotations

from typing import Annotated

import typer

RulesOrSnapshot = Annotated[
    str, typer.Argument(metavar="RULES", help="Rules (NDJSON, CSV, Parquet), a snapshot, or - for standard input.")
]
Rules = Annotated[str, typer.Argument(metavar="RULES", help="Rules (NDJSON, CSV, Parquet), or - for standard input.")]
RulesFormat = Annotated[
    str | None, typer.Option("--rules-format", help="ndjson, csv or parquet, where the name does not tell.")
]
EventsFormat = Annotated[
    str | None, typer.Option(help="Of the events: ndjson, csv or parquet, where the name does not tell.")
]
IntegerIds = Annotated[bool, typer.Option("--int-ids", help="The ids of a CSV file are integers, not text.")]
Index = Annotated[str, typer.Option(help="An index of `eligo indexes`, or auto.")]
Evaluator = Annotated[str, typer.Option(help="An evaluator of `eligo indexes`.")]
OptionValues = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="An option of the index or evaluator (`eligo indexes`); may be repeated."
    ),
]
Absent = Annotated[
    str,
    typer.Option(metavar="fails|classical", help="Whether a negated predicate holds (classical) or fails when absent."),
]
Multi = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="An attribute that may hold several values; may be repeated.")
]
Strings = Annotated[
    list[str] | None,
    typer.Option("--string", metavar="NAME", help="A CSV column of events to read as text; may be repeated."),
]
Timestamps = Annotated[
    list[str] | None,
    typer.Option(
        "--timestamp", metavar="NAME", help="An attribute of events whose text is read as a time; may be repeated."
    ),
]
RejectsFile = Annotated[str | None, typer.Option("--rejects", metavar="FILE", help="Where refused rows go (NDJSON).")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
TagValues = Annotated[
    list[str] | None, typer.Option("--tags", help="Only rules with this tag, or one of these; may be repeated.")
]
