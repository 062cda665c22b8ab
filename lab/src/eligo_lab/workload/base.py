"""Workloads by name: rules and events to measure with, made from parameters and a seed.

A generator is a function of this package with `@workload` on it. Its parameters are those of its signature, each with
a type, a default and, by `Annotated`, a line that says what it is:

    @workload("one line about it")
    def begen(rules: Annotated[int, "rules"] = 100_000, …, seed: Seed = 1) -> Workload: …

Same parameters, same seed: the same tables, byte for byte. A workload that can be made in blocks (`blocks.py`) also
names the function that makes its world: `@workload("one line about it", blocks=world)`.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from eligo.errors import OptionError
from eligo_lab.workload.blocks import Blocks, World
from eligo_lab.workload.draft import Draft

Rules: TypeAlias = Annotated[int, "how many rules"]
Events: TypeAlias = Annotated[int, "how many events"]
Seed: TypeAlias = Annotated[int, "of all random choices"]


@dataclass(frozen=True)
class Workload:
    """Rules and events. `draft` is None only where the rules exist as text alone; `text` is then their table."""

    name: str
    parameters: dict[str, object]
    draft: Draft | None
    events: pa.Table
    measured: dict[str, float] = field(default_factory=dict)
    text: pa.Table | None = None

    @cached_property
    def rules(self) -> pa.Table:
        """A table of id and expression, perhaps with weight and tags."""
        if self.draft is not None:
            return self.draft.table()
        assert self.text is not None
        return self.text


class Parameter(NamedTuple):
    type: type
    default: Any
    help: str
    optional: bool = False  # it may be None


@dataclass(frozen=True)
class Generator:
    """A workload that can be made."""

    name: str
    summary: str
    parameters: dict[str, Parameter]
    function: Callable[..., Workload]
    world: Callable[..., World] | None = None

    def make(self, **given: object) -> Workload:
        """The workload; a name or a value that makes no sense is refused."""
        return self.function(**self.values(given))

    def blocks(self, **given: object) -> Blocks:
        """The workload in blocks, of which none is made yet. These are other rules and events than `make` gives."""
        if self.world is None:
            able = ", ".join(name for name, one in WORKLOADS.items() if one.world is not None)
            raise OptionError(f"{self.name} cannot be made in blocks; there are: {able}")
        values = self.values(given)
        return Blocks(self.name, values, self.world(np.random.default_rng(values["seed"]), **values))

    def values(self, given: Mapping[str, object]) -> dict[str, Any]:
        """All parameters: those given, checked, and the defaults of the others."""
        values = {name: parameter.default for name, parameter in self.parameters.items()}
        for name, value in given.items():
            values[name] = self.checked(name, value)
        for name in ("rules", "events"):
            if values[name] < 1:
                raise OptionError(f"{self.name}: {name}={values[name]} makes no workload; give 1 or more")
        if values["seed"] < 0:
            raise OptionError(f"{self.name}: seed={values['seed']}: a seed is 0 or more")
        return values

    def checked(self, name: str, value: object) -> object:
        """The value as the parameter's type; text is read."""
        parameter = self._parameter(name)
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            if not parameter.optional:
                raise OptionError(f"{self.name}: {name} needs a value ({parameter.type.__name__})")
            return None
        kind = parameter.type
        try:
            if isinstance(value, str) and kind is not str:
                value = _read(kind, value)
            if kind is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError
        except ValueError:
            raise OptionError(f"{self.name}: {name}={value!r} is no {_KINDS.get(kind, kind.__name__)}") from None
        return value

    def _parameter(self, name: str) -> Parameter:
        if name in self.parameters:
            return self.parameters[name]
        near = difflib.get_close_matches(name, self.parameters, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"{self.name} has no parameter {name!r}{hint} (there are: {', '.join(self.parameters)})")


_KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def _read(kind: type, text: str) -> object:
    if kind is bool:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else text
    return kind(text)


class _Workloads(Mapping[str, Generator]):
    """Generators by name; the modules of this package are imported when first asked."""

    def __init__(self) -> None:
        self._known: dict[str, Generator] = {}
        self._complete = False

    def add(self, generator: Generator) -> None:
        self._known[generator.name] = generator

    def _all(self) -> dict[str, Generator]:
        if not self._complete:
            self._complete = True
            package = import_module("eligo_lab.workload")
            for module in iter_modules(package.__path__):
                import_module(f"eligo_lab.workload.{module.name}")
            self._known = dict(sorted(self._known.items()))
        return self._known

    def __getitem__(self, name: str) -> Generator:
        known = self._all()
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownWorkloadError(f"unknown workload {name!r}{hint} (there are: {', '.join(known)})")
        return known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class UnknownWorkloadError(OptionError, KeyError):
    """So that `name in WORKLOADS` and `WORKLOADS.get` work as those of any mapping."""


WORKLOADS = _Workloads()


def workload(
    summary: str, blocks: Callable[..., World] | None = None
) -> Callable[[Callable[..., Workload]], Callable[..., Workload]]:
    """Register a generator under its function's name; the function itself goes on to be checked and called as any."""

    def register(function: Callable[..., Workload]) -> Callable[..., Workload]:
        hints = get_type_hints(function, include_extras=True)
        parameters = {}
        for name, given in inspect.signature(function).parameters.items():
            kind, *help = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
            optional = isinstance(kind, UnionType)
            if optional:
                kind = next(one for one in get_args(kind) if one is not type(None))
            parameters[name] = Parameter(kind, given.default, str(help[0]) if help else "", optional)
        WORKLOADS.add(Generator(function.__name__, summary, parameters, function, blocks))
        return function

    return register


def generate(name: str, **parameters: object) -> Workload:
    """The workload of that name; what is not given has its default."""
    return WORKLOADS[name].make(**parameters)
