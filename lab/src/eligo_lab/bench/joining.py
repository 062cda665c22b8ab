"""Rules that relate an event to the documents seen before, beside the same rules without that, and beside trying all.

    draw ─▶ load rules, then documents ─▶ verify ─▶ match: everyone in turn, several times ─▶ publish ─▶ trying all
                                            └ a difference: DisagreementError, and no figures

    joins                   the rules as they are
    without pre-filtering   the same; rules that no document can satisfy are asked, too. Where some were made so
    constants first,        the same; the order of both phases is fixed. Where all rules ask one question
    questions first
    without joins           what the rules say of the event alone, in a matcher that keeps no documents
    trying all              every rule on every document, compiled and over integers: a pair's time on a sample of both,
                            times the pairs that there are
    trying, stopping early  the same, but what a rule says of the event is asked first, and the document that decides
                            is the last: measured on some events with all rules and documents

Answers are verified twice: a small draw of the same kind against the reference, all rules on all events; and those of
some events, for all rules that the event alone leaves, against trying all.

`publish` is measured on events of its own, with the documents full, so that one goes for each that comes; each is
published as often as it is matched, and its best time counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns as now
from typing import Any

import numpy as np

import eligo
from eligo.compile.compiled import I64
from eligo.documents.phases import Order
from eligo.errors import OptionError
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.bench.alerts import Alerts, as_dict, draw, truths_of, try_all
from eligo_lab.bench.harness import Task
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.verify import DisagreementError

WORKLOAD = "alerts"
PARAMETERS: dict[str, Any] = {"documents": 10_000, "form": "one", "impossible": 0.0}  # and what they are if nobody says
FORMS = ("one", "two", "newer")
JOINS, UNFILTERED, PLAIN, ALL, STOPPING = (
    "joins", "without pre-filtering", "without joins", "trying all", "trying, stopping early",
)  # fmt: skip
ORDERS: dict[str, Order] = {"constants first": "constants", "questions first": "joins"}
_SMALL = (60, 40, 30)  # rules, documents and events that are put to the reference
_VERIFIED = 10  # events that are verified against trying all
_TRIED_RULES, _TRIED_DOCUMENTS = 50, 200_000  # of which the time of a pair is taken
_TRIED_EVENTS = 3  # with all rules and documents, stopping early


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """The one point of a task."""
    parameters = _checked(task.parameters)
    documents, impossible = parameters["documents"], parameters["impossible"]
    progress.stage("verifying against the reference")
    pairs = _verify_small(task.seed, parameters)
    progress.stage(f"drawing {task.rules:,} rules and {documents:,} documents")
    alerts = draw(task.rules, documents, 2 * task.events, task.seed, parameters["form"], impossible)
    progress.stage(f"reading {task.rules:,} rules, with and without joins")
    plain = eligo.Matcher()
    plain.add_many(enumerate(alerts.plain_texts()))
    joined = eligo.Matcher(documents=eligo.Documents(keep=documents))
    joined.add_many(enumerate(alerts.texts()))
    progress.stage(f"loading {documents:,} documents")
    table = alerts.table()
    started = time.perf_counter()
    _documents(joined).add_many(table)
    loaded = time.perf_counter() - started
    progress.stage("verifying against trying all")
    found = _verify(alerts, joined, plain, task.events)
    events = [alerts.event(i) for i in range(task.events)]
    ways: dict[str, Callable[[dict[str, Any]], object]] = {JOINS: joined.match, PLAIN: plain.match}
    if impossible:
        ways[UNFILTERED] = lambda event: _unfiltered(joined, event)
    if parameters["form"] == "newer":
        ways |= {name: partial(_ordered, joined, order) for name, order in ORDERS.items()}
    progress.stage("matching", task.repeat)
    before = _answered(joined)
    times = _timed(ways, events, task.repeat, progress.step)
    after = _answered(joined)
    stats = _documents(joined).stats()
    progress.stage("publishing")
    published = _published(joined, [alerts.event(i) for i in range(task.events, 2 * task.events)], task.repeat)
    progress.stage("trying all")
    pair, early = _tried(alerts)
    contenders: dict[str, dict[str, Any]] = {
        name: {"kind": "matcher", "match_ns": figures, "notes": {}} for name, figures in times.items()
    }
    contenders |= {
        ALL: {"kind": "loop", "match_ns": {"quiet": pair * task.rules * documents}, "notes": {}, "pair_ns": pair},
        STOPPING: {"kind": "loop", "match_ns": {"quiet": early}, "notes": {}},
    }
    contenders[JOINS] |= {
        "publish_ns": published,
        "load_s": loaded,
        "index_bytes": stats["index_bytes"],
        "record_bytes": stats["record_bytes"],
        "attributes": len(stats["attributes"]),
        "answered": {how: (after[how] - before.get(how, 0)) / (task.repeat * task.events) for how in after},
    }
    return [
        {
            "workload": WORKLOAD,
            "parameters": {**parameters, "rules": task.rules, "events": task.events, "seed": task.seed},
            "measured": {},
            "rules": task.rules,
            "events": task.events,
            "documents": documents,
            "repeat": task.repeat,
            "matches": found,
            "tried": {"rules": _TRIED_RULES, "documents": _TRIED_DOCUMENTS, "events": _TRIED_EVENTS},
            "verified": {"events": _VERIFIED, "reference_pairs": pairs},
            "left_out": dict(task.left_out),
            "contenders": contenders,
        }
    ]


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the right types; a name or a value that makes no sense is refused."""
    for name in given:
        if name not in PARAMETERS:
            raise OptionError(f"{WORKLOAD} has no parameter {name!r} (there are: {', '.join(PARAMETERS)})")
    found = PARAMETERS | given
    try:
        found = {name: type(default)(found[name]) for name, default in PARAMETERS.items()}
    except ValueError as error:
        raise OptionError(f"{WORKLOAD}: {error}") from None
    if found["form"] not in FORMS or found["documents"] < 1 or not 0 <= found["impossible"] <= 1:
        raise OptionError(
            f"{WORKLOAD}: form is one of {', '.join(FORMS)}, documents 1 or more, impossible a share between 0 and 1"
        )
    if found["impossible"] and found["form"] != "two":
        raise OptionError(f"{WORKLOAD}: only rules of form=two can be made impossible")
    return found


