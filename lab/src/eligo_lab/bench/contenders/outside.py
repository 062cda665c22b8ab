"""Contenders that are not this project's own: what people use when they do not have it.

    lambdas       every rule a Python lambda, asked one after another
    dict          a Python dict from one equality predicate a rule, the rarest, to its rules, and a lambda for the rest
    rule-engine   \
    zen-engine     }  packages of PyPI, each in the quickest way that it offers
    cel           /

All start from a dict and end with a list of ids in the order of adding. Attributes are renamed for the packages before
anything is timed.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib import import_module
from time import perf_counter_ns as now
from typing import Any, ClassVar

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.language import parse
from eligo.language.tree import And, Node, Predicate
from eligo_lab.bench.contenders.base import Contender, UnfitError
from eligo_lab.bench.contenders.expressions import Cel, Dialect, Python, Rules, Zen, kinds_of
from eligo_lab.bench.prepare import Prepared

Check = Callable[[dict[str, Any]], bool]


class Outside(Contender):
    """A contender that takes dicts and knows nothing of indexes and segments."""

    kind: ClassVar[str] = "outside"
    phases = ("match",)
    summary: ClassVar[str]
    dialect: ClassVar[type[Dialect]] = Python
    package: ClassVar[tuple[str, str]] = ("", "")  # name of the module, name to install

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        kinds = kinds_of(prepared.events.schema)
        self.language = self.dialect(kinds, prepared.absent, {})
        self.roots: list[Node] = []

    def read(self) -> None:
        """Parse the rules; the reader is ours and its time nobody's."""
        self.module = self._import()
        self.roots = [parse(text) for text in self.prepared.texts(range(self.prepared.rules))]

    def _import(self) -> Any:
        module, install = self.package
        try:
            return import_module(module) if module else None
        except ImportError:
            raise UnfitError(f"{install} is not installed: pip install 'eligo-lab[contenders]'") from None

    def finish(self) -> None:
        """The events as this contender takes them."""
        numbers = self.language.numbers
        self.events: list[dict[str, Any]] = self.prepared.dicts
        if self.dialect is not Python:
            names = {attribute: f"x{number}" for attribute, number in numbers.items()}
            self.events = [{names.get(k, k): v for k, v in event.items()} for event in self.prepared.dicts]
        self.roots = []

    @abstractmethod
    def match(self, event: dict[str, Any]) -> list[int]:
        """The ids of the rules that the event matches, ascending."""

    def rows(self, event: int) -> I32:
        return np.array(self.match(self.events[event]), np.int32)

    def run(self, clock: I64, first: int, stop: int, emit: bool) -> int:
        match, total = self.match, 0
        for number in range(first, stop):
            event = self.events[number]
            started = now()
            found = match(event)
            clock[0, number] = now() - started
            total += len(found)
        return total


class Lambdas(Outside):
    """A loop over compiled lambdas."""

    name = "lambdas"
    summary = "a loop over Python lambdas, one a rule"

    def build(self) -> None:
        self.checks = [(row, compiled(self.language, root)) for row, root in enumerate(self.roots)]

    def match(self, event: dict[str, Any]) -> list[int]:
        return [row for row, check in self.checks if check(event)]


class Dict(Outside):
    """What a good programmer writes in an hour."""

    name = "dict"
    summary = "a Python dict from each rule's rarest equality predicate, and a lambda for the rest"

    def build(self) -> None:
        keys = [_equalities(root) for root in self.roots]
        rules_with = Counter(key for some in keys for key in some)
        self.buckets: dict[Any, list[tuple[int, Check]]] = defaultdict(list)
        self.always: list[tuple[int, Check]] = []
        for row, (root, some) in enumerate(zip(self.roots, keys, strict=True)):
            place = self.buckets[min(some, key=rules_with.__getitem__)] if some else self.always
            place.append((row, compiled(self.language, root)))

    def match(self, event: dict[str, Any]) -> list[int]:
        found = [row for row, check in self.always if check(event)]
        for pair in event.items():
            found += [row for row, check in self.buckets.get(pair, ()) if check(event)]
        found.sort()
        return found


def _equalities(root: Node) -> list[tuple[str, Any]]:
    """The equality predicates that have to hold for the whole rule to."""
    children = root.children if isinstance(root, And) else (root,)
    return [
        (child.attribute, child.values[0])
        for child in children
        if isinstance(child, Predicate) and child.operator == "=" and not child.negated
    ]


def compiled(language: Dialect, root: Node) -> Check:
    """A lambda from what `Python` writes for a parsed tree: names of attributes and operands as reprs, nothing else."""
    source = language.translate(root)
    check: Check = eval(f"lambda e: {source}", {"__builtins__": {}, "fits": re.fullmatch, **language.constants})
    language.constants.clear()
    return check


class RuleEngine(Outside):
    """rule-engine: a Rule each; an attribute that is absent resolves to null instead of raising."""

    name = "rule-engine"
    summary = "rule-engine of PyPI: interpreted in Python, one Rule a rule"
    dialect = Rules
    package = "rule_engine", "rule-engine"

    def build(self) -> None:
        context = self.module.Context(default_value=None)
        self.rules = [self.module.Rule(self.language.translate(root), context=context) for root in self.roots]

    def match(self, event: dict[str, Any]) -> list[int]:
        return [row for row, rule in enumerate(self.rules) if rule.matches(event)]


class ZenEngine(Outside):
    """zen-engine: one decision table of all rules that collects every hit, compiled beforehand."""

    name = "zen-engine"
    summary = "zen-engine of PyPI: Rust; one decision table with a row for each rule, all hits collected"
    dialect = Zen
    package = "zen", "zen-engine"

    def build(self) -> None:
        import json

        rows = [
            {"_id": str(row), "if": self.language.translate(root), "then": str(row)}
            for row, root in enumerate(self.roots)
        ]
        table = {
            "hitPolicy": "collect",
            "inputs": [{"id": "if", "name": "if", "field": ""}],
            "outputs": [{"id": "then", "name": "then", "field": "row"}],
            "rules": rows,
        }
        place = {"position": {"x": 0, "y": 0}}
        nodes = [
            {"id": "in", "type": "inputNode", "name": "in", **place},
            {"id": "table", "type": "decisionTableNode", "name": "table", "content": table, **place},
            {"id": "out", "type": "outputNode", "name": "out", **place},
        ]
        edges = [
            {"id": "1", "sourceId": "in", "targetId": "table", "type": "edge"},
            {"id": "2", "sourceId": "table", "targetId": "out", "type": "edge"},
        ]
        content = self.module.ZenDecisionContent(json.dumps({"nodes": nodes, "edges": edges}))
        self.decision = self.module.ZenEngine().create_decision(content)

    def match(self, event: dict[str, Any]) -> list[int]:
        return [hit["row"] for hit in self.decision.evaluate(event)["result"]]


class CelPrograms(Outside):
    """CEL: a program each; the event is converted once, as a context that all programs share."""

    name = "cel"
    summary = "common-expression-language of PyPI: Rust; one compiled program a rule"
    dialect = Cel
    package = "cel", "common-expression-language"

    def build(self) -> None:
        self.programs = [self.module.compile(self.language.translate(root)).execute for root in self.roots]

    def match(self, event: dict[str, Any]) -> list[int]:
        context = self.module.Context({"e": event})
        return [row for row, execute in enumerate(self.programs) if execute(context)]


OUTSIDE: dict[str, type[Outside]] = {kind.name: kind for kind in (Dict, Lambdas, RuleEngine, ZenEngine, CelPrograms)}
