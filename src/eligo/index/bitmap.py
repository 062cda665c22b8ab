"""`bitmap`: many events at once, a bit for each.

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