def _documents(matcher: eligo.Matcher) -> eligo.Documents:
    assert matcher.documents is not None
    return matcher.documents


def _answered(matcher: eligo.Matcher) -> dict[str, int]:
    """How questions were answered so far, by way."""
    notes = matcher.stats().notes
    return {name.removeprefix("questions "): int(str(n)) for name, n in notes.items() if name.startswith("questions ")}


def _unfiltered(matcher: eligo.Matcher, event: dict[str, Any]) -> list[eligo.RuleId]:
    """Match without pre-filtering."""
    joins = matcher.engine.joins
    assert joins is not None
    joins.prefiltering = False
    try:
        return matcher.match(event)
    finally:
        joins.prefiltering = True


def _ordered(matcher: eligo.Matcher, order: Order, event: dict[str, Any]) -> list[eligo.RuleId]:
    """Match with one of both phases first."""
    joins = matcher.engine.joins
    assert joins is not None
    joins.phases.fixed = order
    try:
        return matcher.match(event)
    finally:
        joins.phases.fixed = None


def _verify_small(seed: int, parameters: dict[str, Any]) -> int:
    """Put all rules and events of a small draw to the reference; returns how many pairs of both."""
    rules, documents, events = _SMALL
    alerts = draw(rules, documents, events, seed, parameters["form"], parameters["impossible"])
    matcher = eligo.Matcher(documents=eligo.Documents())
    texts = alerts.questions()
    matcher.add_many(enumerate(texts))
    _documents(matcher).add_many(alerts.table())
    seen = [as_dict(codes) for codes in alerts.documents.tolist()]
    roots = [parse(text) for text in texts]
    for number in range(events):
        event = alerts.event(number)
        found = [i for i, root in enumerate(roots) if matches(root, event, documents=seen)]
        for said in (matcher.match(event), _unfiltered(matcher, event)):
            if said != found:
                wrong = min(set(map(int, said)) ^ set(found))
                raise DisagreementError(f"the matcher and the reference differ on {event!r} and {texts[wrong]!r}")
    return rules * events


