"""`eligo match`: which rules does each event of a file make true?"""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated

import typer

from eligo.cli import options
from eligo.cli.files import SUFFIXES, InputError, format_of, is_folder, source
from eligo.cli.session import Conf, Master
from eligo.cli.terminal import FINDINGS, plural, say


def match_events(
    rules: options.RulesOrSnapshot,
    events: Annotated[str, typer.Argument(metavar="EVENTS", help="Events (NDJSON, CSV, Parquet), or -.")],
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="The file to write; else standard output.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="local|spark", help="Match in this process, or on Spark.")] = "local",
    format: options.EventsFormat = None,
    rules_format: options.RulesFormat = None,
    output_format: Annotated[
        str | None, typer.Option(help="ndjson, csv or parquet; else by the name of OUT, else ndjson.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="At most so many rules for each event.")] = None,
    tags: options.TagValues = None,
    index: options.Index = "auto",
    evaluator: options.Evaluator = "auto",
    option: options.OptionValues = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    int_ids: options.IntegerIds = False,
    string: options.Strings = None,
    timestamp: options.Timestamps = None,
    rejects: options.RejectsFile = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Match events and write a row for each match. Of it `event` is the event's number from 0, `rule` the rule's id.

    With --engine spark EVENTS may be a folder or a URL, and an OUT that ends with / or is a URL becomes a folder of the
    events with their matches, written by the workers.

    Rows that cannot be used are left out and reported; the exit code is then 1. For a snapshot, --index, --evaluator,
    --option, --absent and --multi are those it was compiled with.
    """
    from eligo.cli.events import EventOptions, read_events
    from eligo.cli.rejects import Rejects
    from eligo.cli.results import matches_of, output
    from eligo.cli.rules import RuleOptions, load

    if engine not in ("local", "spark"):
        raise InputError(f"--engine is local or spark, not {engine!r}")
    if rules == events == "-":
        raise InputError("rules and events cannot both come from standard input")
    form = _output_format(out, output_format)
    rule_options = RuleOptions(rules_format, int_ids, index, evaluator, absent, tuple(multi or ()), tuple(option or ()))
    event_options = EventOptions(tuple(string or ()), tuple(timestamp or ()))
    if engine == "local" and (master or conf):
        raise InputError("--master and --conf are for --engine spark")
    chosen = tuple(tags) if tags else None
    started = time.perf_counter()
    with Rejects(rejects) as refused:
        if engine == "spark":
            if limit is not None:
                raise InputError("--limit is for --engine local")
            from eligo.cli.spark import match_on_spark

            matched = match_on_spark(
                rules, rule_options, events, format, event_options, out, form, refused, chosen, master, conf
            )
        else:
            origin = source(
                events, format
            )  # looked at first: compiling may take long, and this may be a slip of the pen
            matcher = load(rules, rule_options, refused)
            named = frozenset(matcher.attributes)
            with output(out, form, matcher.rule_type) as result:
                for part in read_events(origin, named, event_options, refused.add, texts=True):
                    for found in matches_of(matcher, part, refused.add, chosen, limit):
                        result.write(found)
            matched = result.matches
    if out is not None or sys.stderr.isatty():
        seconds = time.perf_counter() - started
        say(f"{plural(matched, 'match')}, {plural(refused.count, 'reject')}, {seconds:.2f} s")
    if refused.count:
        raise typer.Exit(FINDINGS)


def _output_format(out: str | None, given: str | None) -> str:
    if given is None and out is not None and os.path.splitext(out)[1].lower() in SUFFIXES:
        return format_of(out, None)
    usual = "parquet" if out is not None and is_folder(out) else "ndjson"
    form = format_of("", given or usual, "--output-format")
    if form == "parquet" and out is None and sys.stdout.isatty():
        raise InputError("Parquet is no text for a terminal: give -o FILE, or another --output-format")
    return form
