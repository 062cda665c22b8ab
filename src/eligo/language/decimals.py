"""A decimal is a number: which one, in rules and in events alike.

Everything compares 64-bit integers and floats, so a decimal becomes one of these where it comes in, by the one function
of this file. `compile/decimals.py` does the same for columns.
"""

from __future__ import annotations

import math
from decimal import Decimal


def number_of(value: Decimal) -> int | float:
    """The 64-bit integer that the decimal equals, if there is one; else the nearest float.

    A decimal beyond all floats is an infinity, as IEEE 754 rounds it; a decimal NaN is the float NaN.
    """
    if value.is_nan():  # the signalling one cannot even be converted
        return math.nan
    if value.is_finite() and value.adjusted() < 19:  # else the integer could have a billion digits
        whole = int(value)
        if whole == value and -(2**63) <= whole < 2**63:
            return whole
    return float(value)
