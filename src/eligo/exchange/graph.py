"""Who sells visits to whom: publishers, intermediaries and advertisers, and the edges between them.

    publisher ──▶ intermediary ──▶ intermediary ──▶ advertiser       an edge X ──▶ Y: X sells to Y the visits that
        └──────────────────────────────────────────────▲             satisfy its expression

Publishers buy from nobody and advertisers sell to nobody, so a path from one to the other has intermediaries in between
and nothing else. Intermediaries may sell to each other in circles; a path visits a node once.

The path that is chosen has the fewest hops; of several, the one whose first edge was connected first, then whose second
was, and so on. So it does not depend on anything but the graph.
"""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from eligo.arguments import one_of, shown
from eligo.errors import EligoError, OptionError
from eligo.segments.rule_table import is_id

Role = Literal["publisher", "intermediary", "advertiser"]


class GraphError(EligoError, ValueError):
    """What the graph does not allow: an edge that is there already or is not, a path that leads nowhere."""


class UnknownNodeError(GraphError, KeyError):
    """A node that is not there."""


@dataclass(slots=True, eq=False)
class Link:
    """An edge. `number` is its rule's while campaigns run over it, else -1; `campaigns` says how many do."""

    seller: str
    buyer: str
    expression: str
    number: int = -1
    campaigns: int = 0

    def __str__(self) -> str:
        return f"{self.seller!r} → {self.buyer!r}"


_REMEMBERED = 256  # publishers of which all routes are known


class Graph:
    """Nodes with their roles, and edges in the order in which they were connected."""

    def __init__(self) -> None:
        self.roles: dict[str, Role] = {}
        self._sold: dict[str, dict[str, Link]] = {}
        self._bought: dict[str, dict[str, Link]] = {}
        # By which edge each node is reached from a publisher, perhaps without some edge; until the edges change.
        self._reached: dict[tuple[str, Link | None], dict[str, Link]] = {}

    def __iter__(self) -> Iterator[Link]:
        return (link for links in self._sold.values() for link in links.values())

    def __len__(self) -> int:
        return sum(map(len, self._sold.values()))

    def add_node(self, name: str, role: Role) -> None:
        if type(name) is not str or not name or not is_id(name):
            raise OptionError(f"a node's name is a string of valid Unicode that is not empty, not {shown(name)}")
        one_of(f"node {shown(name)}: role", role, get_args(Role))
        if name in self.roles:
            raise GraphError(f"there is a node {name!r} already, with the role {self.roles[name]}")
        self.roles[name] = role
        self._sold[name], self._bought[name] = {}, {}

    def remove_node(self, name: str) -> None:
        self.role(name)
        links = [*self._sold[name].values(), *self._bought[name].values()]
        if links:
            raise GraphError(f"node {name!r} still has {listed(links, 'edge')}: disconnect them first")
        del self.roles[name], self._sold[name], self._bought[name]
        self._reached.clear()

    def role(self, name: str, wanted: Role | None = None) -> Role:
        """The node's role; refused if there is no such node, or it has not the role wanted."""
        role = self.roles.get(name) if isinstance(name, str) else None
        if role is None:
            near = difflib.get_close_matches(name, list(self.roles), 1) if isinstance(name, str) else []
            hint = f"; did you mean {near[0]!r}?" if near else "; add_node makes one"
            raise UnknownNodeError(f"there is no node {shown(name)}{hint}")
        if wanted is not None and role != wanted:
            raise GraphError(f"{name!r} is no {wanted} but a node of the role {role}")
        return role

    def connect(self, seller: str, buyer: str, expression: str) -> Link:
        if self.role(seller) == "advertiser":
            raise GraphError(f"advertiser {seller!r} cannot sell to {buyer!r}: advertisers only buy")
        if self.role(buyer) == "publisher":
            raise GraphError(f"publisher {buyer!r} cannot buy from {seller!r}: publishers only sell")
        if seller == buyer:
            raise GraphError(f"{seller!r} cannot sell to itself")
        link = Link(seller, buyer, expression)
        self._sold[seller][buyer] = self._bought[buyer][seller] = link
        self._reached.clear()
        return link

    def disconnect(self, link: Link) -> None:
        del self._sold[link.seller][link.buyer], self._bought[link.buyer][link.seller]
        self._reached.clear()

    def find(self, seller: str, buyer: str) -> Link | None:
        self.role(seller)
        self.role(buyer)
        return self._sold[seller].get(buyer)

    def edge(self, seller: str, buyer: str) -> Link:
        link = self.find(seller, buyer)
        if link is None:
            to = ", ".join(map(repr, self._sold[seller])) or "nobody"
            raise GraphError(f"{seller!r} does not sell to {buyer!r}, but to {to:.200}: connect them first")
        return link

    def along(self, path: Sequence[str], publisher: str, advertiser: str) -> tuple[Link, ...]:
        """The edges of a path given by its nodes, which has to lead from the publisher to the advertiser."""
        if isinstance(path, str) or not isinstance(path, Sequence) or len(path) < 2:
            raise GraphError(f"a path is a list of two nodes or more, from publisher to advertiser, not {shown(path)}")
        for name in path:
            self.role(name)
        if (path[0], path[-1]) != (publisher, advertiser):
            raise GraphError(
                f"the path leads from {path[0]!r} to {path[-1]!r}; one from {publisher!r} to {advertiser!r} is needed"
            )
        twice = next((name for at, name in enumerate(path) if name in path[:at]), None)
        if twice is not None:
            raise GraphError(f"the path visits {twice!r} twice; leave the detour out")
        return tuple(self.edge(seller, buyer) for seller, buyer in pairwise(path))

    def route(self, publisher: str, advertiser: str, avoiding: Link | None = None) -> tuple[Link, ...] | None:
        """The edges of the path with the fewest hops (see the top of this file), None where there is no path."""
        reached = self._reached.get((publisher, avoiding))
        if reached is None:
            if len(self._reached) >= _REMEMBERED:
                self._reached.clear()
            reached = self._reached[publisher, avoiding] = self._reach(publisher, avoiding)
        if advertiser not in reached:
            return None
        links = [reached[advertiser]]
        while links[-1].seller != publisher:
            links.append(reached[links[-1].seller])
        return tuple(reversed(links))

    def _reach(self, publisher: str, avoiding: Link | None) -> dict[str, Link]:
        """By which edge each node is first reached from a publisher, going by hops."""
        reached: dict[str, Link] = {}
        waiting = deque([publisher])
        while waiting:
            for buyer, link in self._sold[waiting.popleft()].items():
                if buyer not in reached and link is not avoiding:
                    reached[buyer] = link
                    waiting.append(buyer)
        return reached


def listed(things: Sequence[object], what: str, most: int = 5) -> str:
    """How many there are, and the first of them."""
    shown = ", ".join(map(str, things[:most]))
    return f"{len(things):,} {what}{'s' * (len(things) > 1)} ({shown}{', …' if len(things) > most else ''})"
