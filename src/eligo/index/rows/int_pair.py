"""A word as two numbers of 32 bits, each with its sign."""

from __future__ import annotations

import numpy as np

from eligo.jit import inline


@inline
def pair(high, low):
    return np.int64(high) << 32 | (np.int64(low) & 0xFFFF_FFFF)


@inline
def upper(word):
    return word >> 32


@inline
def lower(word):
    return (word << 32) >> 32
