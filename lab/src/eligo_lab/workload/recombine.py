"""More strings than a machine has real ones: real words in new combinations, by a seed.

    names    given and family names of different people, written out or with initials, as in citations
    titles   a chain over words: after each word comes what followed it in some real line, until a line ends there

Real strings come first, all of them if they are needed, and `Strings.verbatim` says how many they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eligo.compile.compiled import I64
from eligo.errors import OptionError
from eligo.jit import kernel
from eligo_lab.workload.grams import grams

_MOST_WORDS = 40  # of a title; a chain can run in circles
# Forms of a name: ann lee, a. lee, a. b. lee, ann b. lee; by these shares rules have about 8 predicates (Table 3).
_FORMS = (0.35, 0.2, 0.4, 0.05)
_SPENT = 0.01  # of what is made is new: then there are hardly any combinations left


@dataclass(frozen=True)
class Strings:
    """Distinct strings; `verbatim` of them are lines of the source."""

    lines: pa.Array
    verbatim: int


def strings(
    rng: np.random.Generator,
    lines: list[str],
    wanted: int,
    more: Callable[[np.random.Generator, pa.Array, int], pa.Array],
) -> Strings:
    """So many distinct strings in random order: real ones, and where they do not suffice, what `more` makes of them."""
    real = all_real(lines).lines
    if len(real) >= wanted:
        return Strings(real.take(pa.array(rng.permutation(len(real))[:wanted])), wanted)
    found, fresh = real, 0.8  # the share of what is made that is not there yet: it falls as combinations run out
    while fresh > _SPENT:
        missing = wanted - len(found)
        made = with_grams(more(rng, real, 1_000 + min(int(missing / fresh * 1.1), 4 * wanted)))
        both = pc.unique(pa.concat_arrays([found, made]))
        fresh = (len(both) - len(found)) / max(1, len(made))
        found = both
        if len(found) >= wanted:
            return Strings(found.slice(0, wanted).take(pa.array(rng.permutation(wanted))), len(real))
    raise OptionError(
        f"{wanted:,} distinct strings cannot be made of the {len(real):,} lines of the source, only about "
        f"{len(found):,}; give fewer rules, or a larger source"
    )


def all_real(lines: list[str]) -> Strings:
    """The strings of the source alone, in its order."""
    real = with_grams(pa.array(lines, pa.large_string()))
    return Strings(real, len(real))


def with_grams(lines: pa.Array) -> pa.Array:
    """Those that make a rule: of three letters or more, or of letters apart."""
    return lines.cast(pa.large_string()).filter(pa.array(np.diff(grams(lines).offsets) > 0))


def names(rng: np.random.Generator, people: pa.Array, n: int) -> pa.Array:
    """Names of nobody, from those of somebody."""
    words = [name.split() for name in people.to_pylist() if " " in name]
    if not words:
        return pa.array([], pa.large_string())
    given = pa.array([parts[0] for parts in words]).take(pa.array(rng.integers(0, len(words), n)))
    family = pa.array([parts[-1] for parts in words]).take(pa.array(rng.integers(0, len(words), n)))
    letters = pa.array([f"{chr(97 + letter)}." for letter in range(26)]).take(pa.array(rng.integers(0, 26, n)))
    initial = pc.binary_join_element_wise(pc.utf8_slice_codeunits(given, 0, 1), ".", "")
    first = pc.choose(
        pa.array(rng.choice(len(_FORMS), n, p=_FORMS)),
        given,
        initial,
        pc.binary_join_element_wise(initial, letters, " "),
        pc.binary_join_element_wise(given, letters, " "),
    )
    return pc.binary_join_element_wise(first, family, " ")


def titles(rng: np.random.Generator, lines: pa.Array, n: int) -> pa.Array:
    """Lines that read as the real ones do from each word to the next."""
    split = pc.split_pattern(lines, " ")
    offsets = split.offsets.to_numpy().astype(np.int64)
    encoded = split.flatten().dictionary_encode()
    words: I64 = encoded.indices.to_numpy().astype(np.int64)
    places = np.argsort(words, kind="stable")
    word_offsets = np.concatenate(([0], np.cumsum(np.bincount(words, minlength=len(encoded.dictionary)))))
    ends = np.zeros(len(words), np.bool_)
    ends[offsets[1:] - 1] = True
    chained, chain_offsets = chains(rng, n, _MOST_WORDS, words, offsets, ends, places, word_offsets)
    pieces = pa.LargeListArray.from_arrays(chain_offsets, encoded.dictionary.take(pa.array(chained)))
    return pc.binary_join(pieces, pa.scalar(" ", encoded.dictionary.type))


@kernel
def chains(rng, n, most, words, offsets, ends, places, word_offsets):
    """Words of n random walks: from a word to the one behind it in a random place where it occurs."""
    chained = np.empty(n * most, np.int64)
    chain_offsets = np.zeros(n + 1, np.int64)
    used = 0
    for i in range(n):
        place = offsets[int(rng.random() * (len(offsets) - 1))]
        for _ in range(most):
            word = words[place]
            chained[used] = word
            used += 1
            first, count = word_offsets[word], word_offsets[word + 1] - word_offsets[word]
            place = places[first + int(rng.random() * count)]
            if ends[place]:
                break
            place += 1
        chain_offsets[i + 1] = used
    return chained[:used].copy(), chain_offsets
