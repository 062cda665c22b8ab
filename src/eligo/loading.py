"""Rules on their way in: read, checked, normalised, handed to the rule set; and on their way out.

Every change happens whole or not at all. What can fail (reading, ids, limits) comes before anything is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eligo.arguments import plain_id, shown
from eligo.bulk import rows_of
from eligo.collector import without_collector
from eligo.errors import EligoError, LimitError, UnknownRuleError
from eligo.interrupts import allow, checkpoint, defer, uninterrupted
from eligo.language import Limits, Node, parse
from eligo.language.normalize import normalize
from eligo.language.reference import multi_valued
from eligo.reading import KINDS, NOTHING, check_id, duplicate, read_rule, tags_of, weight_of
from eligo.rule import Reject, RuleId
from eligo.segments.pending import Pending
from eligo.segments.rule_table import is_id
from eligo.segments.rules import Place, Rules

_END = object()


class Loader:
    """Adds to and removes from a rule set."""

    def __init__(self, rules: Rules, limits: Limits) -> None:
        self._rules = rules
        self._limits = limits
        self.id_type: type | None = None
        self.most_recompiled: int | None = (
            None  # rules there may be when what is multi-valued changes; None: any number
        )

    def add(self, rule: RuleId, expression: object, weight: object, tags: object, replace: bool) -> None:
        root, text, containing = read_rule(expression, self._limits)
        number, labels = weight_of(weight), tags_of(tags)
        rules = self._rules
        expected = rules.multi | containing
        early = normalize(root, multi=expected, absent=rules.absent)  # a large rule should not hold the lock for long
        with rules.lock, uninterrupted():
            check_id(rule, self.id_type)
            known = rules.find(rule)
            if known is not None and not replace:
                raise duplicate(rule)
            gone = self._containing_at(known)
            multi = self._multi_after(containing, gone)
            normal = early if multi == expected else normalize(root, multi=multi, absent=rules.absent)
            self._check_size(normal)
            try:
                with self._containing_changes(containing, gone):
                    # The place is looked up again: rules may have been compiled anew.
                    known = rules.find(rule) if known is not None else None
                    rules.put(known, rule, normal, text, number, labels)
            finally:
                self.id_type = type(rule) if rules.count else None  # even if an interrupt came when it was there

    def remove(self, rule: RuleId) -> None:
        rules = self._rules
        with rules.lock, uninterrupted():
            place = self.place(rule)
            gone = self._containing_at(place)
            with self._containing_changes(NOTHING, gone):
                # It is looked up again where rules may have been compiled anew.
                rules.remove(self.place(rule) if gone else place)
            if rules.count == 0:
                self.id_type = None

    def remove_many(self, ids: Sequence[RuleId]) -> None:
        """Remove rules; if one is unknown, none is."""
        rules = self._rules
        with rules.lock, uninterrupted():
            places = list(dict.fromkeys(self.place(rule) for rule in ids))
            ids = list(dict.fromkeys(ids))
            gone: Counter[str] = Counter()
            for text in rules.texts_at(places) if rules.containing else ():
                gone.update(self._containing(text))
            with self._containing_changes(NOTHING, gone):
                rules.remove_many([self.place(rule) for rule in ids] if gone else places)
            if rules.count == 0:
                self.id_type = None

    def discard(self, rule: RuleId) -> bool:
        """Remove a rule if it is there; whether it was."""
        with self._rules.lock:
            known = is_id(rule) and self._rules.find(rule) is not None
            if known:
                self.remove(rule)
            return known

    def clear(self) -> None:
        """Remove all rules."""
        rules = self._rules
        with rules.lock, uninterrupted():
            places = [self.place(rule) for rule in rules.view.everyone()]
            containing, rules.containing = rules.containing, Counter()
            try:
                with rules.quietly():
                    rules.remove_many(places)
            except BaseException:
                rules.containing = containing
                raise
            self.id_type = None

    def place(self, rule: RuleId) -> Place:
        """Where a rule is; an unknown id is refused."""
        place = self._rules.find(rule) if is_id(rule) else None
        if place is None:
            raise self.unknown(rule)
        return place

    def unknown(self, rule: object) -> UnknownRuleError:
        hint = ""
        if self.id_type is not None and type(rule) is not self.id_type:
            hint = f"; here an id is {KINDS[self.id_type]}"
        return UnknownRuleError(f"there is no rule {shown(rule)}{hint}")

    def add_many(self, source: Any, collect: bool, replace: bool) -> list[Reject]:
        rules = self._rules
        rejects: list[Reject] = []
        with rules.lock, uninterrupted(), rules.quietly(), without_collector():
            containing_before, multi_before = Counter(rules.containing), rules.multi
            parts = [rules.new_pending()]
            became_multi: dict[str, int] = {}
            seen: dict[RuleId, tuple[Pending, frozenset[str]]] = {}
            doomed: list[Place] = []
            id_type, sequence = self.id_type, rules.next_sequence
            try:
                for row, given in enumerate(_interruptibly(rows_of(source))):
                    try:
                        if isinstance(given, EligoError):
                            raise given
                        rule, expression, weight, tags = given
                        rule = plain_id(rule)
                        check_id(rule, id_type)
                        known = None if rule in seen else rules.find(rule)
                        if not replace and (known is not None or rule in seen):
                            raise duplicate(rule)
                        root, text, containing = read_rule(expression, self._limits)
                        number, labels = weight_of(weight), tags_of(tags)
                        multi = rules.multi | containing if containing else rules.multi
                        normal = normalize(root, multi=multi, absent=rules.absent)
                        self._check_size(normal)
                    except EligoError as error:
                        if not collect:
                            raise _named(error, row, given) from None
                        rejects.append(Reject(row, _id_of(given), str(error), getattr(error, "position", -1)))
                        continue
                    if not containing <= rules.multi:
                        became_multi.update(dict.fromkeys(containing - rules.multi, sequence))
                        rules.containing.update(containing)
                        parts.append(rules.new_pending())
                    elif containing:
                        rules.containing.update(containing)
                    place = sequence
                    if rule in seen:
                        part, dropped = seen[rule]
                        place = part.drop(rule)
                        rules.containing -= Counter(dropped)
                    elif known is not None:
                        place = rules.sequence_at(known)
                        doomed.append(known)
                    else:
                        sequence += 1
                    parts[-1].add(rule, normal, text, number, labels, place)
                    seen[rule] = parts[-1], containing
                    id_type = type(rule)
                built = list(_interruptibly(rules.made(*part.finish()) for part in parts if part.rows))
                # From here on no rule is refused.
                for text in rules.texts_at(doomed) if containing_before else ():
                    rules.containing -= Counter(self._containing(text))
                rules.remove_many(doomed)
                rules.extend(built)
                rules.next_sequence = max(rules.next_sequence, sequence)
                # Older than the change: what became multi-valued here. All: what is single-valued again, if only since
                # a rule of this very load was replaced by a later one.
                self._recompile(
                    {name: became_multi.get(name, sequence) for name in rules.multi - multi_before}
                    | dict.fromkeys((multi_before | became_multi.keys()) - rules.multi, sequence)
                )
            except BaseException:
                rules.containing = containing_before
                raise
            self.id_type = id_type if rules.count else None
        return rejects

    # -- parts

    def _check_size(self, normal: Node) -> None:
        """Refuse a rule in normal form that is more than the evaluator takes."""
        recipe = self._rules.recipe
        recipe.evaluator.check(normal, **recipe.settings)

    def _containing(self, text: str) -> frozenset[str]:
        return multi_valued(parse(text, self._limits)) if "contains" in text.lower() else NOTHING

    def _containing_at(self, place: Place | None) -> frozenset[str]:
        """The attributes that the rule at a place uses with `contains`, as far as any rule does."""
        rules = self._rules
        if place is None or not rules.containing:
            return NOTHING
        return self._containing(rules.rule_at(place).expression)

    def _multi_after(self, comes: frozenset[str], gone: frozenset[str]) -> frozenset[str]:
        """What is multi-valued when a rule that uses some attributes with `contains` has come, and one has gone."""
        rules = self._rules
        if not comes and not gone:
            return rules.multi
        return rules.declared.union((rules.containing + Counter(comes)) - Counter(gone))

    @contextmanager
    def _containing_changes(self, comes: frozenset[str], gone: Iterable[str]) -> Iterator[None]:
        """Around adding a rule that uses some attributes with `contains`, and removing one that does.

        If that makes an attribute multi-valued or single-valued, the rules that name it are compiled again, and readers
        see nothing of it until all is done.
        """
        rules = self._rules
        if not comes and not gone:
            yield
            return
        before, containing = rules.multi, Counter(rules.containing)
        rules.containing.update(comes)
        rules.containing -= Counter(gone)
        try:
            if rules.multi == before:
                yield
                return
            with rules.quietly():
                self._recompile(dict.fromkeys(before ^ rules.multi, rules.next_sequence))
                yield
        except BaseException:
            rules.containing = containing
            raise

    def _recompile(self, names: dict[str, int]) -> None:
        """Compile again all rules that name one of the attributes and are older than the number beside it.

        Nothing is refused here: these rules were accepted. An evaluator that is told of one that has grown too large
        for it has to take it nevertheless.
        """
        if not names:
            return
        rules = self._rules
        if self.most_recompiled is not None and rules.count > self.most_recompiled:
            raise LimitError(
                f"with these changes {', '.join(map(repr, sorted(names)))} begins or ceases to hold several values, "
                f"and one process would read the texts of all {rules.count:,} rules, more than "
                f"{self.most_recompiled:,}, to compile anew those that name it; compile all rules again, and declare "
                "with multi=[…] what holds several values, for then it stays so"
            )
        newest = max(names.values())
        places = [place for place in rules.rules_naming(names) if rules.sequence_at(place) < newest]
        old = list(zip(rules.rules_at(places), map(rules.sequence_at, places), strict=True))
        rules.remove_many(places)
        rules.seal()
        again = rules.new_pending()
        for rule, sequence in old:
            checkpoint()
            root = parse(rule.expression, self._limits)
            normal = normalize(root, multi=rules.multi, absent=rules.absent)
            again.add(rule.id, normal, rule.expression, rule.weight, rule.tags, sequence)
        if again.rows:
            rules.extend([rules.made(*again.finish())])


def _interruptibly(items: Iterable[Any]) -> Iterator[Any]:
    """The same items; Ctrl-C may come while each is fetched or made, which may take long and changes nothing here."""
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
    """The same error, with the rule that it is about on top of its message."""
    error.args = (f"rule {shown(_id_of(given))} (row {row}): {error}", *error.args[1:])
    return error
