"""The unit that the indexes know: a set of conjunctions over one numbering of spaces.

    conjunction c   predicates items[offsets[c] … offsets[c+1]], numbers of `predicates`, ascending

Offsets and items are those of `Compiled` itself; the rest is derived from it, so a merge can derive it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays, Compiled, sorted_unique
from eligo.compile.predicates import Predicates, build_predicates, in_checking_order
from eligo.compile.spaces import Spaces, build_spaces
from eligo.compile.strings import Strings


@dataclass(frozen=True)
class Conjunctions:
    """Spaces, predicates and conjunctions of one segment."""

    spaces: Spaces
    predicates: Predicates
    compiled: Compiled  # the same in 64-bit keys, for indexes that make spaces of their own
    strings: Strings

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def offsets(self) -> I64:
        return self.compiled.conjunction_offsets

    @property
    def items(self) -> I32:
        return self.compiled.conjunction

    @cached_property
    def space_handle(self) -> object:
        return self.spaces.handle(self.strings)

    @cached_property
    def predicate_handle(self) -> object:
        return self.predicates.handle()

    def arrays(self) -> Arrays:
        return {
            **{f"spaces.{name}": array for name, array in self.spaces.arrays().items()},
            **{f"predicates.{name}": array for name, array in self.predicates.arrays().items()},
        }

    def text_attributes(self) -> I32:
        """Attributes whose events must bring the bytes of their strings: some predicate is about order or a pattern."""
        wanted = self.spaces.string_ordered.astype(np.bool_)
        wanted[self.pattern_attributes()] = True
        return np.nonzero(wanted)[0].astype(np.int32)

    def pattern_attributes(self) -> I32:
        """Attributes with a pattern that only the text itself can answer."""
        if len(self.predicates.pattern_offsets) == 1:
            return np.zeros(0, np.int32)
        return sorted_unique(self.predicates.attribute()[self.predicates.pattern >= 0])


def build_conjunctions(compiled: Compiled, strings: Strings, attributes: int) -> tuple[Compiled, Conjunctions]:
    """Conjunctions in spaces, and the same rules with their predicates in checking order, so that both share arrays."""
    compiled = in_checking_order(compiled)
    spaces, low, high = build_spaces(compiled, strings, attributes)
    predicates = build_predicates(compiled, low, high, strings, attributes)
    return compiled, Conjunctions(spaces, predicates, compiled, strings)


def restore_conjunctions(arrays: Arrays, compiled: Compiled, strings: Strings) -> Conjunctions:
    """What `arrays` gave, as loaded from a snapshot."""

    def part(prefix: str) -> Arrays:
        return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

    return Conjunctions(
        Spaces(**part("spaces.")),
        Predicates(**part("predicates.")),
        compiled,
        strings,
    )
