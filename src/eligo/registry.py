"""Things known by name: the indexes and the evaluators, ours and those of other packages."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from eligo.errors import OptionError

T = TypeVar("T")

_IN_THE_LAB = ("counting", "gryphon", "k-index", "op-index")

_log = logging.getLogger(__name__)


class Registry(Generic[T]):
    """Classes by their `name`, imported when first asked for.

    `own` says where the classes of this package are, as "module:Class". Another package adds one by an entry point of
    the group, or by calling `register`.
    """

    def __init__(self, group: str, noun: str, own: Mapping[str, str]) -> None:
        self._group = group
        self._noun = noun
        self.own = own
        self._known: dict[str, type[T]] = {}
        self._complete = False

    def register(self, thing: type[T]) -> type[T]:
        self._known[thing.name] = thing  # type: ignore[attr-defined]
        return thing

    def get(self, name: str, *also: str) -> type[T]:
        """Returns the class of that name. If there is none, raises an `OptionError` that lists all, and `also`."""
        if name in self.own and name not in self._known:
            self._known[name] = self._imported(name)
        if name not in self._known:
            self.all()
        if name in self._known:
            return self._known[name]
        names = [*also, *self.all()]
        near = difflib.get_close_matches(str(name), names, 1)
        hint = "; eligo-lab has it" if name in _IN_THE_LAB else f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(f"unknown {self._noun} {name!r}{hint} (there are: {', '.join(names)})")

    def all(self) -> dict[str, type[T]]:
        if not self._complete:
            for name in self.own:
                self._known.setdefault(name, self._imported(name))
            for name, thing in self._foreign().items():
                self._known.setdefault(name, thing)
            self._complete = True
        return dict(sorted(self._known.items()))

    def _imported(self, name: str) -> Any:
        module, _, attribute = self.own[name].partition(":")
        return getattr(import_module(module), attribute)

    def _foreign(self) -> dict[str, Any]:
        """Returns the classes of other packages; one that cannot be imported is logged and left out."""
        from importlib.metadata import entry_points

        found = {}
        for point in entry_points(group=self._group):
            try:
                thing = point.load()
                if not isinstance(thing, type) or getattr(thing, "name", None) != point.name:
                    raise TypeError(f"it is no class whose `name` is {point.name!r}")
            except Exception as error:
                _log.warning("the %s %r of %s cannot be used: %s", self._noun, point.name, point.value, error)
            else:
                found[point.name] = thing
        return found
