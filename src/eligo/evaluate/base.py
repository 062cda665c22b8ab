"""The protocol of an evaluator: which rules do the satisfied conjunctions complete?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.jit import entry
from eligo.language.limits import Limits
from eligo.language.tree import Node
from eligo.options import Option, Value, own


class EvaluatorScratch:
    """Memory of one evaluation at a time, which no two threads share. `matched` receives the rules."""

    def __init__(self, rules: int) -> None:
        self.matched = np.zeros(rules + max(1024, rules // 4), np.int32)
        self.offsets, self.ends = np.zeros(2, np.int64), np.zeros(2, np.int64)  # of one event's conjunctions, and rules
        self.given, self.taken = memoryview(self.offsets), memoryview(self.ends)  # type: ignore[arg-type]
        self.enter: Any = None

    def bind(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """Looks up the machine code of a kernel for arguments of these types, keeps it as `enter`, and returns it."""
        self.enter = entry(kernel, *args)
        return self.enter


class Completion(ABC):
    """An object that finds the rules which satisfied conjunctions complete."""

    @abstractmethod
    def scratch(self) -> Any:
        """Returns memory for one evaluation at a time, an `EvaluatorScratch`."""

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: Any) -> int:
        """Writes the rules that found[:count] completes to scratch.matched, in the order of adding. Returns how many.

        `allowed` says which rules to report. An evaluator of a segment has a byte for each of its rules, 0 for those to
        leave out, or no bytes at all if none is left out.
        """
        scratch.given[1] = count
        self.evaluate_batch(found, scratch.offsets, 1, allowed, scratch, scratch.ends)
        return scratch.taken[1]  # type: ignore[no-any-return]

    @abstractmethod
    def evaluate_batch(self, found: I32, offsets: I64, events: int, allowed: U8, scratch: Any, ends: I64) -> int:
        """Does the same for many events, as far as scratch.matched has room. Returns the number of events done.

        The conjunctions of event i are found[offsets[i]:offsets[i+1]], its rules matched[ends[i]:ends[i+1]].
        """


class Evaluator(Completion):
    """An evaluator built from the trees of one segment, whose rules stand in the order of adding; it never changes.

    An evaluator that has options (options.py), or depends on `bounds`, which are fields of `Limits`, takes them all as
    keyword arguments of `check`, `doubtful`, `unfit` and `arrange`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[Mapping[str, Option]] = {}
    bounds: ClassVar[tuple[str, ...]] = ()
    has_trees: ClassVar[bool] = True  # False: it makes conjunctions of them
    by_likelihood: ClassVar[bool] = False  # whether `build` asks how often predicates hold

    @classmethod
    def settings(cls, limits: Limits, options: Mapping[str, Value]) -> dict[str, Any]:
        """Returns the keyword arguments of `check`, `doubtful`, `unfit` and `arrange`: `bounds` and own options."""
        return {**{name: getattr(limits, name) for name in cls.bounds}, **own(cls, options)}

    @classmethod
    def check(cls, root: Node) -> None:
        """Raises a `LimitError` for a rule in normal form that is larger than this evaluator takes."""

    @classmethod
    def doubtful(cls, compiled: Compiled, leaves: I32, **settings: Any) -> NDArray[np.bool_]:
        """Returns for each rule whether `check` must be asked about its tree. `leaves`: predicates in each rule's text.

        Unless overridden, this is true of all rules if `check` is overridden, and of none otherwise.
        """
        return np.full(compiled.rules, cls.check.__func__ is not Evaluator.check.__func__)  # type: ignore[attr-defined]

    @classmethod
    def unfit(cls, compiled: Compiled) -> str:
        """Returns why some of these rules, which were not checked one by one, would be refused, or an empty text."""
        return ""

    @classmethod
    def arrange(cls, compiled: Compiled) -> Compiled:
        """Returns the rules in the form that this evaluator is built from, before spaces and index are made of them.

        Merging concatenates rules that were arranged, so they must be valid input here again.
        """
        return compiled

    @classmethod
    @abstractmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Evaluator:
        """Builds the evaluator from arranged rules. `likelihood`: how often each predicate holds, 0 to 1, if known."""

    @classmethod
    @abstractmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Evaluator: ...

    @abstractmethod
    def arrays(self) -> Arrays: ...

    @abstractmethod
    def group(self, found: I32, count: int, scratch: Any) -> int:
        """Does the first half of `evaluate`, so that it can be timed apart. Returns what to pass to `complete`."""

    @abstractmethod
    def complete(self, touched: int, allowed: U8, scratch: Any) -> int:
        """Does the second half: finds the complete ones of the rules that `group` touched, as `evaluate` does."""

    def notes(self) -> dict[str, object]:
        """Returns what `stats` says about this evaluator. Whole numbers of several segments are added up."""
        return {}
