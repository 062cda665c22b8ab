"""An advertising exchange (the paper on complex expressions §1.1): which campaigns may be shown to this visit?

    graph       who sells which visits to whom; an expression on every edge                       graph.py
    campaign    booked by an advertiser with a publisher: its own expression, and a path between them
    matcher     one rule for each campaign's own expression, one for each edge that some path has     (a Matcher)
    bookings    for each campaign the edges of its path, by number                                  bookings.py

    visit ──▶ matcher ──▶ rules that hold ──▶ campaigns among them, of whose path all edges are among them too

An edge's expression is stored once and evaluated once for a visit, however many campaigns run over it, and to change it
is to replace one rule. A campaign's own expression holds at its publisher alone, so that those of other publishers are
not even looked at (expressions.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from eligo.arguments import attribute_names, directory_path, flag, one_of, plain_id, shown, whole_number
from eligo.compile.compiled import F64, I64
from eligo.compile.events import EventBuffer
from eligo.documents import Documents
from eligo.errors import DuplicateRuleError, EligoError, OptionError
from eligo.exchange.bookings import Published, eligible
from eligo.exchange.expressions import PUBLISHER, Eligibility, composed, reading, room_for
from eligo.exchange.graph import GraphError, Role, listed
from eligo.exchange.ledger import Ledger, Order
from eligo.exchange.visits import event_of, refuse_ranges, with_publishers
from eligo.explain import explain
from eligo.forking import OUTER, fork_lock
from eligo.language import Limits, render
from eligo.matcher import Matcher
from eligo.options import Value
from eligo.rule import RuleId
from eligo.segments.encoding import moving, slices
from eligo.segments.rule_table import is_id
from eligo.segments.view import View
from eligo.stats import Stats


@dataclass(frozen=True, kw_only=True)
class ExchangeStats(Stats):
    """What an exchange holds, with the figures of its matcher."""

    nodes: int
    edges: int
    edges_with_campaigns: int
    campaigns: int
    path_edges: int  # edges on the paths of all campaigns
    path_bytes: int


_LOST = (
    "a thread was changing the exchange when this process was forked, so here its campaigns can be asked for but not "
    "changed: open the exchange from a snapshot in this process, or fork when no thread changes it"
)


class Edge(msgspec.Struct, frozen=True):
    """The seller sells to the buyer the visits that satisfy the expression; so many campaigns run over the edge."""

    seller: str
    buyer: str
    expression: str
    campaigns: int


class Campaign(msgspec.Struct, frozen=True):
    """A campaign as it was booked, and the nodes of its path."""

    id: str | int
    advertiser: str
    publisher: str
    expression: str
    path: tuple[str, ...]
    weight: float


class Exchange:
    """Publishers, intermediaries, advertisers and campaigns. Threads may ask while others change."""

    def __init__(
        self,
        index: str = "auto",
        evaluator: str = "auto",
        absent: Literal["fails", "classical"] = "fails",
        multi: Iterable[str] = (),
        limits: Limits | Mapping[str, int] | None = None,
        options: Mapping[str, Value] | None = None,
        documents: Documents | None = None,
    ) -> None:
        multi = attribute_names("multi", multi)
        if PUBLISHER in multi:
            raise OptionError(f"multi: the attribute {PUBLISHER!r} is the exchange's own and has one value")
        self.limits = Matcher(limits=limits).limits
        matcher = Matcher(index, evaluator, absent, multi, room_for(self.limits), options, documents)
        self._ledger = Ledger(matcher, self.limits)
        self._lock = fork_lock(self, "_lock", OUTER, _LOST)
        self._local = threading.local()

    @property
    def documents(self) -> Documents | None:
        """The visits, or whatever else was kept, that expressions with quantifiers ask about."""
        return self._ledger.matcher.documents

    # -- the graph

    def add_node(self, name: str, role: Role) -> None:
        """Add a publisher, intermediary or advertiser."""
        with self._lock:
            self._ledger.graph.add_node(name, role)

    def remove_node(self, name: str) -> None:
        """Remove a node that has no edges."""
        with self._lock:
            self._ledger.graph.remove_node(name)

    def connect(self, seller: str, buyer: str, expression: object = "true", *, replace: bool = False) -> None:
        """Let a seller sell to a buyer the visits that satisfy the expression; `replace` changes that of an edge."""
        _, text = reading(expression, self.limits, self.documents is not None)
        flag("replace", replace)
        with self._lock:
            link = self._ledger.graph.find(seller, buyer)
            if link is None:
                self._ledger.graph.connect(seller, buyer, text)
                return
            if not replace:
                raise GraphError(f"there is an edge {link} already: replace=True changes its expression")
            if link.number >= 0:
                self._ledger.matcher.add(-1 - link.number, text, replace=True)
            link.expression = text

    def disconnect(
        self, seller: str, buyer: str, campaigns: Literal["refuse", "reroute", "cancel"] = "refuse"
    ) -> list[RuleId]:
        """Remove an edge; the campaigns that ran over it.

        If there are any, the edge stays and an error names them, unless they are to be cancelled or rerouted, each over
        the path with the fewest hops of those that are left. If one has no other path, an error names it and nothing is
        changed.
        """
        one_of("campaigns", campaigns, ("refuse", "reroute", "cancel"))
        with self._lock:
            link = self._ledger.graph.edge(seller, buyer)
            names = self._ledger.bookings.names(link.number) if link.number >= 0 else []
            if names and campaigns == "refuse":
                raise GraphError(
                    f"{listed([*map(repr, names)], 'campaign')} over {link}: cancel first what runs there, or say "
                    "campaigns='reroute' or campaigns='cancel'"
                )
            if campaigns == "reroute":
                self._ledger.commit(self._ledger.rerouted(names, link))
            for name in names if campaigns == "cancel" else ():
                self._ledger.cancel(name)
            self._ledger.graph.disconnect(link)
            return names

    @property
    def nodes(self) -> dict[str, Role]:
        """The nodes with their roles."""
        with self._lock:
            return dict(self._ledger.graph.roles)

    @property
    def edges(self) -> list[Edge]:
        """The edges: of every seller, in the order in which they were connected."""
        with self._lock:
            return [Edge(link.seller, link.buyer, link.expression, link.campaigns) for link in self._ledger.graph]

    # -- campaigns

    def book(
        self,
        campaign: RuleId,
        advertiser: str,
        publisher: str,
        expression: object,
        path: Sequence[str] | None = None,
        weight: float = 1.0,
        *,
        replace: bool = False,
    ) -> None:
        """Book a campaign with a publisher, over a path given by its nodes or else over the one with the fewest hops.

        `replace` puts it in the place of one with that id.
        """
        self.book_many([(campaign, advertiser, publisher, expression, path, weight)], replace=replace)

    def book_many(self, campaigns: Iterable[Any], *, replace: bool = False) -> None:
        """Book all of them or, if one is refused, none: tuples or dicts of the arguments of `book`."""
        flag("replace", replace)
        if isinstance(campaigns, str | bytes | Mapping) or not isinstance(campaigns, Iterable):
            raise OptionError(f"campaigns is a list of tuples or dicts, one for each booking, not {shown(campaigns)}")
        with self._lock:
            orders: dict[RuleId, Order] = {}
            for given in campaigns:
                row = _arguments(given)
                name = row["campaign"] = plain_id(row["campaign"])
                try:
                    self._ledger.check_id(name, next(iter(orders), None))
                    if name in orders or (name in self._ledger.bookings.rules and not replace):
                        raise DuplicateRuleError("there is a campaign of that id already: replace=True changes it")
                    orders[name] = self._ledger.checked(**row)
                except EligoError as error:
                    error.args = (f"campaign {shown(name)}: {error}", *error.args[1:])
                    raise
            self._ledger.commit(list(orders.values()))

    def cancel(self, campaign: RuleId) -> None:
        """End a campaign."""
        with self._lock:
            self._ledger.cancel(plain_id(campaign))

    def get(self, campaign: RuleId) -> Campaign:
        """The campaign of that id."""
        with self._lock:
            campaign = plain_id(campaign)
            rule = self._ledger.rule(campaign)
            path = self._ledger.path(rule)
            weight = self._ledger.matcher.get(rule).weight
            return Campaign(campaign, path[-1], path[0], self._ledger.bookings.text(rule), path, weight)

    def path(self, campaign: RuleId) -> tuple[str, ...]:
        """The nodes from the campaign's publisher to its advertiser."""
        with self._lock:
            return self._ledger.path(self._ledger.rule(plain_id(campaign)))

    def expression(self, campaign: RuleId) -> str:
        """What a visit to the campaign's publisher has to satisfy: its own expression and those on its path."""
        with self._lock:
            return render(composed([*self._ledger.parts(plain_id(campaign)).values()]))

    @property
    def campaigns(self) -> list[RuleId]:
        """The ids of all campaigns, in booking order."""
        with self._lock:
            return self._ledger.bookings.names()

    def __len__(self) -> int:
        return len(self._ledger.bookings.rules)

    def __contains__(self, campaign: object) -> bool:
        campaign = plain_id(campaign)
        return is_id(campaign) and campaign in self._ledger.bookings.rules

    def __iter__(self) -> Iterator[RuleId]:
        return iter(self.campaigns)

    # -- visits

    def eligible(self, publisher: str, visit: Mapping[str, Any]) -> list[RuleId]:
        """The campaigns that may be shown to a visit of that publisher, in booking order."""
        seen, rows, _ = self._found(publisher, visit)
        return [seen.name[row] for row in rows.tolist()]

    def top(self, publisher: str, visit: Mapping[str, Any], k: int = 10) -> list[tuple[RuleId, float]]:
        """The k eligible campaigns of the highest weights, as (id, weight); ties in booking order."""
        most = whole_number("k", k)
        seen, rows, weights = self._found(publisher, visit)
        best = np.argsort(-weights, kind="stable")[:most]
        return [(seen.name[row], float(weight)) for row, weight in zip(rows[best], weights[best], strict=True)]

    def eligible_batch(self, visits: Any, publisher: str = "publisher") -> pa.Table:
        """The same for many visits: an Arrow, pandas or Polars table, or an iterable of dicts.

        Where a visit takes place stands in the column `publisher`. The answer has a row for each eligible campaign:
        `event` (the row number, int64) and `campaign`, sorted by event and, within one, in booking order.
        """
        numbers, names = [], []
        kind = self._ledger.bookings.published.kind
        visits = with_publishers(visits, publisher, self._ledger.graph.roles)
        # Documents stand still for some visits at a time, and nobody waits for whoever gives them.
        for first, part in slices(visits) if self.documents is not None else ((0, visits),):
            with moving(first), self._view() as (view, seen):
                at = [seen]
                kind = seen.kind
                look_again = partial(self._look_again, at)
                for number, ids in view.batch(part, None, None, refuse_ranges, look_again):
                    number, row, _ = eligible(number + first, ids.to_numpy().copy(), at[0])
                    some, place = np.unique(row, return_inverse=True)
                    numbers.append(pa.array(number, pa.int64()))
                    names.append(pa.array([at[0].name[one] for one in some.tolist()], kind).take(pa.array(place)))
        schema = pa.schema([("event", pa.int64()), ("campaign", kind)])
        return pa.table([pa.chunked_array(numbers, pa.int64()), pa.chunked_array(names, kind)], schema=schema)

    def explain(self, visit: Mapping[str, Any], campaign: RuleId) -> Eligibility:
        """Why a campaign is eligible for a visit to its publisher, or why not: print the result."""
        with self._lock:
            parts = self._ledger.parts(plain_id(campaign))
        matcher = self._ledger.matcher
        with matcher.reading():
            asked = matcher.asked(visit)
            return Eligibility(
                campaign,
                {
                    what: explain(what, root, visit, matcher.absent, matcher.multi, asked)
                    for what, root in parts.items()
                },
            )

    def observe(self, visits: Any, publisher: str = "publisher") -> None:
        """Learn from past visits how often each predicate holds; indexes then look at the rarest first."""
        self._ledger.matcher.observe(with_publishers(visits, publisher, self._ledger.graph.roles))

    def stats(self) -> ExchangeStats:
        """Nodes, edges, campaigns, the bytes of their paths, and the figures of the matcher."""
        with self._lock:
            links = [link for link in self._ledger.links if link is not None]
            return ExchangeStats(
                nodes=len(self._ledger.graph.roles),
                edges=len(self._ledger.graph),
                edges_with_campaigns=len(links),
                campaigns=len(self),
                path_edges=sum(link.campaigns for link in links),
                path_bytes=self._ledger.bookings.published.path.nbytes,
                **vars(self._ledger.matcher.stats()),
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot, a directory; one that is there is replaced at once or, if anything fails, not at all."""
        from eligo.exchange.snapshot import save

        save(self, directory_path("path", path))

    def __repr__(self) -> str:
        nodes = len(self._ledger.graph.roles)
        counts = f"{nodes:,} node{'s' * (nodes != 1)}, {len(self):,} campaign{'s' * (len(self) != 1)}"
        return f"<eligo.exchange.Exchange: {counts}>"

    # -- parts

    @contextmanager
    def _view(self) -> Iterator[tuple[View, Published]]:
        """What is asked, and the bookings that belong to it."""
        while True:
            tidied = self._ledger.bookings.published.tidied
            with self._ledger.matcher.reading() as view:
                seen = self._ledger.bookings.published  # after the view: see bookings.py
                if seen.tidied == tidied:
                    yield view, seen
                    return

    def _look_again(self, seen: list[Published]) -> None:
        """Have the bookings of this moment."""
        seen[0] = self._ledger.bookings.published

    def _found(self, publisher: str, visit: Mapping[str, Any]) -> tuple[Published, I64, F64]:
        """The bookings as they were, the rows of those that are eligible, and their weights."""
        self._ledger.graph.role(publisher, "publisher")
        buffer: EventBuffer | None = getattr(self._local, "buffer", None)
        if buffer is None:
            buffer = self._local.buffer = EventBuffer()
        event = event_of(publisher, visit)
        while True:
            tidied = self._ledger.bookings.published.tidied
            with self._ledger.matcher.reading() as view:
                rules, weights = view.weighted(event, buffer)
            refuse_ranges(buffer)
            seen = self._ledger.bookings.published  # after the view: see bookings.py
            if seen.tidied == tidied:
                break
        _, rows, place = eligible(np.zeros(len(rules), np.int64), rules, seen)
        return seen, rows, weights[place]


_ARGUMENTS = ("campaign", "advertiser", "publisher", "expression", "path", "weight")


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        row = dict(given)
    elif isinstance(given, tuple | list):
        row = dict(zip(_ARGUMENTS, given, strict=False)) if len(given) <= len(_ARGUMENTS) else {}
    else:
        row = {}
    if not set(_ARGUMENTS[:4]) <= row.keys() <= set(_ARGUMENTS):
        raise OptionError(
            f"a booking is (campaign, advertiser, publisher, expression[, path[, weight]]), not {shown(given, 80)}"
        )
    return row
