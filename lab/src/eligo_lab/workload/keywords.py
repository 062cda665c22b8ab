"""`keywords`: queries of a search engine as rules, documents as events (the PS-Tree paper §7.1, "query logs"; §7.3).

    keyword    boolean → boo = 'lea'   more than six letters: the first three are the attribute, the next the value
               vldb    → vl = 'db'     otherwise: the first half, rounded down, and the rest
    rules      queries of a few keywords, the r-th most frequent word drawn with weight r^-zipf, after the first `stop`
    events     passages of the same text, from the beginning of a document on until they have enough attributes

Words are runs of letters; those of one letter have no half and are left out. Attributes of one to three letters make a
space of at most 18,278 dimensions (26³ + 26² + 26; the paper has 26³ + 1), of which a language uses a part. A rule or
an event has one value of an attribute: a query draws another word, and a document keeps the first.

The paper has the queries and documents of a contest; here it is the prose that a machine has (real_text.py).
"""

from __future__ import annotations

import re
from typing import Annotated

import numpy as np
import pyarrow as pa

from eligo.compile.compiled import I32, I64
from eligo.errors import OptionError
from eligo.jit import kernel
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.deriving import repeated, sizes
from eligo_lab.workload.draft import EQUAL, conjunctive
from eligo_lab.workload.events import EventDraft, match_probability
from eligo_lab.workload.real_text import read
from eligo_lab.workload.strings import Source

_MOST_CELLS = 2**28  # of the table of events, a column for every attribute
_TRIES = 1_000  # draws for a keyword whose attribute is new to the query; then it stays shorter


@workload("queries of few keywords against documents of many, in thousands of dimensions (PS-Tree, query logs)")
def keywords(
    rules: Rules = 100_000,
    events: Events = 1_000,
    source: Source = "auto",
    rule_size: Annotated[float, "keywords of a query, on average"] = 2.78,
    event_size: Annotated[float, "attributes of a document, on average"] = 93.0,
    zipf: Annotated[float, "how far frequent words are preferred in queries: rank^-zipf; 0 to 5"] = 1.0,
    stop: Annotated[int, "the most frequent words (the, of, …), which queries do without"] = 100,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    parameters = dict(locals())
    if rule_size < 1 or not 0 <= zipf <= 5:
        raise OptionError(f"keywords: rule_size={rule_size:g} and zipf={zipf:g}: give 1 or more, and 0 to 5")
    rng = np.random.default_rng(seed)
    text = read("prose", source)
    words, offsets, vocabulary = _words(text.lines)
    names, values, attribute, value = _predicates(vocabulary)
    frequent = np.argsort(-np.bincount(words, minlength=len(vocabulary)), kind="stable")
    attributes = len(names)
    if not 0 <= stop <= len(frequent) // 2:
        raise OptionError(
            f"keywords: stop={stop} with a text of {len(frequent):,} different words; give 0 to {len(frequent) // 2:,}"
        )
    for name, size in (("rule_size", rule_size), ("event_size", event_size)):
        if not 1 <= size <= attributes / 4:
            raise OptionError(
                f"keywords: {name}={size:g} with a text of {len(vocabulary):,} different words in {attributes:,} "
                f"dimensions; give 1 to {attributes // 4}, or a larger source"
            )
    if events * attributes > _MOST_CELLS:
        raise OptionError(
            f"keywords: {events:,} events in {attributes:,} dimensions make a table of {events * attributes:,} cells; "
            f"give at most {_MOST_CELLS // attributes:,} events"
        )

    weights = np.cumsum(np.arange(stop + 1.0, len(frequent) + 1) ** -zipf)
    wanted = sizes(rng, rules, rule_size, rule_size - 1)
    query_offsets, query = draw_queries(rng, wanted, frequent[stop:], weights, attribute, attributes, _TRIES)
    textual = np.ones(attributes, np.bool_)
    draft = conjunctive(
        names,
        attribute[query],
        np.full(len(query), EQUAL, np.uint8),
        np.arange(len(query) + 1),
        value[query],
        query_offsets,
        textual,
        values,
    )
    passages = sizes(rng, events, event_size, event_size / 4)
    passage_offsets, found = read_passages(_beginnings(rng, offsets, events), passages, words, attribute, attributes)
    shown = EventDraft(names, passage_offsets, attribute[found], value[found], textual, values)
    return Workload(
        "keywords",
        {**parameters, "text": text.source, "text_hash": text.digest},
        draft,
        shown.table(),
        {
            "match": match_probability(draft, shown),
            "rule_size": draft.predicates / rules,
            "dimensions": float(len(np.unique(draft.attribute))),
            "event_size": len(found) / events,
            "repeated": float(repeated(draft).mean()),
            "words": float(len(words)),
            "different_words": float(len(vocabulary)),
        },
    )


def split(keyword: str) -> tuple[str, str]:
    """A keyword's attribute and value."""
    if len(keyword) > 6:
        return keyword[:3], keyword[3:6]
    half = len(keyword) // 2
    return keyword[:half], keyword[half:]


def _words(documents: list[str]) -> tuple[I64, I64, list[str]]:
    """The words of all documents by number, the offsets of documents that have any, and the different words."""
    split_up = [found for found in (re.findall("[a-z]{2,}", document) for document in documents) if found]
    if not split_up:
        raise OptionError("keywords: the source has no word of two letters or more; give another")
    encoded = pa.array([word for found in split_up for word in found]).dictionary_encode()
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(found) for found in split_up])))
    return encoded.indices.to_numpy().astype(np.int64), offsets, encoded.dictionary.to_pylist()


