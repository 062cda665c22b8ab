"""`eligo explain`: why does a rule hold for an event, or why not?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from eligo.cli import options
from eligo.cli.files import InputError, source
from eligo.cli.terminal import FINDINGS, plural

if TYPE_CHECKING:
    from eligo import Matcher
    from eligo.cli.events import EventOptions

_SHOWN: Final = 20


def explain_event(
    rules: options.RulesOrSnapshot,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="A JSON object, a file of events, or -.")],
    rule: Annotated[
        str | None, typer.Option(metavar="ID", help="The one rule to explain, whether it holds or not.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All rules that match, however many.")] = False,
    number: Annotated[int, typer.Option("--event", metavar="N", min=0, help="Which event of the file, from 0.")] = 0,
    format: Annotated[
        str | None, typer.Option(help="Of the event's file: ndjson, csv or parquet, where the name does not tell.")
    ] = None,
    rules_format: options.RulesFormat = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    int_ids: options.IntegerIds = False,
    string: options.Strings = None,
    timestamp: options.Timestamps = None,
) -> None:
    """Show what of a rule held and what did not. Without --rule, of every rule that matches.

    The exit code is 0 if the rule (or any rule) matches and 1 if it does not.
    """
    from eligo.cli.events import EventOptions
    from eligo.cli.rejects import Rejects
    from eligo.cli.rules import RuleOptions, load

    if rules == event == "-":
        raise InputError("rules and the event cannot both come from standard input")
    given = _event(event, number, format, EventOptions(tuple(string or ()), tuple(timestamp or ())))
    with Rejects(None) as refused:
        matcher = load(rules, RuleOptions(rules_format, int_ids, absent=absent, multi=tuple(multi or ())), refused)
    if rule is not None:
        explanation = matcher.explain(given, _id(matcher, rule))
        print(explanation)
        if not explanation.matched:
            raise typer.Exit(FINDINGS)
        return
    found = matcher.match(given)
    shown = found if everything else found[:_SHOWN]
    for one in shown:
        print(matcher.explain(given, one), end="\n\n")
    if len(found) > len(shown):
        print(f"… and {plural(len(found) - len(shown), 'more rule')}: --all explains them, --rule ID explains one")
    if not found:
        print(f"none of the {plural(len(matcher), 'rule')} matches; --rule ID explains why one does not")
        raise typer.Exit(FINDINGS)


def _id(matcher: Matcher, text: str) -> str | int:
    """The id as the matcher has it; one that is unknown is left to the matcher to refuse."""
    if str(matcher.rule_type) == "int64":
        try:
            return int(text)
        except ValueError:
            pass
    return text


def _event(given: str, number: int, format: str | None, wanted: EventOptions) -> dict[str, Any]:
    if given.lstrip().startswith("{"):
        return _json(given, "the event", wanted)
    if given == "-" and format in (None, "ndjson") and number == 0:
        return _json(sys.stdin.read(), "standard input", wanted)
    from eligo.cli.events import read_events
    from eligo.cli.rejects import BadRow

    origin = source(given, format)
    if origin.format == "ndjson" and number == 0 and given.endswith(".json"):
        with origin.opened() as file:
            return _json(file.read().decode(errors="replace"), given, wanted)

    def refuse(bad: BadRow) -> None:
        if bad.row == number:
            raise InputError(f"{origin.name}: event {number} cannot be read: {bad.message}")

    last = -1
    for part in read_events(origin, None, wanted, refuse):
        for place, row in enumerate(part.rows.tolist()):
            last = row
            if row == number:
                return part.dicts()[place]
    raise InputError(f"{origin.name}: there is no event {number}; the last one is {last}")


def _json(text: str, name: str, wanted: EventOptions) -> dict[str, Any]:
    """One object, over as many lines as it likes; of several lines with an object each, the first."""
    from eligo.cli.json_lines import decoded, with_times

    raw = text.strip().removeprefix("\ufeff").encode(errors="replace")
    if not raw:
        raise InputError(f"{name}: there is no event")
    form = decoded(raw, 0, 1)
    if not isinstance(form, dict) and b"\n" in raw:
        first = decoded(raw.split(b"\n", 1)[0], 0, 1)
        form = first if isinstance(first, dict) else form
    if not isinstance(form, dict):
        raise InputError(f"{name}: {form.message}")
    try:
        return with_times(form, wanted.timestamps)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
