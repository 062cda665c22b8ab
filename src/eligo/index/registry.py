"""The indexes by name. To add one: a file in this package with an `Index`, and `@register` on it."""

from __future__ import annotations

from eligo.index.base import Index
from eligo.registry import Registry

INDEXES: Registry[Index] = Registry("eligo.index", "index")
register = INDEXES.register


def choose(name: str) -> type[Index]:
    """The index of that name; `auto` is a fixed choice among those registered."""
    return INDEXES.get("scan" if name == "auto" else name, "auto")
