"""`bitmap`: many events at once, a bit for each; and what `auto` is.

One event alone finds its conjunctions as with `propagation`. A batch goes another way (batch/): predicates are bitmaps
over the events of a block, conjunctions and trees are ANDs and ORs of machine words.
"""

from __future__ import annotations

from eligo.index.propagation import Propagation


class Bitmap(Propagation):
    """Blocks of events for every batch, however small."""

    name = "bitmap"
    summary = "batches as bitmaps over their events, single events as propagation"
    blocks = "always"


class Auto(Propagation):
    """Blocks of events where batches are large enough to pay for what that needs, and events have rules in common."""

    blocks = "where it pays"
