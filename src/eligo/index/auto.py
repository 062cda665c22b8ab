"""`auto`: what each segment is searched with is planned for that segment (segments/planning.py).

Single events find their conjunctions by one of KINDS. A batch goes by blocks (batch/) where that pays.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final, Literal

import numpy as np

from eligo.compile.compiled import I32
from eligo.compile.conjunctions import Conjunctions
from eligo.index.propagation import Propagation
from eligo.index.registry import INDEXES
from eligo.options import Option

KINDS: Final = ("propagation", "pst-hash", "scan")  # in files they have these numbers


class _Planned:
    """What an index does otherwise as a kind of `auto`: batches may go by blocks, so that events bring what either
    needs.
    """

    blocks: ClassVar[Literal["never", "always", "where it pays"]] = "where it pays"
    options: ClassVar[Mapping[str, Option]] = {}

    def text_attributes(self, conjunctions: Conjunctions) -> I32:
        own: I32 = super().text_attributes(conjunctions)  # type: ignore[misc]
        return np.union1d(own, conjunctions.text_attributes())


class Auto(_Planned, Propagation):
    """Stands for the choice; a segment has one of KINDS."""

    name = "auto"
    summary = "the index for single events and the way for batches, planned for each segment"
    options: ClassVar[Mapping[str, Option]] = {
        "memory": Option(0, "bytes that rules and all that is built of them may take; 0: no bound", least=0),
    }


@cache
def kind_of(number: int) -> type[Any]:
    """The index that is a kind of `auto`; imported when a segment has it."""
    return type("Planned", (_Planned, INDEXES.get(KINDS[number])), {})
