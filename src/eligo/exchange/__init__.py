"""An advertising exchange: a graph of publishers, intermediaries and advertisers with an expression on every edge.

    import eligo

    exchange = eligo.exchange.Exchange()
    exchange.add_node("P", "publisher")
    exchange.add_node("A", "advertiser")
    exchange.connect("P", "A", "category = 'Sports'")
    exchange.book("spring", "A", "P", "age = 4")
    exchange.eligible("P", {"category": "Sports", "age": 4})          # ['spring']

docs/exchange.md tells it step by step.
"""

from __future__ import annotations

from eligo.exchange.exchange import Campaign, Edge, Exchange, ExchangeStats
from eligo.exchange.expressions import Eligibility
from eligo.exchange.graph import GraphError, UnknownNodeError
from eligo.exchange.snapshot import open_exchange as open

__all__ = ["Campaign", "Edge", "Eligibility", "Exchange", "ExchangeStats", "GraphError", "UnknownNodeError", "open"]
