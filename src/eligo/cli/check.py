"""`eligo check`: what is wrong or odd about rules, before anybody relies on them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from eligo.cli import options
from eligo.cli.files import InputError, Source, source
from eligo.cli.terminal import FINDINGS, plural, show_table

if TYPE_CHECKING:
    from eligo import Matcher
    from eligo.cli.events import EventOptions
    from eligo.cli.findings import EventSurvey, Finding

_SHOWN: Final = 20  # of each kind of finding


def check_rules(
    rules: options.Rules,
    events: Annotated[str | None, typer.Option(metavar="SAMPLE", help="Events to hold the rules against.")] = None,
    as_json: options.AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help="Every finding, however many.")] = False,
    format: options.EventsFormat = None,
    rules_format: options.RulesFormat = None,
    absent: options.Absent = "fails",
    multi: options.Multi = None,
    int_ids: options.IntegerIds = False,
    string: options.Strings = None,
    timestamp: options.Timestamps = None,
) -> None:
    """Report rules that are broken or suspicious. They cannot be read, always or never hold, or compare an attribute
    with values of two kinds.

    With --events also: attributes and kinds that no event has, rules that match none or all of the events. The exit
    code is 0 if there is nothing to report, 1 if there is, and 2 if a file cannot be read.
    """
    from eligo.cli.events import EventOptions
    from eligo.cli.findings import EventSurvey, Finding, RuleSurvey
    from eligo.cli.rejects import DUPLICATE, BadRow
    from eligo.cli.rules import RuleOptions, RuleRow, read_into

    if rules == events == "-":
        raise InputError("rules and events cannot both come from standard input")
    origin = source(rules, rules_format, "--rules-format")
    sample = source(events, format) if events is not None else None
    refused: list[BadRow] = []
    rows: list[RuleRow] = []
    wanted = RuleOptions(rules_format, int_ids, absent=absent, multi=tuple(multi or ()))
    matcher = read_into(origin, wanted, refused.append, rows.append)
    if not len(matcher) and not refused:
        raise InputError(f"{origin.name}: there are no rules")
    out = {bad.row for bad in refused}
    survey = RuleSurvey(matcher, {one.id: (one.row, one.line) for one in rows if one.row not in out})
    findings = []
    for bad in sorted(refused, key=lambda bad: bad.row):
        what = "duplicate" if bad.message == DUPLICATE else "error"
        findings.append(Finding(what, bad.message, bad.id, row=bad.row, line=bad.line, position=bad.position))
    findings += survey.findings()
    seen: EventSurvey | None = None
    if sample is not None:
        seen = EventSurvey(survey)
        findings += _held_against(matcher, sample, EventOptions(tuple(string or ()), tuple(timestamp or ())), seen)
    if as_json:
        import msgspec

        report: dict[str, Any] = {"rules": len(matcher), "events": seen.events if seen else None, "findings": findings}
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        _show(findings, everything)
        checked = plural(len(matcher), "good rule") + (f", {plural(seen.events, 'event')}" if seen else "")
        print(f"{checked}, {plural(len(findings), 'finding')}")
    if findings:
        raise typer.Exit(FINDINGS)


def _held_against(matcher: Matcher, sample: Source, wanted: EventOptions, seen: EventSurvey) -> list[Finding]:
    from eligo.cli.events import read_events
    from eligo.cli.findings import Finding
    from eligo.cli.results import matches_of

    findings: list[Finding] = []

    def refuse(bad: Any) -> None:
        findings.append(Finding("bad event", bad.message, row=bad.row, line=bad.line))

    def refuse_seen(bad: Any) -> None:
        refuse(bad)
        seen.events -= 1  # it was counted when its attributes were looked at

    for part in read_events(sample, None, wanted, refuse):
        seen.add_events(part.dicts())
        for found in matches_of(matcher, part, refuse_seen):
            seen.add_matches(found)
    findings += seen.findings(matcher)
    return findings


def _show(findings: Iterable[Finding], everything: bool) -> None:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.finding, []).append(finding)
    for name, group in groups.items():
        shown = group if everything else group[:_SHOWN]
        show_table(f"{name} ({len(group):,})", ("line", "rule or attribute", ""), [_cells(one) for one in shown])
        if len(group) > len(shown):
            print(f"… and {len(group) - len(shown):,} more: --all or --json shows them")
        print()


def _cells(finding: Finding) -> tuple[str, str, str]:
    place = str(finding.line) if finding.line > 0 else f"row {finding.row}" if finding.row >= 0 else ""
    subject = finding.attribute or ("" if finding.rule is None else str(finding.rule))
    message = finding.message
    if not sys.stdout.isatty():
        # The picture of the place, a line of the rule with a caret under it, needs lines of its own.
        message = " ".join(line for line in message.splitlines() if not line.startswith("  "))
    return place, subject, message
