"""The unit that the indexes know: a set of conjunctions over one numbering of spaces.

    conjunction c   predicates items[offsets[c] … offsets[c+1]], numbers of `predicates`, ascending

Offsets and items are those of `Compiled` itself; the rest is derived from it, so a merge can derive it again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays, Compiled, sorted_unique
from eligo.compile.predicates import Predicates, build_predicates, in_checking_order
from eligo.compile.spaces import Spaces, build_spaces
from eligo.compile.strings import Strings
from eligo.forking import cached_property


@dataclass(frozen=True)
class Conjunctions:
    """The conjunctions of one segment, and what is made of them for indexes that work with spaces."""

    compiled: Compiled
    strings: Strings
    attributes: int  # numbers of attributes are below

    @cached_property
    def spaces(self) -> Spaces:
        return self._cut[0]

    @cached_property
    def predicates(self) -> Predicates:
        return build_predicates(self.compiled, *self._cut[1:], self.strings, self.attributes)

    @cached_property
    def _cut(self) -> tuple[Spaces, I32, I32]:
        """Spaces, and the first and the last space of each run."""
        return build_spaces(self.compiled, self.strings, self.attributes)

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
        return sorted_unique(self.compiled.attribute[self.compiled.pattern >= 0])


def build_conjunctions(compiled: Compiled, strings: Strings, attributes: int) -> tuple[Compiled, Conjunctions]:
    """Conjunctions, and the same rules with their predicates in checking order, so that both share arrays."""
    compiled = in_checking_order(compiled)
    return compiled, Conjunctions(compiled, strings, attributes)


def restore_conjunctions(arrays: Arrays, compiled: Compiled, strings: Strings, attributes: int) -> Conjunctions:
    """What `arrays` gave, as loaded from a snapshot."""

    def part(prefix: str) -> Arrays:
        return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}

    conjunctions = Conjunctions(compiled, strings, attributes)
    vars(conjunctions).update(spaces=Spaces(**part("spaces.")), predicates=Predicates(**part("predicates.")))
    return conjunctions
