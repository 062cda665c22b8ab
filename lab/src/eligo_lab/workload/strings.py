"""`authors` and `titles`: real strings as q-gram rules (the BE-Tree paper §7.1, "Real Dataset"; Table 3, last columns).

    rules    a distinct string each: the conjunction of its 3-grams (grams.py), equality alone
    events   strings of the same source: those of rules, which match their own rule and those of strings within them, or
             with `held_out` strings that are no rule

The paper has DBLP; here it is names and one-line descriptions that the machine has (real_text.py), and beyond their
number new combinations of their words (recombine.py).

With `match` rules are derived from real strings alone as in `begen`, with other operators than equality: event_size
grams of strings of the source, joined if one is too short, are a base expression, and a rule is some of them, wider.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from eligo.errors import OptionError
from eligo.jit import kernel
from eligo_lab.workload import recombine
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.deriving import WIDER, Shape, sizes
from eligo_lab.workload.draft import EQUAL, Draft, conjunctive
from eligo_lab.workload.events import EventDraft, match_probability
from eligo_lab.workload.grams import ATTRIBUTES, VALUES, grams
from eligo_lab.workload.real_text import Kind, read
from eligo_lab.workload.tuning import derived, planned

Source: TypeAlias = Annotated[str, "auto, debian, python, or the path of a text file with one string a line"]
HeldOut: TypeAlias = Annotated[float, "share of the events that are strings of no rule"]
Match: TypeAlias = Annotated[
    float | None, "match probability of rules derived as in begen; none: the strings as they are"
]
Operators: TypeAlias = Annotated[str, "with match: min (=), low (and in), med (and ranges), high (and != not in)"]
Equality: TypeAlias = Annotated[float, "with match: share of equality predicates"]
RuleSize: TypeAlias = Annotated[float, "with match: predicates of a rule, on average"]
EventSize: TypeAlias = Annotated[float, "with match: attributes of an event, on average"]

_RANGE_SIZE = 0.12  # of the domain, and
_SET_SIZE = 6  # values at most: the BE-Tree paper §7.1

# Operands of `match` rules: letters, and one string before and one behind all, for < and > that let all through.
_AROUND = ("!", *VALUES, "~")


class _Asked(NamedTuple):
    rules: int
    events: int
    source: str
    held_out: float
    match: float | None
    operators: str
    equality: float
    rule_size: float
    event_size: float
    seed: int


@workload("names of people as q-gram rules of about 8 predicates (the BE-Tree paper, DBLP authors)")
def authors(
    rules: Rules = 100_000,
    events: Events = 1_000,
    source: Source = "auto",
    held_out: HeldOut = 0.0,
    match: Match = None,
    operators: Operators = "med",
    equality: Equality = 0.3,
    rule_size: RuleSize = 8.0,
    event_size: EventSize = 16.0,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    return _made("authors", "people", _Asked(**locals()))


@workload("titles as q-gram rules of about 35 predicates (the BE-Tree paper, DBLP titles)")
def titles(
    rules: Rules = 100_000,
    events: Events = 1_000,
    source: Source = "auto",
    held_out: HeldOut = 0.0,
    match: Match = None,
    operators: Operators = "med",
    equality: Equality = 0.3,
    rule_size: RuleSize = 30.0,
    event_size: EventSize = 43.0,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    return _made("titles", "titles", _Asked(**locals()))


def _made(name: str, kind: Kind, asked: _Asked) -> Workload:
    _check(name, asked)
    rng = np.random.default_rng(asked.seed)
    text = read(kind, asked.source)
    combine = recombine.names if kind == "people" else recombine.titles
    outside = round(asked.held_out * asked.events)
    try:
        if asked.match is None:
            strings = recombine.strings(rng, text.lines, asked.rules + outside, combine)
            draft, shown = _as_they_are(rng, grams(strings.lines), asked, outside)
        else:
            strings = recombine.all_real(text.lines)
            draft, shown = _derived(rng, grams(strings.lines), asked, asked.match)
    except OptionError as error:
        reason = str(error).removeprefix("begen: ").replace(" values (cardinality)", "")
        raise OptionError(f"{name}: {reason}") from None
    return Workload(
        name,
        {**asked._asdict(), "text": text.source, "text_hash": text.digest},
        draft,
        shown.table(),
        {
            "match": match_probability(draft, shown),
            "rule_size": draft.predicates / len(draft),
            "dimensions": float(np.count_nonzero(np.bincount(draft.attribute, minlength=len(ATTRIBUTES)))),
            "event_size": len(shown.attribute) / len(shown),
            "verbatim": float(strings.verbatim),
            "recombined": float(len(strings.lines) - strings.verbatim),
        },
    )


def _as_they_are(rng: np.random.Generator, pairs: EventDraft, asked: _Asked, outside: int) -> tuple[Draft, EventDraft]:
    """Rules of the first strings, events of these and of the others."""
    own = pairs.take(np.arange(asked.rules))
    predicates = len(own.attribute)
    draft = conjunctive(
        ATTRIBUTES,
        own.attribute,
        np.full(predicates, EQUAL, np.uint8),
        np.arange(predicates + 1),
        own.value,
        own.offsets,
        pairs.textual,
        VALUES,
    )
    inside = rng.permutation(np.resize(rng.permutation(asked.rules), asked.events - outside))
    rows = np.concatenate((inside, asked.rules + np.arange(outside)))
    return draft, pairs.take(rng.permutation(rows))


@dataclass(frozen=True)
class _Quotations(Shape):
    """Base expressions that are grams of real strings."""

    pairs: EventDraft

    def bases(self, rng: np.random.Generator, n: int) -> EventDraft:
        """Grams of strings, one joined to another until there are enough, cut to the size."""
        slack = min(self.event_size / 4, (self.event_size - self.rule_size) / 2)
        attribute, value, offsets = quoted(
            rng,
            sizes(rng, n, self.event_size, slack),
            self.pairs.offsets,
            self.pairs.attribute,
            self.pairs.value,
            len(ATTRIBUTES),
        )
        return EventDraft(ATTRIBUTES, offsets, attribute, value)


def _derived(rng: np.random.Generator, pairs: EventDraft, asked: _Asked, match: float) -> tuple[Draft, EventDraft]:
    """Rules that match with a probability, from bases that are the events."""
    attributes = len(np.unique(pairs.attribute))
    if attributes < 2 * asked.event_size:
        raise OptionError(
            f"event_size={asked.event_size:g} with a source of {attributes} different attributes; give "
            f"{attributes // 2} or less, or a larger source"
        )
    shape = _Quotations(
        ATTRIBUTES,
        np.ones(len(ATTRIBUTES)),
        len(VALUES),
        asked.rule_size,
        asked.event_size,
        asked.equality,
        asked.operators,
        _RANGE_SIZE,
        _SET_SIZE,
        pairs,
    )
    plan = planned(shape, rng, asked.rules, asked.events, match)
    draft = derived(shape, rng, plan, asked.rules)
    shown = plan.bases.take(rng.permutation(np.arange(asked.events) % len(plan.bases)))
    textual = np.ones(len(ATTRIBUTES), np.bool_)
    return (
        replace(draft, operand=draft.operand + 1, textual=textual, strings=_AROUND),
        replace(shown, value=shown.value + 1, textual=textual, strings=_AROUND),
    )


def _check(name: str, asked: _Asked) -> None:
    if not 0 <= asked.held_out <= 1:
        raise OptionError(f"{name}: held_out={asked.held_out:g} is no share: give 0 … 1")
    if asked.match is None:
        return
    if not 0 < asked.match <= 0.5:
        raise OptionError(f"{name}: match={asked.match:g} is not in 0 … 0.5 (0 excluded)")
    if asked.operators not in WIDER:
        raise OptionError(f"{name}: operators={asked.operators!r} is none of {', '.join(WIDER)}")
    if not 0 <= asked.equality <= 1 or (asked.operators == "min" and asked.equality < 1):
        raise OptionError(f"{name}: equality={asked.equality:g}: give 0 … 1, and 1 with operators=min")
    if not 1 <= asked.rule_size <= asked.event_size:
        raise OptionError(
            f"{name}: rule_size={asked.rule_size:g} and event_size={asked.event_size:g}: a rule has from one to all of "
            "an event's attributes"
        )


@kernel
def quoted(rng, wanted, pair_offsets, pair_attribute, pair_value, attributes):
    """For every base that many pairs with different attributes, of random strings one after another."""
    offsets = np.zeros(len(wanted) + 1, np.int64)
    offsets[1:] = np.cumsum(wanted)
    attribute, value = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int64)
    seen = np.full(attributes, -1, np.int64)
    strings = len(pair_offsets) - 1
    for b in range(len(wanted)):
        at = offsets[b]
        while at < offsets[b + 1]:
            string = int(rng.random() * strings)
            for i in range(pair_offsets[string], pair_offsets[string + 1]):
                a = pair_attribute[i]
                if seen[a] != b and at < offsets[b + 1]:
                    seen[a] = b
                    attribute[at], value[at] = a, pair_value[i]
                    at += 1
    return attribute, value, offsets
