"""`eligo draw`: the structure of an index as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eligo.cli import options
from eligo.cli.files import InputError, Source, source
from eligo.cli.terminal import FINDINGS, plural

if TYPE_CHECKING:
    from eligo import Matcher
    from eligo.cli.events import EventOptions
    from eligo.cli.rejects import Rejects
    from eligo.index.base import Index


def draw_index(
    rules: options.RulesOrSnapshot,
    depth: Annotated[int, typer.Option(min=0, help="Levels to draw.")] = 3,
    width: Annotated[int, typer.Option(min=1, help="Parts of each level to draw: those with the most rows.")] = 8,
    events: Annotated[
        str | None, typer.Option(metavar="FILE", help="Events to match first: the index adjusts itself to them.")
    ] = None,
    format: options.EventsFormat = None,
    index: options.Index = "be-tree",
    evaluator: options.Evaluator = "auto",
    option: options.OptionValues = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    rules_format: options.RulesFormat = None,
    int_ids: options.IntegerIds = False,
    string: options.Strings = None,
    timestamp: options.Timestamps = None,
) -> None:
    """Draw the top of an index, to see how it cuts the space. A snapshot has its own index.

    Of each part it tells the conjunctions that lie there themselves, and those in it and below it. With --events it
    also tells how many conjunctions an event makes it look at, and how many of these are not satisfied.

    The exit code is 1 if rows were rejected.
    """
    from eligo.cli.events import EventOptions
    from eligo.cli.rejects import Rejects
    from eligo.cli.rules import RuleOptions, load

    if rules == events == "-":
        raise InputError("rules and events cannot both come from standard input")
    origin = source(events, format) if events is not None else None
    wanted = RuleOptions(rules_format, int_ids, index, evaluator, absent, tuple(multi or ()), tuple(option or ()))
    with Rejects(None) as refused:
        matcher = load(rules, wanted, refused)
        read = EventOptions(tuple(string or ()), tuple(timestamp or ()))
        count = _matched(matcher, origin, read, refused) if origin else 0
    stats = matcher.stats()
    print(f"{stats.index}: {plural(stats.rules, 'rule')}, {plural(stats.conjunctions, 'conjunction')}")
    if count:
        candidates = f"{stats.candidates / count:,.1f} candidates for each"
        false = f", {stats.false_candidates / count:,.1f} of them false" if stats.false_candidates is not None else ""
        print(f"{plural(count, 'event')}: {candidates}{false}")
    names = matcher.engine.rules.recipe.attributes.names
    for title, one in _indexes(matcher):
        print(f"\n{title}" if title else "")
        print("\n".join(one.draw(names, depth, width)))
    if refused.count:
        raise typer.Exit(FINDINGS)


def _matched(matcher: Matcher, origin: Source, wanted: EventOptions, refused: Rejects) -> int:
    """Match the events of a file, one after another; how many there are."""
    from eligo.cli.events import read_events
    from eligo.cli.rejects import BadRow
    from eligo.errors import EventError

    count = 0
    for part in read_events(origin, frozenset(matcher.attributes), wanted, refused.add):
        for row, line, event in zip(part.rows.tolist(), part.lines.tolist(), part.dicts(), strict=True):
            try:
                matcher.match(event)
                count += 1
            except EventError as error:
                refused.add(BadRow(row, line, str(error)))
    return count


def _indexes(matcher: Matcher) -> list[tuple[str, Index]]:
    """The indexes of a matcher, the one with the most rules first, each with a title where there are several."""
    rules = matcher.engine.rules
    rules.seal()
    segments = sorted(rules.segments, key=len, reverse=True)
    if len(segments) == 1:
        return [("", segments[0].index)]
    return [
        (f"segment {number} of {len(segments)}: {plural(len(segment), 'rule')}", segment.index)
        for number, segment in enumerate(segments, 1)
    ]
