"""What is measured: anything that tells which rules an event matches.

read, build, finish    make ready; `build` is timed and its memory counted
rows(event)            the rows matched, ascending                       used to verify, never timed
run(clock, …)          some events, one after another; fills `clock`     clock[phase, event] in nanoseconds
run_batch()            all events at once, where there is such a way     nanoseconds by phase
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from eligo.compile.compiled import I32, I64
from eligo.errors import EligoError
from eligo_lab.bench.prepare import Prepared


class UnfitError(EligoError):
    """Why a contender cannot take part: it is not installed, or its language lacks something that the rules use."""


class Contender(ABC):
    """One way to match, over the rules and events of one `Prepared`."""

    name: str
    phases: tuple[str, ...]  # what `run` times apart
    kind: ClassVar[str]
    has_batch: ClassVar[bool] = False

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    def read(self) -> None:  # noqa: B027, most have nothing to do here
        """What comes before building and is not its cost; raises `UnfitError`."""

    @abstractmethod
    def build(self) -> None:
        """Build what searches; timed. Raises `UnfitError`."""

    def finish(self) -> None:  # noqa: B027
        """What comes after building and is not its cost: an evaluator, scratch memory, events in another form."""

    @abstractmethod
    def rows(self, event: int) -> I32:
        """The rows that an event matches, ascending."""

    @abstractmethod
    def run(self, clock: I64, first: int, stop: int, emit: bool) -> int:
        """Match events first … stop - 1, one after another; how many matches there were in all.

        Without `emit` ids, where they are apart, are left out.
        """

    def run_batch(self) -> dict[str, float]:
        """Match all events at once; nanoseconds by phase, of all events together."""
        return {}

    def batches(self) -> Iterator[tuple[int, I64, I32]]:
        """The same as pieces of the answer: first event, ends, rows; event first + i has rows[ends[i]:ends[i+1]]."""
        return iter(())

    def counters(self) -> tuple[int, int] | None:
        """Candidates and predicate evaluations of all searches so far; None where nobody counts."""
        return None

    def facts(self) -> dict[str, Any]:
        """What is known once it is built: bytes, notes."""
        return {}
