"""Things known by name: the indexes and the evaluators."""

from __future__ import annotations

import difflib
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from eligo.errors import OptionError

T = TypeVar("T")


class Registry(Generic[T]):
    """Classes by their `name`; the modules of the package that holds them are imported when first asked."""

    def __init__(self, package: str, noun: str) -> None:
        self._package = package
        self._noun = noun
        self._known: dict[str, type[T]] = {}
        self._complete = False

    def register(self, thing: type[T]) -> type[T]:
        self._known[thing.name] = thing  # type: ignore[attr-defined]
        return thing

    def all(self) -> dict[str, type[T]]:
        if not self._complete:
            self._complete = True
            package = import_module(self._package)
            for module in iter_modules(package.__path__):
                import_module(f"{self._package}.{module.name}")
        return dict(sorted(self._known.items()))

    def get(self, name: str, *also: str) -> type[T]:
        """The class of that name; `also` are other names that the caller takes, for the message."""
        known = self.all()
        if name in known:
            return known[name]
        names = [*also, *known]
        near = difflib.get_close_matches(str(name), names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"unknown {self._noun} {name!r}{hint} (there are: {', '.join(names)})")
