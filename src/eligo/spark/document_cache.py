"""What a worker has open of documents, and how rules with quantifiers ask them.

    a rule whose questions are about one attribute each    the values of these, mapped (documents/frozen.py)
    any other                                              documents with the attributes that such rules name, in memory

The second are read from the files once for a version of the documents, if there are no more than the query allows;
otherwise the rules that need them are set aside. Tasks of a process share both.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from eligo.compile.compiled import I32, I64
from eligo.documents import Documents
from eligo.documents.event_state import EventScreen
from eligo.documents.frozen import FrozenDocuments, FrozenIndex
from eligo.documents.joins import Joins
from eligo.engine import Engine
from eligo.segments.joining import Joining, Needs, needs_of
from eligo.segments.screen import ASK
from eligo.spark.document_files import attribute_batches, open_values, schema_of
from eligo.spark.set_aside import SetAside, rules_asking
from eligo.store.versions import DATA, PATIENCE, DocumentSet, hold_documents

log = logging.getLogger("eligo.spark")

_REMEMBERED: Final = 65_536  # residuals

# By folder, job and attributes: what several versions of rules ask is in memory once, as long as one of them is open.
_documents: WeakValueDictionary[tuple[str, str, frozenset[str]], Documents] = WeakValueDictionary()
_latest: list[Documents] = []  # the last that was asked for, so that the next pass over the events finds it


class AskedDocuments:
    """A version of documents, as the rules of one version ask it."""

    def __init__(self, path: str, version: int, most: int, engine: Engine, joining: Joining) -> None:
        self._held = hold_documents(path, version, patience=PATIENCE)  # nobody sweeps it away meanwhile
        self.content = content = self._held.content
        index = _frozen_index(path, content, joining)
        self._uneven = frozenset(name for name, number in index.names.items() if index.uneven[number])
        self._known: dict[str, bool] = {}  # residual → whether documents themselves are asked
        self._compared = Joins(FrozenDocuments(index), engine.rules)
        self._compared.prefiltering = False  # it looks for documents
        self._searched: Joins | None = None
        self.aside = SetAside()
        names = searched_names(joining, self._uneven)
        if names is not None and content.documents <= most:
            self._searched = Joins(_in_memory(path, content, names), engine.rules)
        elif names is not None:
            why = too_many(content, most)
            self.aside = rules_asking(engine, lambda needs: searches(needs, self._uneven), why)
            log.warning("version %d of %s: %s", content.version, path, self.aside.sentence())

    @property
    def size(self) -> int:
        """Bytes in memory."""
        if self._searched is None:
            return 0
        stats = self._searched.documents.stats()
        return int(stats["record_bytes"] + stats["index_bytes"])

    def searches(self, residual: str) -> bool:
        """Whether a residual needs documents themselves."""
        known = self._known.get(residual)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
                self._compared.forget()
                if self._searched is not None:
                    self._searched.forget()
            known = self._known[residual] = searches(needs_of(residual), self._uneven)
        return known

    def screen(self) -> DocumentsScreen:
        """For one search."""
        return DocumentsScreen(
            self.searches,
            EventScreen(self._compared),
            None if self._searched is None else EventScreen(self._searched),
        )


class DocumentsScreen:
    """Asks values where these are enough, and documents else."""

    def __init__(self, searches: Callable[[str], bool], compared: EventScreen, searched: EventScreen | None) -> None:
        self._searches, self._compared, self._searched = searches, compared, searched

    def begin(self, first: int, events: Any) -> None:
        self._compared.begin(first, events)
        if self._searched is not None:
            self._searched.begin(first, events)

    def holds(self, event: int, tag: str) -> bool:
        if not self._searches(tag):
            return self._compared.holds(event, tag)
        return self._searched is not None and self._searched.holds(event, tag)  # else it is set aside

    def compared(self, event: int, tags: list[str], which: I32) -> tuple[I64, bool]:
        """Answers no rule in advance: each is asked by `holds`."""
        return np.full(len(which), ASK, np.int64), True


def _frozen_index(path: str, content: DocumentSet, joining: Joining) -> FrozenIndex:
    """The values of all attributes that some question is about alone; those that nobody made yet are made."""
    where = os.path.join(path, DATA)
    return FrozenIndex(
        content.documents,
        (
            (name, [open_values(path, where, table, content.schema, name) for table in content.tables])
            for name in sorted(joining.compared)
        ),
    )


def searches(needs: Needs, uneven: frozenset[str]) -> bool:
    """Whether the rules of a residual need documents themselves, given the attributes of which some document has
    several values, or none.
    """
    return needs.searching or not uneven.isdisjoint(needs.even)


def searched_names(joining: Joining, uneven: frozenset[str]) -> set[str] | None:
    """The attributes that rules ask of documents themselves; None if no rule does."""
    unsettled = not uneven.isdisjoint(joining.even)
    if not joining.searching and not unsettled:
        return None
    return {*joining.searched, *(joining.compared if unsettled else ())}


def too_many(content: DocumentSet, most: int) -> str:
    """Why documents are not searched."""
    return (
        f"ask several things of one document, or that all of its values be so, and a worker would have to hold "
        f"{content.documents:,} documents for that, more than most_documents={most:,}: allow more where workers have "
        "the memory, remove documents, or ask one thing at a time"
    )


def _in_memory(path: str, content: DocumentSet, names: set[str]) -> Documents:
    key = (path, content.job, frozenset(names))
    found = _documents.get(key)
    if found is None:
        found = _documents[key] = _read(path, content, names)
    _latest[:] = [found]
    return found


def _read(path: str, content: DocumentSet, names: set[str]) -> Documents:
    documents, schema = Documents(keep=None), schema_of(content.schema)
    documents.watch(names)
    batches: list[pa.RecordBatch] = []
    for table in content.tables:
        batches += attribute_batches(os.path.join(path, DATA, table.file), table.rows, schema, names)
    if batches:
        documents.add_many(pa.Table.from_batches(batches))
    return documents
