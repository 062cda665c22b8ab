"""Documents: the events seen before, kept and indexed for rules with quantifiers."""

from __future__ import annotations

from eligo.documents.documents import Documents

__all__ = ["Documents"]
