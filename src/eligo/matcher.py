"""The public class `Matcher`: rules and events in, ids out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from os import PathLike
from threading import get_ident
from typing import Any, Literal, TypeVar, overload

import pyarrow as pa

from eligo.arguments import directory_path, flag, one_of, plain_id, shown, tag_names, text, whole_number
from eligo.arrow import arrow_of
from eligo.compile.arrow_events import TableEvents
from eligo.compile.compiled import F64, I64
from eligo.compile.encode import Encode
from eligo.compile.events import EventBuffer
from eligo.compile.json_texts import JsonEvents, decoded_event, text_bytes
from eligo.documents import Documents
from eligo.documents.columns import rows_of
from eligo.documents.delivery import Delivered, Delivery, DeliveryFailure
from eligo.documents.event_state import EventScreen
from eligo.documents.joins import Joins
from eligo.engine import Absent, Engine
from eligo.errors import EventError, OptionError, UnknownRuleError
from eligo.explain import Explanation, explain
from eligo.interrupts import interrupt_within, interruptible
from eligo.language import NO_LIMITS, Limits, Quantified, parse
from eligo.options import Value
from eligo.rule import Reject, Rule, RuleId
from eligo.segments.batch_rejects import matched_or_rejected
from eligo.segments.encoding import SLICE, Encoded, encoded, moving, slices, table_events
from eligo.segments.pace import Pace
from eligo.segments.rule_table import OWNER
from eligo.segments.view import View
from eligo.stats import Stats, collect
from eligo.threads import ALONE, Team, in_order, thread_count


@cache
def _encode_json() -> Encode:
    """Returns the function that reads JSON. Imported late: few programs need its kernels."""
    from eligo.compile.json_events import encode_json

    return encode_json


T = TypeVar("T")
_PLANNING = 60.0  # seconds that saving waits for what another thread builds
_EVERY: Any = object()  # in place of a rule: all that match
_SHARING = 8  # threads at most that share a slice: each one counts matches for each of the others


class Matcher:
    """Finds, out of many rules, those that an event makes true. Threads may match while others update.

    index      how candidates are found. `auto` is good for most; `pst-hash` and `be-tree` insert and delete in place,
               for rules that change all the time. `eligo indexes` lists all.
    evaluator  how the conjunctions that hold complete a rule. `auto` is `shared`, which evaluates what rules have in
               common once, or `interval` where the index changes in place.
    absent     what a predicate says of an attribute that an event lacks. With "fails" it does not hold, and neither
               does its negation, as in SQL; with "classical" `not a = 1` holds where a = 1 does not.
    multi      attributes whose values may be lists. One that some rule uses with `contains` need not be named.
    limits     how large a rule may be: an `eligo.Limits`, or a mapping such as {"depth": 50}.
    options    options of the index and the evaluator, such as {"max_cap": 64}; `eligo indexes` lists them.
    documents  an `eligo.Documents`: the events seen before, which rules with `exists d (…)` and `forall d (…)` ask
               about. `publish` matches an event and then keeps it there.

        m = Matcher()
        m.add("adults", "age >= 18 and country in ('US', 'CA')")
        m.match({"age": 20, "country": "US"})    # ['adults']
    """

    @interruptible
    def __init__(
        self,
        index: str = "auto",
        evaluator: str = "auto",
        absent: Absent = "fails",
        multi: Iterable[str] = (),
        limits: Limits | Mapping[str, int] | None = None,
        options: Mapping[str, Value] | None = None,
        documents: Documents | None = None,
    ) -> None:
        self._use(Engine(index, evaluator, absent, multi, limits, options), documents)

    @classmethod
    def of(cls, engine: Engine, documents: Documents | None = None) -> Matcher:
        """Make a matcher over an engine that is there already."""
        made = cls.__new__(cls)
        made._use(engine, documents)
        return made

    def _use(self, engine: Engine, documents: Documents | None) -> None:
        self.engine = engine  # not for users: what the store, Spark and the exchange know of a matcher
        self._local = threading.local()
        self._joins: Joins | None = None
        self._delivery = Delivery()
        self._opened_documents: Documents | None = None  # with the rules, and to be closed with them
        if documents is not None:
            if not isinstance(documents, Documents):
                raise OptionError(f"documents is an eligo.Documents, not {shown(documents)}")
            self._joins = Joins(documents, engine.rules)
            engine.allow_joins(self._joins)
        if engine.rules.count:
            engine.loader.owned = bool(engine.rules.view.hidden_tags(OWNER))
        for tag in engine.rules.view.joins() if engine.rules.count else ():
            if self._joins is None:
                raise OptionError(
                    "these rules ask about documents seen before: open them with some, "
                    "eligo.open(path, documents=eligo.Documents())"
                )
            self._joins.prepare(tag)

    @property
    def documents(self) -> Documents | None:
        """The documents that rules ask about."""
        return None if self._joins is None else self._joins.documents

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Not for users: enter what a match reads: rules and, where they ask about some, documents that stand still."""
        joins = self._joins
        if joins is None:
            yield self.engine.rules.view
        else:
            with joins.documents.reading():
                yield self.engine.rules.view.asking(EventScreen(joins))

    @property
    def index(self) -> str:
        """The name of the index, as it was given."""
        return self.engine.index

    @property
    def evaluator(self) -> str:
        """The name of the evaluator; where `auto` was asked for, of the one that it stands for here."""
        return self.engine.evaluator

    @property
    def absent(self) -> Absent:
        """What an absent attribute means: "fails" or "classical"."""
        return self.engine.absent

    @property
    def limits(self) -> Limits:
        """How large a rule may be."""
        return self.engine.limits

    @property
    def options(self) -> Mapping[str, Value]:
        """The options of index and evaluator, all of them."""
        return self.engine.options

    # -- rules

    @interruptible
    def add(
        self,
        rule: RuleId,
        expression: object,
        weight: float = 1.0,
        tags: Iterable[str] = (),
        *,
        owner: str | None = None,
        replace: bool = False,
    ) -> None:
        """Add a rule, given as text, JSON form or Python expression; `replace` puts it in the place of a known id.

        `tags`: a list of strings, or one string that separates them by `;`. `owner`: whose rule it is; `publish`
        delivers to owners, and `exists d in received (…)` ranges over what the owner of a rule has received.
        """
        self.engine.loader.add(plain_id(rule), expression, weight, tags, flag("replace", replace), owner)

    @interruptible
    def add_many(
        self, rules: Any, on_error: Literal["raise", "collect"] = "raise", *, replace: bool = False
    ) -> list[Reject]:
        """Add many rules: tuples (id, expression[, weight[, tags[, owner]]]), dicts, or an Arrow table with these
        columns.

        Tags and weight may be text, as a cell of a CSV file is: `csv.DictReader` gives what the command line reads.
        With on_error="raise" the first bad rule raises and nothing is added; with "collect" the others are added and
        the rejects are returned.
        """
        collect = one_of("on_error", on_error, ("raise", "collect")) == "collect"
        return self.engine.loader.add_many(rules, collect, flag("replace", replace))

    @interruptible
    def remove(self, rule: RuleId) -> None:
        """Remove a rule; an unknown id raises an `UnknownRuleError`."""
        self.engine.loader.remove(plain_id(rule))

    @interruptible
    def remove_many(self, rules: Iterable[RuleId]) -> None:
        """Remove rules by their ids, all of them or, if one is unknown, none."""
        if isinstance(rules, pa.Array | pa.ChunkedArray):
            rules = rules.to_pylist()
        if isinstance(rules, str | bytes) or not isinstance(rules, Iterable):
            raise OptionError(f"rules is a list of ids, not {shown(rules)}")
        self.engine.loader.remove_many([plain_id(rule) for rule in rules])

    @interruptible
    def discard(self, rule: RuleId) -> bool:
        """Remove a rule if it is there, and return whether it was."""
        return self.engine.loader.discard(plain_id(rule))

    @interruptible
    def clear(self) -> None:
        """Remove all rules. What the matcher was made with stays."""
        self.engine.loader.clear()

    def __getitem__(self, rule: RuleId) -> Rule:
        """Return the rule with that id, as `get` does."""
        return self.get(rule)

    def rules(self) -> Iterator[Rule]:
        """Return all rules, in the order in which they were added. One that is removed meanwhile may be left out."""
        for rule in self:
            with suppress(UnknownRuleError):
                yield self.get(rule)

    @interruptible
    def get(self, rule: RuleId) -> Rule:
        """Return the rule with that id; an unknown id raises an `UnknownRuleError`."""
        found = self.engine.rules.view.rule(plain_id(rule))
        if found is None:
            raise self.engine.loader.unknown(rule)
        return found

    def __len__(self) -> int:
        return self.engine.rules.count

    @interruptible
    def __contains__(self, rule: object) -> bool:
        return self.engine.rules.view.has(plain_id(rule))

    @interruptible
    def __iter__(self) -> Iterator[RuleId]:
        """Return the ids, in the order in which the rules were added."""
        return self.engine.rules.view.everyone()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that rules look at."""
        view = self.engine.rules.view
        names = view.attributes()
        if self._joins is None:
            return tuple(names)
        joined = {name for tag in view.joins() for name in self._joins.formula(tag).attributes}
        return (*names, *sorted(joined.difference(names)))

    @property
    def multi(self) -> frozenset[str]:
        """The attributes that may hold several values: declared, or used with `contains`."""
        return self.engine.rules.multi

    @property
    def rule_type(self) -> pa.DataType:
        """The Arrow type of rule ids."""
        return pa.int64() if self.engine.loader.id_type is int else pa.string()

    def _type_of(self, ids: Sequence[pa.Array]) -> pa.DataType:
        """Returns the Arrow type of the ids that were found; `rule_type` may be another by now."""
        return self.rule_type if not ids else pa.int64() if pa.types.is_integer(ids[0].type) else pa.string()

    # -- matching

    def match(
        self, event: Mapping[str, Any], *, tags: Iterable[str] | None = None, limit: int | None = None
    ) -> list[RuleId]:
        """Return the ids of the rules that the event makes true, in the order in which they were added.

        `tags`: only rules with one of these tags; `limit`: at most so many.
        """
        if limit is not None:
            limit = whole_number("limit", limit)
            if not limit:
                return []
        try:
            # The view first: an event encoded after it knows every string that the view's rules name.
            joins = self._joins
            if joins is None:
                return self.engine.rules.view.ids(event, self._buffer(), tags, limit)
            gate, me = joins.documents.gate, get_ident()
            outside = gate.is_outside(me)
            try:
                if outside:
                    gate.enter(me)
                view, screen, buffer = self.engine.rules.view, EventScreen(joins), self._buffer()
                if tags is None and limit is None and isinstance(event, dict):
                    joins.phases.measure(view, event, buffer)
                    if joins.phases.none_can_match(view, event, screen):
                        view.check(event, buffer)
                        return []
                return view.asking(screen).ids(event, buffer, tags, limit)
            finally:
                if outside:
                    gate.inside.discard(me)
                    gate.left()
        except SystemError as error:
            raise interrupt_within(error) from None

    def match_json(
        self, event: bytes | str, *, tags: Iterable[str] | None = None, limit: int | None = None
    ) -> list[RuleId]:
        """Match an event that is a JSON text, an object: the answer of `match` for what `msgspec` decodes it to.

        The text is checked, but only what rules name is read, and no dict is made of it.
        """
        raw = event if type(event) is bytes else text_bytes(event)
        if self._joins is not None or limit == 0:
            return self.match(decoded_event(raw), tags=tags, limit=limit)
        if limit is not None:
            limit = whole_number("limit", limit)
        try:
            return self.engine.rules.view.ids(raw, self._buffer(), tags, limit, _encode_json())
        except SystemError as error:
            raise interrupt_within(error) from None

    @overload
    def match_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["raise"] = "raise",
        threads: int | None = None,
        pairs: str | None = None,
    ) -> pa.Table: ...

    @overload
    def match_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["collect"],
        threads: int | None = None,
        pairs: str | None = None,
    ) -> tuple[pa.Table, list[Reject]]: ...

    @interruptible
    def match_batch(
        self,
        events: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["raise", "collect"] = "raise",
        threads: int | None = None,
        pairs: str | None = None,
    ) -> pa.Table | tuple[pa.Table, list[Reject]]:
        """Match many events: an Arrow, pandas or Polars table, or an iterable of dicts.

        The answer has a row for each match: `event` (the row number, int64) and `rule`, sorted by event and, within an
        event, in the order in which the rules were added; the same as `match` one by one. `limit` is for each event.

        With on_error="raise" the first event that cannot be used raises; with "collect" such events match nothing, and
        the answer is a pair: the table, and a `Reject` for each of them.

        `threads`: how many work at it, one for each processor if not given; the answer is the same. Events are read
        from an iterable, and encoded, by the calling thread alone; rules that ask about documents, and "collect", have
        one thread.

        `pairs`: the name of a column that holds attributes of each event with their values, as a map or as a list of
        structs with two fields, for events that have few of many attributes. They are attributes as columns are.

        Each event is matched against the rules of one moment. That moment is the same for all events of a batch, unless
        the index changes in place (`be-tree`, `pst-hash`, `pst-bloom`), or rules ask about documents: then a later
        event may see what came while earlier ones were matched.
        """
        wanted, most, collect = _checked(tags, limit, on_error)
        many = self._threads(events, threads)
        # With "collect" an error has to name the rows of a whole slice, not of the part that one thread encodes.
        sliced, many, team = self._divided(events, 1 if collect else many, _column(pairs))
        with team:
            return self._matched(sliced, wanted, most, collect, many, team)

    @interruptible
    def match_stream(
        self, events: Any, *, tags: Iterable[str] | None = None, limit: int | None = None, pairs: str | None = None
    ) -> pa.RecordBatchReader:
        """Match many events and return the answer of `match_batch` in batches that come as they are read, each with
        about a million matches: for answers that are larger than memory. Events are read from an iterable as they are
        needed, and matched against the rules of that moment. `pairs` is that of `match_batch`.
        """
        most = None if limit is None else whole_number("limit", limit)
        wanted, column = None if tags is None else tag_names("tags", tags), _column(pairs)
        kind = self.rule_type
        fields = pa.schema([("event", pa.int64()), ("rule", kind)])
        pace = Pace()

        def answer(view: View, events: Any) -> list[tuple[I64, pa.Array]]:
            return list(view.batch(events, wanted, most))

        def batches() -> Iterator[pa.RecordBatch]:
            for first, part in slices(events, pairs=column):
                with moving(first):
                    for numbers, ids in pace.through(part, look):
                        if pa.types.is_integer(ids.type) != pa.types.is_integer(kind):
                            raise OptionError(
                                f"match_stream began when rules had ids of type {kind}, and now they are {ids.type}: "
                                "begin it again"
                            )
                        yield pa.record_batch([arrow_of(numbers + first), ids.cast(kind)], schema=fields)

        def look(some: Any) -> Iterator[tuple[I64, pa.Array]]:
            ((_, found),) = self._answers([(0, some)], answer, 1)
            yield from found

        return pa.RecordBatchReader.from_batches(fields, batches())

    @overload
    def match_ndjson(
        self,
        source: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["raise"] = "raise",
        threads: int | None = None,
    ) -> pa.Table: ...

    @overload
    def match_ndjson(
        self,
        source: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["collect"],
        threads: int | None = None,
    ) -> tuple[pa.Table, list[Reject]]: ...

    @interruptible
    def match_ndjson(
        self,
        source: Any,
        *,
        tags: Iterable[str] | None = None,
        limit: int | None = None,
        on_error: Literal["raise", "collect"] = "raise",
        threads: int | None = None,
    ) -> pa.Table | tuple[pa.Table, list[Reject]]:
        """Match many events that are JSON texts, without a Python object for any of them: the answer of `match_batch`.

        `source`: NDJSON, a text in each line, as bytes, a path or a file that is open in binary mode; or an Arrow
        column of strings or binary values, each a text. Lines with nothing but blanks are not counted.
        """
        from eligo.compile.ndjson import json_blocks

        many = thread_count(threads)
        return self._matched(_numbered(json_blocks(source), many), *_checked(tags, limit, on_error), many)

    def _matched(
        self,
        sliced: Iterable[tuple[int, Any]],
        tags: tuple[str, ...] | None,
        limit: int | None,
        collect: bool,
        threads: int,
        team: Team = ALONE,
    ) -> pa.Table | tuple[pa.Table, list[Reject]]:
        """Returns the matches of many events, in slices that come with the number of their first event. Each slice has
        a thread, or all of the team.
        """

        def answer(view: View, events: Any) -> tuple[list[tuple[I64, pa.Array]], list[Reject]]:
            mine: list[Reject] = []

            def search(some: Any) -> Iterator[tuple[I64, pa.Array]]:
                return view.batch(some, tags, limit, team=team)

            return list(matched_or_rejected(search, events, mine) if collect else search(events)), mine

        rejects: list[Reject] = []
        numbers, rules = [], []
        # With "collect" the thread that matches takes events out that cannot be encoded, and tries again.
        for first, (found, mine) in self._answers(sliced, answer, 1 if collect else threads):
            for number, ids in found:
                if first:
                    number += first  # in place: no other has it
                numbers.append(arrow_of(number))
                rules.append(ids)
            rejects += (Reject(one.row + first, one.id, one.message, one.position) for one in mine)
        kind = self._type_of(rules)
        table = pa.table(
            [pa.chunked_array(numbers, pa.int64()), pa.chunked_array([ids.cast(kind) for ids in rules], kind)],
            schema=pa.schema([("event", pa.int64()), ("rule", kind)]),
        )
        rejects.sort(key=attrgetter("row"))
        return (table, rejects) if collect else table

    @interruptible
    def top(
        self, event: Mapping[str, Any], k: int = 10, *, tags: Iterable[str] | None = None
    ) -> list[tuple[RuleId, float]]:
        """Return the k matching rules with the highest weights, as (id, weight); ties in the order of adding."""
        with self.reading() as view:
            return view.top(event, self._buffer(), tags, whole_number("k", k))

    @interruptible
    def top_batch(
        self,
        events: Any,
        k: int = 10,
        *,
        tags: Iterable[str] | None = None,
        threads: int | None = None,
        pairs: str | None = None,
    ) -> pa.Table:
        """Return the k best matches of each of many events, as `top` gives them: columns `event`, `rule` and `weight`.

        `threads` and `pairs` are those of `match_batch`.
        """
        wanted, most = None if tags is None else tag_names("tags", tags), whole_number("k", k)

        def answer(view: View, events: Any) -> list[tuple[I64, pa.Array, F64]]:
            return list(view.best(events, wanted, most, team))

        found: list[tuple[I64, pa.Array, F64]] = []
        sliced, many, team = self._divided(events, self._threads(events, threads), _column(pairs))
        with team:
            for first, best in self._answers(sliced, answer, many):
                found += ((number + first, ids, weight) for number, ids, weight in best)
        kind = self._type_of([ids for _, ids, _ in found])
        schema = pa.schema([("event", pa.int64()), ("rule", kind), ("weight", pa.float64())])
        batches = [
            pa.RecordBatch.from_arrays([arrow_of(number), ids.cast(kind), arrow_of(weight)], schema=schema)
            for number, ids, weight in found
        ]
        return pa.Table.from_batches(batches, schema)

    @overload
    def explain(self, event: Mapping[str, Any], rule: RuleId) -> Explanation: ...

    @overload
    def explain(self, event: Mapping[str, Any]) -> list[Explanation]: ...

    @interruptible
    def explain(self, event: Mapping[str, Any], rule: Any = _EVERY) -> Explanation | list[Explanation]:
        """Explain why the event makes that rule true, or why not: print the result. Without `rule`, all that match."""
        with self.reading() as view:
            if rule is _EVERY:
                found = (view.rule(one) for one in view.ids(event, self._buffer(), None, None))
                whys = [self._explained(event, one) for one in found if one is not None]
                return [why for why in whys if why.matched]  # a rule may have been replaced meanwhile
            known = self.get(rule)
            view.ids(event, self._buffer(), None, 1)  # an event that cannot be matched is refused in the same words
            return self._explained(event, known)

    def _explained(self, event: Mapping[str, Any], rule: Rule) -> Explanation:
        root = parse(rule.expression, NO_LIMITS)
        return explain(rule.id, root, event, self.absent, self.multi, self.asked(event, rule.owner or ""))

    def asked(self, event: Mapping[str, Any], owner: str = "") -> Callable[[Quantified], tuple[bool, str]] | None:
        """Not for users: return a function from a quantifier to its truth for an event, and why, to be called within
        `reading`. It is None without documents.
        """
        return None if self._joins is None else partial(self._joins.explained, event, owner=owner)

    def _threads(self, events: Any, threads: int | None) -> int:
        """Returns how many threads to match events with. Rules that change in place may change between the events of an
        iterator, by the code that yields them: such events are matched one after another as they come.
        """
        many = thread_count(threads)
        return 1 if self.engine.rules.kind == "living" and isinstance(events, Iterator) else many

    def _divided(self, events: Any, threads: int, pairs: str | None) -> tuple[Iterator[tuple[int, Any]], int, Team]:
        """Returns slices of events, how many are matched at the same time, and the threads that share each of them.

        Large slices are matched with less work for an event, so where there are not enough of them threads share.
        """
        found = table_events(events, pairs)
        few = isinstance(found, TableEvents) and len(found) < threads * SLICE
        if threads > 1 and few and self._joins is None and self.engine.rules.view.shares:
            teams = -(-threads // _SHARING)
            return slices(found, teams), teams, Team(-(-threads // teams), teams)
        return slices(found, threads), threads, ALONE

    def _answers(
        self, sliced: Iterable[tuple[int, Any]], answer: Callable[[View, Any], T], threads: int
    ) -> Iterator[tuple[int, T]]:
        """Yields the number of the first event of each slice, and the answer to the slice. Where rules ask about
        documents, these stand still for a slice, but not while the next events are fetched.
        """
        joins, rules = self._joins, self.engine.rules
        view = rules.view

        def answered(some: tuple[int, Any]) -> tuple[int, T]:
            first, part = some
            with moving(first), nullcontext(view) if joins is None else self.reading() as current:
                return first, answer(current, part)

        if joins is not None:
            threads = 1
        if threads > 1 and not view.changes:
            sliced = _encoded_here(sliced, view)
        yield from in_order(answered, sliced, threads)

    # -- publishing

    @interruptible
    def publish(self, event: Mapping[str, Any], *, tags: Iterable[str] | None = None) -> list[RuleId]:
        """Match an event against the documents so far, and then keep it as a document, in one step.

        Returns the ids as `match` does. Owners of matching rules have received the document then; those with a
        receiver (`subscribe`) get it before `publish` returns.
        """
        documents = self._kept()
        with documents.lock:
            document = documents.checked(event)
            with self.reading() as view:
                ids = view.ids(event, self._buffer(), tags, None)
                rules = [rule for rule in map(view.rule, ids) if rule is not None] if self.engine.loader.owned else []
            deliveries = self._delivery.sorted_out(rules)
            number = documents.put(document, [owner for owner, _ in deliveries])
        self._delivery.deliver(event, number, deliveries)
        return ids

    @interruptible
    def publish_batch(self, events: Any, *, tags: Iterable[str] | None = None) -> pa.Table:
        """Publish many events, one after another, each matched against those before it: the answer of `match_batch`.

        Events that other threads publish meanwhile may lie between these.
        """
        wanted = None if tags is None else tag_names("tags", tags)
        numbers: list[int] = []
        found: list[RuleId] = []
        for number, event in enumerate(rows_of(events)):
            try:
                ids = self.publish(event, tags=wanted)
            except EventError as error:
                raise EventError(f"event {number}: {error}; the {number:,} before it were published") from None
            numbers += [number] * len(ids)
            found += ids
        kind = self.rule_type if not found else pa.int64() if isinstance(found[0], int) else pa.string()
        return pa.table({"event": pa.array(numbers, pa.int64()), "rule": pa.array(found, kind)})

    def subscribe(self, owner: str, deliver: Callable[[Delivered], object]) -> None:
        """Call `deliver` once for each published event that matches rules of an owner, with the event and these rules.

        What it raises reaches neither the publisher nor other receivers; it is logged, and kept in `delivery_failures`.
        """
        self._delivery.subscribe(text("owner", owner, "the owner of rules"), deliver)

    def unsubscribe(self, owner: str) -> None:
        """Deliver to an owner no longer; what matches the owner's rules still counts as received."""
        self._delivery.receivers.pop(owner, None)

    @property
    def delivery_failures(self) -> list[DeliveryFailure]:
        """What receivers raised lately, the newest last."""
        return list(self._delivery.failures)

    def _kept(self) -> Documents:
        if self._joins is None:
            raise OptionError(
                "publish keeps events as documents: make the matcher with Matcher(documents=eligo.Documents())"
            )
        return self._joins.documents

    @interruptible
    def observe(self, events: Any, *, pairs: str | None = None) -> None:
        """Learn from past events how often each predicate holds; indexes then look at the rarest first.

        `pairs` is that of `match_batch`.
        """
        self.engine.rules.observe(table_events(events, _column(pairs)))

    @interruptible
    def stats(self) -> Stats:
        """Return figures: rules, conjunctions, predicates, bytes by array, the index chosen and why.

        Equal predicates are one, except with an index that changes in place: there each is counted wherever it stands.
        """
        figures = collect(self.engine.rules, self.index, self.evaluator)
        return figures if self._joins is None else replace(figures, notes={**figures.notes, **self._joins.notes()})

    # -- files

    @interruptible
    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot, a directory; one that is there is replaced at once or, if anything fails, not at all.

        If the matcher was opened there with writable=True, its journal begins anew.
        """
        from eligo.store.snapshot import save

        self.engine.rules.wait(_PLANNING)  # so that the snapshot has what was begun for these rules
        save(self.engine, directory_path("path", path), None if self._joins is None else self._joins.documents.write)

    def close(self) -> None:
        """End writing: the rules can be matched as before, and another matcher may open them with writable=True.

        Changes are refused from now on. Does nothing for a matcher that was not opened so.
        """
        if self.engine.journal is not None:
            self.engine.journal.close()
        if self._opened_documents is not None:
            self._opened_documents.close()

    def __enter__(self) -> Matcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _buffer(self) -> EventBuffer:
        """Returns this thread's room for one event."""
        buffer: EventBuffer | None = getattr(self._local, "buffer", None)
        if buffer is None:
            buffer = self._local.buffer = EventBuffer()
        return buffer

    def __repr__(self) -> str:
        rules = f"{len(self):,} rule{'s' * (len(self) != 1)}"
        return f"<eligo.Matcher: {rules}, index {self.engine.rules.recipe.index.name}, evaluator {self.evaluator}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Matcher cannot be pickled: save(path) it and eligo.open(path) it on the other side")


