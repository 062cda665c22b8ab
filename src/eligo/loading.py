"""Rules on their way in: read, checked, normalised, handed to the rule set; and on their way out.

Every change happens whole or not at all. What can fail (reading, ids, limits) comes before anything is changed. With a
journal each change goes there as the last step before it is made (`Loader.kept`): what is refused is never kept, and
what cannot be kept is not made.

An attribute becomes multi-valued by the first rule that says `contains`, and stays so. Rules that named it before are
then compiled again, because predicates on a single value were merged that must not be on several. They are found by
their predicates, and by a mention (rule_table.py) where normalisation left none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import compress, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.arguments import plain_id, shown
from eligo.bulk import Columns, pieces_of
from eligo.compile.compiled import I64, Compiled, kept_slices
from eligo.errors import EligoError, UnknownRuleError
from eligo.interrupts import allow, checkpoint, defer, uninterrupted
from eligo.language import NO_LIMITS, Limits, Node, parse
from eligo.language.quantified import Residual
from eligo.reading import (
    KINDS,
    Refusal,
    check_id,
    duplicate,
    no_documents,
    normal_form,
    owner_of,
    read_rule,
    tags_of,
    weight_of,
)
from eligo.rule import Reject, RuleId
from eligo.rule_changes import CLEAR, PUT, REMOVE, ChangeJournal, PutRule, put_payload, remove_payload
from eligo.segments.pending import BulkPending
from eligo.segments.rule_table import RuleTable, is_id
from eligo.segments.rules import Place, Rules

if TYPE_CHECKING:
    from eligo.compile.rule_text.reader import ReadRules, TextReader

_PIECE = 32  # rules of a load that are read before they are compiled; few, so that what was read is freed soon
_END = object()
_NOT_KEPT = nullcontext()


class Loader:
    """Adds to and removes from a rule set."""

    def __init__(self, rules: Rules, limits: Limits) -> None:
        self.rules = rules
        self.limits = limits
        self.refused: Refusal | None = no_documents
        self.prepare: Callable[[str, Residual], object] | None = None  # has documents ready for what a rule asks
        self.owned = False  # whether some rule has, or had, an owner
        self.id_type: type | None = None
        self.changes = 0  # so far; places of rules are good until the next one
        self.journal: ChangeJournal | None = None  # where changes are kept before they are made

    def add(
        self, rule: RuleId, expression: object, weight: object, tags: object, replace: bool, owner: object = None
    ) -> None:
        root, text, containing = read_rule(expression, self.limits, self.refused)
        number, labels, whose = weight_of(weight), tags_of(tags), owner_of(owner)
        rules = self.rules
        expected = rules.multi | containing
        # A large rule should not hold the lock for long.
        normal, hidden = self.normal_form(root, expected, whose)
        with rules.lock, uninterrupted():
            check_id(rule, self.id_type)
            known = rules.find(rule)
            if known is not None and not replace:
                raise duplicate(rule)
            multi = rules.multi | containing
            if multi != expected:
                normal, hidden = normal_form(root, multi, rules.absent, whose)
            self.check_size(normal)
            self.changes += 1
            try:
                with self._becoming_multi(containing):
                    # The place is looked up again: rules may have been compiled anew.
                    known = rules.find(rule) if known is not None else None
                    with self.kept(PUT, [(rule, text, number, labels, whose)]):
                        rules.put(known, rule, normal, text, number, (*labels, *hidden))
            finally:
                self.id_type = type(rule) if rules.count else None  # even if an interrupt came after it was put there

    def add_many(self, source: Any, collect: bool, replace: bool) -> list[Reject]:
        load = _Load(self, collect, replace)
        self.rules.loading += 1
        try:
            # Rules are fetched and read without the lock: their source may be slow.
            for piece in pieces_of(source, self._text_of):
                if isinstance(piece, Columns):
                    load.take_columns(piece)
                    continue
                rows = iter(enumerate(piece.rows, piece.first))
                while some := list(islice(rows, _PIECE)):
                    load.take([load.read(row, given) for row, given in some])
            load.end()
        finally:
            self.rules.loading -= 1
        return sorted(load.rejects, key=lambda reject: reject.row)

    def _text_of(self, expression: object) -> str:
        return read_rule(expression, self.limits, self.refused)[1]

    def remove(self, rule: RuleId) -> None:
        rules = self.rules
        with rules.lock, uninterrupted():
            place = self.place(rule)
            self.changes += 1
            with self.kept(REMOVE, [rule]):
                rules.remove(place)
            if rules.count == 0:
                self.id_type = None

    def remove_many(self, ids: Sequence[RuleId]) -> None:
        """Removes rules. If one is unknown, raises an `UnknownRuleError` and removes none."""
        rules = self.rules
        with rules.lock, uninterrupted():
            places = list(dict.fromkeys(self.place(rule) for rule in ids))
            self.changes += 1
            with self.kept(REMOVE, ids):
                rules.remove_many(places)
            if rules.count == 0:
                self.id_type = None

    def discard(self, rule: RuleId) -> bool:
        """Removes a rule if it is there. Returns whether it was."""
        with self.rules.lock:
            known = is_id(rule) and self.rules.find(rule) is not None
            if known:
                self.remove(rule)
            return known

    def clear(self) -> None:
        """Removes all rules."""
        rules = self.rules
        with rules.lock, uninterrupted():
            places = [self.place(rule) for rule in rules.view.everyone()]
            self.changes += 1
            with rules.quietly(), self.kept(CLEAR, places):
                rules.remove_many(places)
            self.id_type = None

    def kept(self, kind: int, what: Sequence[Any], multi: frozenset[str] = frozenset()) -> AbstractContextManager[None]:
        """Returns a context for a change that nothing can refuse any more: with a journal, it is kept there before it
        is made.

        `what`: rules (`PutRule`) to put in place, ids to remove, or what a clear removes; nothing needs no record.
        `multi`: attributes that become multi-valued with it. If the journal fails, the block does not begin. If the
        block fails, the journal takes the change back.
        """
        journal = self.journal
        if journal is None or not what:
            return _NOT_KEPT
        if journal.waits:
            _ = self.rules.view  # made before, so that no reader waits for the disk
        payload = put_payload(what, multi) if kind == PUT else remove_payload(what) if kind == REMOVE else b""
        return journal.entry(kind, payload)

    def become_multi(self, names: frozenset[str]) -> None:
        """Makes attributes multi-valued, as a rule does that uses them with `contains`."""
        with self.rules.lock, uninterrupted(), self._becoming_multi(names):
            pass

    def place(self, rule: RuleId) -> Place:
        """Returns where a rule is. Raises an `UnknownRuleError` if there is none with that id."""
        place = self.rules.find(rule) if is_id(rule) else None
        if place is None:
            raise self.unknown(rule)
        return place

    def unknown(self, rule: object) -> UnknownRuleError:
        hint = ""
        if self.id_type is not None and type(rule) is not self.id_type:
            hint = f"; here an id is {KINDS[self.id_type]}"
        return UnknownRuleError(f"there is no rule {shown(rule)}{hint}")

    def normal_form(self, root: Node, multi: frozenset[str], owner: str | None) -> tuple[Node, tuple[str, ...]]:
        """Returns the normal form of a rule and its hidden tags. Prepares documents for what it asks."""
        self.owned = self.owned or owner is not None
        return normal_form(root, multi, self.rules.absent, owner, self.prepare)

    def check_size(self, normal: Node) -> None:
        """Raises a `LimitError` for a rule in normal form that is larger than the evaluator takes."""
        recipe = self.rules.recipe
        recipe.evaluator.check(normal, **recipe.settings)

    @contextmanager
    def _becoming_multi(self, names: frozenset[str]) -> Iterator[None]:
        """Makes attributes multi-valued and then runs the block, which adds the rule that uses them with `contains`.
        Readers see the rule, and what had to be compiled again for it, together. If the block fails, the attributes are
        as before.
        """
        rules = self.rules
        if names <= rules.multi:
            yield
            return
        before = rules.multi
        with rules.quietly():  # first: it may make the view that readers have meanwhile
            try:
                rules.multi = before | names
                self.recompile(dict.fromkeys(names - before, rules.next_sequence))
                yield
            except BaseException:
                rules.multi = before
                raise

    def recompile(self, names: dict[str, int]) -> None:
        """Compiles again all rules that name one of the attributes and are older than the number beside it.

        Nothing is refused here: these rules were accepted. An evaluator has to take even one that has grown too large
        for it.
        """
        rules = self.rules
        if not names:
            return
        newest = max(names.values())
        places = [place for place in rules.rules_naming(names, mentioned=True) if rules.sequence_at(place) < newest]
        old = list(zip(rules.rules_at(places), map(rules.sequence_at, places), strict=True))
        rules.remove_many(places)
        rules.seal()  # what comes from now on is compiled with another set of multi-valued attributes
        again = rules.new_pending()
        for rule, sequence in old:
            checkpoint()
            root = parse(rule.expression, NO_LIMITS)
            normal, hidden = normal_form(root, rules.multi, rules.absent, rule.owner)
            again.add(rule.id, normal, rule.expression, rule.weight, (*rule.tags, *hidden), sequence)
        if again.rows:
            rules.extend([rules.made(*again.finish())])


Read = tuple[RuleId, Node, str, frozenset[str], float, tuple[str, ...], str | None]
Form = tuple[Node, tuple[str, ...]]  # normal form and hidden tags


class _Load:
    """Rules that are added together: compiled piece by piece, and visible when all are there.

    Rules are numbered by their arrival. One that replaces another of the same load takes its number in the end, and the
    numbers behind it move up.
    """

    def __init__(self, loader: Loader, collect: bool, replace: bool) -> None:
        self.loader, self.rules = loader, loader.rules
        self.collect, self.replace = collect, replace
        self.rejects: list[Reject] = []
        self.multi = self.start = loader.rules.multi
        self.became: dict[str, int] = {}  # attribute → how many rules were taken before it became multi-valued
        self.parts: list[BulkPending] = []
        self.seen: dict[RuleId, int] = {}  # id → arrival
        self.rows: dict[RuleId, int] = {}  # of the input, if ids that another thread adds meanwhile are refused
        self.arrived = 0
        self.moved: list[int] = []  # arrivals that took the number of an earlier one
        self.numbers: dict[int, int] = {}  # of these
        self.placed: dict[int, int] = {}  # arrival → sequence number of the rule that it replaces
        self.dead: set[int] = set()  # arrivals
        self.tables: list[RuleTable] = []  # of the rules, for the journal
        self.reader: TextReader | None = None
        self.id_type, self.changes = loader.id_type, loader.changes

    @property
    def count(self) -> int:
        """Number of rules that were taken, not counting those that replaced one of them."""
        return self.arrived - len(self.moved)

    def number(self, arrival: int) -> int:
        """Returns a rule's number in the order of adding, from 0 on."""
        known = self.numbers.get(arrival)
        return arrival - bisect_left(self.moved, arrival) if known is None else known

    def sequences(self, arrivals: I64) -> I64:
        """Returns the sequence numbers of rules, given by their arrivals."""
        final = self.rules.next_sequence + arrivals - np.searchsorted(np.array(self.moved, np.int64), arrivals)
        exceptions = {arrival: self.rules.next_sequence + number for arrival, number in self.numbers.items()}
        exceptions.update(self.placed)
        if exceptions:
            known = np.fromiter(exceptions, np.int64, len(exceptions))
            for place in np.flatnonzero(np.isin(arrivals, known)).tolist():
                final[place] = exceptions[int(arrivals[place])]
        return final

    def take_columns(self, columns: Columns) -> None:
        """Takes a piece of the input that came as columns. Rows that are not usual are taken alone, in their places."""
        first, few = 0, len(columns)
        while first < len(columns):
            multi = self.multi
            stop = self._take_chunk(columns, first, min(first + few, len(columns)))
            # After a change, all that follows has to be read with other attributes as multi-valued. Chunks are smaller
            # then, so that less is read in vain if it happens often.
            few = len(columns) if multi == self.multi else max(64, (stop - first) // 2)
            first = stop

    def _take_chunk(self, columns: Columns, first: int, stop: int) -> int:
        """Takes the rows from `first` on that are read together, before `stop`. Returns where they end."""
        from eligo.compile.rule_text.reader import TextReader

        if self.reader is None or self.reader.multi != sorted(self.multi):
            self.reader = TextReader(self.loader.limits, self.rules.absent, self.multi)
        offsets = columns.text_offsets[first : stop + 1]
        _, size = next(self.reader.chunks(offsets))
        stop, offsets = first + size, offsets[: size + 1]
        found = self.reader.read(columns.text_data, offsets, columns.usual[first:stop])
        recipe = self.rules.recipe
        fast = found.read & ~recipe.evaluator.doubtful(found.compiled, found.leaves, **recipe.settings)
        slow = {i: self.read(columns.first + first + i, columns.row(first + i)) for i in np.flatnonzero(~fast).tolist()}
        ids = columns.ids[first:stop]
        with self.rules.lock, uninterrupted():
            fast &= self._new_ids(ids, fast)
            before = np.concatenate((np.zeros(1, np.int64), np.cumsum(fast)))
            start, part = self.arrived, self._part()
            taken = fast.copy()
            extra = 0
            for i in np.flatnonzero(~fast).tolist():
                self.arrived = start + int(before[i]) + extra
                multi = self.multi
                row = columns.first + first + i
                taken[i] = self._take_or_refuse(slow.get(i) or self.read(row, columns.row(first + i)))
                extra += bool(taken[i])
                if multi != self.multi:
                    stop = first + i + 1
                    break
            size = stop - first
            self.arrived = start + int(before[size]) + extra
            if before[size]:
                arrivals = start + np.cumsum(taken[:size]) - 1
                self._take_block(columns, first, fast[:size], arrivals, ids[:size], found, part)
        return stop

    def _new_ids(self, ids: list[RuleId | None], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns which of the wanted ids are met for the first time; one that comes twice is left out both times."""
        kinds = {type(rule) for rule in ids if rule is not None}
        if self.id_type is not None and kinds != {self.id_type}:
            return np.zeros(len(ids), np.bool_)
        seen = self.seen
        fresh = np.ones(len(ids), np.bool_)
        if not seen.keys().isdisjoint(ids):
            fresh &= np.array([rule not in seen for rule in ids], np.bool_)
        if len(set(ids)) < len(ids):
            times = Counter(ids)
            fresh &= np.array([times[rule] == 1 for rule in ids], np.bool_)
        if self.rules.count and len(places := np.flatnonzero(fresh & wanted)):
            fresh[places] = ~self.rules.known([ids[i] for i in places.tolist()])  # type: ignore[misc]
        return fresh

    def _take_block(
        self,
        columns: Columns,
        first: int,
        fast: NDArray[np.bool_],
        arrivals: I64,
        ids: list[Any],
        found: ReadRules,
        part: BulkPending,
    ) -> None:
        """Takes the rows that were read together."""
        rules, stop = self.rules, first + len(fast)
        every = bool(fast.all())
        compiled = found.numbered(rules.recipe.attributes, rules.recipe.strings)
        keep = np.zeros(compiled.rules, np.bool_)
        keep[: len(fast)] = fast
        tree, tree_offsets = kept_slices(compiled.tree, compiled.tree_offsets, keep)
        block = columns.block(first, stop, None if every else fast, arrivals[fast], found.mentions)
        part.blocks.append((block, replace(compiled, tree=tree, tree_offsets=tree_offsets)))
        chosen = ids if every else [rule for rule, taken in zip(ids, fast.tolist(), strict=True) if taken]
        self.seen.update(zip(chosen, block.sequence.tolist(), strict=True))
        if not self.replace:
            self.rows.update(zip(chosen, (np.flatnonzero(fast) + columns.first + first).tolist(), strict=True))
        self.loader.owned = self.loader.owned or bool(columns.owners)
        self.id_type = type(chosen[0])

    def _part(self) -> BulkPending:
        """Returns where rules go that are compiled with the attributes that are multi-valued now."""
        if not self.parts:
            self.parts.append(BulkPending(self.rules.new_pending(self.multi)))
        return self.parts[-1]

    def read(self, row: int, given: Any) -> tuple[int, Any, Read | EligoError, Form | None, frozenset[str]]:
        """Reads one rule. Returns its row, what was given, the rule or what is wrong with it, its normal form, and the
        multi-valued attributes that this assumes.
        """
        try:
            if isinstance(given, EligoError):
                raise given
            rule, expression, weight, tags, owner = given
            rule = plain_id(rule)
            check_id(rule, None)
            root, text, containing = read_rule(expression, self.loader.limits, self.loader.refused)
            multi, whose = self.multi | containing if containing else self.multi, owner_of(owner)
            form = self.loader.normal_form(root, multi, whose)
            return row, given, (rule, root, text, containing, weight_of(weight), tags_of(tags), whose), form, multi
        except EligoError as error:
            return row, given, error, None, self.multi

    def take(self, some: list[Any]) -> None:
        """Compiles rules that were read, or refuses them."""
        with self.rules.lock, uninterrupted():
            for one in some:
                self._take_or_refuse(one)

    def _take_or_refuse(self, one: Any) -> bool:
        """Compiles a rule that was read, or refuses it. Returns whether it was taken."""
        row, given, found, form, multi = one
        try:
            if isinstance(found, EligoError):
                raise found
            self._take(row, found, form, multi)
        except EligoError as error:
            self._refuse(row, given, error)
            return False
        return True

    def _take(self, row: int, read: Read, form: Form, assumed: frozenset[str]) -> None:
        rule, root, text, containing, weight, tags, owner = read
        check_id(rule, self.id_type)
        earlier = self.seen.get(rule)
        if not self.replace and (earlier is not None or self.rules.find(rule) is not None):
            raise duplicate(rule)
        multi = self.multi | containing if containing else self.multi
        normal, hidden = form if multi == assumed else normal_form(root, multi, self.rules.absent, owner)
        self.loader.check_size(normal)
        if multi != self.multi:
            self.became.update(dict.fromkeys(multi - self.multi, self.count))
            self.multi = multi
            self.parts.append(BulkPending(self.rules.new_pending(multi)))
        arrival, part = self.arrived, self._part()
        part.pending.add(rule, normal, text, weight, (*tags, *hidden), arrival)
        if earlier is not None:
            self.numbers[arrival] = self.number(earlier)
            self.moved.append(arrival)
            self._drop(rule, self.parts[:-1])
        self.arrived += 1
        self.seen[rule] = arrival
        if not self.replace:
            self.rows[rule] = row
        self.id_type = type(rule)

    def _drop(self, rule: RuleId, parts: Sequence[BulkPending]) -> None:
        """Removes a rule from these parts again, or from a block."""
        self.dead.add(self.seen[rule])
        for part in parts:
            part.pending.rows.pop(rule, None)

    def _refuse(self, row: int, given: Any, error: EligoError) -> None:
        if not self.collect:
            raise _named(error, row, given) from None
        self.rejects.append(Reject(row, _id_of(given), str(error), getattr(error, "position", -1)))

    def end(self) -> None:
        """Puts all rules in place, in one step."""
        rules, loader = self.rules, self.loader
        with rules.lock, uninterrupted():
            doomed = self._placed()
            if not self.seen:
                return
            before, base = rules.multi, rules.next_sequence
            try:
                with rules.quietly():
                    built = list(_interruptibly(rules.made(*some) for some in self._finished()))
                    # From here on no rule is refused.
                    loader.changes += 1
                    rules.remove_many(doomed)
                    rules.extend(built)
                    rules.next_sequence = base + self.count
                    rules.multi = before | self.multi
                    # What became multi-valued while these rules were read, here or elsewhere.
                    names = dict.fromkeys(before - self.start, base + self.count)
                    loader.recompile(names | {name: base + number for name, number in self.became.items()})
                    with loader.kept(PUT, self._rules_taken(), self.multi - self.start):
                        pass  # all is prepared, and is seen when `quietly` ends
            except BaseException:
                rules.multi = before
                raise
            loader.id_type = self.id_type if rules.count else None

    def _finished(self) -> Iterator[tuple[RuleTable, Compiled]]:
        """Yields the parts that have rules, compiled."""
        for part in self.parts:
            if part.pending.rows or part.blocks:
                table, compiled = part.finish(self.dead, self.sequences)
                if self.loader.journal is not None:
                    self.tables.append(table)
                if len(table):
                    yield table, compiled

    def _rules_taken(self) -> list[PutRule]:
        """Returns the rules as a journal has them, in the order of adding; none if there is no journal."""
        numbered = [one for table in self.tables for one in zip(table.sequence.tolist(), table.rules(), strict=True)]
        return [msgspec.structs.astuple(rule) for _, rule in sorted(numbered, key=itemgetter(0))]

    def _placed(self) -> list[Place]:
        """Gives each rule its number in the order of adding. Returns the places of the rules that they replace."""
        rules, doomed = self.rules, list[Place]()
        # Without `replace` no id was there when its rule was taken.
        looked = rules.count and (self.replace or self.changes != self.loader.changes)
        ids = list(self.seen) if looked else []
        some = rules.known(ids).tolist() if ids else []
        for rule in compress(ids, some):
            known, arrival = rules.find(rule), self.seen[rule]
            assert known is not None
            if self.replace:
                self.placed[arrival] = rules.sequence_at(known)
                doomed.append(known)
            else:  # another thread was faster
                self._refuse(self.rows[rule], (rule,), duplicate(rule))
                self._drop(rule, self.parts)
                del self.seen[rule]
        if self.id_type is not self.loader.id_type is not None and self.seen:
            check_id(next(iter(self.seen)), self.loader.id_type)
        return doomed


def _interruptibly(items: Iterable[Any]) -> Iterator[Any]:
    """Yields the same items. Ctrl-C may come while each is made, which may take long and changes nothing here."""
    left = iter(items)
    try:
        while True:
            allow()
            given = next(left, _END)
            defer()
            if given is _END:
                return
            yield given
    finally:
        defer()


def _id_of(given: Any) -> object:
    rule = plain_id(given[0]) if isinstance(given, tuple) and given else None
    return rule if isinstance(rule, str | bool | float | None) or is_id(rule) else shown(rule)


def _named(error: EligoError, row: int, given: Any) -> EligoError:
    """Returns the same error, with the rule that it is about on top of its message."""
    error.args = (f"rule {shown(_id_of(given))} (row {row}): {error}", *error.args[1:])
    return error
