"""What is odd about rules, alone and beside a sample of events. Nothing here is an error of the language.

    RuleSurvey    rules that always or never hold; for each attribute, the kinds of values that rules compare it with
    EventSurvey   for each of these attributes, how many events have it and of what kinds; how often each rule matches

Rules are taken from a matcher, so whatever cannot be read has been reported before.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.compute as pc

from eligo.cli.terminal import plural
from eligo.errors import EventError
from eligo.language import NO_LIMITS, Constant, parse
from eligo.language.normalize import normalize
from eligo.language.reference import ABSENT, lookup
from eligo.language.tree import predicates_of
from eligo.language.values import KIND_NAMES, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from eligo import Matcher


class Finding(msgspec.Struct, frozen=True):
    """One thing to look at. `row` counts from 0, `line` from 1, `position` is a character of the rule; -1: none."""

    finding: str
    message: str
    rule: object = None
    attribute: str = ""
    row: int = -1
    line: int = -1
    position: int = -1


class _Uses:
    """Rules that do something: how many, and the first of them as an example."""

    def __init__(self) -> None:
        self.count = 0
        self.example: object = None

    def add(self, rule: object) -> None:
        if self.count == 0:
            self.example = rule
        self.count += 1

    def __str__(self) -> str:
        return f"{plural(self.count, 'rule')}, such as {self.example}" if self.count > 1 else f"rule {self.example}"


class RuleSurvey:
    """All rules of a matcher, read once."""

    def __init__(self, matcher: Matcher, places: Mapping[Any, tuple[int, int]]) -> None:
        self.named: dict[str, _Uses] = {}
        self.kinds: dict[str, dict[str, _Uses]] = {}
        self.constant: dict[object, bool] = {}
        self._places = places
        for rule in matcher:
            root = parse(matcher.get(rule).expression, NO_LIMITS)
            normal = normalize(root, multi=matcher.multi, absent=matcher.absent)
            if isinstance(normal, Constant):
                self.constant[rule] = normal.holds
            pairs = {(p.attribute, KIND_NAMES[kind_of(value)]) for p in predicates_of(root) for value in p.values}
            for name in {p.attribute for p in predicates_of(root)}:
                self.named.setdefault(name, _Uses()).add(rule)
            for name, kind in pairs:
                self.kinds.setdefault(name, {}).setdefault(kind, _Uses()).add(rule)

    def findings(self) -> Iterator[Finding]:
        for rule, holds in self.constant.items():
            what, message = ("always", "holds for every event") if holds else ("never", "can hold for no event")
            yield self.about(rule, what, message)
        for name, kinds in sorted(self.kinds.items()):
            if len(kinds) > 1:
                listed = " and ".join(f"{kind}s ({uses})" for kind, uses in sorted(kinds.items()))
                yield Finding("kinds", f"compared with {listed}: values of two kinds never equal", attribute=name)

    def about(self, rule: object, what: str, message: str) -> Finding:
        row, line = self._places.get(rule, (-1, -1))
        return Finding(what, message, rule, row=row, line=line)


class EventSurvey:
    """Events of a sample, seen slice by slice."""

    def __init__(self, rules: RuleSurvey) -> None:
        self.events = 0
        self._rules = rules
        self._seen: dict[str, Counter[str]] = {name: Counter() for name in rules.named}
        self._names: set[str] = set()
        self._matches: Counter[Any] = Counter()

    def add_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        for event in events:
            self.events += 1
            self._names.update(_names(event))
            for name, kinds in self._seen.items():
                try:
                    value = lookup(event, name)
                except EventError:
                    continue  # matching rejects the event and says so
                if value is not ABSENT:
                    kinds.update(_kinds(value))

    def add_matches(self, found: pa.Table) -> None:
        for entry in pc.value_counts(found["rule"]).to_pylist():
            self._matches[entry["values"]] += entry["counts"]

    def findings(self, matcher: Matcher) -> Iterator[Finding]:
        if not self.events:
            return
        for name, uses in sorted(self._rules.named.items()):
            seen = self._seen[name]
            if not seen:
                yield Finding("unknown attribute", f"no event has it ({uses}){self._near(name)}", attribute=name)
                continue
            for kind, asking in sorted(self._rules.kinds.get(name, {}).items()):
                if kind not in seen:
                    held = " and ".join(f"{one}s" for one in sorted(seen))
                    hint = f"; --timestamp {name} reads text as times" if kind == "time" and "string" in seen else ""
                    message = f"compared with {kind}s ({asking}), but events hold {held}{hint}"
                    yield Finding("other kind", message, attribute=name)
        for rule in matcher:
            if rule in self._rules.constant:
                continue
            count = self._matches[rule]
            if count == 0:
                yield self._rules.about(rule, "matches none", f"none of {plural(self.events, 'event')}")
            elif count == self.events:
                yield self._rules.about(rule, "matches all", f"all of {plural(self.events, 'event')}")

    def _near(self, name: str) -> str:
        folded = {one.casefold(): one for one in self._names}
        near = difflib.get_close_matches(name.casefold(), folded, 1)
        return f"; did you mean {folded[near[0]]!r}?" if near else ""


def _names(event: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The names of an event, nested ones with dots."""
    for key, value in event.items():
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _kinds(value: Any) -> set[str]:
    return set(map(_kind, value if isinstance(value, list | tuple) else [value])) or {"empty list"}


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "object"
    return KIND_NAMES[kind_of(value)] if isinstance(value, bool | int | float | str | date) else type(value).__name__