def _checked(tags: Any, limit: Any, on_error: Any) -> tuple[tuple[str, ...] | None, int | None, bool]:
    """Returns the tags and the limit of a batch, and whether events that cannot be used are collected. They are checked
    before the events are read, which may be possible once.
    """
    wanted = None if tags is None else tag_names("tags", tags)
    most = None if limit is None else whole_number("limit", limit)
    return wanted, most, one_of("on_error", on_error, ("raise", "collect")) == "collect"


def _column(pairs: str | None) -> str | None:
    return None if pairs is None else text("pairs", pairs, "the name of the column with attributes and values")


def _encoded_here(sliced: Iterable[tuple[int, Any]], view: View) -> Iterator[tuple[int, Any]]:
    """Yields the slices. Those that Python encodes are encoded by the calling thread, because only one thread can run
    Python at a time: several would wait for each other at every step. Tables and JSON are read by kernels, in any
    thread.
    """
    for first, part in sliced:
        if isinstance(part, JsonEvents | TableEvents):
            yield first, part
            continue
        with moving(first):
            yield first, Encoded(part, encoded(part, view.encoder, 0))


def _numbered(blocks: Iterable[JsonEvents], threads: int) -> Iterator[tuple[int, Any]]:
    """Yields slices of events that come in blocks, with the number of the first event of each."""
    before = 0
    for block in blocks:
        yield from ((before + first, part) for first, part in slices(block, threads))
        before += len(block)


