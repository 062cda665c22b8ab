"""From normalised trees to flat arrays.

The builder is the only part of compiling that runs a line of Python for each predicate, so it remembers what it has
seen: a predicate or conjunction that comes again is a dict look-up. The memory is bounded; what slips through it is
found by content afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from eligo.compile import codes
from eligo.compile.attributes import Attributes
from eligo.compile.codes import RunCodes, integer_runs
from eligo.compile.compiled import Compiled
from eligo.compile.strings import Strings
from eligo.errors import RuleTypeError
from eligo.language.normalize import Meaning, meaning
from eligo.language.tree import And, Constant, Node, Or, Predicate, Quantified
from eligo.language.values import EVERYTHING, Cut, ValueSet, complement, intersect, is_residual, positive_set

_FEW, _SHORT = 64, 1024  # values, and characters of all of them, of a predicate that is remembered
_REMEMBERED = 1 << 20


class Builder:
    """Collects rules; `finish` gives their arrays. Attribute and string numbers are those of the whole matcher."""

    def __init__(
        self, attributes: Attributes, strings: Strings, *, absent: str = "fails", multi: Iterable[str] = ()
    ) -> None:
        self._attributes = attributes
        self._strings = strings
        self._classical = absent == "classical"
        self._multi = frozenset(multi)
        self._predicate_numbers: dict[object, int] = {}
        self._conjunction_numbers: dict[tuple[int, ...], int] = {}
        self._attribute, self._flags, self._pattern = array("i"), array("B"), array("i")
        self._run_offsets = array("q", [0])
        self._kinds, self._keys = array("B"), array("q")
        self._conjunction_offsets, self._conjunction = array("q", [0]), array("i")
        self._tree_offsets, self._tree = array("q", [0]), array("i")

    @property
    def rules(self) -> int:
        return len(self._tree_offsets) - 1

    def add(self, root: Node) -> None:
        """Append one rule, given in normal form."""
        start = len(self._tree)
        stack: list[Node] = [root]
        while stack:
            node = stack.pop()
            if type(node) is Predicate:
                self._tree.append(self._conjunction_number((node,)))
            elif isinstance(node, Constant):
                if node.holds:
                    self._tree.append(self._conjunction_number(()))
            elif isinstance(node, And):
                own = [child for child in node.children if type(child) is Predicate]
                nested = [child for child in node.children if type(child) is not Predicate]
                if nested:
                    self._tree.append(-2 * (len(nested) + bool(own)))
                    stack.extend(reversed(nested))
                if own:
                    self._tree.append(self._conjunction_number(own))
            elif isinstance(node, Or):
                self._tree.append(-2 * len(node.children) - 1)
                stack.extend(reversed(node.children))
            else:
                assert isinstance(node, Quantified)
                del self._tree[start:]
                raise RuleTypeError(
                    f"{node.quantifier} {node.variable} (…): a join needs documents, and this matcher has none",
                    hint="leave the quantifier out; rules over documents are not supported yet",
                )
        self._tree_offsets.append(len(self._tree))

    def finish(self) -> Compiled:
        """The arrays of everything added so far; the builder can go on.

        Equal predicates and conjunctions are one only as far as the builder remembered them; see `compiled.unique`.
        """
        keys = np.array(self._keys, np.int64).reshape(-1, 4)
        kinds = np.array(self._kinds, np.uint8).reshape(-1, 2)
        return Compiled(
            attribute=np.array(self._attribute, np.int32),
            flags=np.array(self._flags, np.uint8),
            pattern=np.array(self._pattern, np.int32),
            run_offsets=np.array(self._run_offsets, np.int64),
            low_kind=np.ascontiguousarray(kinds[:, 0]),
            low_key=np.ascontiguousarray(keys[:, 0]),
            low_key2=np.ascontiguousarray(keys[:, 1]),
            high_kind=np.ascontiguousarray(kinds[:, 1]),
            high_key=np.ascontiguousarray(keys[:, 2]),
            high_key2=np.ascontiguousarray(keys[:, 3]),
            conjunction_offsets=np.array(self._conjunction_offsets, np.int64),
            conjunction=np.array(self._conjunction, np.int32),
            tree_offsets=np.array(self._tree_offsets, np.int64),
            tree=np.array(self._tree, np.int32),
        )

    def _conjunction_number(self, predicates: Sequence[Node]) -> int:
        numbers = [self._predicate_number(p) for p in predicates]  # type: ignore[arg-type]
        if len(numbers) > 1:
            attributes = [self._attribute[number] for number in numbers]
            if len(set(attributes)) < len(attributes):
                numbers = self._one_for_each_attribute(predicates)  # type: ignore[arg-type]
            numbers.sort()
        key = tuple(numbers)
        number = self._conjunction_numbers.get(key)
        if number is None:
            number = len(self._conjunction_offsets) - 1
            self._conjunction.extend(numbers)
            self._conjunction_offsets.append(len(self._conjunction))
            if len(self._conjunction_numbers) >= _REMEMBERED:
                self._conjunction_numbers.clear()
            self._conjunction_numbers[key] = number
        return number

    def _one_for_each_attribute(self, predicates: Sequence[Predicate]) -> list[int]:
        """Predicates on one single-valued attribute as one set, so that an unknown value has to satisfy all at once."""
        numbers: set[int] = set()
        sets: dict[str, Meaning] = {}
        for predicate in predicates:
            if predicate.attribute in self._multi or is_residual(predicate):
                numbers.add(self._predicate_number(predicate))
                continue
            values, absent = meaning(predicate, self._classical)
            before = sets.get(predicate.attribute, (EVERYTHING, True))
            sets[predicate.attribute] = intersect(before[0], values), before[1] and absent
        for name, (values, absent) in sets.items():
            key = (name, values, absent)
            number = self._predicate_numbers.get(key)
            if number is None:
                number = self._new_predicate(name, values, codes.ABSENT_HOLDS if absent else 0)
                if _is_small([value for run in values for cut in run for value in cut[1:]]):
                    self._predicate_numbers[key] = number
            numbers.add(number)
        return list(numbers)

    def _predicate_number(self, predicate: Predicate) -> int:
        values = predicate.values
        # Python holds 1 == True, rules do not: the types are part of the key.
        kinds: object = type(values[0]) if len(values) == 1 else tuple(map(type, values))
        key = (predicate.attribute, predicate.operator, predicate.negated, values, kinds)
        number = self._predicate_numbers.get(key)
        if number is None:
            number = self._encode(predicate)
            if len(self._predicate_numbers) >= _REMEMBERED:
                self._predicate_numbers.clear()
            if _is_small(values):
                self._predicate_numbers[key] = number
        return number

    def _encode(self, predicate: Predicate) -> int:
        if not predicate.negated and predicate.attribute not in self._multi:
            runs = integer_runs(predicate.operator, predicate.values)
            if runs is not None:
                return self._add(predicate.attribute, runs, 0, -1)
        flags = 0
        pattern = -1
        if is_residual(predicate):
            values = EVERYTHING if predicate.negated else positive_set(predicate)
            pattern = self._strings.intern(str(predicate.values[0]))
            flags = codes.RESIDUAL | (codes.RESIDUAL_NEGATED if predicate.negated else 0)
            flags |= codes.ABSENT_HOLDS if predicate.negated and self._classical else 0
        elif predicate.attribute in self._multi and predicate.operator != "is null":
            values = positive_set(predicate)
            if predicate.negated:
                values = complement(values)
                flags = codes.ABSENT_HOLDS if self._classical else 0
        else:
            values, absent = meaning(predicate, self._classical)
            flags = codes.ABSENT_HOLDS if absent else 0
        if predicate.negated and (predicate.attribute in self._multi):
            flags |= codes.ALL_VALUES
        return self._new_predicate(predicate.attribute, values, flags, pattern)

    def _new_predicate(self, attribute: str, values: ValueSet, flags: int, pattern: int = -1) -> int:
        return self._add(attribute, [(*self._cut(low), *self._cut(high)) for low, high in values], flags, pattern)

    def _add(self, attribute: str, runs: Iterable[RunCodes], flags: int, pattern: int) -> int:
        number = len(self._attribute)
        self._attribute.append(self._attributes.intern(attribute))
        self._flags.append(flags)
        self._pattern.append(pattern)
        for low_kind, low_key, low_key2, high_kind, high_key, high_key2 in runs:
            self._kinds.extend((low_kind, high_kind))
            self._keys.extend((low_key, low_key2, high_key, high_key2))
        self._run_offsets.append(len(self._kinds) // 2)
        return number

    def _cut(self, cut: Cut) -> tuple[int, int, int]:
        return codes.cut_codes(cut, self._strings.intern)


def _is_small(values: Sequence[object]) -> bool:
    """Whether a predicate with these values is worth remembering: one that is large is rarely met again."""
    return len(values) <= _FEW and sum(len(value) for value in values if isinstance(value, str)) <= _SHORT
