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
    """Private memory of one evaluation at a time: `matched` receives rules."""

    def __init__(self, rules: int) -> None:
        self.matched = np.zeros(rules + max(1024, rules // 4), np.int32)
        self.offsets, self.ends = np.zeros(2, np.int64), np.zeros(2, np.int64)  # of one event's conjunctions, and rules
        self.given, self.taken = memoryview(self.offsets), memoryview(self.ends)  # type: ignore[arg-type]
        self.enter: Any = None

    def bind(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """The machine code of the kernel that all evaluations with this scratch call, with arguments like these."""
        self.enter = entry(kernel, *args)
        return self.enter


class Completion(ABC):
    """What finds the rules that satisfied conjunctions complete."""

    @abstractmethod
    def scratch(self) -> Any:
        """Returns memory for one evaluation at a time, an `EvaluatorScratch`."""

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: Any) -> int:
        """Put the rules completed by found[:count] into scratch.matched, in the order of adding; how many.

        `allowed` says which rules to report. An evaluator of a segment has a byte for each of its rules, 0 for those to
        leave out, or no bytes at all when none are.
        """
        scratch.given[1] = count
        self.evaluate_batch(found, scratch.offsets, 1, allowed, scratch, scratch.ends)
        return scratch.taken[1]  # type: ignore[no-any-return]

    @abstractmethod
    def evaluate_batch(self, found: I32, offsets: I64, events: int, allowed: U8, scratch: Any, ends: I64) -> int:
        """The same for many events, as far as scratch.matched has room; how many events were done.

        Conjunctions of event i are found[offsets[i]:offsets[i+1]], its rules matched[ends[i]:ends[i+1]].
        """


class Evaluator(Completion):
    """Built from the trees of one segment, whose rules stand in the order of adding; never changed.

    An evaluator that has options (options.py), or is concerned by `bounds`, which are fields of `Limits`, takes them
    all as keyword arguments of `check`, `doubtful`, `unfit` and `arrange`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[Mapping[str, Option]] = {}
    bounds: ClassVar[tuple[str, ...]] = ()
    has_trees: ClassVar[bool] = True  # False: it makes conjunctions of them
    by_likelihood: ClassVar[bool] = False  # whether `build` asks how often predicates hold

    @classmethod
    def settings(cls, limits: Limits, options: Mapping[str, Value]) -> dict[str, Any]:
        """The keyword arguments of the four methods below."""
        return {**{name: getattr(limits, name) for name in cls.bounds}, **own(cls, options)}

    @classmethod
    def check(cls, root: Node) -> None:
        """Refuse a rule in normal form that is more than this evaluator takes, with a `LimitError`."""

    @classmethod
    def doubtful(cls, compiled: Compiled, leaves: I32, **settings: Any) -> NDArray[np.bool_]:
        """Of each of these rules, whether `check` has to be asked about its tree; `leaves` are predicates in its text.

        As soon as `check` does something, that is all rules, unless this is overridden as well.
        """
        return np.full(compiled.rules, cls.check.__func__ is not Evaluator.check.__func__)  # type: ignore[attr-defined]

    @classmethod
    def unfit(cls, compiled: Compiled) -> str:
        """Why some of these rules, which nobody checked one by one, would be refused; nothing if none would be."""
        return ""

    @classmethod
    def arrange(cls, compiled: Compiled) -> Compiled:
        """The rules in the form that this evaluator wants, before spaces and index are made of them.

        What comes out is what merging concatenates, so it has to be fit to come in again.
        """
        return compiled

    @classmethod
    @abstractmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Evaluator:
        """Build from rules that were arranged. `likelihood`, where known: how often each predicate holds, 0 to 1."""

    @classmethod
    @abstractmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Evaluator: ...

    @abstractmethod
    def arrays(self) -> Arrays: ...

    @abstractmethod
    def group(self, found: I32, count: int, scratch: Any) -> int:
        """The first half of `evaluate`, so that it can be timed apart: found[:count] by rule; how many rules."""

    @abstractmethod
    def complete(self, touched: int, allowed: U8, scratch: Any) -> int:
        """The second half: which of the rules that `group` touched are complete, as `evaluate` gives them."""

    def notes(self) -> dict[str, object]:
        """What `stats` should say about this evaluator; whole numbers of several segments are added up."""
        return {}