def open_rules(
    path: str | PathLike[str],
    *,
    verify: bool = True,
    version: int | None = None,
    writable: bool = False,
    sync: Literal["always", "second", "never"] | float = "always",
    documents: Documents | None = None,
) -> Matcher:
    """Open the matcher that was saved or compiled there, memory-mapped. `verify` compares all checksums of its arrays.

    `version`: of a rule set with versions, one that is not the newest.

    `writable`: every change of rules is kept in a journal beside the snapshot before the call that makes it returns,
    and is there again when the snapshot is next opened, writable or not. One matcher at a time can have it so, until
    it is closed. `save` to the same path begins the journal anew.

    `sync`: what a power failure may take. With "always" nothing; with "second", or a number of seconds, the changes of
    so long; with "never", what the operating system has not written yet. The end of the process takes nothing.

    `documents`: those that rules ask about, instead of those that were saved with the rules.
    """
    from eligo.store.opening import open_engine
    from eligo.store.snapshot import documents_path

    engine = open_engine(path, verify=verify, version=version, writable=writable, sync=sync)
    try:
        saved = documents_path(path) if documents is None else None
        if saved is not None:
            documents = Documents.open(saved, sync) if writable else Documents.read(saved)
            made = Matcher.of(engine, documents)
            made._opened_documents = documents
            return made
        return Matcher.of(engine, documents)
    except BaseException:
        if engine.journal is not None:
            engine.journal.close()
        raise
