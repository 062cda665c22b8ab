"""Segments: immutable compiled rules with their index and evaluator, and the view of several that a match reads."""