def _verify(alerts: Alerts, joined: eligo.Matcher, plain: eligo.Matcher, events: int) -> float:
    """Compare some events' answers with trying all; returns how many rules an event matches on average."""
    total = 0
    for number in range(min(_VERIFIED, events)):
        event = alerts.event(number)
        left = np.array(plain.match(event), np.int64)
        expected = left[truths_of(alerts, alerts.rules[left], number)].tolist()
        for found in (joined.match(event), _unfiltered(joined, event)):
            if found != expected:
                wrong = sorted(set(map(int, found)) ^ set(expected))[:5]
                raise DisagreementError(
                    f"{event!r}: {len(found):,} rules match, and trying all finds {len(expected):,}; the first that "
                    f"are wrong or missing: {wrong}"
                )
        total += len(expected)
    return total / min(_VERIFIED, events)


def _timed(
    ways: dict[str, Callable[[dict[str, Any]], object]],
    events: list[dict[str, Any]],
    repeat: int,
    step: Callable[[], None],
) -> dict[str, dict[str, Any]]:
    """Nanoseconds of a match, everyone in turn, another one first in each repetition."""
    spent: dict[str, I64] = {name: np.zeros((repeat, len(events)), np.int64) for name in ways}
    for match in ways.values():
        match(events[0])
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeat):
            names = list(ways)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                match, mine = ways[name], spent[name][turn]
                for i, event in enumerate(events):
                    started = now()
                    match(event)
                    mine[i] = now() - started
            step()
    finally:
        gc.enable()
    return {name: _spread(mine) for name, mine in spent.items()}


def _published(matcher: eligo.Matcher, events: list[dict[str, Any]], repeat: int) -> dict[str, Any]:
    """Nanoseconds of publishing an event."""
    spent = np.zeros((repeat, len(events)), np.int64)
    matcher.publish(events[0])
    gc.collect()
    gc.disable()
    try:
        for mine in spent:
            for i, event in enumerate(events):
                started = now()
                matcher.publish(event)
                mine[i] = now() - started
    finally:
        gc.enable()
    return _spread(spent)


def _spread(spent: I64) -> dict[str, Any]:
    """What times, by repetition and event, come to."""
    means = spent.mean(axis=1)
    return {
        "mean": float(means.min()),
        "worst": float(means.max()),
        "quiet": float(spent.min(axis=0).mean()),
        "p50": float(np.percentile(spent, 50)),
        "p99": float(np.percentile(spent, 99)),
        "repetitions": means.tolist(),
    }


def _tried(alerts: Alerts) -> tuple[float, float]:
    """Nanoseconds of trying a rule on a document, and of trying all rules on an event, stopping early."""
    some = alerts.rules[:_TRIED_RULES]
    documents = alerts.documents[:_TRIED_DOCUMENTS]
    truths = np.zeros(len(alerts.rules), np.bool_)
    try_all(some, documents[:10], alerts.events[0], False, truths)
    best = 0
    for _ in range(3):
        started = now()
        try_all(some, documents, alerts.events[0], False, truths)
        spent = now() - started
        best = min(best or spent, spent)
    started = now()
    tried = min(_TRIED_EVENTS, len(alerts.events))
    for event in range(tried):
        try_all(alerts.rules, alerts.documents, alerts.events[event], True, truths)
    return best / (len(some) * len(documents)), (now() - started) / tried
