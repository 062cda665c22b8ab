"""Booking: what a campaign needs is checked, edges on its path become rules, and its own rule is the last to come.

    order ──▶ edges on its path taken, each a rule once a campaign runs over it ──▶ row published ──▶ own rule added
    cancel    the own rule goes first, then those of edges that nobody else uses

That order is what lets readers go without a lock; bookings.py says why. An edge that no path has costs nothing but its
place in the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eligo.arguments import shown
from eligo.errors import EligoError, RuleTypeError, UnknownRuleError
from eligo.exchange.bookings import Bookings, Row
from eligo.exchange.expressions import reading, restricted
from eligo.exchange.graph import Graph, GraphError, Link, listed
from eligo.language import NO_LIMITS, Limits, Node, parse
from eligo.matcher import Matcher
from eligo.reading import weight_of
from eligo.rule import RuleId
from eligo.segments.rule_table import is_id


class Order(NamedTuple):
    """A booking that has been checked: `own` holds at its publisher alone, `text` is what was given.

    `replaced` is the rule that it takes the place of, -1 for none.
    """

    name: RuleId
    links: tuple[Link, ...]
    own: Node | str
    text: str
    weight: float
    replaced: int


class Ledger:
    """The matcher, and what its rules stand for. All methods are called with the exchange's lock held."""

    def __init__(self, matcher: Matcher, limits: Limits) -> None:
        self.matcher = matcher
        self.limits = limits
        self.graph = Graph()
        self.bookings = Bookings()
        self.links: list[Link | None] = []  # by number, those that have a rule
        self.free: list[int] = []  # numbers that none has
        self.kind: type | None = None  # of campaigns' ids

    def checked(
        self,
        campaign: RuleId,
        advertiser: str,
        publisher: str,
        expression: object,
        path: Sequence[str] | None = None,
        weight: float = 1.0,
    ) -> Order:
        """What is asked for, with the path that it takes; refused if it makes no sense."""
        self.graph.role(publisher, "publisher")
        self.graph.role(advertiser, "advertiser")
        given = None if path is None else self.graph.along(path, publisher, advertiser)
        links = given or self.graph.route(publisher, advertiser)
        if links is None:
            raise GraphError(f"no path leads from {publisher!r} to {advertiser!r}: connect what is between them")
        root, text = reading(expression, self.limits, self.matcher.documents is not None)
        replaced = self.bookings.rules.get(campaign, -1)
        return Order(campaign, links, restricted(root, text, publisher), text, weight_of(weight), replaced)

    def rerouted(self, names: list[RuleId], link: Link) -> list[Order]:
        """The campaigns over other paths."""
        orders, stuck = [], []
        for name in names:
            rule = self.bookings.rules[name]
            path = self.path(rule)
            links = self.graph.route(path[0], path[-1], link)
            if links is None:
                stuck.append(name)
                continue
            text = self.bookings.text(rule)
            own = restricted(parse(text, self.matcher.limits), text, path[0])
            orders.append(Order(name, links, own, text, self.matcher.get(rule).weight, rule))
        if stuck:
            raise GraphError(
                f"without {link} no path is left for {listed([*map(repr, stuck)], 'campaign')}: cancel them first, or "
                "connect another way"
            )
        return orders

    def commit(self, orders: list[Order]) -> None:
        """Book what was checked. What can fail, though nothing should, comes before anything is seen or lost."""
        if not orders:
            return
        new: list[Link] = []
        rows = []
        for one in orders:
            order = self.bookings.order(one.replaced) if one.replaced >= 0 else -1
            rows.append(Row(one.name, [self._take(link, new) for link in one.links], one.text, order))
        rules = self.bookings.append(rows)
        self.bookings.publish(len(self.links))
        edges = [(-1 - link.number, link.expression, 1.0) for link in new]
        try:
            self._load(edges, [(rule, one.own, one.weight) for rule, one in zip(rules, orders, strict=True)])
        except BaseException as error:
            names = {-1 - link.number: f"edge {link}" for link in new}
            names |= {rule: f"campaign {one.name!r}" for rule, one in zip(rules, orders, strict=True)}
            for row in rows:
                self._release(row.path, loaded=False)
            if isinstance(error, EligoError):
                raise _named(error, names) from None
            raise
        for rule, one in zip(rules, orders, strict=True):
            self.bookings.rules[one.name] = rule
            if one.replaced >= 0:
                self.matcher.remove(one.replaced)
                self._release(self.bookings.path(one.replaced))
        self.kind = type(orders[0].name)
        self.bookings.tidy(len(self.links))

    def cancel(self, campaign: RuleId) -> None:
        rule = self.rule(campaign)
        self.matcher.remove(rule)
        del self.bookings.rules[campaign]
        self._release(self.bookings.path(rule))
        self.bookings.tidy(len(self.links))
        if not self.bookings.rules:
            self.kind = None

    def parts(self, campaign: RuleId) -> dict[str, Node]:
        """The campaign's own expression and those of its edges, by what they are."""
        rule = self.rule(campaign)
        texts = {"own expression": self.bookings.text(rule)}
        for number in self.bookings.path(rule):
            link = self.links[number]
            assert link is not None
            name = f"{link.seller} sells to {link.buyer}"
            texts[str(link) if name in texts else name] = link.expression
        return {what: parse(text, NO_LIMITS) for what, text in texts.items()}

    def path(self, rule: int) -> tuple[str, ...]:
        """The nodes from publisher to advertiser."""
        links = [link for number in self.bookings.path(rule) if (link := self.links[number]) is not None]
        return (links[0].seller, *(link.buyer for link in links))

    def rule(self, campaign: RuleId) -> int:
        """The number of a campaign's rule; an unknown one is refused."""
        rule = self.bookings.rules.get(campaign) if is_id(campaign) else None
        if rule is None:
            raise UnknownRuleError(f"there is no campaign {shown(campaign)}")
        return rule

    def check_id(self, campaign: RuleId, other: RuleId | None) -> None:
        """Refuse what is no id, or not of the kind of the others."""
        if not is_id(campaign):
            raise RuleTypeError("a campaign's id is a string of valid Unicode or an integer of 64 bits")
        kind = self.kind or (type(other) if other is not None else None)
        if kind is not None and type(campaign) is not kind:
            raise RuleTypeError(f"ids are of one kind, and those of this exchange are {kind.__name__}")

    def _take(self, link: Link, new: list[Link]) -> int:
        """Count one campaign more for an edge; its number, which it gets with the first: then it is among the new."""
        if link.number < 0:
            link.number = self.free.pop() if self.free else len(self.links)
            self.links[link.number : link.number + 1] = [link]
            new.append(link)
        link.campaigns += 1
        return link.number

    def _load(self, edges: list[tuple[int, str, float]], own: list[tuple[int, Node | str, float]]) -> None:
        """Rules of edges, then those of campaigns; all or, on an error, none."""
        if len(own) > 1:
            self.matcher.add_many([*edges, *own])
            return
        done: list[int] = []
        try:
            for rule, expression, weight in (*edges, *own):
                try:
                    self.matcher.add(rule, expression, weight)
                except EligoError as error:
                    error.args = (f"rule {rule!r} (row 0): {error}", *error.args[1:])
                    raise
                done.append(rule)
        except BaseException:
            for rule in done:
                self.matcher.remove(rule)
            raise

    def _release(self, edges: Iterable[int], loaded: bool = True) -> None:
        """Count one campaign less for each edge, whose rule, if it was loaded, goes with the last.

        Its number may be used again at once: no campaign that is still found has it on its path.
        """
        for number in edges:
            link = self.links[number]
            assert link is not None
            link.campaigns -= 1
            if not link.campaigns:
                if loaded:
                    self.matcher.remove(-1 - number)
                self.links[number], link.number = None, -1
                self.free.append(number)


def _named(error: EligoError, names: dict[int, str]) -> EligoError:
    """The same error about the edge or campaign of which the matcher knows only the rule's number."""
    found = re.match(r"rule (-?\d+) \(row \d+\): ", str(error))
    if found and int(found[1]) in names:
        text = str(error)[found.end() :].replace("Matcher(limits=", "Exchange(limits=")
        error.args = (f"{names[int(found[1])]}: {text}", *error.args[1:])
    return error
