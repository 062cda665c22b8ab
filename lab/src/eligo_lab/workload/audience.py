"""What display advertisers ask for, and what is known about a visitor: the statistics behind `trees`.

The paper on complex expressions §5.1 generates contracts from statistics of real ones that were never published. These
are ours: not measured, but of the shape that such contracts have. Popular attributes with few values (gender, country,
device), a long tail of values (site, area), lists more often than single values, and exclusions where advertisers shun
something. The paper's Table 3 says what they must add up to: by its distribution of children, the selectivities of
depths 1 to 4 are those of conjunctions that hold with probability 0.50, 0.51, 0.44 and 0.42. Here it is 0.46.

    attribute   values, most frequent first, by share or by rank^-skew
    targeted    a_i: how often, among all predicates, this attribute is drawn (normalised)
    known       in how many visits the attribute is known
    several     mean number of values that a predicate lists; `longest` bounds it
    shunned     share of predicates that exclude their values (not in, !=)

One distribution of values serves rules and events alike: p_attribute(target) is also how often visitors have the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64

F64: TypeAlias = NDArray[np.float64]


class Attribute(NamedTuple):
    name: str
    values: tuple[str, ...] | tuple[int, ...]
    shares: tuple[float, ...] | float  # of each value, or the exponent of a Zipf law over their ranks
    targeted: float
    known: float
    several: float = 1.0
    longest: int = 1
    shunned: float = 0.0


# Conjunctions of i predicates are drawn with this probability: the c_i of §5.1.
SIZES: Final = {1: 0.76, 2: 0.17, 3: 0.05, 4: 0.02}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_STATES: Final = _words(
    "CA TX FL NY PA IL OH GA NC MI NJ VA WA AZ TN MA IN MO MD WI CO MN SC AL LA KY OR OK CT UT NV IA AR KS MS NM NE ID "
    "WV HI NH ME MT RI DE SD ND AK DC VT WY"
)
_COUNTRIES: Final = _words("US CA GB MX DE IN BR FR AU JP ES IT PH NL SE PL AR CO ZA IE NZ SG CH BE NO DK AT PT CL FI")
_SECTIONS: Final = _words(
    "news sports mail finance entertainment weather games music movies tv shopping travel autos health food style "
    "technology science education jobs local politics business family homes pets books photos dating religion"
)
_INTERESTS: Final = _words(
    "NFL NBA MLB NHL soccer golf tennis running cycling fishing hunting hiking cooking baking wine beer coffee "
    "gardening diy crafts photography painting theatre concerts rock pop country-music jazz classical gaming "
    "gadgets phones cars trucks motorcycles boats air-travel cruises beaches skiing camping hotels fashion shoes "
    "beauty jewelry fitness yoga diets parenting babies toys dogs cats birds history novels comics celebrities "
    "reality-tv comedy drama investing credit-cards mortgages insurance taxes retirement real-estate careers "
    "colleges languages politics environment charity religion astrology weddings genealogy collecting auctions "
    "coupons"
)

AUDIENCE: Final = (
    # name, values, shares or skew, targeted, known, several, longest, shunned
    Attribute("gender", ("male", "female"), (0.53, 0.47), 11, 0.95),
    Attribute("age", (4, 3, 5, 2, 6, 7, 1), (0.22, 0.2, 0.18, 0.14, 0.12, 0.09, 0.05), 11, 0.95, 4.0, 6),
    Attribute("country", _COUNTRIES, 2.6, 18, 0.99, 2.0, 6),
    Attribute("state", _STATES, 0.8, 4, 0.95, 4.0, 10, 0.3),
    Attribute("dma", tuple(range(501, 711)), 0.9, 2, 0.85, 5.0, 12),
    Attribute("zip", tuple(range(10_001, 100_000, 9)), 0.3, 4, 0.8, 3.0, 8),
    Attribute("language", ("en", "es", "zh", "fr", "de", "pt", "vi", "ko"), 2.6, 8, 0.99, 1.6, 3),
    Attribute("device", ("desktop", "mobile", "tablet"), (0.56, 0.36, 0.08), 10, 0.99, 1.6, 2),
    Attribute("os", ("windows", "android", "ios", "macos", "linux"), 0.9, 3, 0.99, 2.4, 4, 0.1),
    Attribute("browser", ("chrome", "safari", "firefox", "edge", "opera", "other"), 1.1, 3, 0.99, 2.8, 5, 0.1),
    Attribute("connection", ("cable", "cellular", "dsl", "corporate", "satellite", "dialup"), 0.8, 2, 0.9, 2.8, 4),
    Attribute("hour", tuple(range(24)), 0.1, 5, 1.0, 14.0, 20),
    Attribute("weekday", (1, 2, 3, 4, 5, 6, 7), 0.1, 5, 1.0, 5.0, 6),
    Attribute("section", _SECTIONS, 0.9, 8, 0.98, 4.0, 8, 0.5),
    Attribute("site", tuple(range(1, 2001)), 1.0, 4, 1.0, 8.0, 16, 0.6),
    Attribute("position", ("above", "below"), (0.6, 0.4), 4, 0.95),
    Attribute("size", ("300x250", "728x90", "160x600", "320x50", "300x600", "970x250"), 1.0, 4, 1.0, 2.5, 4),
    Attribute("interest", _INTERESTS, 0.7, 6, 0.8, 8.0, 16, 0.25),
    Attribute("intent", tuple(range(1, 61)), 0.8, 2, 0.5, 4.0, 10),
    Attribute("income", (3, 2, 4, 5, 1, 6), 0.5, 4, 0.8, 3.0, 5),
    Attribute("education", (2, 3, 1, 4, 5), 0.5, 2, 0.7, 2.2, 4),
    Attribute("parent", ("no", "yes"), (0.65, 0.35), 2, 0.8),
    Attribute("visits", (0, 1, 2, 3, 4, 5), 0.7, 4, 0.95, 3.0, 5),
    Attribute("bought", tuple(range(1, 1001)), 0.6, 2, 0.4, 2.0, 6, 0.3),
    Attribute("carrier", tuple(range(1, 41)), 1.0, 1, 0.8, 2.0, 5, 0.3),
)


@dataclass(frozen=True)
class Statistics:
    """The table as arrays for kernels. The values of attribute i are value_offsets[i] … [i+1], ascending."""

    names: tuple[str, ...]
    strings: tuple[str, ...]
    textual: NDArray[np.bool_]
    value_offsets: I64
    operand: I64  # by value: what a rule writes, a number of `strings` or an integer
    value_cumulative: F64  # by value: p_attribute(target), added up within the attribute
    targeted: F64  # by attribute: a_i, added up
    lengths: F64  # [attribute, length]: the probability of a list of at most that length
    shunned: F64
    known: F64


@cache
def statistics() -> Statistics:
    strings = tuple(sorted({value for a in AUDIENCE for value in a.values if isinstance(value, str)}))
    number = {text: i for i, text in enumerate(strings)}
    operands, cumulative, offsets = [], [], [0]
    longest = max(a.longest for a in AUDIENCE)
    lengths = np.ones((len(AUDIENCE), longest + 1))
    for i, a in enumerate(AUDIENCE):
        ranks = np.arange(1, len(a.values) + 1, dtype=np.float64)
        shares = ranks**-a.shares if isinstance(a.shares, float) else np.array(a.shares)
        codes = np.array([number[v] if isinstance(v, str) else v for v in a.values], np.int64)
        order = np.argsort(codes)
        operands.append(codes[order])
        cumulative.append(added_up(shares[order]))
        offsets.append(offsets[-1] + len(codes))
        lengths[i, : a.longest + 1] = np.concatenate(([0.0], _length_cumulative(a.several, a.longest)))
    return Statistics(
        names=tuple(a.name for a in AUDIENCE),
        strings=strings,
        textual=np.array([isinstance(a.values[0], str) for a in AUDIENCE]),
        value_offsets=np.array(offsets, np.int64),
        operand=np.concatenate(operands),
        value_cumulative=np.concatenate(cumulative),
        targeted=added_up(np.array([a.targeted for a in AUDIENCE])),
        lengths=lengths,
        shunned=np.array([a.shunned for a in AUDIENCE]),
        known=np.array([a.known for a in AUDIENCE]),
    )


def _length_cumulative(mean: float, longest: int) -> F64:
    """Lengths 1 … longest: one and a binomial number more, so that their mean is the one asked."""
    more = longest - 1
    p = (mean - 1) / more if more else 0.0
    return added_up(np.array([comb(more, k) * p**k * (1 - p) ** (more - k) for k in range(more + 1)]))


def added_up(weights: F64) -> F64:
    """Cumulative shares; the last is 1 exactly, so that no draw from [0, 1) falls behind it."""
    total = np.cumsum(weights / weights.sum())
    total[-1] = 1.0
    return total
