"""Whatever changes in whatever order: eligible are the campaigns whose composed expression the reference finds true."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eligo
from eligo.exchange import Exchange, GraphError
from eligo.language import And, Node, parse
from eligo.language.reference import matches
from strategies import events, expressions, tried

MULTI = frozenset({"c"})
PUBLISHERS, BETWEEN, ADVERTISERS = ("P", "Q"), ("X", "Y", "Z"), ("A", "B")
PAIRS = [(s, b) for s in PUBLISHERS + BETWEEN for b in BETWEEN + ADVERTISERS if s != b]
NAMES = ("one", "two", "three", "four", "five", "six")


@dataclass
class Naive:
    """The same exchange with nothing but dicts: edges in the order of connecting, campaigns in booking order."""

    absent: str
    edges: dict[tuple[str, str], Node] = field(default_factory=dict)
    campaigns: dict[str, tuple[tuple[str, ...], Node, float]] = field(default_factory=dict)

    def paths(self, publisher: str, advertiser: str, without: tuple[str, str] | None = None) -> list[tuple[str, ...]]:
        """All paths, the one to choose first: by hops, then by when their edges were connected."""
        order = {edge: number for number, edge in enumerate(self.edges)}
        found, waiting = [], [(publisher,)]
        while waiting:
            path = waiting.pop()
            for seller, buyer in self.edges:
                if seller == path[-1] and buyer not in path and (seller, buyer) != without:
                    (found if buyer == advertiser else waiting).append((*path, buyer))
        return sorted(found, key=lambda path: (len(path), [order[edge] for edge in pairwise(path)]))

    def over(self, edge: tuple[str, str]) -> list[str]:
        return [name for name, (path, _, _) in self.campaigns.items() if edge in pairwise(path)]

    def expression(self, name: str) -> Node:
        path, own, _ = self.campaigns[name]
        return And((own, *(self.edges[edge] for edge in pairwise(path))))

    def eligible(self, publisher: str, visit: dict[str, Any]) -> list[str]:
        return [
            name
            for name, (path, _, _) in self.campaigns.items()
            if path[0] == publisher and matches(self.expression(name), visit, self.absent, MULTI)
        ]


def agree(exchange: Exchange, naive: Naive, visits: list[dict[str, Any]]) -> None:
    assert exchange.campaigns == list(exchange) == list(naive.campaigns)
    assert len(exchange) == len(naive.campaigns)
    assert {(e.seller, e.buyer): e.campaigns for e in exchange.edges} == {e: len(naive.over(e)) for e in naive.edges}
    wanted = []
    many = [{**visit, "publisher": publisher} for publisher in PUBLISHERS for visit in visits]
    for number, visit in enumerate(many):
        names = naive.eligible(visit["publisher"], visit)
        wanted += [(number, name) for name in names]
        assert exchange.eligible(visit["publisher"], visit) == names
        best = sorted(((name, naive.campaigns[name][2]) for name in names), key=lambda one: -one[1])
        assert exchange.top(visit["publisher"], visit, 2) == best[:2]
    found = exchange.eligible_batch(many)
    assert list(zip(found["event"].to_pylist(), found["campaign"].to_pylist(), strict=True)) == wanted
    for name, (path, _, weight) in naive.campaigns.items():
        assert exchange.path(name) == path
        assert exchange.get(name).weight == weight
        composed = parse(exchange.expression(name))
        for visit in visits:
            held = matches(naive.expression(name), visit, naive.absent, MULTI)
            assert matches(composed, visit, naive.absent, MULTI) == held
            assert bool(exchange.explain(visit, name)) == held


def connect(exchange: Exchange, naive: Naive, draw: Any, tree: st.SearchStrategy[Node]) -> None:
    edge, expression = draw(st.sampled_from(PAIRS)), draw(tree)
    if edge in naive.edges:
        with pytest.raises(GraphError, match="already"):
            exchange.connect(*edge, expression)
    exchange.connect(*edge, expression, replace=edge in naive.edges)
    naive.edges[edge] = expression


def disconnect(exchange: Exchange, naive: Naive, draw: Any, _: Any) -> None:
    if not naive.edges:
        return
    edge, how = draw(st.sampled_from([*naive.edges])), draw(st.sampled_from(("refuse", "reroute", "cancel")))
    names = naive.over(edge)
    left = {n: naive.paths(naive.campaigns[n][0][0], naive.campaigns[n][0][-1], edge) for n in names}
    if names and (how == "refuse" or (how == "reroute" and not all(left.values()))):
        with pytest.raises(GraphError, match="campaign"):
            exchange.disconnect(*edge, how)
        return
    assert exchange.disconnect(*edge, how) == names
    for name in names:
        _, own, weight = naive.campaigns[name]
        if how == "cancel":
            del naive.campaigns[name]
        else:
            naive.campaigns[name] = left[name][0], own, weight
    del naive.edges[edge]


def book(exchange: Exchange, naive: Naive, draw: Any, tree: st.SearchStrategy[Node]) -> None:
    name, publisher = draw(st.sampled_from(NAMES)), draw(st.sampled_from(PUBLISHERS))
    advertiser, own, weight = draw(st.sampled_from(ADVERTISERS)), draw(tree), draw(st.sampled_from((1.0, 2.0, -1.0)))
    paths = naive.paths(publisher, advertiser)
    if not paths:
        with pytest.raises(GraphError, match="no path"):
            exchange.book(name, advertiser, publisher, own, replace=True)
        return
    path = draw(st.one_of(st.none(), st.sampled_from(paths)))
    if name in naive.campaigns:
        with pytest.raises(eligo.DuplicateRuleError):
            exchange.book(name, advertiser, publisher, own)
    exchange.book(name, advertiser, publisher, own, path, weight, replace=True)
    naive.campaigns[name] = path or paths[0], own, weight


def cancel(exchange: Exchange, naive: Naive, draw: Any, _: Any) -> None:
    name = draw(st.sampled_from(NAMES))
    if name in naive.campaigns:
        exchange.cancel(name)
        del naive.campaigns[name]
    assert name not in exchange
    with pytest.raises(eligo.UnknownRuleError):
        exchange.cancel(name)


def node(exchange: Exchange, naive: Naive, draw: Any, _: Any) -> None:
    name = draw(st.sampled_from(PUBLISHERS + BETWEEN + ADVERTISERS))
    role = exchange.nodes[name]
    if any(name in edge for edge in naive.edges):
        with pytest.raises(GraphError, match="disconnect"):
            exchange.remove_node(name)
    else:
        exchange.remove_node(name)
        exchange.add_node(name, role)


STEPS = (connect, connect, connect, disconnect, book, book, book, cancel, node)


@tried(40)
@given(data=st.data(), absent=st.sampled_from(("fails", "classical")))
def test_after_every_change_all_visits_agree(data: st.DataObject, absent: Any) -> None:
    tree = expressions(multi=MULTI, max_leaves=5)
    visits = data.draw(st.lists(events(multi=MULTI), min_size=1, max_size=3))
    exchange, naive = Exchange(absent=absent, multi=MULTI), Naive(absent)
    for names, role in ((PUBLISHERS, "publisher"), (BETWEEN, "intermediary"), (ADVERTISERS, "advertiser")):
        for name in names:
            exchange.add_node(name, role)  # type: ignore[arg-type]
    for edge in data.draw(st.lists(st.sampled_from(PAIRS), unique=True, min_size=6, max_size=14)):
        naive.edges[edge] = data.draw(tree)
        exchange.connect(*edge, naive.edges[edge])
    for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=10)):
        step(exchange, naive, data.draw, tree)
        agree(exchange, naive, visits)
    with tempfile.TemporaryDirectory() as folder:
        exchange.save(Path(folder) / "x")
        again = eligo.exchange.open(Path(folder) / "x")
        agree(again, naive, visits)
        book(again, naive, data.draw, tree)
        cancel(again, naive, data.draw, tree)
        agree(again, naive, visits)
