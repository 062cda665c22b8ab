"""Whoever can be measured: `base.py` says what a contender is, `indexed.py` has our own, `outside.py` the others."""
