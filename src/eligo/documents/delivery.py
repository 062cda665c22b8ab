"""Handing published events to those whose rules they match.

An owner gets an event once, with all of his rules that match it, the rule with the highest weight first; owners come in
the order of their best rule: the utilities that Index Structures and Algorithms for Efficient Profile Matching, §6,
leaves to future work. Here is the seam for a service: what a receiver does with an event is its own business.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eligo.arguments import shown
from eligo.errors import OptionError
from eligo.rule import Rule

log = logging.getLogger("eligo")
_REMEMBERED = 1000  # failures


@dataclass(frozen=True)
class Delivered:
    """What a receiver gets: the event, its number among documents, and the owner's rules that match it."""

    owner: str
    event: Mapping[str, Any]
    document: int
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class DeliveryFailure:
    """A receiver that raised."""

    owner: str
    document: int
    error: Exception


class Delivery:
    """Receivers by owner."""

    def __init__(self) -> None:
        self.receivers: dict[str, Callable[[Delivered], object]] = {}
        self.failures: deque[DeliveryFailure] = deque(maxlen=_REMEMBERED)

    def subscribe(self, owner: str, deliver: Callable[[Delivered], object]) -> None:
        if not callable(deliver):
            raise OptionError(f"deliver is a function that is called with what matches, not {shown(deliver)}")
        self.receivers[owner] = deliver

    def sorted_out(self, rules: Sequence[Rule]) -> list[tuple[str, tuple[Rule, ...]]]:
        """Returns the owners of rules, each with his rules, the highest weight first."""
        found: dict[str, list[Rule]] = {}
        for rule in sorted(rules, key=lambda rule: -rule.weight):  # stable: ties in the order of adding
            if rule.owner is not None:
                found.setdefault(rule.owner, []).append(rule)
        return [(owner, tuple(some)) for owner, some in found.items()]

    def deliver(
        self, event: Mapping[str, Any], number: int, deliveries: Sequence[tuple[str, tuple[Rule, ...]]]
    ) -> None:
        for owner, rules in deliveries:
            receiver = self.receivers.get(owner)
            if receiver is None:
                continue
            try:
                receiver(Delivered(owner, event, number, rules))
            except Exception as error:
                log.exception("the receiver of %s failed on document %d", shown(owner), number)
                self.failures.append(DeliveryFailure(owner, number, error))
