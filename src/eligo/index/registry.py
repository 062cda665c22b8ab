"""The indexes by name. To add one: a file in this package with an `Index`, and `@register` on it."""

from __future__ import annotations

from eligo.index.base import Index
from eligo.registry import Registry

INDEXES: Registry[Index] = Registry("eligo.index", "index")
register = INDEXES.register


# What `auto` takes, and why. A fixed rule: it does not look at the rules.
AUTO = "propagation"
AUTO_REASON = "a fixed choice: looks at few conjunctions where rules have a selective predicate, and builds fast"


def choose(name: str) -> type[Index]:
    """The index of that name; `auto` is a fixed choice among those registered."""
    return INDEXES.get(AUTO if name == "auto" else name, "auto")
