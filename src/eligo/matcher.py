"""The front door: rules in, events in, ids out."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import pyarrow as pa

from eligo.arguments import attribute_names, directory_path, flag, one_of, plain_id, shown, text, whole_number
from eligo.arrow import arrow_of
from eligo.compile.events import EventBuffer
from eligo.errors import OptionError
from eligo.evaluate.registry import EVALUATORS
from eligo.evaluate.registry import choose as choose_evaluator
from eligo.explain import Explanation, explain
from eligo.index.registry import INDEXES
from eligo.index.registry import choose as choose_index
from eligo.interrupts import interrupt_within, interruptible
from eligo.language import Limits, parse
from eligo.loading import Loader
from eligo.options import Configurable, Value, validated
from eligo.rule import Reject, Rule
from eligo.segments.choice import rules_for
from eligo.segments.rule_table import RuleId
from eligo.segments.rules import Rules
from eligo.stats import Stats, collect


class Matcher:
    """Finds, out of many rules, those that an event makes true. Threads may match while others update."""

    @interruptible
    def __init__(
        self,
        index: str = "auto",
        evaluator: str = "interval",
        absent: Literal["fails", "classical"] = "fails",
        multi: Iterable[str] = (),
        limits: Limits | Mapping[str, int] | None = None,
        options: Mapping[str, Value] | None = None,
    ) -> None:
        self.index = text("index", index, "the name of an index")
        self.evaluator = text("evaluator", evaluator, "the name of an evaluator")
        self.absent = one_of("absent", absent, ("fails", "classical"))
        declared = attribute_names("multi", multi)
        self.limits = _limits(limits)
        chosen = choose_index(index), choose_evaluator(evaluator)
        everyone: list[Configurable] = [*INDEXES.all().values(), *EVALUATORS.all().values()] if options else []
        self.options: Mapping[str, Value] = MappingProxyType(validated(options, chosen, everyone))
        self._take(rules_for(*chosen, absent, declared, self.limits, self.options))
        self._local = threading.local()

    def _take(self, rules: Rules) -> None:
        self._rules = rules
        self._loader = Loader(rules, self.limits)

    # -- rules

    @interruptible
    def add(
        self, rule: RuleId, expression: object, weight: float = 1.0, tags: Iterable[str] = (), *, replace: bool = False
    ) -> None:
        """Add a rule, given as text, JSON form or Python expression; `replace` puts it in the place of a known id.

        `tags`: a list of strings, or one string that separates them by `;`.
        """
        self._loader.add(plain_id(rule), expression, weight, tags, flag("replace", replace))

    @interruptible
    def add_many(
        self, rules: Any, on_error: Literal["raise", "collect"] = "raise", *, replace: bool = False
    ) -> list[Reject]:
        """Add many rules: tuples (id, expression[, weight[, tags]]), dicts, or an Arrow table with these columns.

        Tags and weight may be text, as a cell of a CSV file is: `csv.DictReader` gives what the command line reads.
        With on_error="raise" the first bad rule raises and nothing is added; with "collect" the others are added and
        the rejects are returned.
        """
        collect = one_of("on_error", on_error, ("raise", "collect")) == "collect"
        return self._loader.add_many(rules, collect, flag("replace", replace))

    @interruptible
    def remove(self, rule: RuleId) -> None:
        """Remove a rule; an unknown id is refused."""
        self._loader.remove(plain_id(rule))

    @interruptible
    def get(self, rule: RuleId) -> Rule:
        """The rule with that id."""
        found = self._rules.view.rule(plain_id(rule))
        if found is None:
            raise self._loader.unknown(rule)
        return found

    def __len__(self) -> int:
        return self._rules.count

    @interruptible
    def __contains__(self, rule: object) -> bool:
        return self._rules.view.has(plain_id(rule))

    @interruptible
    def __iter__(self) -> Iterator[RuleId]:
        """The ids, in the order in which the rules were added."""
        return self._rules.view.everyone()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that rules look at."""
        return tuple(self._rules.view.attributes())

    @property
    def multi(self) -> frozenset[str]:
        """The attributes that may hold several values: declared, or used with `contains`."""
        return self._rules.multi

    @property
    def rule_type(self) -> pa.DataType:
        """The Arrow type of rule ids."""
        return pa.int64() if self._loader.id_type is int else pa.string()

    # -- matching

    def match(
        self, event: Mapping[str, Any], *, tags: Iterable[str] | None = None, limit: int | None = None
    ) -> list[RuleId]:
        """The ids of the rules that the event makes true, in the order in which they were added.

        `tags`: only rules with one of these tags; `limit`: at most so many.
        """
        if limit is not None:
            limit = whole_number("limit", limit)
            if not limit:
                return []
        try:
            # The view first: an event encoded after it knows every string that the view's rules name.
            return self._rules.view.ids(event, self._buffer(), tags, limit)
        except SystemError as error:
            raise interrupt_within(error) from None

    @interruptible
    def match_batch(self, events: Any, *, tags: Iterable[str] | None = None, limit: int | None = None) -> pa.Table:
        """Match many events: an Arrow, pandas or Polars table, or an iterable of dicts.

        The answer has a row for each match: `event` (the row number, int64) and `rule`, sorted by event and, within an
        event, in the order in which the rules were added; the same as `match` one by one. `limit` is for each event.

        Each event is matched against the rules of one moment. That moment is the same for all events of a batch, unless
        the index changes in place (`be-tree`): then a later event may see rules that came while earlier ones were
        matched.
        """
        most = None if limit is None else whole_number("limit", limit)
        kind = self.rule_type
        numbers, rules = [], []
        for number, ids in self._rules.view.batch(events, tags, most):
            numbers.append(arrow_of(number))
            rules.append(ids.cast(kind))
        schema = pa.schema([("event", pa.int64()), ("rule", kind)])
        return pa.table([pa.chunked_array(numbers, pa.int64()), pa.chunked_array(rules, kind)], schema=schema)

    @interruptible
    def top(
        self, event: Mapping[str, Any], k: int = 10, *, tags: Iterable[str] | None = None
    ) -> list[tuple[RuleId, float]]:
        """The k matching rules with the highest weights, as (id, weight); ties in the order of adding."""
        return self._rules.view.top(event, self._buffer(), tags, whole_number("k", k))

    @interruptible
    def top_batch(self, events: Any, k: int = 10, *, tags: Iterable[str] | None = None) -> pa.Table:
        """The k best matches of each of many events, as `top` gives them: columns `event`, `rule` and `weight`."""
        kind, most = self.rule_type, whole_number("k", k)
        schema = pa.schema([("event", pa.int64()), ("rule", kind), ("weight", pa.float64())])
        batches = [
            pa.RecordBatch.from_arrays([arrow_of(number), ids.cast(kind), arrow_of(weight)], schema=schema)
            for number, ids, weight in self._rules.view.best(events, tags, most)
        ]
        return pa.Table.from_batches(batches, schema)

    def explain(self, event: Mapping[str, Any], rule: RuleId) -> Explanation:
        """Why the event makes that rule true, or why not: print the result."""
        text = self.get(rule).expression
        self.match(event, limit=1)  # an event that cannot be matched is refused in the same words
        return explain(rule, parse(text, self.limits), event, self.absent, self.multi)

    @interruptible
    def observe(self, events: Any) -> None:
        """Learn from past events how often each predicate holds; indexes then look at the rarest first."""
        self._rules.observe(events)

    @interruptible
    def stats(self) -> Stats:
        """Rules, conjunctions, predicates, bytes by array, the index chosen and why.

        Equal predicates are one, except with an index that changes in place: there each is counted wherever it stands.
        """
        return collect(self._rules, self.index, self.evaluator)

    # -- files

    @interruptible
    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot, a directory; one that is there is replaced at once or, if anything fails, not at all."""
        from eligo.store.snapshot import save

        save(self, directory_path("path", path))

    def _buffer(self) -> EventBuffer:
        """This thread's room for one event."""
        buffer: EventBuffer | None = getattr(self._local, "buffer", None)
        if buffer is None:
            buffer = self._local.buffer = EventBuffer()
        return buffer

    def __repr__(self) -> str:
        rules = f"{len(self):,} rule{'s' * (len(self) != 1)}"
        return f"<eligo.Matcher: {rules}, index {self._rules.recipe.index.name}, evaluator {self.evaluator}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Matcher cannot be pickled: save(path) it and eligo.open(path) it on the other side")


def _limits(given: Limits | Mapping[str, int] | None) -> Limits:
    """Limits that are positive whole numbers; those that are not given have their default."""
    known = Limits.__struct_fields__
    wanted = msgspec.structs.asdict(given) if isinstance(given, Limits) else {} if given is None else given
    if not isinstance(wanted, Mapping) or not all(name in known for name in wanted):
        raise OptionError(f"limits is a mapping from {', '.join(known)} to whole numbers, not {shown(given)}")
    return Limits(**{name: whole_number(f"limits: {name}", value, least=1) for name, value in wanted.items()})
