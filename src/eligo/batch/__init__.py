"""Many events at once: predicates as bitmaps with a bit for each event, conjunctions and trees as words of them."""