def _predicates(vocabulary: list[str]) -> tuple[tuple[str, ...], tuple[str, ...], I32, I64]:
    """Names and values that words are split into; and for every word both by number."""
    parts = [split(word) for word in vocabulary]
    names = sorted({name for name, _ in parts})
    values = sorted({value for _, value in parts})
    name_number = {name: i for i, name in enumerate(names)}
    value_number = {value: i for i, value in enumerate(values)}
    return (
        tuple(names),
        tuple(values),
        np.array([name_number[name] for name, _ in parts], np.int32),
        np.array([value_number[value] for _, value in parts], np.int64),
    )


def _beginnings(rng: np.random.Generator, offsets: I64, events: int) -> I64:
    """Where passages begin: at documents far from each other, or if there are too few, anywhere."""
    documents = len(offsets) - 1
    if events <= documents:
        return rng.permutation(offsets[np.arange(events) * documents // events])
    return rng.integers(0, offsets[-1], events)


@kernel
def draw_queries(rng, wanted, frequent, weights, attribute, attributes, tries):
    """For every query that many words with different attributes."""
    offsets = np.zeros(len(wanted) + 1, np.int64)
    query = np.empty(wanted.sum(), np.int64)
    seen = np.full(attributes, -1, np.int64)  # the last query that has the attribute
    total = weights[-1]
    at = 0
    for q in range(len(wanted)):
        for _ in range(wanted[q]):
            for _ in range(tries):
                place = min(np.searchsorted(weights, rng.random() * total, side="right"), len(weights) - 1)
                word = frequent[place]
                if seen[attribute[word]] != q:
                    seen[attribute[word]] = q
                    query[at] = word
                    at += 1
                    break
        offsets[q + 1] = at
    return offsets, query[:at].copy()


@kernel
def read_passages(beginnings, wanted, words, attribute, attributes):
    """For every passage its first words with different attributes, that many; the text goes round."""
    offsets = np.zeros(len(wanted) + 1, np.int64)
    found = np.empty(wanted.sum(), np.int64)
    seen = np.full(attributes, -1, np.int64)
    at = 0
    for e in range(len(wanted)):
        place, left, rest = beginnings[e], wanted[e], len(words)
        while left > 0 and rest > 0:
            word = words[place]
            if seen[attribute[word]] != e:
                seen[attribute[word]] = e
                found[at] = word
                at += 1
                left -= 1
            place = place + 1 if place + 1 < len(words) else 0
            rest -= 1
        offsets[e + 1] = at
    return offsets, found[:at].copy()
